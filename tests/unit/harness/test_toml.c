/* SPDX-License-Identifier: Apache-2.0 */
/* TOML: order, places, texts of values, and that absurd input gives one sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/toml.h"

struct read {
    struct arena *arena;
    struct toml_entry *e;
    size_t n;
    struct err err;
    int code;
};
static struct read read_text(const char *text, size_t len) {
    struct read r = {.arena = arena_create()};
    r.code = toml_read(text, len, "t.toml", r.arena, &r.e, &r.n, &r.err);
    return r;
}
static struct read read_string(const char *text) { return read_text(text, strlen(text)); }

static void assert_entry(const struct toml_entry *e, const char *path, enum toml_kind kind,
                         const char *text, int line, int col, int key_line, int key_col) {
    assert_string_equal(e->path, path);
    assert_int_equal(e->kind, kind);
    assert_string_equal(e->text, text);
    assert_int_equal(e->line, line);
    assert_int_equal(e->col, col);
    assert_int_equal(e->key_line, key_line);
    assert_int_equal(e->key_col, key_col);
}

static void refuses(const char *text, size_t len, const char *start) {
    struct read r = read_text(text, len);
    assert_int_equal(r.code, ERR_INPUT);
    if (strncmp(r.err.text, start, strlen(start))) fail_msg("'%s' for '%s'", r.err.text, start);
    assert_null(strchr(r.err.text, '\n'));
    arena_close(&r.arena);
}
static void refuses_string(const char *text, const char *start) {
    refuses(text, strlen(text), start);
}

static void document_order(void **state) {
    (void)state;
    struct read r = read_string("zeta = 1\nalpha = \"two\"\n[workload]\nname = 'x'\nb.c = true\n"
                                "[[sweep]]\nworkload.batch = [1, 2]\n[[sweep]]\nk = []\n");
    assert_int_equal(r.code, 0);
    assert_int_equal(r.n, 11);
    assert_entry(&r.e[0], "zeta", TOML_INT, "1", 1, 8, 1, 1);
    assert_entry(&r.e[1], "alpha", TOML_STRING, "two", 2, 9, 2, 1);
    assert_string_equal(r.e[2].path, "workload");
    assert_int_equal(r.e[2].kind, TOML_TABLE);
    assert_entry(&r.e[3], "workload.name", TOML_STRING, "x", 4, 8, 4, 1);
    assert_string_equal(r.e[4].path, "workload.b");
    assert_entry(&r.e[5], "workload.b.c", TOML_BOOL, "true", 5, 7, 5, 3);
    assert_string_equal(r.e[6].path, "sweep[0]");
    assert_int_equal(r.e[6].kind, TOML_TABLE);
    assert_int_equal(r.e[6].line, 6);
    assert_string_equal(r.e[7].path, "sweep[0].workload");
    const struct toml_entry *batch = &r.e[8];
    assert_entry(batch, "sweep[0].workload.batch", TOML_ARRAY, "[1, 2]", 7, 18, 7, 10);
    assert_int_equal(batch->n_items, 2);
    assert_string_equal(batch->items[1], "2");
    assert_int_equal(batch->item_line[1], 7);
    assert_int_equal(batch->item_col[1], 22);
    assert_string_equal(r.e[9].path, "sweep[1]");
    assert_int_equal(r.e[10].kind, TOML_ARRAY);
    assert_int_equal(r.e[10].n_items, 0);
    arena_close(&r.arena);
}

static void texts_of_values(void **state) {
    (void)state;
    static const struct {
        const char *toml, *text;
        enum toml_kind kind;
    } rows[] = {
        {"v = 0x10", "16", TOML_INT},
        {"v = -9223372036854775808", "-9223372036854775808", TOML_INT},
        {"v = 6.0", "6.0", TOML_REAL},
        {"v = 1_000.25", "1000.25", TOML_REAL},
        {"v = 1e400", "inf", TOML_REAL},
        {"v = -inf", "-inf", TOML_REAL},
        {"v = nan", "nan", TOML_REAL},
        {"v = 0.1", "0.1", TOML_REAL},
        {"v = false", "false", TOML_BOOL},
        {"v = \"a\\u00e9\\tb\"", "a\xc3\xa9\tb", TOML_STRING},
        {"v = '''x'y'''", "x'y", TOML_STRING},
        {"v = 2024-01-02", "2024-01-02", TOML_OTHER},
        {"v = [[1], [2]]", "an array of arrays or tables", TOML_OTHER},
        {"v = [\"a\", \"b c\"]", "[a, b c]", TOML_ARRAY},
        {"v = [1, 2.5, true]", "[1, 2.5, true]", TOML_ARRAY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct read r = read_string(rows[i].toml);
        if (!strcmp(rows[i].toml, "v = 1e400") && r.code) { /* may be refused as well */
            arena_close(&r.arena);
            continue;
        }
        assert_int_equal(r.code, 0);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.e[0].kind, rows[i].kind);
        assert_string_equal(r.e[0].text, rows[i].text);
        arena_close(&r.arena);
    }
}

