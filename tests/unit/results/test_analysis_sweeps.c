/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses of divided rows, threads, cliffs and levels of cache on tables with known laws. */
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

static void says(const struct tables *ts, const char *analysis, const char *name,
                 const char *part) {
    const int64_t row = synthetic_fit(ts, analysis, name);
    const char *text = row < 0 ? "" : table_text(tables_peek(ts, "fits"), row, "text");
    if (row < 0 || !strstr(text, part))
        fail_msg("'%s %s' says '%s', not '%s'", analysis, name, text, part);
}

/* ---- parts */

static struct tables *divided(double more, double spread, int rounds, bool whole) {
    static const char *const names[] = {"embed", "mlp", "head"};
    static const double shares[] = {0.002, 0.7, 0.298};
    struct tables *ts = tables_create();
    for (int i = 0; i < 2; i++) {
        if (!i && !whole) continue;
        const char *split = i ? "parts" : "whole";
        char label[60];
        snprintf(label, sizeof label, "context=64 split=%s", split);
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "workload.context", 64);
        synthetic_word(ts, p, "workload.split", split);
        synthetic_rounds(ts, p, rounds, i ? 10 * more : 10, spread, 3);
        if (i) synthetic_parts(ts, p, names, shares, 3);
    }
    synthetic_fact(ts, "analysis.0.kind", "parts");
    analyse(ts);
    return ts;
}

static void parts_sum_to_the_whole(void **state) {
    static const char *const name = "context=64, sum of the parts";
    (void)state;
    struct tables *ts = divided(1.004, 0.0001, 5, true); /* beyond the interval, within 1 % */
    near(synthetic_value(ts, "parts", name), 1.004, 1e-3);
    assert_string_equal(synthetic_verdict(ts, "parts", name), "ok");
    says(ts, "parts", name, "mlp 70.0 %, head 29.8 %, other 0.2 %");
    says(ts, "parts", name, "within the tolerance");
    tables_close(&ts);
    ts = divided(1.05, 0.1, 5, true);
    assert_string_equal(synthetic_verdict(ts, "parts", name), "ok");
    says(ts, "parts", name, "within the interval");
    tables_close(&ts);
    ts = divided(1.2, 0.001, 5, true);
    near(synthetic_value(ts, "parts", name), 1.2, 0.01);
    assert_string_equal(synthetic_verdict(ts, "parts", name), "none");
    says(ts, "parts", name, "MORE than the whole");
    tables_close(&ts);
    ts = divided(0.8, 0.001, 5, true);
    says(ts, "parts", name, "LESS than the whole");
    tables_close(&ts);
    ts = divided(1, 0.001, 1, true);
    says(ts, "parts", name, "no verdict");
    tables_close(&ts);
    ts = divided(1, 0.001, 5, false);
    says(ts, "parts", name, "no undivided row");
    tables_close(&ts);
    ts = tables_create();
    synthetic_fact(ts, "analysis.0.kind", "parts");
    analyse(ts);
    says(ts, "parts", "parts", "no row meets 'workload.split=parts'");
    tables_close(&ts);
}

/* ---- speedup */

static struct tables *threads(double serial, const char *expect, int n) {
    struct tables *ts = tables_create();
    for (int t = 1; t <= n; t *= 2) {
        char label[40];
        snprintf(label, sizeof label, "threads=%d", t);
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "device.threads", t);
        synthetic_rounds(ts, p, 6, 100 * (serial + (1 - serial) / t), 0.0005, 3);
    }
    synthetic_fact(ts, "analysis.0.kind", "speedup");
    synthetic_fact(ts, "analysis.0.expect", expect);
    analyse(ts);
    return ts;
}

static void speedups(void **state) {
    (void)state;
    struct tables *ts = threads(0.1, "0", 4);
    near(synthetic_value(ts, "speedup", "threads 2 over 1"), 1 / 0.55, 0.005);
    near(synthetic_value(ts, "speedup", "threads 4 over 1"), 1 / 0.325, 0.005);
    says(ts, "speedup", "threads 4 over 1", "efficiency 7");
    says(ts, "speedup", "threads 4 over 1", "% of the work did not scale");
    assert_string_equal(synthetic_verdict(ts, "speedup", "threads 4 over 1"), "none");
    tables_close(&ts);
    ts = threads(0.1, "0.9", 4);
    assert_string_equal(synthetic_verdict(ts, "speedup", "threads 2 over 1"), "ok");
    assert_string_equal(synthetic_verdict(ts, "speedup", "threads 4 over 1"), "failed");
    tables_close(&ts);
    ts = threads(0.1, "0.9", 1);
    says(ts, "speedup", "threads", "no two numbers among the values of threads");
    tables_close(&ts);
    ts = tables_create(); /* two values, and neither is a number */
    synthetic_word(ts, synthetic_point(ts, "", "type=f32", 0, 0), "model.type", "f32");
    synthetic_word(ts, synthetic_point(ts, "", "type=nf4", 0, 0), "model.type", "nf4");
    synthetic_fact(ts, "analysis.0.kind", "speedup");
    synthetic_fact(ts, "analysis.0.x", "model.type");
    analyse(ts);
    says(ts, "speedup", "type", "no two numbers among the values of type");
    tables_close(&ts);
}

