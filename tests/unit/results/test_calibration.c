/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison of a program with itself tells: spreads by hand, detectable change and alarms
 * as the gate's own statistics say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "results/calibration.h"
#include "results/evalue.h"
#include "tests/support/gate_settings.h"

/* 30 rounds of one row, y = +-size in turn; within each visit four quadruples that lie `own` apart
   from it, so that their mean is y. */
static struct tables *sitting(double size, double own, double level_ns) {
    struct tables *ts = tables_create();
    for (int64_t p = 0; p < 2; p++) {
        struct table *t = tables_get(ts, "points");
        int64_t row = table_add(t, 1);
        table_set_i64(t, row, "point", p);
        table_set_text(t, row, "label", "batch=1");
        table_set_text(t, row, "cell", "c");
    }
    for (int64_t r = 0; r < 30; r++) {
        const double y = r % 2 ? size : -size;
        struct table *t = tables_get(ts, "pairs");
        int64_t row = table_add(t, 1);
        table_set_i64(t, row, "a", 0);
        table_set_i64(t, row, "b", 1);
        table_set_i64(t, row, "round", r);
        table_set_i64(t, row, "quads", 4);
        table_set_f64(t, row, "y", y);
        table_set_f64(t, row, "mean", y);
        table_set_f64(t, row, "a_ns", level_ns);
        table_set_f64(t, row, "b_ns", level_ns);
        table_set_text(t, row, "state", "ok");
        t = tables_get(ts, "quads");
        for (int64_t q = 0; q < 4; q++) {
            row = table_add(t, 1);
            const double d = y + (q % 2 ? own : -own);
            table_set_i64(t, row, "a", 0);
            table_set_i64(t, row, "round", r);
            table_set_i64(t, row, "quad", q);
            table_set_f64(t, row, "a1", 1);
            table_set_f64(t, row, "a2", 1);
            table_set_f64(t, row, "b1", exp(d));
            table_set_f64(t, row, "b2", exp(d));
        }
        t = tables_get(ts, "visits");
        row = table_add(t, 1);
        table_set_f64(t, row, "t0", 0.5 * (double)r);
    }
    return ts;
}

static void spreads(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct calibration c;
    struct err err = {0};
    struct tables *ts = sitting(0.009, 0.004, 1e6);
    assert_int_equal(calibration_of((const struct tables *const *)&ts, 1, &settings, &c, &err), 0);
    assert_int_equal(c.n, 1);
    const double s = 0.009 * sqrt(30.0 / 29), own = 0.004 * sqrt(4.0 / 3) / 2; /* of four values */
    assert_true(fabs(c.rows[0].s - s) < 1e-12);
    assert_true(fabs(c.rows[0].workers - sqrt(s * s - own * own)) < 1e-9);
    assert_true(fabs(c.seconds - 0.5) < 1e-12);
    /* 30 s are 60 rounds of the one row, beyond the limit of 40: all alike. */
    const double bound = evalue_ln_bound(0.0025, 2); /* of the first attempt */
    const double at = 1.01 * exp(evalue_detectable(40, bound, 0.95) * s) - 1;
    for (int k = 0; k < 3; k++) assert_true(fabs(c.rows[0].detectable[k] - at) < 1e-12);
    assert_true(fabs(c.rows[0].at_limit - at) < 1e-12);
    const double half = evalue_detectable(c.rows[0].to_halve, bound, 0.95);
    assert_true(half <= evalue_detectable(40, bound, 0.95) / 2);
    assert_true(isnan(c.rows[0].sittings));
    assert_int_equal(c.alarms, c.rows[0].alarms);
    assert_true(c.bound < 0.005 && c.bound > 0);
    struct text out = {0};
    assert_true(calibration_text(&c, &settings, &out));
    assert_null(strstr(out.data, "gate.detect"));
    struct gate_settings strict = settings;
    strict.detect = 0.0101; /* below what 40 rounds can see */
    assert_false(calibration_text(&c, &strict, &out));
    assert_non_null(strstr(out.data, "gate.detect = 1.01 % is below"));
    text_free(&out);
    calibration_free(&c);
    tables_close(&ts);
}

/* Levels 1, 1.02 and 1.04: what lies between sittings is of the times, not of the ratios. */
static void between_sittings(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct calibration c;
    struct err err = {0};
    struct tables *ts[3];
    double logs[3], mean = 0, sum = 0;
    for (int k = 0; k < 3; k++) {
        logs[k] = log(1 + 0.02 * k);
        mean += logs[k] / 3;
        ts[k] = sitting(0.01, 0, 1e6 * (1 + 0.02 * k));
    }
    for (int k = 0; k < 3; k++) sum += (logs[k] - mean) * (logs[k] - mean);
    assert_int_equal(calibration_of((const struct tables *const *)ts, 3, &settings, &c, &err), 0);
    assert_true(fabs(c.rows[0].sittings - sqrt(sum / 2)) < 1e-12);
    calibration_free(&c);
    for (int k = 0; k < 3; k++) tables_close(&ts[k]);
}

static void too_little(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct calibration c;
    struct err err = {0};
    struct tables *ts = sitting(0.01, 0, 1e6);
    table_cut(tables_get(ts, "pairs"), 3);
    assert_int_equal(calibration_of((const struct tables *const *)&ts, 1, &settings, &c, &err),
                     ERR_INPUT);
    assert_non_null(strstr(err.text, "3 rounds are too few"));
    calibration_free(&c);
    table_cut(tables_get(ts, "pairs"), 0);
    assert_int_equal(calibration_of((const struct tables *const *)&ts, 1, &settings, &c, &err),
                     ERR_INPUT);
    calibration_free(&c);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spreads),
        cmocka_unit_test(between_sittings),
        cmocka_unit_test(too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
