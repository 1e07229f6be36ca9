/* SPDX-License-Identifier: Apache-2.0 */
/* The model that `bench model smollm2-135m` brings: against what the transformers library made of
 * the same file (smollm2_logits.tsv, by peers.py --smollm2), and its perplexity of a text against
 * llama.cpp's (smollm2_perplexity.tsv, by llama_perplexity.py). Skipped where it is not there. */
#include "tests/golden/file_rig.h"

#include "workloads/model/tokenizer.h"

enum { PROMPT = 200, MORE = 64, IDS = 8, ROW = 4 + IDS };
static struct {
    double prompt[PROMPT], ids[IDS], greedy[MORE], margins[MORE];
    double best[PROMPT][2], rows[PROMPT][ROW];
    int n_rows;
} record;

static void numbers(char *text, double *out, int n) {
    char *rest = text;
    for (int i = 0; i < n; i++) {
        char *word = strtok_r(i ? NULL : text, " ", &rest);
        if (!word || !parse_f64(word, &out[i]))
            fail_msg("smollm2_logits.tsv: '%s'", word ? word : "");
    }
}

/* A file below the tree's root. */
static char *of_tree(const char *name, size_t *len) {
    char path[1000];
    const char *root = getenv("SOURCE_DIR");
    snprintf(path, sizeof path, "%s/%s", root ? root : ".", name);
    return rig_content(path, len);
}

static void read_record(void) {
    char *rest;
    size_t len;
    char *text = of_tree("tests/golden/smollm2_logits.tsv", &len);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *at = strchr(line, '\t');
        if (*line == '#') continue;
        assert_non_null(at);
        *at++ = 0;
        if (!strcmp(line, "prompt")) numbers(at, record.prompt, PROMPT);
        if (!strcmp(line, "ids")) numbers(at, record.ids, IDS);
        if (!strcmp(line, "greedy")) numbers(at, record.greedy, MORE);
        if (!strcmp(line, "margins")) numbers(at, record.margins, MORE);
        if (strcmp(line, "row") != 0) continue;
        char *values = strchr(at, '\t');
        assert_true(values && record.n_rows < PROMPT);
        *values++ = 0;
        numbers(at, record.best[record.n_rows], 2);
        numbers(values, record.rows[record.n_rows++], ROW);
    }
    assert_int_equal(record.n_rows, PROMPT);
    free(text);
}

/* In shares of the row's standard deviation: at most 2e-3. */
static double off_by(const float *got, int row) {
    const double *want = record.rows[row];
    double most = 0;
    for (int i = 0; i < 2 + IDS; i++) {
        const int64_t id = (int64_t)(i < 2 ? record.best[row][i] : record.ids[i - 2]);
        const double off = fabs((double)got[id] - want[2 + i]);
        if (!(off <= most)) most = off;
    }
    return most / want[1];
}

static int is_it_there(void **state) {
    char place[4096];
    struct err err = {0};
    (void)state;
    if (model_file_place("smollm2-135m", place, sizeof place, &err) || !file_exists(place)) {
        print_message("SKIPPED: `bench model smollm2-135m` has not brought it\n");
        exit(77);
    }
    return 0;
}

static void logits_and_continuation(void **state) {
    struct arena *arena = arena_create();
    int32_t tokens[PROMPT];
    struct rig rig;
    (void)state;
    read_record();
    const struct model_config config = rig_config("smollm2-135m", arena);
    const int64_t vocab = config.shape.vocab;
    for (int i = 0; i < PROMPT; i++) tokens[i] = (int32_t)record.prompt[i];
    assert_true(rig_open(&rig, "cpu", &config, tokens, PROMPT, MORE, arena));
    float *got = rig_prompt_logits(&rig);
    double most = 0;
    for (int r = 0; r < PROMPT; r++) {
        const double off = off_by(got + r * vocab, r);
        if (!(off <= most)) most = off;
    }
    print_message("largest error %.2g of the spread\n", most);
    assert_true(most <= 2e-3);
    int same = 0;
    float *row = must_alloc(sizeof *row * (size_t)vocab);
    memcpy(row, got + (PROMPT - 1) * vocab, sizeof *row * (size_t)vocab);
    for (int i = 0; i < MORE; i++) {
        int64_t best = 0;
        for (int64_t id = 1; id < vocab; id++)
            if (row[id] > row[best]) best = id;
        if (record.margins[i] > 1e-3) {
            assert_int_equal(best, (int64_t)record.greedy[i]);
            same++;
        }
        free(row);
        row = rig_next_logits(&rig, (int32_t)record.greedy[i]);
    }
    print_message("%d greedy tokens alike\n", same);
    assert_true(same >= 48);
    free(row);
    free(got);
    rig_close(&rig);
    arena_close(&arena);
}

