/* SPDX-License-Identifier: Apache-2.0 */
/* The knee on hinges with known B*: recovered, covered, predicted, explained; and absent where
 * there is none. */
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
#include "results/summary.h"
#include "tests/support/synthetic.h"

/* A decode step: weights of 1 GB read once, 2 GFLOP per sequence; 20 GB/s and 200 GFLOP/s have
   their ridge at 10 FLOP/byte, so B* = 5; `level` and `slope` are what the machine really does (50
   ms and 10 ms at full ceilings). */
struct machine {
    double level, slope, knee, spread;
    int rounds, steps; /* steps in one execution */
    bool ceilings;
};

static const struct machine plain = {50, 10, 5, 0.01, 8, 4, true};

static struct tables *decode(struct machine m, uint64_t seed) {
    struct tables *ts = tables_create();
    for (int batch = 1; batch <= 32; batch *= 2) {
        char label[40];
        double steps = m.steps, t = m.level + m.slope * fmax(0, batch - m.knee);
        double flops = steps * 2e9 * batch, bytes = steps * 1e9;
        snprintf(label, sizeof label, "batch=%d", batch);
        int64_t p = synthetic_point(ts, "", label, flops, bytes);
        synthetic_key(ts, p, "workload.batch", batch);
        synthetic_phase(ts, p, "decode", steps * batch, flops, bytes);
        synthetic_rounds(ts, p, m.rounds, steps * t, m.spread, seed);
    }
    if (m.ceilings) {
        synthetic_ceiling(ts, "read", "", "byte/s", 1 << 28, 20e9, 4);
        synthetic_ceiling(ts, "fma", "f32", "FLOP/s", 0, 200e9, 4);
    }
    synthetic_fact(ts, "analysis.0.kind", "knee");
    synthetic_fact(ts, "analysis.0.x", "workload.batch");
    synthetic_fact(ts, "analysis.0.y", "decode_rate");
    return ts;
}

static void analyse(struct tables *ts) {
    struct err err = {0};
    assert_int_equal(summary_compute(ts, &err), 0);
    assert_int_equal(analyses_run(ts, &err), 0);
}

static double value(const struct tables *ts, const char *name) {
    return synthetic_value(ts, "knee", name);
}

static double bound(const struct tables *ts, const char *name, const char *which) {
    return table_real(tables_peek(ts, "fits"), synthetic_fit(ts, "knee", name), which);
}

static const char *said(const struct tables *ts, const char *name) {
    int64_t row = synthetic_fit(ts, "knee", name);
    return row < 0 ? "" : table_text(tables_peek(ts, "fits"), row, "text");
}

static void assert_says(const struct tables *ts, const char *name, const char *part) {
    if (!strstr(said(ts, name), part))
        fail_msg("'%s' says '%s', not '%s'", name, said(ts, name), part);
}

static void near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("got %.12g, wanted %.12g", got, want);
}

static void finds_predicts_explains(void **state) {
    (void)state;
    struct tables *ts = decode(plain, 1);
    synthetic_fact(ts, "analysis.0.gain", "0.1");
    analyse(ts);
    near(value(ts, "B*"), 5, 0.05);
    assert_true(bound(ts, "B*", "lo") < 5 && bound(ts, "B*", "hi") > 5);
    assert_true(bound(ts, "B*", "hi") / bound(ts, "B*", "lo") < 1.2);
    near(value(ts, "t_mem"), 50, 0.02);
    near(value(ts, "c1"), 10, 0.05);
    assert_true(fabs(value(ts, "c0")) < 5);
    near((value(ts, "t_mem") - value(ts, "c0")) / value(ts, "c1"), value(ts, "B*"), 1e-12);
    near(value(ts, "B* predicted"), 5, 1e-6);
    assert_says(ts, "cause", "bandwidth \xe2\x86\x92 compute");
    assert_says(ts, "cause", "% of the bandwidth");
    near(value(ts, "last doubling that gains 10 %"), 8, 0); /* 8 -> 16: 80 to 160 ms */
    assert_string_equal(synthetic_verdict(ts, "knee", "throughput rises up to the knee"), "ok");
    assert_string_equal(synthetic_verdict(ts, "knee", "latency rises"), "ok");
    assert_string_equal(synthetic_verdict(ts, "knee", "product identity"), "ok");
    assert_int_equal(summary_exit(ts), 0);
    tables_close(&ts);
}

