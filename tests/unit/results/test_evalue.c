/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's statistics against values made by other ways in 40 digits (tests/golden), and their
 * edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "base/text.h"
#include "results/evalue.h"
#include "results/stats.h"

static void golden_data(double *x, size_t n, double offset, double scale) {
    for (size_t i = 0; i < n; i++)
        x[i] = offset + scale * (double)((uint32_t)(i * 2654435761u) >> 8);
}

static double computed(const char *what, const double a[4]) {
    double x[64], lo, hi;
    const size_t n = (size_t)a[0];
    const int64_t k = (int64_t)a[0], m = (int64_t)a[1];
    if (!strcmp(what, "quadruple")) return evalue_quadruple(a[0], a[1], a[2], a[3]);
    if (!strncmp(what, "trimmed", 7)) {
        golden_data(x, n, -3e6, 0.5);
        return what[7] ? evalue_trimmed_error(x, n, 0.2) : evalue_trimmed_mean(x, n, 0.2);
    }
    if (!strcmp(what, "ln_e")) {
        const struct evalue e = {n, 3 + a[1] / sqrt(a[0]), 1};
        return evalue_ln(&e, 3);
    }
    if (!strcmp(what, "ln_bound")) return evalue_ln_bound(a[0], m);
    if (!strcmp(what, "critical"))
        return evalue_critical_t(n, evalue_ln_bound(a[1], (int64_t)a[2]));
    if (!strcmp(what, "detectable"))
        return evalue_detectable(n, evalue_ln_bound(a[1], (int64_t)a[2]), a[3]);
    if (!strcmp(what, "upper")) return evalue_binomial_upper(k, m, a[2]);
    if (!strcmp(what, "lower")) return evalue_binomial_lower(k, m, a[2]);
    if (!strcmp(what, "beta")) return stats_beta(a[0], a[1], a[2]);
    if (!strncmp(what, "cp", 2)) {
        evalue_clopper_pearson(k, m, 0.95, &lo, &hi);
        return what[3] == 'l' ? lo : hi;
    }
    assert_int_equal(strncmp(what, "predict", 7), 0);
    golden_data(x, n, 1e3, 1e-6);
    evalue_prediction(x, n, 0.95, &lo, &hi);
    return what[8] == 'l' ? lo : hi;
}

