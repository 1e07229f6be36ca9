/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics against values made in exact arithmetic (tests/golden/stats_golden.py), and every 'no
 * number'. */
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
#include "base/interval.h"
#include "base/random.h"
#include "base/text.h"
#include "results/stats.h"

static double *golden_data(size_t n, double offset, double scale) {
    double *x = must_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = offset + scale * (double)((uint32_t)(i * 2654435761u) >> 8);
    return x;
}

static double computed(const char *what, const double *x, size_t n) {
    if (!strcmp(what, "mean")) return stats_mean(x, n);
    if (!strcmp(what, "stddev")) return stats_stddev(x, n);
    if (!strcmp(what, "lag1")) return stats_lag1(x, n);
    if (!strcmp(what, "mad")) return stats_mad(x, n);
    if (!strcmp(what, "batch_means")) return stats_batch_means(x, n);
    double *copy = must_alloc(n * sizeof *copy), v;
    if (!strcmp(what, "slope")) {
        for (size_t i = 0; i < n; i++) copy[i] = (double)i;
        v = stats_slope(copy, x, n);
    } else {
        double q;
        assert_int_equal(strncmp(what, "quantile ", 9), 0);
        assert_true(parse_f64(what + 9, &q));
        memcpy(copy, x, n * sizeof *copy);
        v = stats_quantile(copy, n, q);
    }
    free(copy);
    return v;
}

static double golden_value(char *const field[4]) {
    double a, b, c, lo, hi;
    assert_true(parse_f64(field[1], &a) && parse_f64(field[2], &b));
    if (!strcmp(field[0], "t")) return stats_t_quantile(a, b);
    if (!strncmp(field[0], "wilson", 6)) {
        interval_wilson((int64_t)a, (int64_t)b, &lo, &hi);
        return !strcmp(field[0], "wilson_lo") ? lo : hi;
    }
    assert_true(parse_f64(field[3], &c));
    double *x = golden_data((size_t)a, b, c), v = computed(field[0], x, (size_t)a);
    free(x);
    return v;
}

static void golden_values(void **state) {
    (void)state;
    char path[1000], line[300];
    snprintf(path, sizeof path, "%s/tests/golden/stats_golden.tsv", getenv("SOURCE_DIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int rows = 0;
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        char *rest = line, *field[5];
        for (int i = 0; i < 5; i++) field[i] = strsep(&rest, "\t\n");
        double expected, got = golden_value(field);
        assert_true(parse_f64(field[4], &expected));
        if (!(fabs(got - expected) <= 1e-9 * fmax(fabs(expected), 1e-9))) {
            print_error("%s %s %s %s: %.17g, expected %s\n", field[0], field[1], field[2], field[3],
                        got, field[4]);
            fail();
        }
        rows++;
    }
    fclose(f);
    assert_int_equal(rows, 172);
}

/* The tails of rounding: 1e9 +- 3 ns and 60 s +- 3 s, a million of them; values +-d about m
 * alternate. */
static void spread_of_large_numbers(void **state) {
    (void)state;
    static const double level[] = {1e9, 60e9}, reach[] = {3, 3e9};
    size_t n = 1000000;
    double *x = must_alloc(n * sizeof *x);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < n; i++) x[i] = level[k] + (i % 2 ? reach[k] : -reach[k]);
        double expected = reach[k] * sqrt((double)n / (double)(n - 1));
        assert_true(fabs(stats_mean(x, n) / level[k] - 1) < 1e-15);
        assert_true(fabs(stats_stddev(x, n) / expected - 1) < 1e-9);
    }
    free(x);
}

