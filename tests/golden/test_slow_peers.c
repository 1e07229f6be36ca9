/* SPDX-License-Identifier: Apache-2.0 */
/* Small random models against the transformers library (peers.py), each as safetensors that the
 * library saved and as GGUF: logits of a prompt of 200 tokens, and greedy continuations. Skipped
 * where build/peers, which `tools/setup.sh python-peers` makes, or the python that BENCH_PEERS
 * names has not the library. */
#include "tests/golden/file_rig.h"

#include <unistd.h>

static char folder[] = "/tmp/bench-peers-XXXXXX";

static int make_files(void **state) {
    const char *python = getenv("BENCH_PEERS");
    char own[1000], command[3000];
    (void)state;
    snprintf(own, sizeof own, "%s/build/peers/bin/python", made_files_root());
    if (!python || !*python) python = own;
    snprintf(command, sizeof command, "'%s' -c 'import torch, transformers' 2>/dev/null", python);
    if (access(python, X_OK) || system(command)) {
        print_message("SKIPPED: %s has no transformers; tools/setup.sh python-peers makes it\n",
                      python);
        exit(77);
    }
    return made_files_write(folder, python, "peers.py");
}

static int remove_files(void **state) {
    (void)state;
    return made_files_remove(folder);
}

struct expected {
    char *data;
    int32_t n, vocab, more, window;
    const int32_t *prompt, *tokens;
    const float *margins, *logits;
};

static struct expected read_expected(const char *name) {
    char path[300];
    size_t len;
    snprintf(path, sizeof path, "%s/%s.expected", folder, name);
    struct expected e = {.data = rig_content(path, &len)};
    const int32_t *head = (const int32_t *)(const void *)e.data;
    e.n = head[0], e.vocab = head[1], e.more = head[2], e.window = head[3];
    e.prompt = head + 4;
    e.tokens = e.prompt + e.n;
    e.margins = (const float *)(const void *)(e.tokens + e.more);
    e.logits = e.margins + e.more;
    assert_int_equal(len, 4 * (4 + e.n + 2 * e.more + e.n * e.vocab));
    return e;
}

/* The largest difference, as a share of the logits' standard deviation: at most 2e-3. */
static double worst(const float *got, const float *want, int64_t n) {
    double sum = 0, squares = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)want[i];
        squares += (double)want[i] * (double)want[i];
        const double off = fabs((double)got[i] - (double)want[i]);
        if (!(off <= most)) most = off; /* NaN too */
    }
    return most / sqrt(squares / (double)n - sum / (double)n * (sum / (double)n));
}

static int32_t largest(const float *v, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* The reference's tokens are fed: where its two best are within 1e-3, either is right. */
static int continuation(struct rig *rig, const struct expected *e, const float *last) {
    float *row = must_alloc(sizeof *row * (size_t)e->vocab);
    int same = 0;
    memcpy(row, last, sizeof *row * (size_t)e->vocab);
    for (int32_t i = 0; i < e->more; i++) {
        if (e->margins[i] > 1e-3f) {
            assert_int_equal(largest(row, e->vocab), e->tokens[i]);
            same++;
        }
        free(row);
        row = rig_next_logits(rig, e->tokens[i]);
    }
    free(row);
    return same;
}

static void compare(const char *device, const char *name, const char *ending,
                    const struct expected *e) {
    struct arena *arena = arena_create();
    char path[300];
    struct rig rig;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    struct model_config config = rig_config(path, arena);
    if (*ending) config.params.window = e->window; /* GGUF's llama has no key for it */
    assert_int_equal(config.params.window, e->window);
    assert_true(rig_open(&rig, device, &config, e->prompt, e->n, e->more, arena));
    float *got = rig_prompt_logits(&rig);
    const double off = worst(got, e->logits, (int64_t)e->n * e->vocab);
    const int same = continuation(&rig, e, got + (int64_t)(e->n - 1) * e->vocab);
    print_message("%s%s on %s: largest error %.2g of the spread, %d greedy tokens alike\n", name,
                  ending, device, off, same);
    assert_true(off <= 2e-3);
    assert_true(same >= 48);
    free(got);
    rig_close(&rig);
    arena_close(&arena);
}

static void each_model_on(const char *device) {
    char path[300], *rest;
    size_t len;
    int n = 0;
    snprintf(path, sizeof path, "%s/names", folder);
    char *names = rig_content(path, &len);
    for (char *name = strtok_r(names, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest), n++) {
        struct expected e = read_expected(name);
        compare(device, name, "", &e);
        compare(device, name, ".gguf", &e);
        free(e.data);
    }
    assert_int_equal(n, 7);
    free(names);
}
static void models_on_cpu(void **state) {
    (void)state;
    each_model_on("cpu");
}
static void models_on_ref(void **state) {
    (void)state;
    each_model_on("ref");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_on_cpu),
                                       cmocka_unit_test(models_on_ref)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
