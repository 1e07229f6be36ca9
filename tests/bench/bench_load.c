/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a model's file becomes packed weights, beside how fast its bytes come out of the page
   cache into memory of their size, by as many threads; also in processor seconds, which other
   programs disturb less. Not a test: prints numbers for a person.
   Usage: bench_load FILE [TYPE [ROUNDS]]; TYPE: of model.type, default as_stored. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "base/text.h"
#include "probes/common/tree.h"
#include "workloads/model/file.h"
#include "workloads/model/file_shape.h"
#include "workloads/model/transformer.h"

enum { PIECE = 1 << 20, MOST_THREADS = 64, MOST_ROUNDS = 99 };

static void fail(const struct err *err) {
    fprintf(stderr, "bench_load: %s\n", err->text);
    exit(1);
}

struct reader {
    int fd;
    char *to; /* NULL: into a piece of its own, again and again */
    int64_t begin, end;
};

static void *read_share(void *ctx) {
    const struct reader *r = ctx;
    char *own = r->to ? NULL : must_alloc(PIECE);
    for (int64_t at = r->begin; at < r->end;) {
        const int64_t n = r->end - at < PIECE ? r->end - at : PIECE;
        const ssize_t got = pread(r->fd, r->to ? r->to + at : own, (size_t)n, at);
        if (got <= 0) break;
        at += got;
    }
    free(own);
    return NULL;
}

/* Seconds of reading the whole file by n threads. */
static double read_file(const char *path, int n, bool keep) {
    struct reader readers[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    struct stat st;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st)) exit(1);
    const int64_t begin = clock_ns();
    char *to = keep ? mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                    : NULL;
    for (int i = 0; i < n; i++) {
        readers[i] = (struct reader){fd, to, st.st_size * i / n, st.st_size * (i + 1) / n};
        pthread_create(&threads[i], NULL, read_share, &readers[i]);
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    const double seconds = (double)(clock_ns() - begin) * 1e-9;
    if (to) munmap(to, (size_t)st.st_size);
    close(fd);
    return seconds;
}

static double processor_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t resident_bytes(const char *key) {
    int64_t bytes = 0;
    tree_kib(&bytes, key, NULL, "proc/self/status");
    return bytes;
}

static struct model_config config_of(const char *path, const char *type, struct arena *arena) {
    struct model_config config = {0};
    struct model_file *file = NULL;
    struct file_shape shape;
    struct err err = {0};
    option_defaults(model_options, &config.params, arena);
    if (model_file_open(&file, path, &err) || model_file_shape(file, arena, &shape, &err))
        fail(&err);
    if (!strcmp(type, MODEL_AS_STORED)) type = shape.nearest;
    if (option_parse(option_find(model_options, "type"), type, &config.params, arena, &err))
        fail(&err);
    config.params.group = shape.group && !strcmp(type, shape.nearest) ? shape.group : 0;
    config.params.file = path;
    config.params.digest = arena_text(arena, model_file_digest(file));
    config.shape = shape.shape;
    model_file_close(&file);
    return config;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

int main(int argc, char **argv) {
    const char *type = argc > 2 ? argv[2] : MODEL_AS_STORED;
    const int rounds = argc > 3 ? atoi(argv[3]) : 5;
    struct arena *arena = arena_create();
    struct device *device = NULL;
    struct err err = {0};
    struct facts facts = {0};
    struct stat st;
    double load[MOST_ROUNDS], fresh[MOST_ROUNDS], again[MOST_ROUNDS], busy[2][MOST_ROUNDS];
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS || stat(argv[1], &st)) return 2;
    const struct device_kind *kind = device_kind_find("cpu");
    void *params = arena_alloc(arena, kind->params_size + 1);
    option_defaults(kind->params, params, arena);
    if (device_open(&device, kind, params, &err)) fail(&err);
    kind->describe(device, &facts);
    const int threads = atoi(facts_get(&facts, "device.threads", "1"));
    struct model_config config = config_of(argv[1], type, arena);
    config.activation = model_activation(&config.params, kind);
    int64_t scales = 0, before = resident_bytes("VmRSS");
    const int64_t packed = model_weight_bytes(&config, &scales);
    for (int i = 0; i < rounds; i++) {
        struct model *model = NULL;
        const int64_t begin = clock_ns();
        const double spent = processor_s();
        if (model_create(&model, device, &config, &err)) fail(&err);
        load[i] = (double)(clock_ns() - begin) * 1e-9;
        busy[0][i] = processor_s() - spent;
        if (i == 0)
            printf("peak beyond packed bytes: %.1f MiB of %.1f\n",
                   (double)(resident_bytes("VmHWM") - before - packed - scales) / 1048576,
                   (double)(packed + scales) / 1048576);
        model_close(&model);
        busy[1][i] = -processor_s();
        fresh[i] = read_file(argv[1], threads, true);
        busy[1][i] += processor_s();
        again[i] = read_file(argv[1], threads, false);
    }
    const double gb = (double)st.st_size * 1e-9, l = median(load, rounds),
                 f = median(fresh, rounds), a = median(again, rounds);
    const double own = median(busy[0], rounds), plain = median(busy[1], rounds);
    printf("%-24s to %-6s %2d threads: %6.2f GB/s of file; page cache %6.2f into new memory "
           "(%.0f %%), %6.2f into a cached piece (%.0f %%); processor %.3f s of %.3f s (%.0f %%)\n",
           strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1], type, threads, gb / l,
           gb / f, 100 * f / l, gb / a, 100 * a / l, plain, own, 100 * plain / own);
    facts_free(&facts);
    device_close(&device);
    arena_close(&arena);
    return 0;
}