/* The sum of -log p of what follows, over the rows of a window that are scored. */
static double losses(const float *logits, int64_t vocab, const int32_t *tokens, int first, int n) {
    double sum = 0;
    for (int i = first; i < n - 1; i++) {
        const float *row = logits + i * vocab;
        double most = (double)row[0], all = 0;
        for (int64_t id = 1; id < vocab; id++) most = fmax(most, (double)row[id]);
        for (int64_t id = 0; id < vocab; id++) all += exp((double)row[id] - most);
        sum += most + log(all) - (double)row[tokens[i + 1]];
    }
    return sum;
}

static int32_t *tokens_of(const char *text, size_t *n) {
    struct model_file *file = NULL;
    struct tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    size_t len;
    struct err err = {0};
    char *data = of_tree(text, &len);
    if (model_file_open(&file, "smollm2-135m", &err) || tokenizer_open(&tokenizer, file, &err) ||
        tokenizer_encode(tokenizer, data, len, 0, &ids, n, &err))
        fail_msg("%s", err.text);
    tokenizer_close(&tokenizer);
    model_file_close(&file);
    free(data);
    return ids;
}

/* llama.cpp multiplies with inputs rounded to 8 bits: 0.5 % is between the two. */
static void perplexity_is_llama_cpps(void **state) {
    struct arena *arena = arena_create();
    struct rig rig = {0};
    struct err err = {0};
    int tokens, window, stride, unscored, scored, counted = 0;
    double mean, expected, sum = 0;
    size_t len, n;
    (void)state;
    char *table = of_tree("tests/golden/smollm2_perplexity.tsv", &len);
    const char *line = strstr(table, "reference.txt\t");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "reference.txt\t%d\t%d\t%d\t%d\t%d\t%lf\t%lf", &tokens, &window,
                            &stride, &unscored, &scored, &mean, &expected),
                     7);
    int32_t *ids = tokens_of("protocols/texts/reference.txt", &n);
    assert_int_equal(n, tokens);
    const struct model_config config = rig_config("smollm2-135m", arena);
    for (int begin = 0; begin + window <= tokens; begin += stride) {
        if (!begin) {
            assert_true(rig_open(&rig, "cpu", &config, ids, window, 0, arena));
        } else {
            inputs_clear(rig.inputs);
            session_set_length(rig.session, 0, 0);
            assert_int_equal(
                inputs_prompt(rig.inputs, ids + begin, window, 0, window, 0, true, &err), 0);
            inputs_upload(rig.inputs);
            assert_int_equal(session_run(rig.session, rig.inputs, 0, &err), 0);
        }
        float *logits = rig_prompt_logits(&rig);
        sum += losses(logits, config.shape.vocab, ids + begin, unscored, window);
        counted += window - 1 - unscored;
        free(logits);
    }
    assert_int_equal(counted, scored);
    const double perplexity = exp(sum / counted);
    print_message("perplexity %.4f, llama.cpp's %.4f: %+.2f %%\n", perplexity, expected,
                  100 * (perplexity / expected - 1));
    assert_true(fabs(perplexity / expected - 1) <= 0.005);
    rig_close(&rig);
    free(ids);
    free(table);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_and_continuation),
                                       cmocka_unit_test(perplexity_is_llama_cpps)};
    return cmocka_run_group_tests(tests, is_it_there, NULL);
}