static void shares_of_ceilings_are_right(void **state) {
    (void)state;
    struct machine m = plain;
    m.spread = 0;
    m.level = 50 / 0.8; /* 80 % of the bandwidth */
    m.slope = 10 / 0.5; /* 50 % of the peak */
    m.knee = 6;
    struct tables *ts = decode(m, 1);
    analyse(ts);
    assert_says(ts, "cause",
                "the plateau reaches 80 % of the bandwidth, the slope 50 % of the peak");
    tables_close(&ts);
}

static void interval_covers(void **state) {
    (void)state;
    int covered = 0, runs = 200;
    for (int k = 0; k < runs; k++) {
        struct machine m = plain;
        m.spread = 0.03;
        struct tables *ts = decode(m, 1000 + (uint64_t)k);
        analyse(ts);
        covered += bound(ts, "B*", "lo") <= 5 && bound(ts, "B*", "hi") >= 5;
        tables_close(&ts);
    }
    /* 95 % of 200, four standard errors below and above. */
    if (covered < 178) fail_msg("%d of %d intervals cover", covered, runs);
    if (covered == runs) fail_msg("%d of %d intervals cover: they are too wide", covered, runs);
}

static void another_cause_is_not_the_ridge(void **state) {
    (void)state;
    struct machine m = plain;
    m.knee = 2;
    m.slope = 40; /* a quarter of the peak */
    struct tables *ts = decode(m, 3);
    for (int64_t p = 0; p < 6; p++)
        table_set_f64(tables_get(ts, "points"), p, "bytes_kv", (double)(1 << 20) * (1 << p));
    synthetic_environment(ts, "cpu.l3_bytes", "3000000", "byte");
    analyse(ts);
    near(value(ts, "B*"), 2, 0.1);
    assert_says(ts, "cause", "not the ridge, which predicts 5");
    assert_says(ts, "cause", "kernels or threads");
    assert_says(ts, "cause", "keys and values outgrow the L3 cache between batch 2 and 4");
    tables_close(&ts);
}

static void absent_knee_is_said(void **state) {
    (void)state;
    struct machine m = plain;
    m.knee = 100; /* beyond the range */
    m.spread = 0;
    struct tables *ts = decode(m, 4);
    analyse(ts);
    assert_true(isnan(value(ts, "B*")));
    assert_says(ts, "B*", "no knee: ");
    assert_says(ts, "B*", "the range ends before the knee");
    assert_true(isnan(value(ts, "last doubling that gains 25 %")));
    assert_int_equal(synthetic_fit(ts, "knee", "cause"), -1);
    tables_close(&ts);
    m.knee = 0; /* a line from the start */
    for (int noisy = 0; noisy < 20; noisy++) {
        m.spread = noisy ? 0.02 : 0;
        ts = decode(m, 400 + (uint64_t)noisy);
        analyse(ts);
        assert_true(isnan(value(ts, "B*")));
        assert_says(ts, "B*", "line");
        tables_close(&ts);
    }
}

static void prediction_outside_the_range(void **state) {
    (void)state;
    struct machine m = plain;
    struct tables *ts = decode(m, 5);
    for (int64_t p = 0; p < 6; p++)
        table_set_f64(tables_get(ts, "phases"), p, "flops",
                      0.01 * table_real(tables_peek(ts, "phases"), p, "flops"));
    analyse(ts);
    assert_true(isnan(value(ts, "B* predicted")));
    assert_says(ts, "B* predicted", "outside the range");
    assert_says(ts, "cause", "not the ridge, which lies above the range");
    tables_close(&ts);
    m.ceilings = false;
    ts = decode(m, 5);
    analyse(ts);
    assert_says(ts, "B* predicted", "measured no bandwidth or no peak");
    assert_says(ts, "cause", "unknown");
    tables_close(&ts);
}

