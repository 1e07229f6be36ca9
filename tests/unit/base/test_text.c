/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, UTF-8, nearest names, JSON strings, hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/support/german.h"

static void buffers_grow_and_stay_terminated(void **state) {
    (void)state;
    struct text t = {0};
    for (int i = 0; i < 1000; i++) {
        text_add(&t, "abc", 3);
        assert_int_equal(t.len, 3 * (i + 1));
        assert_int_equal(strlen(t.data), t.len);
        assert_true(t.cap > t.len);
    }
    text_printf(&t, "%s=%d", "x", 5);
    assert_string_equal(t.data + 3000, "x=5");
    char *taken = text_take(&t);
    assert_int_equal(strlen(taken), 3003);
    assert_null(t.data);
    assert_int_equal(t.len + t.cap, 0);
    free(taken);
    taken = text_take(&t);
    assert_string_equal(taken, "");
    free(taken);
    text_add(&t, "a\0b", 3); /* bytes, not strings */
    assert_int_equal(t.len, 3);
    assert_memory_equal(t.data, "a\0b", 4);
    text_free(&t);
    assert_null(t.data);
    text_free(&t);
}

static void prints_the_same_under_any_locale(void **state) {
    (void)state;
    if (!german_begin()) skip();
    struct text t = {0};
    text_printf(&t, "%.1f %g", 0.5, 1e-3);
    char plain[16];
    snprintf(plain, sizeof plain, "%.1f", 0.5);
    german_end();
    assert_string_equal(plain, "0,5"); /* the caller's locale is as it was */
    assert_string_equal(t.data, "0.5 0.001");
    text_free(&t);
}

static void pads_to_display_columns(void **state) {
    (void)state;
    struct text t = {0};
    text_pad(&t, 2);
    assert_string_equal(t.data, "  ");
    text_puts(&t, "a\n\xc2\xb1 \xe2\x80\xa6");
    text_pad(&t, 6);
    text_puts(&t, "|");
    assert_string_equal(t.data, "  a\n\xc2\xb1 \xe2\x80\xa6   |");
    text_pad(&t, 3); /* past it already */
    assert_string_equal(t.data, "  a\n\xc2\xb1 \xe2\x80\xa6   |");
    text_puts(&t, "\n");
    text_pad(&t, 1);
    text_puts(&t, "b");
    assert_string_equal(strrchr(t.data, '\n'), "\n b");
    text_free(&t);
}

