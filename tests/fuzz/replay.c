/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a fuzz target with a corpus, and with seeded mutations of it, where there is no libFuzzer:
 * replay FOLDER. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTATIONS = 200, SECONDS_AN_INPUT = 10, MOST_BYTES = 1 << 20 };

static char current[PATH_MAX + 64]; /* what a signal's message names */

static void say_and_die(int number) {
    static const char text[] = "\nreplay: killed by a signal at ";
    ssize_t ignored = write(2, text, sizeof text - 1);
    ignored += write(2, current, strlen(current));
    ignored += write(2, "\n", 1);
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

static uint64_t next_random(
    uint64_t *state) { /* splitmix64, so that a failing mutation can be made again */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* One to four edits: another byte, a flipped bit, a doubled, a dropped or a swapped stretch.
 * Returns the new size. */
static size_t mutate(uint8_t *data, size_t size, size_t room, uint64_t *state) {
    for (uint64_t edits = 1 + next_random(state) % 4; edits > 0 && size > 0; edits--) {
        size_t at = next_random(state) % size;
        size_t length = 1 + next_random(state) % 32;
        if (length > size - at) length = size - at;
        switch (next_random(state) % 5) {
        case 0: data[at] = (uint8_t)next_random(state); break;
        case 1: data[at] ^= (uint8_t)(1u << next_random(state) % 8); break;
        case 2:
            if (size + length > room) break;
            memmove(data + at + length, data + at, size - at);
            size += length;
            break;
        case 3:
            memmove(data + at, data + at + length, size - at - length);
            size -= length;
            break;
        default: {
            size_t other = next_random(state) % (size - length + 1);
            for (size_t i = 0; i < length; i++) {
                uint8_t kept = data[at + i];
                data[at + i] = data[other + i];
                data[other + i] = kept;
            }
        }
        }
    }
    return size;
}

/* An exact copy, so that a sanitizer sees a read beyond the end. */
static void feed(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, data, size);
    alarm(SECONDS_AN_INPUT);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

static int replay_file(const char *path) {
    static uint8_t seed[MOST_BYTES], data[2 * MOST_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file) return perror(path), 1;
    size_t size = fread(seed, 1, sizeof seed, file);
    fclose(file);
    snprintf(current, sizeof current, "%s", path);
    feed(seed, size);
    uint64_t state = size;
    for (int i = 0; i < MUTATIONS; i++) {
        snprintf(current, sizeof current, "%s, mutation %d", path, i);
        memcpy(data, seed, size);
        feed(data, mutate(data, size, sizeof data, &state));
    }
    return 0;
}

static int visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(int argc, char **argv) {
    if (argc != 2) return fputs("usage: replay FOLDER\n", stderr), 2;
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], say_and_die);
    struct dirent **names = NULL;
    int count = scandir(argv[1], &names, visible, alphasort);
    if (count <= 0) return fprintf(stderr, "replay: no inputs in %s\n", argv[1]), 1;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name) >= (int)sizeof path)
            failed = 1;
        else
            failed |= replay_file(path);
        free(names[i]);
    }
    free(names);
    printf("%d inputs, each as it is and with %d mutations\n", count, MUTATIONS);
    return failed;
}
