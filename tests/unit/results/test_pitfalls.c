/* SPDX-License-Identifier: Apache-2.0 */
/* The analyses `warmup` and `memory` on tables with known answers: one-off costs that are there and
 * not, peaks that the log gives and does not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "results/analysis.h"
#include "results/beginnings.h"
#include "results/summary.h"
#include "tests/support/synthetic.h"

enum { WARMUPS = 12, SAMPLES = 30, ROUNDS = 4 };

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) fail_msg("got %.12g, wanted %.12g", got, want);
}

/* A visit whose first `slow` executions take `factor` times 2 ms, a little more in later rounds. */
static void add_visit(struct tables *ts, int64_t point, int round, int slow, double factor) {
    const int64_t visit = synthetic_visit(ts, point, round, 2, SAMPLES, 0, 1);
    struct table *w = tables_get(ts, "warmup");
    const int64_t first = table_add(w, WARMUPS);
    for (int i = 0; i < WARMUPS; i++) {
        table_set_i64(w, first + i, "visit", visit);
        table_set_i64(w, first + i, "order", i);
        table_set_i64(w, first + i, "wall_ns",
                      llround(2e6 * (i < slow ? factor * (1 + 0.01 * round) : 1)));
    }
}

static struct tables *beginnings_of(int slow, double factor, const char *settled,
                                    const char *inside) {
    struct tables *ts = tables_create();
    struct err err = {0};
    const int64_t p = synthetic_point(ts, "", "", 1e6, 1e6);
    for (int r = 0; r < ROUNDS; r++) add_visit(ts, p, r, slow, factor);
    synthetic_fact(ts, "analysis.0.kind", "warmup");
    synthetic_fact(ts, "analysis.0.outlier", "true");
    synthetic_fact(ts, "analysis.0.settled", settled);
    synthetic_fact(ts, "analysis.0.inside", inside);
    synthetic_fact(ts, "analysis.0.discard", "[0, 2, 5]");
    assert_int_equal(summary_compute(ts, &err), 0);
    assert_int_equal(analyses_run(ts, &err), 0);
    return ts;
}

static void one_off_cost_is_seen(void **state) {
    struct tables *ts = beginnings_of(3, 10, "5", "2");
    double logs = 0;
    (void)state;
    for (int r = 0; r < ROUNDS; r++) logs += log(10 * (1 + 0.01 * r)) / ROUNDS;
    near(synthetic_value(ts, "warmup", "first execution"), exp(logs));
    assert_string_equal(synthetic_verdict(ts, "warmup", "first execution"), "ok");
    logs = 0; /* of the next ten one is slow */
    for (int r = 0; r < ROUNDS; r++) logs += log((10 * (1 + 0.01 * r) + 9) / 10) / ROUNDS;
    near(synthetic_value(ts, "warmup", "after 2 discarded"), exp(logs));
    assert_string_equal(synthetic_verdict(ts, "warmup", "after 2 discarded"), "ok");
    near(synthetic_value(ts, "warmup", "after 5 discarded"), 1);
    assert_string_equal(synthetic_verdict(ts, "warmup", "after 5 discarded"), "ok");
    near(synthetic_value(ts, "warmup", "the loop's own warm-up"), WARMUPS);
    tables_close(&ts);
}

static void what_is_not_so_fails(void **state) {
    (void)state;
    struct tables *ts = beginnings_of(0, 1, "0", "2"); /* nothing to warm, and it is said to be */
    assert_string_equal(synthetic_verdict(ts, "warmup", "first execution"), "failed");
    assert_string_equal(synthetic_verdict(ts, "warmup", "after 0 discarded"), "ok");
    assert_string_equal(synthetic_verdict(ts, "warmup", "after 2 discarded"), "failed");
    tables_close(&ts);
    ts = beginnings_of(8, 3, "5", "-1"); /* eight are slow: five are too few */
    assert_string_equal(synthetic_verdict(ts, "warmup", "after 5 discarded"), "failed");
    tables_close(&ts);
}