static void golden_values(void **state) {
    (void)state;
    char path[1000], line[300];
    int rows = 0;
    snprintf(path, sizeof path, "%s/tests/golden/evalue_golden.tsv", getenv("SOURCE_DIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        char *rest = line, *what = strsep(&rest, "\t");
        double a[4] = {0}, expected;
        for (int i = 0; i < 4; i++) parse_f64(strsep(&rest, "\t"), &a[i]);
        assert_true(parse_f64(strsep(&rest, "\n"), &expected));
        const double got = computed(what, a);
        /* the power is an integral, and found by halving */
        const double near = !strcmp(what, "detectable") ? 1e-7 : 1e-10;
        if (!(fabs(got - expected) <= near * fmax(fabs(expected), 1e-9))) {
            print_error("%s %g %g %g %g: %.17g, expected %.17g\n", what, a[0], a[1], a[2], a[3],
                        got, expected);
            fail();
        }
        rows++;
    }
    fclose(f);
    assert_true(rows > 70);
}

/* measurement.md section 4 gives 8.7, 4.7, 3.5, 1.8, 1.1 for 20 rows, found by simulation. */
static void detectable_with_twenty_rows(void **state) {
    (void)state;
    const double bound = evalue_ln_bound(0.005, 21), said[] = {8.7, 4.7, 3.5, 1.8, 1.1};
    const size_t rounds[] = {6, 8, 10, 20, 40};
    for (int i = 0; i < 5; i++) {
        const double f = evalue_detectable(rounds[i], bound, 0.95);
        assert_true(fabs(f - said[i]) <= 0.03 * said[i]);
        assert_int_equal(evalue_rounds_for(f * 1.0001, bound, 0.95, 1000), rounds[i]);
        assert_int_equal(evalue_rounds_for(f * 0.9999, bound, 0.95, 1000), rounds[i] + 1);
    }
    assert_int_equal(evalue_rounds_for(0.01, bound, 0.95, 1000), 0);
    assert_int_equal(evalue_rounds_for(5, bound, 0.95, 7), 0);
    assert_int_equal(evalue_rounds_for(NAN, bound, 0.95, 40), 0);
}

static void too_few_rounds_cannot_decide(void **state) {
    (void)state;
    const double bound = evalue_ln_bound(0.005, 21);
    double lo, hi;
    assert_int_equal(evalue_least_rounds(bound), 5);
    assert_int_equal(evalue_least_rounds(evalue_ln_bound(0.005, 1)), 4);
    assert_true(isinf(evalue_critical_t(4, bound)) && isinf(evalue_critical_t(1, bound)) &&
                isinf(evalue_critical_t(0, bound)));
    assert_true(isinf(evalue_detectable(4, bound, 0.95)));
    const struct evalue four = {4, 0.5, 1e-9};
    assert_true(evalue_ln(&four, 0) < bound); /* however clear the four rounds are */
    evalue_interval(&four, bound, &lo, &hi);
    assert_true(isinf(lo) && lo < 0 && isinf(hi) && hi > 0);
    assert_int_equal(evalue_rounds_until(&four, 0, 1, bound, 40), 5);
    assert_int_equal(evalue_rounds_until(&four, 0, -1, bound, 40), 0);
    assert_int_equal(evalue_rounds_until(&four, 0, 1, bound, 4), 0);
}

/* The first of all rounds, one after the other. */
static void rounds_until_is_the_first_that_reaches(void **state) {
    (void)state;
    const double bounds[] = {log(100), evalue_ln_bound(0.005, 21), evalue_ln_bound(1e-6, 101)};
    for (int i = 0; i < 300; i++) {
        const struct evalue e = {(size_t)(i % 37), pow(10, i / 100.0 - 2) * 0.03, 0.03};
        const double bound = bounds[i % 3];
        const size_t most = i % 2 ? 50000 : 40;
        size_t first = 0;
        for (size_t n = e.n < 4 ? 4 : e.n; n <= most && !first; n++) {
            const struct evalue later = {n, e.mean, e.s};
            if (evalue_ln(&later, 0) >= bound) first = n;
        }
        assert_int_equal(evalue_rounds_until(&e, 0, 1, bound, most), first);
    }
}

/* A value leaves the interval exactly where its evidence reaches the bound. */
static void interval_is_the_test(void **state) {
    (void)state;
    const double bound = evalue_ln_bound(0.005, 6);
    for (size_t n = 4; n < 50; n += 3) {
        const struct evalue e = {n, 0.012, 0.007};
        double lo, hi;
        evalue_interval(&e, bound, &lo, &hi);
        if (isinf(lo)) continue;
        assert_true(fabs(evalue_ln(&e, lo) - bound) < 1e-9);
        assert_true(fabs(evalue_ln(&e, hi) - bound) < 1e-9);
        assert_true(evalue_ln(&e, lo + 1e-6) < bound && evalue_ln(&e, lo - 1e-6) > bound);
    }
}

/* Rounds that agree to the bit, as of a virtual clock. */
static void no_spread(void **state) {
    (void)state;
    const double y[] = {0.25, 0.25, 0.25, 0.25, 0.25, 0.25};
    const struct evalue e = evalue_of(y, 6);
    const double bound = evalue_ln_bound(0.005, 21);
    double lo, hi;
    assert_true(isinf(evalue_t(&e, 0)) && evalue_t(&e, 0) > 0 && evalue_t(&e, 1) < 0);
    assert_true(evalue_t(&e, 0.25) >= 0 && evalue_t(&e, 0.25) <= 0);
    assert_true(evalue_ln(&e, 0) > bound && isfinite(evalue_ln(&e, 0)));
    assert_true(evalue_ln(&e, 0.25) < 0);
    evalue_interval(&e, bound, &lo, &hi);
    assert_true(fabs(lo - 0.25) < 1e-15 && fabs(hi - 0.25) < 1e-15);
    const struct evalue huge = {6, 1e200, 1e-200};
    assert_true(isfinite(evalue_ln(&huge, 0)));
}

static void no_number(void **state) {
    (void)state;
    double lo, hi;
    const struct evalue one = evalue_of((const double[]){1}, 1), none = evalue_of(NULL, 0);
    assert_true(isnan(evalue_t(&one, 0)) && isnan(evalue_ln(&one, 0)) &&
                isnan(evalue_ln(&none, 0)));
    evalue_interval(&none, 5, &lo, &hi);
    assert_true(isinf(lo) && isinf(hi));
    assert_true(isnan(evalue_trimmed_mean(NULL, 0, 0.2)));
    assert_true(isnan(evalue_trimmed_error((double[]){1}, 1, 0.2)));
    evalue_prediction((const double[]){1}, 1, 0.95, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
    evalue_clopper_pearson(5, 4, 0.95, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
    assert_true(isnan(evalue_quadruple(1, NAN, 1, 1)));
    assert_true(isnan(stats_beta(2, 1, 1)) && isnan(stats_beta(0.5, 0, 1)));
    assert_true(isnan(evalue_binomial_upper(1, 2, 1.5)));
}

/* A drift that is linear in time is in neither order's quadruple, a step of the program is. */
static void quadruple_sees_no_drift(void **state) {
    (void)state;
    const double r = 1.03; /* each turn 3 % slower than the one before */
    assert_true(fabs(evalue_quadruple(1, r, r * r, r * r * r)) < 1e-12); /* ABBA */
    assert_true(fabs(evalue_quadruple(r, 1, r * r * r, r * r)) < 1e-12); /* BAAB */
    assert_true(fabs(evalue_quadruple(1, 1.1, 1.1, 1) - log(1.1)) < 1e-12);
}

static void label_swaps(void **state) {
    (void)state;
    enum { ROWS = 5, N = 40, DRAWS = 2000 };
    double *y = must_alloc(ROWS * N * sizeof *y);
    int64_t per_row[ROWS], alarms, again;
    const double bound = evalue_ln_bound(0.005, ROWS + 1);
    for (uint64_t i = 0; i < ROWS * N; i++) y[i] = 0.01 * random_normal(7, i);
    alarms = evalue_false_alarms(y, ROWS, N, 0, log1p(0.05), bound, 40, DRAWS, 1, per_row);
    again = evalue_false_alarms(y, ROWS, N, 0, log1p(0.05), bound, 40, DRAWS, 1, NULL);
    assert_int_equal(alarms, again); /* the seed decides */
    assert_true(evalue_binomial_upper(alarms, DRAWS, 0.005) > 0.001);
    for (int r = 0; r < ROWS; r++) assert_true(per_row[r] <= alarms);
    /* At a bound that much reaches the alarms come: the count can be wrong. */
    alarms = evalue_false_alarms(y, ROWS, N, 0, 0, log(0.5), 40, DRAWS, 1, per_row);
    assert_true(alarms > DRAWS / 4);
    for (uint64_t i = 0; i < ROWS * N; i++) y[i] = NAN;
    assert_int_equal(evalue_false_alarms(y, ROWS, N, 0, 1, log(1.5), 40, 50, 1, per_row), 0);
    assert_int_equal(evalue_false_alarms(y, ROWS, 0, 0, 1, log(1.5), 40, 50, 1, per_row), 0);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),
        cmocka_unit_test(detectable_with_twenty_rows),
        cmocka_unit_test(rounds_until_is_the_first_that_reaches),
        cmocka_unit_test(interval_is_the_test),
        cmocka_unit_test(too_few_rounds_cannot_decide),
        cmocka_unit_test(no_spread),
        cmocka_unit_test(no_number),
        cmocka_unit_test(label_swaps),
        cmocka_unit_test(quadruple_sees_no_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
