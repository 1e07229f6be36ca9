/* SPDX-License-Identifier: Apache-2.0 */
/* Do the intervals cover what they say, and do the rules cry wolf: seeded simulations of rounds and
 * visits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "results/stats.h"

/* Fails unless share lies within [lo, hi]; prints it, so that a drift of the rule is seen before it
 * fails. */
static void within(const char *what, double share, double lo, double hi) {
    print_message("%s: %.4f, allowed %.3f ... %.3f\n", what, share, lo, hi);
    assert_true(share >= lo && share <= hi);
}

/* A row's interval: rounds scatter by 5 %, samples within a visit by 1 %. True mean 100. Standard
 * error of the share: 0.002. */
static void rows(void **state) {
    (void)state;
    static const int rounds[] = {5, 8, 20};
    for (int k = 0; k < 3; k++) {
        int covered = 0, trials = 10000;
        for (int trial = 0; trial < trials; trial++) {
            double y[20], lo, hi;
            uint64_t key = random_key(11, (uint64_t)(k * trials + trial));
            for (int r = 0; r < rounds[k]; r++) {
                double level = 100 * (1 + 0.05 * random_normal(key, (uint64_t)r)), sum = 0;
                for (int i = 0; i < 10; i++)
                    sum += level * (1 + 0.01 * random_normal(key, (uint64_t)(1000 + r * 10 + i)));
                y[r] = sum / 10;
            }
            stats_t_interval(y, (size_t)rounds[k], &lo, &hi);
            covered += lo <= 100 && 100 <= hi;
        }
        within("interval of a row", (double)covered / trials, 0.943, 0.957);
    }
}

/* AR(1) samples about 100: x = phi x + e. */
static void series(uint64_t key, double phi, double *x, size_t n) {
    double v = random_normal(key, 0) / sqrt(1 - phi * phi);
    for (size_t i = 0; i < n; i++) {
        v = phi * v + random_normal(key, i + 1);
        x[i] = 100 + v;
    }
}

/* Within a visit samples are correlated: batch means must know, the naive interval does not. */
static void visits(void **state) {
    (void)state;
    static const double phi[] = {0, 0.5, 0.8};
    static const double least[] = {0.94, 0.93, 0.90};
    enum { N = 2000, TRIALS = 2000 };
    static double x[N];
    for (int k = 0; k < 3; k++) {
        int covered = 0, naive = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            series(random_key(12, (uint64_t)(k * TRIALS + trial)), phi[k], x, N);
            double off = fabs(stats_mean(x, N) - 100),
                   half = stats_batch_means(x, N) * stats_mean(x, N);
            covered += off <= half;
            naive += off <= 1.96 * stats_stddev(x, N) / sqrt(N);
        }
        within("batch means", (double)covered / TRIALS, least[k], 0.965);
        if (k == 2) within("(the naive interval)", (double)naive / TRIALS, 0.3, 0.7);
    }
}

/* Correlated but stationary samples are steady; a drift by 5 % of a row with 1 % noise is not. */
static void steadiness(void **state) {
    (void)state;
    enum { N = 100, TRIALS = 4000 };
    double x[N];
    int wolf = 0, seen = 0, noisy = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        series(random_key(13, (uint64_t)trial), 0.6, x, N); /* sd 1.25 % */
        wolf += !stats_steady(x, N, NULL);
        for (int i = 0; i < N; i++) x[i] *= 1 + 0.1 * i / N; /* halves 5 % apart */
        seen += !stats_steady(x, N, NULL);
        series(random_key(14, (uint64_t)trial), 0, x, N);
        for (int i = 0; i < N; i++) x[i] = 100 + 10 * (x[i] - 100); /* sd 10 % */
        noisy += !stats_steady(x, N, NULL);
    }
    within("steady samples called unsteady", (double)wolf / TRIALS, 0, 0.01);
    within("a drift that is seen", (double)seen / TRIALS, 0.98, 1);
    within("noise alone called unsteady", (double)noisy / TRIALS, 0, 0.03);
}

static void bimodality(void **state) {
    (void)state;
    enum { N = 160, TRIALS = 3000 };
    double x[N];
    int normal = 0, tailed = 0, rounds = 0, two = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        uint64_t key = random_key(15, (uint64_t)trial);
        for (size_t i = 0; i < N; i++) x[i] = 100 * (1 + 0.02 * random_normal(key, i));
        normal += stats_bimodal(x, N);
        for (size_t i = 0; i < N; i++) x[i] = 100 * exp(0.2 * random_normal(key, i));
        tailed += stats_bimodal(x, N);
        for (size_t i = 0; i < N; i++) /* eight visits whose levels scatter by 5 % */
            x[i] =
                100 * (1 + 0.05 * random_normal(key, 1000 + i / 20) + 0.01 * random_normal(key, i));
        rounds += stats_bimodal(x, N);
        for (size_t i = 0; i < N; i++)
            x[i] =
                (random_unit(key, 2000 + i) < 0.3 ? 115 : 100) * (1 + 0.01 * random_normal(key, i));
        two += stats_bimodal(x, N);
    }
    within("normal called bimodal", (double)normal / TRIALS, 0, 0.001);
    within("log-normal called bimodal", (double)tailed / TRIALS, 0, 0.001);
    within("scattered visits called bimodal", (double)rounds / TRIALS, 0, 0.25);
    within("two levels that are seen", (double)two / TRIALS, 0.99, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(visits),
        cmocka_unit_test(steadiness),
        cmocka_unit_test(bimodality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
