/* SPDX-License-Identifier: Apache-2.0 */
/* Declared analyses on tables with known laws: exponents, flatness, ratios, equality, roofline,
 * published figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "results/analysis.h"
#include "results/rows.h"
#include "results/summary.h"
#include "tests/support/synthetic.h"

static void near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("got %.12g, wanted %.12g", got, want);
}

static void analyse(struct tables *ts) {
    struct err err = {0};
    assert_int_equal(summary_compute(ts, &err), 0);
    assert_int_equal(analyses_run(ts, &err), 0);
}

static const char *said(const struct tables *ts, const char *analysis, const char *name) {
    int64_t row = synthetic_fit(ts, analysis, name);
    return row < 0 ? "" : table_text(tables_peek(ts, "fits"), row, "text");
}

static double bound(const struct tables *ts, const char *analysis, const char *name,
                    const char *which) {
    int64_t row = synthetic_fit(ts, analysis, name);
    return row < 0 ? (double)NAN : table_real(tables_peek(ts, "fits"), row, which);
}

static void assert_says(const struct tables *ts, const char *analysis, const char *name,
                        const char *part) {
    if (!strstr(said(ts, analysis, name), part))
        fail_msg("'%s %s' says '%s', not '%s'", analysis, name, said(ts, analysis, name), part);
}

/* time = scale * n^exponent (+ constant) over n = 64 ... 2048, in a mode. */
static void power_law(struct tables *ts, const char *mode, double scale, double exponent,
                      double constant, int rounds, double spread, uint64_t seed) {
    for (int n = 64; n <= 2048; n *= 2) {
        char label[60];
        snprintf(label, sizeof label, "n=%d %s", n, mode);
        int64_t p = synthetic_point(ts, "", label, 1e6, 1e6);
        synthetic_key(ts, p, "workload.n", n);
        synthetic_word(ts, p, "workload.mode", mode);
        synthetic_rounds(ts, p, rounds, scale * pow(n, exponent) + constant, spread, seed);
    }
}

static void scaling_finds_exponents(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    power_law(ts, "one", 1e-2, 1, 0, 8, 0.02, 1);
    power_law(ts, "two", 1e-4, 2, 0, 8, 0.02, 2);
    power_law(ts, "three", 1e-6, 3, 0, 8, 0.02, 3);
    synthetic_fact(ts, "analysis.0.kind", "scaling");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    analyse(ts);
    static const char *const names[] = {"exponent one", "exponent two", "exponent three"};
    for (int i = 0; i < 3; i++) {
        near(synthetic_value(ts, "scaling", names[i]), i + 1, 0.02);
        double lo = bound(ts, "scaling", names[i], "lo"), hi = bound(ts, "scaling", names[i], "hi");
        assert_true(lo < i + 1.02 && hi > i + 0.98 && hi - lo < 0.05 && lo < hi);
        assert_says(ts, "scaling", names[i], "64 \xe2\x80\xa6");
    }
    near(synthetic_value(ts, "scaling", "prefactor two"), 1e-4, 0.15);
    tables_close(&ts);
}

static void curve_says_both_ends(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    power_law(ts, "one", 1e-2, 1, 0, 8, 0.02, 1);
    power_law(ts, "two", 1e-4, 2, 0, 8, 0.02, 2);
    synthetic_fact(ts, "analysis.0.kind", "curve");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    synthetic_fact(ts, "analysis.1.kind", "curve");
    synthetic_fact(ts, "analysis.1.x", "workload.n");
    synthetic_fact(ts, "analysis.1.y", "bytes_kv");
    analyse(ts);
    assert_says(ts, "curve", "time (one)", "from ");
    assert_true(synthetic_value(ts, "curve", "time (two)") > 0);
    assert_string_equal(synthetic_verdict(ts, "curve", "time (two)"), "none");
    tables_close(&ts);
}

static void curve_against_a_metric(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    power_law(ts, "one", 1e-2, 1, 0, 8, 0.02, 1);
    synthetic_fact(ts, "analysis.0.kind", "curve");
    synthetic_fact(ts, "analysis.0.x", "time");
    synthetic_fact(ts, "analysis.0.by", "case");
    analyse(ts);
    assert_says(ts, "curve", "time", " at time = ");
    assert_true(synthetic_value(ts, "curve", "time") > 0);
    tables_close(&ts);
}

