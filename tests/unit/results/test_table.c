/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: the schema, cells, columns of their own, and packing that survives every cut and flipped
 * byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "results/table.h"

static void schema_is_in_order(void **state) {
    (void)state;
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
    for (const struct column *a = store_schema; a->table; a++) {
        assert_true(*a->name && a->unit && *a->help);
        for (const struct column *b = store_schema; b < a; b++)
            assert_false(!strcmp(a->table, b->table) && !strcmp(a->name, b->name));
    }
}

static void empty_means_none(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "summary");
    assert_null(tables_get(ts, "no such table"));
    assert_int_equal(table_rows(t), 0);
    assert_non_null(table_see_f64(t, "mean"));
    assert_null(table_see_f64(t, "point")); /* another type */
    assert_int_equal(table_add(t, 3), 0);
    assert_int_equal(table_add(t, 2), 3);
    for (int64_t r = 0; r < 5; r++) {
        assert_true(table_int(t, r, "point") == I64_NONE);
        assert_true(isnan(table_real(t, r, "mean")) && isnan(table_real(t, r, "point")));
        assert_string_equal(table_text(t, r, "metric"), "");
        struct text cell = {0};
        for (size_t k = 0; k < table_columns(t); k++) table_cell(t, r, k, &cell);
        assert_int_equal(cell.len, 0);
        text_free(&cell);
    }
    assert_true(table_int(t, 5, "point") == I64_NONE);
    assert_string_equal(table_text(t, -1, "metric"), "");
    tables_close(&ts);
    assert_null(ts);
    tables_close(&ts);
}

static struct tables *example(void) {
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "points"), *m = tables_get(ts, "meta");
    table_add(t, 2);
    assert_int_equal(table_column(t, "workload.batch", COL_I64, "sequences", "swept key"), 0);
    assert_int_equal(table_column(t, "a/b", COL_TEXT, "", ""), 0);
    assert_int_equal(table_column(t, "share", COL_F64, "1", ""), 0);
    assert_true(table_int(t, 1, "workload.batch") == I64_NONE);
    assert_string_equal(table_text(t, 1, "a/b"), "");
    table_set_i64(t, 0, "workload.batch", 4096);
    table_set_i64(t, 1, "workload.batch", INT64_MAX);
    table_set_f64(t, 0, "share", 0.1);
    table_set_f64(t, 1, "share", -INFINITY);
    table_set_text(t, 0, "a/b", "größe, \"x\"\n");
    table_set_text(t, 1, "label", "größe, \"x\"\n");
    table_add(m, 3);
    table_set_text(m, 0, "key", "title");
    table_set_text(m, 0, "value", "one");
    table_set_text(m, 1, "key", "title");
    table_set_text(m, 1, "value", "two");
    return ts;
}

static void same_tables(const struct tables *a, const struct tables *b) {
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; i < n; i++) {
        const struct table *s = tables_peek(a, names[i]), *t = tables_peek(b, names[i]);
        assert_int_equal(table_rows(s), table_rows(t));
        assert_int_equal(table_columns(s), table_columns(t));
        for (size_t k = 0; k < table_columns(s); k++) {
            const struct column *c = table_column_at(s, k), *d = table_column_at(t, k);
            assert_string_equal(c->name, d->name);
            assert_string_equal(c->unit, d->unit);
            assert_string_equal(c->help, d->help);
            for (int64_t r = 0; r < table_rows(s); r++) {
                assert_true(table_int(s, r, c->name) == table_int(t, r, c->name));
                double x = table_real(s, r, c->name), y = table_real(t, r, c->name);
                assert_memory_equal(&x, &y, sizeof x);
                assert_string_equal(table_text(s, r, c->name), table_text(t, r, c->name));
            }
        }
    }
}

