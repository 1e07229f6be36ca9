/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences made of a text: where they begin, how they go on, and what is said of a short one. */
#include "tests/unit/workloads/drive.h"

#include "workloads/common/token_text.h"
#include "workloads/common/tokens.h"

enum { LINES = 11, LENGTH = 7, N = LINES * LENGTH, BOS = 999 };

/* Eleven lines of seven tokens; token i is i. The third line is empty but for its end. */
static struct token_text *lines(int32_t bos) {
    int32_t ids[N];
    uint8_t ends[N] = {0};
    for (int i = 0; i < N; i++) {
        ids[i] = i;
        ends[i] = i % LENGTH == LENGTH - 1;
    }
    ends[2 * LENGTH] = 1;
    return token_text_of(ids, ends, N, bos);
}

static void begin_at_lines(void **state) {
    struct token_text *t = lines(-1);
    struct token_stream stream = {.seed = 3, .vocab = 1000, .text = t};
    int seen[N] = {0};
    int32_t out[20], again[20];
    (void)state;
    /* The empty line's end is no beginning; what follows it is. */
    assert_int_equal(t->n_begin, LINES);
    for (int q = 0; q < LINES; q++) {
        tokens_fill(&stream, q, 0, 20, out);
        seen[out[0]]++;
        for (int i = 1; i < 20; i++) assert_int_equal(out[i], (out[0] + i) % N);
        for (int from = 0; from < 20; from += 6) { /* in pieces, the same */
            const int32_t n = 20 - from < 6 ? 20 - from : 6;
            tokens_fill(&stream, q, from, n, again);
            assert_memory_equal(again, out + from, sizeof *again * (size_t)n);
        }
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], i == 2 * LENGTH + 1 || (i % LENGTH == 0 && i != 2 * LENGTH));
    for (int q = 0; q < LINES; q++) { /* beyond that, one token further on */
        tokens_fill(&stream, q, 0, 1, out);
        tokens_fill(&stream, q + LINES, 0, 1, again);
        assert_int_equal(again[0], (out[0] + 1) % N);
    }
    token_text_close(&t);
}

static void first_token_of_each(void **state) {
    struct token_text *with = lines(BOS), *without = lines(-1);
    int32_t a[N + 4], b[N + 3];
    (void)state;
    for (int32_t q = 0; q < 3 * LINES; q++) {
        token_text_fill(with, 5, q, 0, N + 4, a);
        token_text_fill(without, 5, q, 0, N + 3, b);
        assert_int_equal(a[0], BOS);
        assert_memory_equal(a + 1, b, sizeof b);
        token_text_fill(with, 5, q, 9, 3, b);
        assert_memory_equal(a + 9, b, 3 * sizeof *b);
    }
    assert_true(with->key != without->key);
    token_text_close(&with);
    token_text_close(&without);
}

static void few_lines(void **state) {
    int32_t ids[5] = {4, 3, 2, 1, 0}, out[2];
    uint8_t ends[5] = {0, 0, 1, 0, 0};
    int seen[5] = {0};
    struct token_text *t = token_text_of(ids, ends, 5, -1);
    (void)state;
    for (int q = 0; q < 5; q++) {
        token_text_fill(t, 1, q, 0, 2, out);
        seen[out[0]]++;
        assert_int_equal(out[1], (out[0] + 4) % 5);
    }
    for (int i = 0; i < 5; i++) assert_int_equal(seen[i], 1);
    token_text_close(&t);
    struct token_text *one = token_text_of(ids, ends, 1, -1);
    token_text_fill(one, 1, 12345, 0, 2, out);
    assert_true(out[0] == 4 && out[1] == 4);
    token_text_close(&one);
}

static void seeds_and_keys(void **state) {
    struct token_text *t = lines(-1);
    struct token_stream stream = {.vocab = 1000, .text = t}, plain = {.vocab = 1000};
    int32_t out[1];
    int differ = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        stream.seed = plain.seed = seed;
        tokens_fill(&stream, 0, 0, 1, out);
        differ += out[0] != 0;
        assert_true(tokens_key(&stream) != tokens_key(&plain));
    }
    assert_true(differ > 10);
    token_text_close(&t);
}

static void warns_of_short_texts(void **state) {
    struct token_text *t = lines(-1);
    const struct token_stream stream = {.seed = 3, .vocab = 1000, .text = t};
    struct run run = {0};
    (void)state;
    tokens_warn(&stream, N, &run);
    assert_int_equal(run.n_flags, 0);
    tokens_warn(&stream, N + 1, &run);
    assert_int_equal(run.n_flags, 1);
    assert_string_equal(run.flags[0].flag, "text_repeats");
    token_text_close(&t);
}

static void refused(void **state) {
    struct input_params p = {.input = TOKENS_TEXT, .text = "prose", .text_digest = ""};
    struct problems *problems = problems_create();
    (void)state;
    input_check(&p, NULL, problems);
    assert_int_equal(problems_count(problems), 1);
    p.text_digest = "0123456789abcdef";
    input_check(&p, NULL, problems);
    p = (struct input_params){.input = TOKENS_AUTO, .text = "prose", .text_digest = ""};
    input_check(&p, NULL, problems);
    assert_int_equal(problems_count(problems), 1);
    problems_close(&problems);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_at_lines), cmocka_unit_test(first_token_of_each),
        cmocka_unit_test(few_lines),      cmocka_unit_test(seeds_and_keys),
        cmocka_unit_test(refused),        cmocka_unit_test(warns_of_short_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
