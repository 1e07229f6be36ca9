/* SPDX-License-Identifier: Apache-2.0 */
/* From turns to y, and from the tables of a comparison to its rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "results/pairs.h"
#include "tests/support/gate_settings.h"

/* a1, b1, b2, a2: a drift that is linear over the four turns cancels to first order; the order of
 * the sides does not. */
static void test_y(void **state) {
    (void)state;
    const double one[][4] = {{100, 105, 105, 100}};
    struct pair_y y = pairs_y(one, 1);
    assert_true(fabs(y.y - log(1.05)) < 1e-15 && fabs(y.mean - log(1.05)) < 1e-15);
    assert_true(y.a_ns == 100 && y.b_ns == 105);
    /* Of five the lowest and the highest are cut: 0.2 of five is one. */
    double five[5][4];
    static const double d[] = {-0.5, 0.01, 0.02, 0.03, 9};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 4; k++) five[i][k] = k == 1 || k == 2 ? exp(d[i]) : 1;
    y = pairs_y((const double(*)[4])five, 5);
    assert_true(fabs(y.y - 0.02) < 1e-12);
    assert_true(fabs(y.mean - 8.56 / 5) < 1e-12);
    y = pairs_y(NULL, 0);
    assert_true(isnan(y.y) && isnan(y.mean));
}

static void add_point(struct tables *ts, int64_t point, const char *label) {
    struct table *t = tables_get(ts, "points");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point);
    table_set_text(t, row, "label", label);
    table_set_text(t, row, "case", "decode");
    table_set_text(t, row, "cell", label);
    table_set_text(t, row, "workload", "null");
}

static const char *flags = "disturbed disturbed";
static void add_pair(struct tables *ts, int64_t a, int64_t b, int64_t round, double y,
                     const char *state, const char *weights) {
    struct table *t = tables_get(ts, "pairs");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "a", a);
    table_set_i64(t, row, "b", b);
    table_set_i64(t, row, "round", round);
    table_set_f64(t, row, "y", y);
    table_set_f64(t, row, "mean", y);
    table_set_f64(t, row, "a_ns", isnan(y) ? y : 2e6);
    table_set_f64(t, row, "b_ns", isnan(y) ? y : 2e6 * exp(y));
    table_set_i64(t, row, "quads", isnan(y) ? 0 : 10);
    table_set_text(t, row, "state", state);
    table_set_text(t, row, "reason", *state == 'o' ? "" : "b: it broke");
    table_set_text(t, row, "weights", weights);
    table_set_text(t, row, "flags", flags);
}

static void test_rows(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct tables *ts = tables_create();
    static const char *const labels[] = {"batch=1", "batch=2", "batch=4"};
    for (int64_t i = 0; i < 6; i++) add_point(ts, i, labels[i % 3]);
    assert_false(pairs_there(ts));
    for (int64_t r = 0; r < 8; r++) {
        const double noise = r % 2 ? 0.001 : -0.001;
        add_pair(ts, 0, 3, r, 0.0 + noise, "ok", "shared");
        add_pair(ts, 1, 4, r, 0.06 + noise, "ok", "private");
    }
    add_pair(ts, 2, 5, 0, (double)NAN, "failed", "none");
    assert_true(pairs_there(ts));
    struct gate *g = pairs_gate(ts, &settings);
    assert_int_equal(g->n_rows, 3);
    assert_string_equal(g->rows[0].name, "decode batch=1");
    assert_int_equal(g->rows[0].verdict, GATE_PASS);
    assert_int_equal(g->rows[1].verdict, GATE_SLOWER);
    assert_true(fabs(g->rows[1].old_value - 2) < 1e-9 && g->rows[1].new_value > 2.1);
    assert_string_equal(g->rows[1].flags, "disturbed"); /* once */
    assert_non_null(strstr(g->rows[1].reason, "own copy of the weights"));
    assert_null(strstr(g->rows[0].reason, "own copy"));
    assert_int_equal(g->rows[2].verdict, GATE_STATE);
    assert_string_equal(gate_word(&g->rows[2]), "failed");
    assert_non_null(strstr(g->rows[2].reason, "it broke"));
    assert_int_equal(gate_exit(g), 1);
    gate_close(&g);
    for (int64_t i = 0; i < 2; i++)
        add_point(ts, i + 6, labels[i]); /* 4 of 8 points are of side a */
    g = pairs_gate(ts, &settings);
    assert_string_equal(gate_word(&g->rows[3]), "skipped"); /* nobody came to it */
    gate_close(&g);
    tables_close(&ts);
}

