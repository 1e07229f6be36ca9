/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers against plain rules in Python (tokenizer_golden.py), broken files, and the number of
 * steps that long texts take. */
#include "tests/golden/tokenizer_cases.h"

#include "workloads/model/tokenizer_parts.h"

static int make_files(void **state) {
    (void)state;
    return cases_make("");
}

static void ids_are_the_same(void **state) {
    (void)state;
    cases_all();
}

static void broken_files_are_refused(void **state) {
    size_t len;
    char *list = cases_content("broken.tsv", &len), *rest = list, *line;
    int wrong = 0, n = 0;
    (void)state;
    while ((line = strsep(&rest, "\n")) && *line) {
        const char *path = strsep(&line, "\t"), *name = strsep(&line, "\t"), *said = line;
        struct model_file *file = NULL;
        struct tokenizer *t = NULL;
        struct err err = {0};
        if (model_file_open(&file, cases_path(path), &err)) fail_msg("%s: %s", name, err.text);
        const int code = tokenizer_open(&t, file, &err);
        if ((code != ERR_INPUT && code != ERR_UNSUPPORTED) || t || !strstr(err.text, said) ||
            strchr(err.text, '\n')) {
            print_message("%s: code %d, '%s', expected '%s'\n", name, code, err.text, said);
            wrong++;
        }
        tokenizer_close(&t);
        model_file_close(&file);
        n++;
    }
    free(list);
    assert_true(n > 90);
    assert_int_equal(wrong, 0);
}

/* Ids as one line. */
static char *ids_of(const struct tokenizer *t, const char *text, unsigned flags) {
    static struct text line;
    int32_t *ids = NULL;
    size_t n = 0;
    struct err err = {0};
    line.len = 0;
    text_puts(&line, "");
    if (tokenizer_encode(t, text, strlen(text), flags, &ids, &n, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) text_printf(&line, "%s%d", i ? " " : "", ids[i]);
    free(ids);
    return line.data;
}

/* The toy: bytes are ids 0 ... 255 in their order, "hello" 259, " w" 260, "<|end|>" 261, special,
 * and "<user>" 262, added. */
static void what_the_flags_do(void **state) {
    (void)state;
    for (int folder = 0; folder < 2; folder++) {
        struct tokenizer *t = cases_open(folder ? "toy" : "toy.gguf");
        char piece[8];
        assert_string_equal(tokenizer_family(t), folder ? "byte-level bpe" : "bpe gpt-2");
        assert_int_equal(tokenizer_vocab(t), 263);
        assert_int_equal(tokenizer_bos(t), folder ? -1 : 261);
        assert_int_equal(tokenizer_eos(t), folder ? -1 : 261);
        assert_string_equal(ids_of(t, "hello w", 0), "259 260");
        assert_string_equal(ids_of(t, "", 0), "");
        assert_string_equal(ids_of(t, "\xff", 0), "255");
        assert_string_equal(ids_of(t, "<user>", 0), "262");
        assert_string_equal(ids_of(t, "<|end|>", 0), "60 124 101 110 100 124 62");
        assert_string_equal(ids_of(t, "a<|end|>", TOKENIZE_SPECIAL), "97 261");
        assert_string_equal(ids_of(t, "a", TOKENIZE_BOS), folder ? "97" : "261 97");
        assert_int_equal(tokenizer_piece(t, 259, piece, sizeof piece), 5);
        assert_memory_equal(piece, "hello", 5);
        assert_int_equal(tokenizer_piece(t, 259, piece, 0), 5);
        assert_int_equal(tokenizer_piece(t, 261, NULL, 0), 7);
        assert_int_equal(tokenizer_piece(t, -1, piece, 8), 0);
        assert_int_equal(tokenizer_piece(t, 263, piece, 8), 0);
        tokenizer_close(&t);
    }
    struct tokenizer *none = NULL;
    tokenizer_close(&none);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static uint64_t merge_steps(const struct tokenizer *t, const char *unit, size_t times) {
    struct text text = {0};
    struct encoding e;
    struct err err = {0};
    for (size_t i = 0; i < times; i++) text_puts(&text, unit);
    if (tokenizer_run(t, text.data, text.len, 0, &e, &err)) fail_msg("%s", err.text);
    const uint64_t steps = e.steps;
    assert_true(e.n > 0);
    encoding_free(&e);
    text_free(&text);
    return steps;
}

/* n log n: ten times as long takes little more than ten times as many steps. */
static void long_words_take_few_steps(void **state) {
    static const char *const units[] = {"a", "hello", "he", "\xc3\xa9", " ", "<|en", "aq", "\xff"};
    static const char *const models[] = {"toy.gguf", "toy", "spm1.gguf", "unigram"};
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct tokenizer *t = cases_open(models[m]);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            const uint64_t some = merge_steps(t, units[u], 10000),
                           many = merge_steps(t, units[u], 100000);
            if (many > 14 * some)
                fail_msg("%s, '%s': %llu steps, and %llu for ten times as much", models[m],
                         units[u], (unsigned long long)some, (unsigned long long)many);
        }
        tokenizer_close(&t);
    }
}