static void rows_may_be_missing(void **state) {
    (void)state;
    struct tables *ts = decode(plain, 6);
    for (int64_t v = 0; v < table_rows(tables_peek(ts, "visits")); v++)
        if (table_int(tables_peek(ts, "visits"), v, "point") == 5) /* batch 32 did not fit */
            table_set_text(tables_get(ts, "visits"), v, "state", "oom");
    table_set_text(tables_get(ts, "visits"), 3, "state", "failed"); /* and one visit died */
    analyse(ts);
    near(value(ts, "B*"), 5, 0.1);
    assert_says(ts, "B*", "left out: batch=32 (oom)");
    tables_close(&ts);

    struct machine m = plain;
    m.rounds = 1;
    ts = decode(m, 7); /* one round: a value, no interval */
    analyse(ts);
    near(value(ts, "B*"), 5, 0.1);
    assert_true(isnan(bound(ts, "B*", "lo")));
    assert_string_equal(synthetic_verdict(ts, "knee", "latency rises"), "none");
    tables_close(&ts);

    m.rounds = 0; /* nothing was measured */
    ts = decode(m, 8);
    analyse(ts);
    assert_true(isnan(value(ts, "B*")));
    assert_says(ts, "B*", "(skipped)");
    tables_close(&ts);

    ts = decode(plain, 9);
    for (int64_t v = 0; v < table_rows(tables_peek(ts, "visits")); v++)
        if (table_int(tables_peek(ts, "visits"), v, "point") >= 3)
            table_set_text(tables_get(ts, "visits"), v, "state", "timeout");
    analyse(ts);
    assert_says(ts, "B*", "3 rows have a time; a hinge needs four");
    tables_close(&ts);
}

static void throughput_that_falls_fails(void **state) {
    (void)state;
    struct machine m = plain;
    m.knee = 12;
    struct tables *ts = decode(m, 10);
    struct table *s = tables_get(ts, "samples"), *v = tables_get(ts, "visits");
    for (int64_t i = 0; i < table_rows(s); i++) /* batch 4 takes five times as long */
        if (table_int(v, table_int(s, i, "visit"), "point") == 2)
            table_set_i64(s, i, "wall_ns", 5 * table_int(s, i, "wall_ns"));
    analyse(ts);
    int64_t row = synthetic_fit(ts, "knee", "throughput rises up to the knee");
    assert_true(row >= 0);
    assert_string_equal(synthetic_verdict(ts, "knee", "throughput rises up to the knee"), "failed");
    assert_says(ts, "throughput rises up to the knee", "batch 2 \xe2\x86\x92 4");
    tables_close(&ts);
}

static void identity_notices_a_wrong_rate(void **state) {
    (void)state;
    struct tables *ts = decode(plain, 11);
    struct err err = {0};
    assert_int_equal(summary_compute(ts, &err), 0);
    struct table *s = tables_get(ts, "summary");
    for (int64_t i = 0; i < table_rows(s); i++)
        if (table_int(s, i, "point") == 4 && !strcmp(table_text(s, i, "metric"), "decode_rate"))
            table_set_f64(s, i, "mean", 1.05 * table_real(s, i, "mean"));
    assert_int_equal(analyses_run(ts, &err), 0);
    assert_string_equal(synthetic_verdict(ts, "knee", "product identity"), "failed");
    tables_close(&ts);
}

static void groups_have_their_own_knees(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    for (int g = 0; g < 2; g++)
        for (int batch = 1; batch <= 32; batch *= 2) {
            int64_t p = synthetic_point(ts, "", "x", 1, 1);
            synthetic_key(ts, p, "workload.batch", batch);
            synthetic_word(ts, p, "model.type", g ? "int8" : "bf16");
            synthetic_rounds(ts, p, 4, fmax(50, (g ? 20 : 7) * batch), 0, 1);
        }
    synthetic_fact(ts, "analysis.0.kind", "knee");
    synthetic_fact(ts, "analysis.0.x", "workload.batch");
    analyse(ts);
    near(value(ts, "B* bf16"), 50.0 / 7, 1e-3);
    near(value(ts, "B* int8"), 2.5, 1e-3);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_predicts_explains),
        cmocka_unit_test(shares_of_ceilings_are_right),
        cmocka_unit_test(interval_covers),
        cmocka_unit_test(another_cause_is_not_the_ridge),
        cmocka_unit_test(absent_knee_is_said),
        cmocka_unit_test(prediction_outside_the_range),
        cmocka_unit_test(rows_may_be_missing),
        cmocka_unit_test(throughput_that_falls_fails),
        cmocka_unit_test(identity_notices_a_wrong_rate),
        cmocka_unit_test(groups_have_their_own_knees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