static void scaling_shrinks_to_the_straight_part(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    power_law(ts, "", 1e-4, 2, 5, 8, 0.005, 4); /* 5 ms of overhead: bends below n = 512 or so */
    synthetic_fact(ts, "analysis.0.kind", "scaling");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    synthetic_fact(ts, "analysis.0.bend", "0.15");
    analyse(ts);
    double v = synthetic_value(ts, "scaling", "exponent");
    assert_true(v > 1.8 && v < 2.02); /* the chord over all rows has 1.4 */
    assert_true(synthetic_value(ts, "scaling", "from") > 200);
    assert_says(ts, "scaling", "exponent", "below, it bends");
    tables_close(&ts);
}

static void scaling_interval_covers(void **state) {
    (void)state;
    int covered = 0, runs = 200;
    for (int k = 0; k < runs; k++) {
        struct tables *ts = tables_create();
        power_law(ts, "", 1e-3, 1.5, 0, 6, 0.05, 100 + (uint64_t)k);
        synthetic_fact(ts, "analysis.0.kind", "scaling");
        synthetic_fact(ts, "analysis.0.x", "workload.n");
        synthetic_fact(ts, "analysis.0.bend", "10"); /* the range stays whole */
        analyse(ts);
        covered += bound(ts, "scaling", "exponent", "lo") <= 1.5 &&
                   bound(ts, "scaling", "exponent", "hi") >= 1.5;
        tables_close(&ts);
    }
    /* 95 % of 200 with four standard errors. */
    if (covered < 178 || covered == runs) fail_msg("%d of %d intervals cover", covered, runs);
}

static void scaling_without_data_says_why(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    synthetic_fact(ts, "analysis.0.kind", "scaling");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    analyse(ts);
    assert_says(ts, "scaling", "exponent", "no row has a number for workload.n");
    power_law(ts, "", 1, 1, 0, 1, 0, 1);
    for (int64_t p = 0; p < 4; p++)
        table_set_text(tables_get(ts, "visits"), p, "state", p ? "oom" : "failed");
    analyse(ts);
    assert_true(isnan(synthetic_value(ts, "scaling", "exponent")));
    assert_says(ts, "scaling", "exponent", "2 rows have time");
    assert_says(ts, "scaling", "exponent", "(oom)");
    table_set_text(tables_get(ts, "visits"), 3, "state", "ok"); /* three rows of one round */
    analyse(ts);
    near(synthetic_value(ts, "scaling", "exponent"), 1, 1e-6);
    assert_true(isnan(bound(ts, "scaling", "exponent", "lo")));
    tables_close(&ts);
}

static void flat_rows(struct tables *ts, double growth, double bytes_growth, double spread,
                      int rounds) {
    for (int i = 0; i < 4; i++) {
        char label[40];
        snprintf(label, sizeof label, "context=%d", 16 << (2 * i));
        int64_t p = synthetic_point(ts, "", label, 1e6, 1e9 * (1 + (bytes_growth - 1) * i / 3));
        synthetic_key(ts, p, "workload.context", 16 << (2 * i));
        synthetic_rounds(ts, p, rounds, 10 * (1 + (growth - 1) * i / 3), spread, 9);
    }
    synthetic_fact(ts, "analysis.0.kind", "flat");
    synthetic_fact(ts, "analysis.0.x", "workload.context");
    synthetic_fact(ts, "analysis.0.tolerance", "0.02");
}

static void flat_judges_by_the_interval(void **state) {
    (void)state;
    static const struct {
        double growth, bytes, spread;
        int rounds;
        const char *verdict;
    } cases[] = {
        {1.013, 1.0125, 0.002, 8, "ok"},    /* E07: the published shape */
        {1.10, 1.0125, 0.002, 8, "failed"}, /* grows beyond bytes and tolerance */
        {1.10, 1.10, 0.002, 8, "ok"},       /* as the bytes do */
        {1.03, 1.0125, 0.10, 8, "ok"},      /* noise does not fail a run */
        {1.10, 1.0125, 0.002, 1, "none"},   /* one round has no interval */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tables *ts = tables_create();
        flat_rows(ts, cases[i].growth, cases[i].bytes, cases[i].spread, cases[i].rounds);
        analyse(ts);
        assert_string_equal(synthetic_verdict(ts, "flat", "time max/min"), cases[i].verdict);
        if (cases[i].spread < 0.01)
            near(synthetic_value(ts, "flat", "time max/min"), cases[i].growth, 0.01);
        tables_close(&ts);
    }
}