/* A throttled round cancels; where most are, the row has no basis. */
static void test_throttled(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    for (int most = 3; most <= 5; most++) {
        struct tables *ts = tables_create();
        add_point(ts, 0, "x");
        add_point(ts, 1, "x");
        for (int r = 0; r < 8; r++) {
            flags = r < most ? "throttled" : "";
            add_pair(ts, 0, 1, r, r % 2 ? 0.001 : -0.001, "ok", "none");
        }
        struct gate *g = pairs_gate(ts, &settings);
        assert_string_equal(gate_word(&g->rows[0]), most > 4 ? "throttled" : "pass");
        assert_int_equal(gate_exit(g), most > 4 ? 3 : 0);
        gate_close(&g);
        tables_close(&ts);
    }
    struct tables *ts = tables_create(); /* the first rounds do not end a row */
    add_point(ts, 0, "x");
    add_point(ts, 1, "x");
    for (int r = 0; r < 4; r++) {
        struct gate *g = pairs_gate(ts, &settings);
        assert_true(!r || (g->rows[0].verdict == GATE_UNDECIDED && gate_open(g, 0)));
        gate_close(&g);
        flags = "throttled";
        add_pair(ts, 0, 1, r, r % 2 ? 0.001 : -0.001, "ok", "none");
    }
    struct gate *g = pairs_gate(ts, &settings);
    assert_string_equal(gate_word(&g->rows[0]), "throttled");
    gate_close(&g);
    tables_close(&ts);
    flags = "disturbed disturbed";
}

/* An exact number of a row that came to that state; NAN: it reported none. */
static void add_number(struct tables *ts, int64_t point, const char *state, double tokens) {
    table_set_text(tables_get(ts, "points"), point, "state", state);
    if (isnan(tokens)) return;
    struct table *t = tables_get(ts, "summary");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point);
    table_set_text(t, row, "metric", "tokens");
    table_set_f64(t, row, "mean", tokens);
}

static void add_metric(struct tables *ts) {
    struct table *t = tables_get(ts, "metrics");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "workload", "null");
    table_set_text(t, row, "name", "tokens");
    table_set_text(t, row, "better", "none");
    table_set_i64(t, row, "exact", 1);
}

/* Exact numbers against a baseline: of the chosen rows only, and a row that has no numbers is no
 * regression: its state says why. */
static void test_against(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    static const char *const labels[] = {"batch=1", "batch=2"};
    struct tables *old = tables_create(), *ts = tables_create();
    struct gate_settings only_first = settings;
    add_metric(old);
    add_metric(ts);
    for (int64_t i = 0; i < 4; i++) add_point(ts, i, labels[i % 2]);
    for (int64_t i = 0; i < 2; i++) add_point(old, i, labels[i]), add_number(old, i, "ok", 7);
    for (int64_t r = 0; r < 8; r++) add_pair(ts, 0, 2, r, r % 2 ? 0.001 : -0.001, "ok", "none");
    add_number(ts, 0, "ok", 7);
    add_number(ts, 2, "ok", 7);
    add_number(ts, 1, "skipped", NAN);
    add_number(ts, 3, "skipped", NAN); /* the budget ended before it */
    struct gate *g = pairs_gate(ts, &settings);
    pairs_against(g, ts, old);
    gate_judge(g);
    assert_int_equal(gate_count(g, GATE_SLOWER), 0);
    assert_int_equal(gate_exit(g), 3);
    gate_close(&g);
    only_first.rows = "cell=batch=1";
    g = pairs_gate(ts, &only_first);
    pairs_against(g, ts, old);
    gate_judge(g);
    assert_int_equal(gate_exit(g), 0);
    gate_close(&g);
    add_number(ts, 3, "ok", 8); /* while a number that is another one is */
    g = pairs_gate(ts, &settings);
    pairs_against(g, ts, old);
    gate_judge(g);
    assert_int_equal(gate_count(g, GATE_SLOWER), 1);
    gate_close(&g);
    tables_close(&old);
    tables_close(&ts);
}

/* A file from elsewhere may say anything: no index leads out of the rows. */
static void meta(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    const int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static bool noted(const struct gate *g, const char *sentence) {
    for (size_t i = 0; i < g->n_notes; i++)
        if (!strcmp(g->notes[i], sentence)) return true;
    return false;
}

/* Which functions changed stands beside what became slower, and beside nothing else. */
static void test_changed_code(void **state) {
    (void)state;
    static const double changes[] = {0.06, 0.001, -0.06};
    for (int i = 0; i < 3; i++) {
        struct tables *ts = tables_create();
        meta(ts, "changed_code", "2 of 9 functions differ: f and g");
        add_point(ts, 0, "x");
        add_point(ts, 1, "x");
        for (int r = 0; r < 12; r++)
            add_pair(ts, 0, 1, r, changes[i] + (r % 2 ? 0.001 : -0.001), "ok", "none");
        const struct gate_settings settings = gate_defaults();
        struct gate *g = pairs_gate(ts, &settings);
        static const char *const words[] = {"slower", "pass", "faster"};
        assert_string_equal(gate_word(&g->rows[0]), words[i]);
        assert_int_equal(noted(g, "machine code: 2 of 9 functions differ: f and g"), i != 1);
        gate_close(&g);
        tables_close(&ts);
    }
}

static void test_absurd(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct tables *ts = tables_create();
    add_point(ts, 0, "x");
    add_point(ts, 1, "x");
    add_pair(ts, -1, 7, 0, 0, "ok", "");
    add_pair(ts, 5, 7, 0, 0, "ok", "");
    add_pair(ts, 0, 1, INT64_MAX, 0, "ok", "");
    add_pair(ts, 0, 1, -5, 0, "ok", "");
    struct gate *g = pairs_gate(ts, &settings);
    assert_int_equal(g->n_rows, 1);
    assert_int_equal(g->rows[0].verdict, GATE_UNDECIDED);
    gate_close(&g);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_y),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_against),
        cmocka_unit_test(test_changed_code),
        cmocka_unit_test(test_absurd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