static void cells_keep_their_values(void **state) {
    (void)state;
    struct tables *ts = example();
    struct table *t = tables_get(ts, "points");
    assert_int_equal(table_column(t, "share", COL_F64, "", ""), 0);
    assert_int_equal(table_column(t, "share", COL_I64, "", ""), ERR_INTERNAL);
    assert_true(table_real(t, 0, "workload.batch") == 4096);
    assert_true(table_real(t, 0, "share") == 0.1);
    assert_string_equal(table_text(t, 1, "label"), table_text(t, 0, "a/b"));
    assert_string_equal(tables_meta(ts, "title"), "two");
    assert_string_equal(tables_meta(ts, "question"), "");
    struct text cell = {0};
    table_cell(t, 0, (size_t)table_find(t, "workload.batch"), &cell);
    table_cell(t, 0, (size_t)table_find(t, "share"), &cell);
    assert_string_equal(cell.data, "40960.1");
    text_free(&cell);
    table_set_text(t, 0, "label", "\xff\xfe broken"); /* from some file in /proc */
    assert_string_equal(table_text(t, 0, "label"), "?? broken");
    table_cut(t, 1);
    assert_int_equal(table_rows(t), 1);
    table_cut(t, 5);
    assert_int_equal(table_rows(t), 1);
    assert_int_equal(table_add(t, 1), 1);
    assert_string_equal(table_text(t, 1, "label"), ""); /* what was cut does not come back */
    tables_close(&ts);
}

static void many_rows_and_texts(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "values");
    char name[32];
    for (int64_t i = 0; i < 5000; i++) {
        table_add(t, 1);
        snprintf(name, sizeof name, "metric %lld", (long long)(i % 1700));
        table_set_text(t, i, "metric", name);
        table_set_f64(t, i, "value", (double)i);
    }
    for (int64_t i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "metric %lld", (long long)(i % 1700));
        assert_string_equal(table_text(t, i, "metric"), name);
        assert_true(table_see_f64(t, "value")[i] == (double)i);
    }
    assert_ptr_equal(table_text(t, 3, "metric"), table_text(t, 1703, "metric")); /* kept once */
    tables_close(&ts);
}

static void packing_round_trip(void **state) {
    (void)state;
    struct tables *ts = example(), *back = tables_create();
    struct text packed = {0}, again = {0};
    struct err err = {0};
    tables_pack(ts, &packed);
    assert_int_equal(tables_unpack(back, packed.data, packed.len, &err), 0);
    same_tables(ts, back);
    tables_pack(back, &again);
    assert_int_equal(packed.len, again.len);
    assert_memory_equal(packed.data, again.data, again.len);
    /* A second time appends. */
    assert_int_equal(tables_unpack(back, packed.data, packed.len, &err), 0);
    assert_int_equal(table_rows(tables_get(back, "points")), 4);
    assert_int_equal(table_int(tables_get(back, "points"), 2, "workload.batch"), 4096);
    text_free(&packed);
    text_free(&again);
    tables_close(&back);
    tables_close(&ts);
}

static void trusts_no_byte(void **state) {
    (void)state;
    struct tables *ts = example();
    struct text packed = {0};
    tables_pack(ts, &packed);
    size_t refused = 0;
    for (size_t cut = 0; cut < packed.len;
         cut++) { /* each cut is an end within something, or between tables */
        struct tables *back = tables_create();
        struct err err = {0};
        int code = tables_unpack(back, packed.data, cut, &err);
        assert_true(code == 0 || (code == ERR_INPUT && *err.text));
        refused += code != 0;
        tables_close(&back);
    }
    assert_true(refused >= packed.len - 3);
    for (size_t at = 0; at < packed.len; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct tables *back = tables_create();
            struct err err = {0};
            packed.data[at] = (char)(packed.data[at] ^ (1 << bit));
            int code = tables_unpack(back, packed.data, packed.len, &err);
            assert_true(code == 0 || (code == ERR_INPUT && *err.text));
            packed.data[at] = (char)(packed.data[at] ^ (1 << bit));
            tables_close(&back);
        }
    text_free(&packed);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_is_in_order),      cmocka_unit_test(empty_means_none),
        cmocka_unit_test(cells_keep_their_values), cmocka_unit_test(many_rows_and_texts),
        cmocka_unit_test(packing_round_trip),      cmocka_unit_test(trusts_no_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