static void two_modes(struct tables *ts, double recompute, double spread, int rounds) {
    power_law(ts, "cached", 1e-1, 1, 0, rounds, spread, 5);
    power_law(ts, "recompute", recompute, 2, 0, rounds, spread, 6);
    synthetic_fact(ts, "analysis.0.kind", "ratio");
    synthetic_fact(ts, "analysis.0.metric", "time");
    synthetic_fact(ts, "analysis.0.at", "workload.mode=recompute");
    synthetic_fact(ts, "analysis.0.over", "workload.mode=cached");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
}

#define RATIO "time: recompute / cached, n=64"

static void ratio_pairs_rows_and_judges(void **state) {
    (void)state;
    static const struct {
        double scale, spread;
        int rounds;
        const char *expect, *verdict;
        double ratio;
    } cases[] = {
        {1e-2, 0.01, 8, ">1", "ok", 6.4},      {1e-2, 0.01, 8, "<1", "failed", 6.4},
        {1e-1 / 64, 0.05, 8, ">1", "none", 1}, {1e-2, 0.01, 1, ">1", "none", 6.4},
        {1e-2, 0.01, 8, "<= 7", "ok", 6.4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tables *ts = tables_create();
        two_modes(ts, cases[i].scale, cases[i].spread, cases[i].rounds);
        synthetic_fact(ts, "analysis.0.expect", cases[i].expect);
        synthetic_fact(ts, "analysis.0.grows", "true");
        analyse(ts);
        near(synthetic_value(ts, "ratio", RATIO), cases[i].ratio, 0.05);
        assert_string_equal(synthetic_verdict(ts, "ratio", RATIO), cases[i].verdict);
        if (cases[i].rounds > 1) {
            assert_string_equal(synthetic_verdict(ts, "ratio", "grows"), "ok");
            near(synthetic_value(ts, "ratio", "grows"), 32, 0.1);
        }
        tables_close(&ts);
    }
}

static void ratio_refuses_nonsense(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    two_modes(ts, 1, 0, 2);
    synthetic_fact(ts, "analysis.0.expect", "about 1");
    analyse(ts);
    assert_says(ts, "ratio", "time: recompute / cached", "about 1");
    tables_close(&ts);
    ts = tables_create();
    synthetic_fact(ts, "analysis.0.kind", "ratio");
    synthetic_fact(ts, "analysis.0.metric", "time");
    analyse(ts);
    assert_int_equal(table_rows(tables_peek(ts, "fits")), 1);
    tables_close(&ts);
}

static void equal_is_exact(void **state) {
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct tables *ts = tables_create();
        static const int64_t users[] = {32, 64, 128};
        for (int i = 0; i < 3; i++) { /* E10: the same resident tokens */
            int64_t p = synthetic_point(ts, "", i ? i > 1 ? "128" : "64" : "32", 0, 0);
            double bytes = 805306368.0 + (wrong && i == 2 ? 1 : 0);
            synthetic_key(ts, p, "workload.users", users[i]);
            synthetic_visit(ts, p, 0, 1, 1, 0, 1);
            table_set_f64(tables_get(ts, "points"), p, "bytes_kv", 805306368.0);
            table_set_f64(tables_get(ts, "points"), p, "peak_bytes", bytes);
            table_set_text(tables_get(ts, "points"), p, "output_hash", wrong && !i ? "a" : "b");
        }
        synthetic_fact(ts, "analysis.0.kind", "equal");
        synthetic_fact(ts, "analysis.0.metric", "bytes_kv");
        synthetic_fact(ts, "analysis.1.kind", "equal");
        synthetic_fact(ts, "analysis.1.metric", "peak_bytes");
        synthetic_fact(ts, "analysis.1.with", "bytes_kv");
        synthetic_fact(ts, "analysis.2.kind", "equal");
        synthetic_fact(ts, "analysis.2.metric", "output_hash");
        synthetic_fact(ts, "analysis.3.kind", "equal");
        synthetic_fact(ts, "analysis.3.metric", "max_logit_error");
        synthetic_fact(ts, "analysis.4.kind", "equal");
        synthetic_fact(ts, "analysis.4.metric", "peak_bytes");
        synthetic_fact(ts, "analysis.4.value", "805306368");
        synthetic_fact(ts, "analysis.4.source", "the oracle");
        synthetic_fact(ts, "analysis.4.where", "workload.users=128");
        analyse(ts);
        assert_string_equal(
            synthetic_verdict(ts, "equal", "peak_bytes = 805306368, workload.users=128"),
            wrong ? "failed" : "ok");
        assert_says(ts, "equal", "peak_bytes = 805306368, workload.users=128", "the oracle");
        assert_string_equal(synthetic_verdict(ts, "equal", "bytes_kv equal in all rows"), "ok");
        near(synthetic_value(ts, "equal", "bytes_kv equal in all rows"), 805306368.0, 0);
        assert_string_equal(synthetic_verdict(ts, "equal", "peak_bytes = bytes_kv"),
                            wrong ? "failed" : "ok");
        assert_string_equal(synthetic_verdict(ts, "equal", "output_hash equal in all rows"),
                            wrong ? "failed" : "ok");
        assert_string_equal(synthetic_verdict(ts, "equal", "max_logit_error equal in all rows"),
                            "none");
        if (wrong) assert_says(ts, "equal", "peak_bytes = bytes_kv", "805306369");
        assert_int_equal(summary_exit(ts), wrong ? 3 : 0);
        tables_close(&ts);
    }
}