/* ---- cliff */

static struct tables *rows_of(double cliff, const char *strict) {
    struct tables *ts = tables_create();
    for (int m = 1; m <= 32; m++) {
        char label[40];
        snprintf(label, sizeof label, "m=%d", m);
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "workload.m", m);
        /* A fixed cost and one for each row; from 17 on each costs more. */
        synthetic_rounds(ts, p, 6, 5 + m * (m >= 17 ? cliff : 1), 0.0005, 3);
    }
    synthetic_fact(ts, "analysis.0.kind", "cliff");
    synthetic_fact(ts, "analysis.0.x", "workload.m");
    synthetic_fact(ts, "analysis.0.strict", strict);
    synthetic_fact(ts, "analysis.1.kind", "cliff");
    synthetic_fact(ts, "analysis.1.x", "workload.m");
    synthetic_fact(ts, "analysis.1.until", "16");
    synthetic_fact(ts, "analysis.2.kind", "cliff");
    synthetic_fact(ts, "analysis.2.x", "workload.m");
    synthetic_fact(ts, "analysis.2.until", "1");
    analyse(ts);
    return ts;
}

static void cliffs(void **state) {
    (void)state;
    struct tables *ts = rows_of(1, "false");
    assert_string_equal(synthetic_verdict(ts, "cliff", "time a m"), "ok");
    says(ts, "cliff", "time a m", "none of 31 steps");
    tables_close(&ts);
    ts = rows_of(1.5, "false");
    assert_string_equal(synthetic_verdict(ts, "cliff", "time a m"), "none");
    near(synthetic_value(ts, "cliff", "time a m"), (5 / 17.0 + 1.5) / (5 / 16.0 + 1), 0.01);
    says(ts, "cliff", "time a m", "from m 16 to 17; 1 of 31 steps rises by more than 5 %");
    const struct table *fits = tables_peek(ts, "fits");
    assert_string_equal(table_text(fits, 1, "verdict"), "ok"); /* until 16 there is none */
    assert_string_equal(table_text(fits, 2, "text"),
                        "not computed: fewer than two rows have time up to m 1");
    tables_close(&ts);
    ts = rows_of(1.5, "true");
    assert_string_equal(synthetic_verdict(ts, "cliff", "time a m"), "failed");
    tables_close(&ts);
}

/* ---- levels */

static struct tables *sets(const char *effective, int largest) {
    static const double rate[] = {200e9, 100e9, 40e9, 10e9}; /* L1, L2, L3, memory */
    struct tables *ts = tables_create();
    for (int k = 0; k <= largest; k++) {
        const double bytes = 4096.0 * (double)(1 << k);
        const int level = bytes <= 32768 ? 0 : bytes <= 1 << 20 ? 1 : bytes <= 32 << 20 ? 2 : 3;
        char label[40];
        snprintf(label, sizeof label, "bytes=%d", k);
        int64_t p = synthetic_point(ts, "", label, 0, bytes);
        synthetic_key(ts, p, "workload.bytes", (int64_t)bytes);
        table_set_text(tables_get(ts, "points"), p, "effective", effective);
        synthetic_rounds(ts, p, 5, bytes / rate[level] * 1e3, 0.001, 3);
    }
    synthetic_environment(ts, "cpu.l1_bytes", "32768", "byte");
    synthetic_environment(ts, "cpu.l2_bytes", "1048576", "byte");
    synthetic_environment(ts, "cpu.l3_bytes", "33554432", "byte");
    synthetic_fact(ts, "analysis.0.kind", "levels");
    analyse(ts);
    return ts;
}

