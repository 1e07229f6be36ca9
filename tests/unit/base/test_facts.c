/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: order, replacement, packing of any text, and the hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/facts.h"
#include "base/text.h"
#include "tests/support/german.h"

static void keeps_order_and_replaces(void **state) {
    (void)state;
    struct facts f = {0};
    char key[] = "b.key", value[] = "1";
    facts_set(&f, key, value, "tokens", "a.toml:1:2");
    key[0] = value[0] = 'X'; /* copies are kept */
    facts_set(&f, "a.key", "2", NULL, NULL);
    facts_printf(&f, "c", "ns", "measured", "%d-%s", 3, "x");
    assert_int_equal(f.n, 3);
    assert_string_equal(f.items[0].key, "b.key");
    assert_string_equal(f.items[0].value, "1");
    assert_string_equal(f.items[0].unit, "tokens");
    assert_string_equal(f.items[0].origin, "a.toml:1:2");
    assert_string_equal(f.items[1].unit, "");
    assert_string_equal(f.items[1].origin, "");
    assert_string_equal(f.items[2].value, "3-x");
    assert_string_equal(f.items[2].unit, "ns");
    assert_string_equal(f.items[2].origin, "measured");
    facts_set(&f, "b.key", "9", "", "--set");
    assert_int_equal(f.n, 3);
    assert_string_equal(f.items[0].value, "9");
    assert_string_equal(f.items[0].origin, "--set");
    facts_set(&f, f.items[0].key, f.items[0].value, f.items[0].unit,
              f.items[0].origin); /* itself */
    assert_string_equal(facts_get(&f, "b.key", "?"), "9");
    assert_string_equal(facts_get(&f, "b", "?"), "?");
    assert_null(facts_get(&f, "none", NULL));
    assert_ptr_equal(facts_find(&f, "c"), &f.items[2]);
    assert_null(facts_find(&f, "none"));
    facts_free(&f);
    assert_int_equal(f.n, 0);
    assert_null(f.items);
}

static void copies_many(void **state) {
    (void)state;
    struct facts from = {0}, to = {0};
    for (int i = 0; i < 200; i++) {
        char key[20];
        snprintf(key, sizeof key, "key.%d", i);
        facts_printf(&from, key, "u", "o", "%d", i);
    }
    facts_set(&to, "key.7", "old", "", "");
    facts_set(&to, "own", "kept", "", "");
    facts_copy(&to, &from);
    assert_int_equal(to.n, 201);
    assert_string_equal(facts_get(&to, "key.7", ""), "7");
    assert_string_equal(facts_get(&to, "key.199", ""), "199");
    assert_string_equal(facts_get(&to, "own", ""), "kept");
    assert_string_equal(facts_find(&to, "key.9")->unit, "u");
    facts_copy(&to, &to);
    assert_int_equal(to.n, 201);
    facts_free(&from);
    facts_free(&to);
}

static void packs_any_text(void **state) {
    (void)state;
    struct facts f = {0}, back = {0};
    struct text t = {0};
    facts_set(&f, "k\ty", "a\tb\nc\\d\\t", "\n", "\\");
    facts_set(&f, "plain", "", "", "");
    facts_pack(&t, &f);
    assert_string_equal(t.data, "k\\ty\ta\\tb\\nc\\\\d\\\\t\t\\n\t\\\\\nplain\t\t\t\n");
    struct err err = {0};
    assert_int_equal(facts_unpack(&back, t.data, t.len, &err), 0);
    assert_int_equal(back.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(back.items[i].key, f.items[i].key);
        assert_string_equal(back.items[i].value, f.items[i].value);
        assert_string_equal(back.items[i].unit, f.items[i].unit);
        assert_string_equal(back.items[i].origin, f.items[i].origin);
    }
    /* Any cut but one at a line's end is refused; nothing behind the end is read. */
    for (size_t len = 0; len < t.len; len++) {
        char *cut = malloc(len ? len : 1);
        assert_non_null(cut);
        memcpy(cut, t.data, len);
        struct facts some = {0};
        int want = len && cut[len - 1] != '\n' ? ERR_INPUT : 0;
        assert_int_equal(facts_unpack(&some, cut, len, &err), want);
        facts_free(&some);
        free(cut);
    }
    facts_free(&f);
    facts_free(&back);
    text_free(&t);
}

static void refuses_what_is_no_pack(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t len;
        const char *says;
    } rows[] = {
        {"a\tb\tc\n", 6, "line 1: not four fields"},
        {"a\tb\tc\td\te\n", 10, "line 1: not four fields"},
        {"a\t\t\t\nb\n", 7, "line 2: not four fields"},
        {"a\\x\t\t\t\n", 7, "an unknown escape"},
        {"a\\", 2, "an unknown escape"},
        {"\t\t\t\n", 4, "an empty key"},
        {"a\0\t\t\t\n", 6, "not four fields"},
        {"\n", 1, "not four fields"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct facts f = {0};
        struct err err = {0};
        assert_int_equal(facts_unpack(&f, rows[i].data, rows[i].len, &err), ERR_INPUT);
        if (!strstr(err.text, rows[i].says)) fail_msg("row %zu: %s", i, err.text);
        facts_free(&f);
    }
    struct text t = {0};
    for (int i = 0; i < 10001; i++) text_printf(&t, "k%d\t\t\t\n", i % 5);
    struct facts f = {0};
    struct err err = {0};
    assert_int_equal(facts_unpack(&f, t.data, t.len, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "more facts"));
    assert_int_equal(facts_unpack(&f, t.data, t.len - strlen("k0\t\t\t\n"), &err),
                     0); /* one less */
    facts_free(&f);
    text_free(&t);
}

static uint64_t hash_of(const char *k1, const char *v1, const char *k2, const char *v2) {
    struct facts f = {0};
    facts_set(&f, k1, v1, "", "x");
    if (k2) facts_set(&f, k2, v2, "", "y");
    uint64_t hash = facts_hash(&f);
    facts_free(&f);
    return hash;
}

static void hash_knows_keys_and_values_only(void **state) {
    (void)state;
    uint64_t hash = hash_of("a", "1", "b", "2");
    assert_true(hash == hash_of("b", "2", "a", "1")); /* order-free */
    assert_true(hash != hash_of("a", "2", "b", "1")); /* values belong to their keys */
    assert_true(hash != hash_of("a", "1", "b", "3"));
    assert_true(hash != hash_of("a", "1", "c", "2"));
    assert_true(hash != hash_of("a", "1", NULL, NULL));
    assert_true(hash_of("ab", "c", NULL, NULL) != hash_of("a", "bc", NULL, NULL));
    struct facts f = {0};
    facts_set(&f, "a", "1", "ns", "elsewhere");
    assert_true(facts_hash(&f) == hash_of("a", "1", NULL, NULL));
    facts_free(&f);
    assert_true(facts_hash(&f) != hash_of("", "", NULL, NULL));
}

static void prints_the_same_under_any_locale(void **state) {
    (void)state;
    if (!german_begin()) skip();
    struct facts f = {0};
    facts_printf(&f, "k", "", "", "%.2f", 0.25);
    german_end();
    assert_string_equal(facts_get(&f, "k", ""), "0.25");
    facts_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_and_replaces),
        cmocka_unit_test(copies_many),
        cmocka_unit_test(packs_any_text),
        cmocka_unit_test(refuses_what_is_no_pack),
        cmocka_unit_test(hash_knows_keys_and_values_only),
        cmocka_unit_test(prints_the_same_under_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