static void knows_utf8(void **state) {
    (void)state;
    assert_int_equal(utf8_width(""), 0);
    assert_int_equal(utf8_width("a\xc2\xb5\xe2\x80\xa6\xf0\x9f\x98\x80"), 4);
    static const struct {
        const char *bytes;
        bool valid;
    } rows[] = {
        {"", true},
        {"plain", true},
        {"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
        {"\xed\x9f\xbf\xee\x80\x80", true},
        {"\x80", false},
        {"\xbf", false},
        {"\xc0\x80", false},         /* overlong */
        {"\xc1\xbf", false},         /* overlong */
        {"\xe0\x9f\xbf", false},     /* overlong */
        {"\xf0\x8f\xbf\xbf", false}, /* overlong */
        {"\xed\xa0\x80", false},     /* surrogate */
        {"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", false},
        {"\xff", false},
        {"\xc2", false}, /* cut */
        {"\xe2\x80", false},
        {"\xf0\x9f\x98", false},
        {"\xe2\x28\xa1", false},
        {"\xe2\x82\x28", false},
        {"\xf0\x9f\x98z", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (utf8_valid(rows[i].bytes, strlen(rows[i].bytes)) != rows[i].valid)
            fail_msg("row %zu", i);
    assert_true(utf8_valid("a\0b", 3));
    assert_false(utf8_valid("\xc2\xb5", 1)); /* n counts, not the zero */
}

static void finds_the_nearest_name(void **state) {
    (void)state;
    static const char *const names[] = {"warmups", "rounds", "seed", NULL, "bf16", "f16", "f32"};
    const size_t n = sizeof names / sizeof *names;
    assert_string_equal(text_nearest("warmpu", names, n), "warmups");
    assert_string_equal(text_nearest("round", names, n), "rounds");
    assert_string_equal(text_nearest("sede", names, n), "seed");
    assert_string_equal(text_nearest("bf61", names, n), "bf16"); /* a swap is one edit */
    assert_string_equal(text_nearest("seed", names, n), "seed");
    assert_string_equal(text_nearest("BF16", names, n), "bf16");
    assert_null(text_nearest("budget", names, n));
    assert_null(text_nearest("x", names, n)); /* nothing in common */
    assert_null(text_nearest("", names, n));
    assert_null(text_nearest("seed", names, 0));
    static const char *const tight[] = {"s", "fxy"}; /* two letters may have one edit */
    assert_string_equal(text_nearest("sx", tight, 2), "s");
    assert_string_equal(text_nearest("fx", tight, 2), "fxy");
    static const char *const doubled[] = {"aaaaab", "aaaaaa"};
    assert_string_equal(text_nearest("aaaaaa", doubled, 2),
                        "aaaaaa"); /* equal letters are no swap */
    static const char *const two[] = {"abcdeXX", "abcdefX"};
    assert_string_equal(text_nearest("abcdefg", two, 2),
                        "abcdefX"); /* not just the first that is near */
    static const char *const far[] = {"abcdXXXX"};
    assert_null(text_nearest("abcdefgh", far, 1)); /* 4 edits, 1 + 8/3 = 3 allowed */
    static const char *const near[] = {"abcdeXXX"};
    assert_string_equal(text_nearest("abcdefgh", near, 1), "abcdeXXX");
    char huge[1000];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    assert_null(text_nearest(huge, names, n));
    const char *long_names[] = {huge};
    assert_null(text_nearest("aaaa", long_names, 1));
}

static void escapes_json(void **state) {
    (void)state;
    struct text t = {0};
    text_json(&t, "a\"b\\c\n\t\x01\x7f\r \xc2\xb1/\xff\xe2\x80");
    assert_string_equal(
        t.data, "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\\u000d \xc2\xb1/\\ufffd\\ufffd\\ufffd\"");
    text_free(&t);
    text_json(&t, "");
    assert_string_equal(t.data, "\"\"");
    text_free(&t);
}

/* From tests/golden/base_values.py. */
static void hashes_as_xxh64(void **state) {
    (void)state;
    char out[17];
    assert_string_equal(hash_text(out, hash_bytes("", 0, 0)), "ef46db3751d8e999");
    assert_string_equal(hash_text(out, hash_bytes(NULL, 0, 0)), "ef46db3751d8e999");
    assert_string_equal(hash_text(out, hash_bytes("abc", 3, 0)), "44bc2cf5ad770999");
    assert_string_equal(hash_text(out, hash_bytes("a", 1, 7)), "dc6349d489e0f965");
    const char *long_text = "0123456789abcdef0123456789abcdef012345678";
    assert_string_equal(hash_text(out, hash_bytes(long_text, 41, UINT64_MAX)), "be117912ecc79118");
    assert_string_equal(hash_text(out, 0xab), "00000000000000ab");
}

static void test_has_word(void **state) {
    (void)state;
    assert_true(text_has_word("avx avx2 fma", "avx", 3));
    assert_true(text_has_word("avx avx2  fma", "fma", 3));
    assert_true(text_has_word(" quick", "quick", 5));
    assert_false(text_has_word("avx512f avx2", "avx", 3));
    assert_false(text_has_word("xavx", "avx", 3));
    assert_false(text_has_word("", "avx", 3));
    assert_true(text_has_word("quick disturbed", "quick: one", 5)); /* only len bytes count */
}

static void test_shell(void **state) {
    (void)state;
    static const char *const words[][2] = {
        {"runs/a-1.h5", "runs/a-1.h5"}, {"a clone/x.h5", "'a clone/x.h5'"},
        {"it's", "'it'\\''s'"},         {"", "''"},
        {"$HOME", "'$HOME'"},           {"ä", "'ä'"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct text t = {0};
        text_shell(&t, words[i][0]);
        assert_string_equal(t.data, words[i][1]);
        text_free(&t);
    }
}

static void test_wrap(void **state) {
    (void)state;
    struct text t = {0};
    text_puts(&t, "key");
    text_wrap(&t, 5, 14,
              "one two\nthree \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 a-word-beyond-the-page x");
    assert_string_equal(t.data, "key  one two\n"
                                "     three\n"
                                "     \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n"
                                "     a-word-beyond-the-page\n"
                                "     x");
    text_wrap(&t, 5, 14, " "); /* no words, no change */
    text_wrap(&t, 5, 14, "y");
    assert_string_equal(t.data + t.len - 8, "     x y");
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has_word),
        cmocka_unit_test(test_shell),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(buffers_grow_and_stay_terminated),
        cmocka_unit_test(prints_the_same_under_any_locale),
        cmocka_unit_test(pads_to_display_columns),
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(finds_the_nearest_name),
        cmocka_unit_test(escapes_json),
        cmocka_unit_test(hashes_as_xxh64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