static void roofline_places_rows(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t a = synthetic_point(ts, "", "decode", 2e9, 2e9),
            b = synthetic_point(ts, "", "prefill", 4e11, 2e9);
    int64_t dead = synthetic_point(ts, "", "dead", 1, 1);
    synthetic_rounds(ts, a, 6, 125, 0, 1);  /* 16 of 20 GB/s */
    synthetic_rounds(ts, b, 6, 4000, 0, 1); /* 100 of 200 GFLOP/s */
    table_set_text(tables_get(ts, "points"), dead, "state", "oom");
    synthetic_ceiling(ts, "read", "", "byte/s", 1 << 28, 20e9, 4);
    synthetic_ceiling(ts, "read", "", "byte/s", 1 << 15, 90e9, 4); /* a cache: no roof of DRAM */
    synthetic_ceiling(ts, "fma", "f32", "FLOP/s", 0, 200e9, 4);
    synthetic_fact(ts, "analysis.0.kind", "roofline");
    analyse(ts);
    near(synthetic_value(ts, "roofline", "ridge f32"), 10, 1e-9);
    near(bound(ts, "roofline", "ridge f32", "lo"), 10, 1e-6); /* both fall alike: no spread */
    near(synthetic_value(ts, "roofline", "decode"), 0.8, 1e-6);
    near(synthetic_value(ts, "roofline", "prefill"), 0.5, 1e-6);
    assert_says(ts, "roofline", "decode", "bound by bandwidth");
    assert_says(ts, "roofline", "prefill", "bound by arithmetic");
    assert_says(ts, "roofline", "prefill", "200 FLOP/byte, 100 of 200 GFLOP/s");
    assert_int_equal(synthetic_fit(ts, "roofline", "dead"), -1);
    tables_close(&ts);
}

static void published_stand_beside(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    for (int i = 0; i < 2; i++) {
        int64_t p = synthetic_point(ts, "", i ? "batch=16" : "batch=1", 2e6, 1e6);
        synthetic_key(ts, p, "workload.batch", i ? 16 : 1);
        synthetic_rounds(ts, p, 3, i ? 32 : 12, 0, 1);
        table_set_f64(tables_get(ts, "points"), p, "bytes_kv", i ? 196608 : 12288);
    }
    static const struct {
        const char *what, *metric, *value, *kind, *batch, *over, *verdict, *rounded;
    } p[] = {
        {"latency", "time", "2.67", "measured", "16", "1", "beside", NULL},
        {"latency exact", "time", "2.67", "exact", "16", "1", "equal",
         NULL}, /* 2.6667, as printed */
        {"kv", "bytes_kv", "12288", "exact", "1", NULL, "equal", NULL},
        {"kv off by one", "bytes_kv", "12289", "exact", "1", NULL, "differs", NULL},
        {"no such row", "time", "1", "exact", "99", NULL, "none", NULL},
        {"kv in thousands", "bytes_kv", "12e3", "exact", "1", NULL, "equal", "1000"},
        {"kv in hundreds", "bytes_kv", "12.2e3", "exact", "1", NULL, "differs", "100"},
        {"kv, nonsense", "bytes_kv", "12288", "exact", "1", NULL, "equal", "much"},
    };
    char key[80];
    for (int i = 0; i < 8; i++) {
#define SET(field, text)                                                                           \
    (snprintf(key, sizeof key, "published.%d." field, i), synthetic_fact(ts, key, text))
        SET("what", p[i].what);
        SET("metric", p[i].metric);
        SET("value", p[i].value);
        SET("kind", p[i].kind);
        SET("source", "seed E19");
        SET("at.workload.batch", p[i].batch);
        if (p[i].over) SET("over.workload.batch", p[i].over);
        if (p[i].rounded) SET("rounded", p[i].rounded);
    }
    analyse(ts);
    const struct table *t = tables_peek(ts, "published");
    assert_int_equal(table_rows(t), 8);
    for (int64_t i = 0; i < 8; i++) {
        assert_string_equal(table_text(t, i, "what"), p[i].what);
        assert_string_equal(table_text(t, i, "verdict"), p[i].verdict);
    }
    near(table_real(t, 0, "ours"), 32.0 / 12, 1e-6);
    near(table_real(t, 0, "theirs"), 2.67, 1e-12);
    assert_true(isnan(table_real(t, 4, "ours")));
    assert_says(ts, "published", "no such row", "0 rows match");
    assert_string_equal(synthetic_verdict(ts, "published", "kv off by one"), "failed");
    assert_int_equal(summary_exit(ts), 3);
    analyse(ts); /* again: cleared first */
    assert_int_equal(table_rows(t), 8);
    tables_close(&ts);
}

