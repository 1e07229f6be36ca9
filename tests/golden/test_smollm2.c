/* SPDX-License-Identifier: Apache-2.0 */
/* The model that `bench model smollm2-135m` brings against what the transformers library made of
 * the same file (smollm2_logits.tsv, written by peers.py --smollm2). Skipped where it is not there.
 */
#include "tests/golden/file_rig.h"

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

static void read_record(void) {
    char path[1000], *rest;
    const char *root = getenv("SOURCE_DIR");
    size_t len;
    snprintf(path, sizeof path, "%s/tests/golden/smollm2_logits.tsv", root ? root : ".");
    char *text = rig_content(path, &len);
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

static void logits_and_continuation(void **state) {
    struct arena *arena = arena_create();
    char place[4096];
    int32_t tokens[PROMPT];
    struct rig rig;
    struct err err = {0};
    (void)state;
    if (model_file_place("smollm2-135m", place, sizeof place, &err) || !file_exists(place)) {
        print_message("SKIPPED: `bench model smollm2-135m` has not brought it\n");
        exit(77);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_and_continuation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