static void columns_count_characters(void **state) {
    (void)state;
    refuses_string("\xc3\xa4 = 1\n", "t.toml:1:1: a character outside ASCII");
    refuses_string("a = \xef\xbc\x91\n", "t.toml:1:5: a character outside ASCII");
    refuses_string("a = 0\"f\xce\x90\"\n", "t.toml:1:6: a quote in the midst of a word");
    refuses_string("a\"b\" = 1\n", "t.toml:1:2: a quote in the midst of a word");
    refuses_string("a = 'x''\xce\x90'\n", "t.toml:1:8: a quote in the midst of a word");
    struct read r = read_string("\xef\xbb\xbf# \xc3\xa4\nx = 1\n");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.e[0].path, "x");
    arena_close(&r.arena);
    r = read_string("x = [\"\xc3\xa4\xc3\xa4\", \"b\", 2.50]\n");
    assert_int_equal(r.code, 0);
    assert_int_equal(r.e[0].item_col[1], 12);
    assert_string_equal(r.e[0].items[2], "2.50");
    arena_close(&r.arena);
}

static void odd_keys_stay_apart(void **state) {
    (void)state;
    struct read r = read_string("\"a.b\" = 1\n\"\" = 2\n[\"x[0]\"]\ny = 3\n");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.e[0].path, "\"a.b\"");
    assert_string_equal(r.e[1].path, "\"\"");
    assert_string_equal(r.e[3].path, "\"x[0]\".y");
    arena_close(&r.arena);
}

static void syntax(void **state) {
    (void)state;
    refuses_string("a = 1\nb = \n", "t.toml:2:");
    refuses_string("a = 1\na = 2\n", "t.toml:2:");
    refuses_string("[w]\nx = \"abc\n", "t.toml:2:");
    refuses_string("= 1", "t.toml:1:1: ");
    refuses_string("[.]", "t.toml:1:1: "); /* a promise of the parser's that breaks */
    refuses_string("[a\x1c]", "t.toml:1:3: a control character");
    refuses_string("v = \"a\\u0000b\"", "t.toml:1:5: a string with a control character");
    refuses_string("v = [\"a\\u001bb\"]", "t.toml:1:6: a string with a control character");
    refuses("a = 1\nb = \"\xff\"\n", 12, "t.toml:2:1: not valid UTF-8");
    refuses("a = 1\0b", 7, "t.toml:1:");
}

static char *repeat(const char *before, const char *s, size_t n, const char *after, size_t *len) {
    struct text t = {0};
    text_puts(&t, before);
    for (size_t i = 0; i < n; i++) text_puts(&t, s);
    text_puts(&t, after);
    *len = t.len;
    return text_take(&t);
}

static void bounds_come_first(void **state) {
    (void)state;
    static const struct {
        const char *before, *unit, *after, *start;
        size_t n;
    } rows[] = {
        {"x = ", "[", "", "t.toml:1:37: brackets nested deeper than 32", 33},
        {"x = ", "[", "", "t.toml:1:37: brackets", 200000},
        {"x = ", "{a=", "", "t.toml:1:101: brackets", 5000},
        /* A text that ends in quotes hides nothing that follows it. */
        {"x = [\"\"\"a\"\"\"\"\", ", "[", "", "t.toml:1:", 100},
        {"a", ".a", " = 1", "t.toml:1:16: a key of more than 8 parts", 8},
        {"[a", " . a", "]", "t.toml:1:", 9000},
        {"", "k", " = 1", "t.toml:1:1: a key longer than 128 bytes", 129},
        {"#", "x", "", "t.toml:1:1: 262145 bytes; at most 262144 are read", 262144},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len;
        char *s = repeat(rows[i].before, rows[i].unit, rows[i].n, rows[i].after, &len);
        refuses(s, len, rows[i].start);
        free(s);
    }
}

static void bounds_allow_what_is_usual(void **state) {
    (void)state;
    size_t len;
    char *s =
        repeat("# [[[[[[ a.b.c.d.e.f.g.h.i.j.k\nx = \"[[[[{{{{ a.b.c.d.e.f.g.h.i.j\"\ny = ", "[",
               16, "]]]]]]]]]]]]]]]]\na.b.c.d.e.f.g.h = 1.5\n", &len);
    struct read r = read_text(s, len);
    if (r.code) fail_msg("%s", r.err.text);
    assert_string_equal(r.e[r.n - 1].path, "a.b.c.d.e.f.g.h");
    arena_close(&r.arena);
    free(s);
    r = read_text("", 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.n, 0);
    arena_close(&r.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_order),
        cmocka_unit_test(texts_of_values),
        cmocka_unit_test(columns_count_characters),
        cmocka_unit_test(odd_keys_stay_apart),
        cmocka_unit_test(syntax),
        cmocka_unit_test(bounds_come_first),
        cmocka_unit_test(bounds_allow_what_is_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