static void declarations_that_do_not_parse(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"analysis.0.kind", "knea", "no analysis named 'knea'"},
        {"analysis.0.kind", "knee", "needs the key x"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct tables *ts = tables_create();
        synthetic_fact(ts, cases[i].key, cases[i].value);
        synthetic_fact(ts, "analysis..x", "1");
        synthetic_fact(ts, "analysis.99999999999999999999.x", "1");
        analyse(ts);
        assert_says(ts, cases[i].value, cases[i].value, cases[i].says);
        tables_close(&ts);
    }
    struct tables *ts = tables_create();
    synthetic_fact(ts, "analysis.2.kind", "knee");
    synthetic_fact(ts, "analysis.2.x", "workload.batch");
    synthetic_fact(ts, "analysis.2.gain", "seven");
    synthetic_fact(ts, "analysis.1.kind", "flat");
    synthetic_fact(ts, "analysis.1.x", "workload.batch");
    synthetic_fact(ts, "analysis.1.xx", "workload.batch");
    analyse(ts);
    assert_says(ts, "knee", "knee", "gain: ");
    assert_says(ts, "flat", "flat", "no key xx");
    assert_string_equal(table_text(tables_peek(ts, "fits"), 0, "analysis"), "flat"); /* by number */
    tables_close(&ts);
}

static void cases_are_kept_apart(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    for (int c = 0; c < 2; c++)
        for (int i = 1; i <= 3; i++) {
            int64_t p = synthetic_point(ts, c ? "b" : "a", "x", 1, 1);
            synthetic_key(ts, p, "workload.n", i);
            synthetic_rounds(ts, p, 2, c ? i * i : i, 0, 1);
        }
    synthetic_fact(ts, "analysis.0.kind", "scaling");
    synthetic_fact(ts, "analysis.0.case", "b");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    analyse(ts);
    near(synthetic_value(ts, "scaling", "exponent"), 2, 1e-6);
    assert_string_equal(table_text(tables_peek(ts, "fits"), 0, "case"), "b");
    tables_close(&ts);
    struct rows rows;
    ts = tables_create();
    for (int c = 0; c < 2; c++) {
        int64_t p = synthetic_point(ts, c ? "b" : "a", "x", 1, 1);
        synthetic_key(ts, p, "workload.n", 7);
    }
    rows_gather(ts, "", "workload.n", "", &rows);
    assert_int_equal(rows.n_groups, 2);
    assert_string_equal(rows.groups[0].name, "a");
    assert_string_equal(rows.groups[1].name, "b");
    rows_free(&rows);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_finds_exponents),
        cmocka_unit_test(curve_says_both_ends),
        cmocka_unit_test(curve_against_a_metric),
        cmocka_unit_test(scaling_shrinks_to_the_straight_part),
        cmocka_unit_test(scaling_interval_covers),
        cmocka_unit_test(scaling_without_data_says_why),
        cmocka_unit_test(flat_judges_by_the_interval),
        cmocka_unit_test(ratio_pairs_rows_and_judges),
        cmocka_unit_test(ratio_refuses_nonsense),
        cmocka_unit_test(equal_is_exact),
        cmocka_unit_test(roofline_places_rows),
        cmocka_unit_test(published_stand_beside),
        cmocka_unit_test(declarations_that_do_not_parse),
        cmocka_unit_test(cases_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