static uint64_t pattern_steps(const char *source, const char *unit, size_t times,
                              const char *tail) {
    struct text text = {0};
    struct err err = {0};
    struct encoding e = {.budget = UINT64_MAX, .err = &err};
    struct pattern *p = NULL;
    if (pattern_open(&p, source, PATTERN_COUNTED, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < times; i++) text_puts(&text, unit);
    text_puts(&text, tail);
    size_t begin, end = 0;
    int found;
    while ((found = pattern_find(p, &e, text.data, text.len, end, &begin, &end)) > 0) {}
    assert_int_equal(found, 0);
    pattern_close(&p);
    encoding_free(&e);
    text_free(&text);
    return e.counted;
}

static void known_patterns_are_linear(void **state) {
    static const char *const sources[] = {pattern_gpt2,         pattern_llama3, pattern_qwen2,
                                          pattern_tekken,       pattern_digit,  pattern_digits,
                                          pattern_three_digits, pattern_default};
    static const char *const units[] = {
        " ", "a", "A", "\n", " \n", "1", "'", "\xe4\xb8\xad", "aA", "e\xcc\x81", "\t", "12"};
    static const char *const tails[] = {"", "x", "\n"};
    (void)state;
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
        assert_true(pattern_is_known(sources[s]));
        for (size_t u = 0; u < sizeof units / sizeof *units; u++)
            for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
                const uint64_t some = pattern_steps(sources[s], units[u], 2000, tails[i]),
                               many = pattern_steps(sources[s], units[u], 20000, tails[i]);
                if (many > 11 * some + 1000)
                    fail_msg("'%s' on '%s': %llu steps, and %llu for ten times as much", sources[s],
                             units[u], (unsigned long long)some, (unsigned long long)many);
            }
    }
    assert_false(pattern_is_known("a"));
}

/* A pattern of the file's own that is slow ends in a sentence. */
static void slow_patterns_are_stopped(void **state) {
    struct tokenizer *t = cases_open("slow");
    struct text text = {0};
    struct err err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    (void)state;
    assert_string_equal(ids_of(t, "hello", 0), "259");
    for (int i = 0; i < 5000; i++) text_puts(&text, "a");
    assert_int_equal(tokenizer_encode(t, text.data, text.len, 0, &ids, &n, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "takes too many steps"));
    assert_null(ids);
    text_free(&text);
    tokenizer_close(&t);
}

static void growing_texts_are_stopped(void **state) {
    struct tokenizer *t = cases_open("growing");
    struct err err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    (void)state;
    assert_string_equal(ids_of(t, "hello", 0), "259");
    assert_int_equal(tokenizer_encode(t, "a", 1, 0, &ids, &n, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "makes more than"));
    tokenizer_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_the_same),          cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(what_the_flags_do),         cmocka_unit_test(long_words_take_few_steps),
        cmocka_unit_test(known_patterns_are_linear), cmocka_unit_test(slow_patterns_are_stopped),
        cmocka_unit_test(growing_texts_are_stopped),
    };
    return cmocka_run_group_tests(tests, make_files, cases_remove);
}