static void no_executions(void **state) {
    struct tables *ts = tables_create();
    struct err err = {0};
    (void)state;
    synthetic_point(ts, "", "", 1, 1);
    synthetic_fact(ts, "analysis.0.kind", "warmup");
    synthetic_fact(ts, "analysis.1.kind", "memory");
    assert_int_equal(analyses_run(ts, &err), 0);
    const struct table *fits = tables_peek(ts, "fits");
    assert_int_equal(table_rows(fits), 2);
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(table_text(fits, i, "text"), "not computed"));
        assert_string_equal(table_text(fits, i, "verdict"), "none");
    }
    tables_close(&ts);
}

/* Visits of a broken file: numbers that no visit has, and a failed sample, which ends the list. */
static void broken_visits(void **state) {
    struct tables *ts = tables_create();
    struct beginnings b;
    (void)state;
    const int64_t p = synthetic_point(ts, "", "", 1, 1);
    add_visit(ts, p, 0, 1, 5);
    struct table *w = tables_get(ts, "warmup"), *s = tables_get(ts, "samples");
    const int64_t stray = table_add(w, 1);
    table_set_i64(w, stray, "visit", 1000000);
    table_set_i64(w, stray, "wall_ns", 5);
    table_set_i64(s, 10, "labels", 8);
    beginnings_read(ts, &b);
    assert_int_equal(b.n, 1);
    assert_int_equal(b.items[0].warmups, WARMUPS);
    assert_int_equal(b.items[0].n, WARMUPS + 10);
    near(beginning_level(&b.items[0]), 2);
    beginnings_free(&b);
    tables_close(&ts);
}

struct event {
    int64_t bytes;
    const char *class, *site, *phase;
};
static struct tables *memory_of(const struct event *events, int n, double peak) {
    struct tables *ts = tables_create();
    struct err err = {0};
    const int64_t p = synthetic_point(ts, "", "row", 1e6, 1e6);
    const int64_t visit = synthetic_visit(ts, p, 0, 2, 5, 0, 1);
    struct table *m = tables_get(ts, "memory");
    for (int i = 0; i < n; i++) {
        const int64_t row = table_add(m, 1);
        table_set_i64(m, row, "visit", visit);
        table_set_i64(m, row, "t_ns", 1000000 * i);
        table_set_i64(m, row, "bytes", events[i].bytes);
        table_set_text(m, row, "class", events[i].class);
        table_set_text(m, row, "site", events[i].site);
        table_set_text(m, row, "phase", events[i].phase);
    }
    table_set_f64(tables_get(ts, "points"), p, "peak_bytes", peak);
    synthetic_fact(ts, "analysis.0.kind", "memory");
    assert_int_equal(analyses_run(ts, &err), 0);
    return ts;
}

/* a and b live together, then c alone is larger than either; the witness's d makes no peak, but
 * what it still holds counts when e comes. */
static const struct event events[] = {
    {100, "weight", "a", "set-up"},  {50, "kv", "b", "decode"},
    {-100, "weight", "a", "decode"}, {120, "logits", "c", "decode"},
    {1000, "kv", "d", "witness"},    {-1000, "kv", "d", "witness"},
    {-50, "kv", "b", "decode"},      {7, "activation", "e", "decode"},
};

static void peak_is_replayed(void **state) {
    struct tables *ts = memory_of(events, 8, 170);
    (void)state;
    near(synthetic_value(ts, "memory", "row: peak"), 170);
    assert_string_equal(synthetic_verdict(ts, "memory", "row: peak"), "ok");
    const int64_t row = synthetic_fit(ts, "memory", "row: peak");
    const char *text = table_text(tables_peek(ts, "fits"), row, "text");
    assert_non_null(strstr(text, "at 3.00 ms in decode"));
    assert_non_null(strstr(text, "alive: logits 120 B, kv 50 B; largest: c 120 B, b 50 B"));
    near(synthetic_value(ts, "memory", "row: all allocations"), 100 + 50 + 120 + 7);
    tables_close(&ts);
    ts = memory_of(events, 8, 171);
    assert_string_equal(synthetic_verdict(ts, "memory", "row: peak"), "failed");
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_off_cost_is_seen), cmocka_unit_test(what_is_not_so_fails),
        cmocka_unit_test(no_executions),        cmocka_unit_test(broken_visits),
        cmocka_unit_test(peak_is_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