static void levels(void **state) {
    (void)state;
    struct tables *ts = sets("cpu threads=1", 16);
    near(synthetic_value(ts, "levels", "L1, 1 thread"), 200, 0.01);
    near(synthetic_value(ts, "levels", "L2, 1 thread"), 100, 0.01);
    near(synthetic_value(ts, "levels", "L3, 1 thread"), 40, 0.01);
    near(synthetic_value(ts, "levels", "memory, 1 thread"), 10, 0.01);
    says(ts, "levels", "L2, 1 thread", "1.000 MiB, at ");
    says(ts, "levels", "L2, 1 thread", "10.0 \xc3\x97 memory");
    tables_close(&ts);
    ts = sets("cpu threads=4", 9); /* four cores' L1 hold 128 KiB; nothing is beyond L3 */
    says(ts, "levels", "L1, 4 threads", "128.0 KiB of 4 cores");
    says(ts, "levels", "memory, 4 threads", "no working set is clearly its own");
    tables_close(&ts);
    ts = sets("cuda sm=90", 9);
    says(ts, "levels", "levels", "not known");
    tables_close(&ts);
}

/* ---- histograms */

static const char *said(const struct tables *ts, const char *analysis, const char *name) {
    const int64_t row = synthetic_fit(ts, analysis, name);
    if (row < 0) fail_msg("there is no '%s %s'", analysis, name);
    return table_text(tables_peek(ts, "fits"), row, "text");
}

static void bars(void **state) {
    static const struct {
        const char *label;
        int64_t counts[3];
    } rows[] = {{"layer=1", {254, 3, 0}}, {"layer=2", {0, 40, 41}}};
    (void)state;
    struct tables *ts = tables_create();
    for (int i = 0; i < 2; i++) {
        const int64_t p = synthetic_point(ts, "", rows[i].label, 0, 0);
        synthetic_key(ts, p, "workload.layer", i + 1);
        synthetic_rounds(ts, p, 1, 10, 0, 1);
        for (int k = 0; k < 3; k++) {
            static const char *const bins[] = {"to_1", "to_2", "to_4"};
            struct table *points = tables_get(ts, "points");
            table_column(points, bins[k], COL_F64, "", "");
            table_set_f64(points, p, bins[k], (double)rows[i].counts[k]);
        }
    }
    synthetic_fact(ts, "analysis.0.kind", "histogram");
    synthetic_fact(ts, "analysis.0.metrics", "to_1, to_2,to_4, to_8");
    synthetic_fact(ts, "analysis.1.kind", "histogram");
    synthetic_fact(ts, "analysis.1.metrics", "to_8");
    synthetic_fact(ts, "analysis.2.kind", "histogram");
    synthetic_fact(ts, "analysis.2.metrics", "to_2");
    synthetic_fact(ts, "analysis.2.where", "workload.layer=2");
    synthetic_fact(ts, "analysis.2.longest", "7");
    analyse(ts);
    near(synthetic_value(ts, "histogram", "to_1, layer=1"), 254, 0);
    says(ts, "histogram", "to_1, layer=1", "########################################");
    assert_int_equal(strlen(said(ts, "histogram", "to_1, layer=1")), 40);
    assert_string_equal(said(ts, "histogram", "to_2, layer=1"), "###");
    assert_string_equal(said(ts, "histogram", "to_4, layer=1"), "");
    assert_int_equal(strlen(said(ts, "histogram", "to_4, layer=2")), 40);
    says(ts, "histogram", "histogram", "no row has any of to_8");
    /* The last analysis looks at one row, with shorter bars. */
    const struct table *fits = tables_peek(ts, "fits");
    const int64_t last = table_rows(fits) - 1;
    assert_string_equal(table_text(fits, last, "name"), "to_2, layer=2");
    assert_string_equal(table_text(fits, last, "text"), "#######");
    assert_int_equal(last, 7);
    tables_close(&ts);
}

/* ---- labels */

static void labels_without_a_condition(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct text t = {0};
    synthetic_point(ts, "", "context=64 split=parts batch=2", 0, 0);
    rows_label(ts, 0, "workload.split=parts", &t);
    assert_string_equal(t.data, "context=64 batch=2");
    rows_label(ts, 0, "workload.split=parts, workload.batch=2", &t);
    assert_string_equal(t.data, "context=64");
    rows_label(ts, 0, "workload.split=part", &t);
    assert_string_equal(t.data, "context=64 split=parts batch=2");
    text_free(&t);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_sum_to_the_whole),
                                       cmocka_unit_test(speedups),
                                       cmocka_unit_test(cliffs),
                                       cmocka_unit_test(levels),
                                       cmocka_unit_test(bars),
                                       cmocka_unit_test(labels_without_a_condition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