static void no_number(void **state) {
    (void)state;
    double one[1] = {5}, same[4] = {2, 2, 2, 2}, lo, hi, difference;
    assert_true(isnan(stats_mean(one, 0)));
    assert_true(isnan(stats_stddev(one, 1)));
    assert_true(isnan(stats_quantile(one, 0, 0.5)));
    assert_true(isnan(stats_quantile(one, 1, 1.5)));
    assert_true(stats_quantile(one, 1, 0.99) == 5);
    assert_true(isnan(stats_mad(one, 0)));
    assert_true(isnan(stats_lag1(same, 4)));
    assert_true(isnan(stats_slope(same, same, 4)));
    assert_true(isnan(stats_batch_means(same, 4)));
    assert_true(isnan(stats_t_quantile(0, 5)) && isnan(stats_t_quantile(1, 5)));
    assert_true(isnan(stats_t_quantile(0.9, 0.5)) && isnan(stats_t_quantile(NAN, 3)));
    stats_t_interval(one, 1, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
    interval_wilson(0, 0, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
    assert_false(stats_steady(same, 3, &difference));
    assert_true(isnan(difference));
    assert_true(stats_stddev(same, 4) == 0);
    stats_t_interval(same, 4, &lo, &hi);
    assert_true(lo == 2 && hi == 2);
}

static void interval_of_four(void **state) {
    (void)state;
    double x[4] = {1, 2, 3, 6}, lo, hi; /* mean 3, sd sqrt(14/3), t(3) = 3.182446305284263 */
    stats_t_interval(x, 4, &lo, &hi);
    double half = 3.182446305284263 * sqrt(14.0 / 3) / 2;
    assert_true(fabs(lo - (3 - half)) < 1e-12 && fabs(hi - (3 + half)) < 1e-12);
    /* F of one degree is t squared; the others as printed tables have them. */
    for (int df = 1; df < 60; df += 7)
        assert_true(fabs(stats_f95(1, df) / (stats_t95(df) * stats_t95(df)) - 1) < 1e-9);
    assert_true(fabs(stats_f95(7, 21) - 2.4876) < 1e-4 && fabs(stats_f95(8, 24) - 2.3551) < 1e-4);
    assert_true(fabs(stats_f95(2, 10) - 4.1028) < 1e-4 && fabs(stats_f95(120, 1) - 253.25) < 0.01);
    assert_true(isnan(stats_f95(0.5, 3)) && isnan(stats_f95(3, NAN)));
    assert_true(fabs(stats_t95(3) - 3.182446305284263) < 1e-12);
    assert_true(stats_t_quantile(0.5, 3) == 0);
    assert_true(stats_t_quantile(0.25, 3) < 0);
}

static void quantiles_need_samples(void **state) {
    (void)state;
    assert_false(stats_quantile_known(0, 0.5));
    assert_true(stats_quantile_known(1, 0.5));
    assert_false(stats_quantile_known(99, 0.9));
    assert_true(stats_quantile_known(100, 0.9));
    assert_false(stats_quantile_known(199, 0.95));
    assert_true(stats_quantile_known(200, 0.95));
    assert_false(stats_quantile_known(999, 0.99));
    assert_true(stats_quantile_known(1000, 0.99));
}

/* Orders that make careless selections quadratic: a million each must end, and be right. */
static void quantile_of_hostile_orders(void **state) {
    (void)state;
    size_t n = 1000001;
    double *x = must_alloc(n * sizeof *x);
    for (int order = 0; order < 5; order++) {
        for (size_t i = 0; i < n; i++)
            x[i] = order == 0   ? (double)i
                   : order == 1 ? (double)(n - 1 - i)
                   : order == 2 ? (double)(i % 2 ? i : n - 1 - i)
                   : order == 3 ? (double)(i < n / 2 ? 2 * i : 2 * (n - 1 - i))
                                : 7;
        double median = stats_quantile(x, n, 0.5);
        if (order == 4) assert_true(median == 7);
        if (order < 2) assert_true(median == (double)(n / 2));
        size_t below = 0, above = 0;
        for (size_t i = 0; i < n; i++) {
            below += x[i] < median;
            above += x[i] > median;
        }
        assert_true(below <= n / 2 && above <= n / 2);
    }
    free(x);
}

static void steady_or_not(void **state) {
    (void)state;
    double x[200], difference;
    for (size_t i = 0; i < 200; i++) x[i] = 100 + random_normal(1, i);
    assert_true(stats_steady(x, 200, &difference));
    assert_true(fabs(difference) < 0.01);
    for (size_t i = 0; i < 200; i++) x[i] += 0.1 * (double)i; /* +10 % between the halves */
    assert_false(stats_steady(x, 200, &difference));
    assert_true(difference > 0.05 && difference < 0.15);
    for (size_t i = 0; i < 200; i++) x[i] = 100 + (i < 100 ? 30 : 0) + random_normal(2, i);
    assert_false(stats_steady(x, 200, &difference));
    for (size_t i = 0; i < 10; i++) x[i] = i < 3 ? 300 : 100; /* slow first three of ten */
    assert_false(stats_steady(x, 10, &difference));
    for (size_t i = 0; i < 10; i++) x[i] = 100 + (double)(i % 2);
    assert_true(stats_steady(x, 10, NULL));
    for (size_t i = 0; i < 10; i++) x[i] = 100 - 2 * (double)i; /* a falling ramp */
    for (size_t n = 5; n <= 10; n++) assert_false(stats_steady(x, n, NULL));
}

static void outliers_are_labelled(void **state) {
    (void)state;
    double x[100];
    int64_t labels[100] = {0};
    for (int i = 0; i < 100; i++) x[i] = 100 + i % 10;
    x[17] = 200;
    x[18] = 50;
    labels[18] = 2;
    stats_outliers(x, 100, 0.1, labels);
    for (int i = 0; i < 100; i++) assert_int_equal(labels[i], i == 17 ? 1 : i == 18 ? 3 : 0);
    /* All but one equal: a step of three ticks is none yet, more is one. */
    for (int i = 0; i < 100; i++) x[i] = 100, labels[i] = 0;
    x[5] = 103;
    x[6] = 103.5;
    stats_outliers(x, 100, 1, labels);
    assert_int_equal(labels[5], 0);
    assert_int_equal(labels[6], 1);
}

static void two_levels(void **state) {
    (void)state;
    double x[400];
    for (size_t i = 0; i < 400; i++) x[i] = 100 + random_normal(3, i);
    assert_false(stats_bimodal(x, 400));
    for (size_t i = 0; i < 400; i++) x[i] = exp(0.3 * random_normal(4, i));
    assert_false(stats_bimodal(x, 400));
    for (size_t i = 0; i < 400; i++) x[i] = random_unit(5, i);
    assert_false(stats_bimodal(x, 400));
    for (size_t i = 0; i < 400; i++) x[i] = (i % 3 ? 100 : 130) + random_normal(6, i);
    assert_true(stats_bimodal(x, 400));
    for (size_t i = 0; i < 400; i++) x[i] = (i % 20 ? 100 : 130) + random_normal(7, i); /* 5 % */
    assert_false(stats_bimodal(x, 400));
    for (size_t i = 0; i < 400; i++) x[i] = 100 + (double)(i % 2); /* one tick of the clock */
    assert_false(stats_bimodal(x, 400));
    assert_false(stats_bimodal(x, 9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),
        cmocka_unit_test(spread_of_large_numbers),
        cmocka_unit_test(no_number),
        cmocka_unit_test(interval_of_four),
        cmocka_unit_test(quantiles_need_samples),
        cmocka_unit_test(quantile_of_hostile_orders),
        cmocka_unit_test(steady_or_not),
        cmocka_unit_test(outliers_are_labelled),
        cmocka_unit_test(two_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
