/* SPDX-License-Identifier: Apache-2.0 */
/* Change points and drift of series that are made up: steps are found where they are, and neither
 * noise nor a single spike is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "results/evalue.h"
#include "results/history.h"

#define TAU log1p(0.01)

static size_t steps_of(const double *y, size_t n, struct history_step *steps) {
    return history_steps(y, n, TAU, 1, steps, 32);
}

/* By the definition: three means of distances. */
static void energy_by_hand(void **state) {
    (void)state;
    const double x[] = {1, 2, 4, 8};
    /* across: 3 + 7 + 2 + 6 = 18; before: 1; after: 4; m = k = 2 */
    assert_true(fabs(history_energy(x, 4, 2) - 1.0 * (2.0 / 4 * 18 - 1 - 4)) < 1e-12);
    assert_true(isnan(history_energy(x, 4, 1)) && isnan(history_energy(x, 4, 3)));
}

static void steps_are_found(void **state) {
    (void)state;
    struct history_step steps[32];
    double y[60];
    for (size_t i = 0; i < 60; i++)
        y[i] = (i < 20 ? 0 : i < 41 ? 0.05 : 0.02) + 0.005 * random_normal(1, i);
    assert_int_equal(steps_of(y, 60, steps), 2);
    assert_in_range(steps[0].at, 19, 21);
    assert_in_range(steps[1].at, 40, 42);
    assert_true(fabs(steps[0].change - 0.05) < 0.005 && fabs(steps[1].change + 0.03) < 0.005);
    assert_true(steps[0].p <= HISTORY_P);
}

/* Below the tolerance nobody cares, however sure it is. */
static void small_steps_are_none(void **state) {
    (void)state;
    struct history_step steps[32];
    double y[60];
    for (size_t i = 0; i < 60; i++) y[i] = (i < 30 ? 0 : 0.005) + 0.0005 * random_normal(2, i);
    assert_int_equal(steps_of(y, 60, steps), 0);
}

static void spikes_are_none(void **state) {
    (void)state;
    struct history_step steps[32];
    for (uint64_t trial = 0; trial < 20; trial++) {
        double y[50], p;
        for (size_t i = 0; i < 50; i++) y[i] = 0.003 * random_normal(random_key(4, trial), i);
        y[5 + 2 * trial] += 0.5;
        assert_int_equal(steps_of(y, 50, steps), 0);
        const double drift = history_drift(y, 50, 1, &p);
        assert_true(fabs(drift) < TAU);
    }
}

static void short_series_say_nothing(void **state) {
    (void)state;
    struct history_step steps[32];
    const double y[] = {0, 0, 0, 0, 0, 9, 9, 9, 9, 9};
    double p;
    assert_int_equal(steps_of(y, 9, steps), 0);
    assert_int_equal(steps_of(y, 0, steps), 0);
    assert_true(isnan(history_drift(y, 9, 1, &p)) && isnan(p));
    const double same[20] = {0};
    assert_int_equal(steps_of(same, 20, steps), 0);
    assert_true(fabs(history_drift(same, 20, 1, &p)) < 1e-15 && p > 0.9);
}

/* 40 merges of +0.5 %: none is a step, and together they are 22 %. */
static void a_slow_drift_is_seen_from_the_anchor(void **state) {
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        double y[40], p;
        for (size_t i = 0; i < 40; i++)
            y[i] = sign * 0.005 * (double)i + 0.004 * random_normal(6, i);
        const double drift = history_drift(y, 40, 1, &p);
        assert_true(p <= HISTORY_P && fabs(drift) > 0.15 && (drift > 0) == (sign > 0));
    }
}

/* Of 400 series without any change at most what HISTORY_P allows, with room for chance. */
static void noise_is_none(void **state) {
    (void)state;
    struct history_step steps[32];
    int64_t found = 0, drifted = 0;
    for (uint64_t trial = 0; trial < 400; trial++) {
        double y[30], p;
        for (size_t i = 0; i < 30; i++) y[i] = 0.02 * random_normal(random_key(7, trial), i);
        found += history_steps(y, 30, 0, trial, steps, 32) > 0;
        history_drift(y, 30, trial, &p);
        drifted += p <= HISTORY_P;
    }
    assert_true(evalue_binomial_upper(found, 400, 0.001) > 1e-6);
    assert_true(evalue_binomial_upper(drifted, 400, 0.001) > 1e-6);
}

static void long_series_end_in_time(void **state) {
    (void)state;
    static double y[3000];
    struct history_step steps[32];
    for (size_t i = 0; i < 3000; i++) y[i] = (i < 2900 ? 0 : 0.1) + 0.01 * random_normal(8, i);
    assert_int_equal(steps_of(y, 3000, steps), 1);
    assert_in_range(steps[0].at, 2899, 2901);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_by_hand),
        cmocka_unit_test(steps_are_found),
        cmocka_unit_test(small_steps_are_none),
        cmocka_unit_test(spikes_are_none),
        cmocka_unit_test(short_series_say_nothing),
        cmocka_unit_test(a_slow_drift_is_seen_from_the_anchor),
        cmocka_unit_test(noise_is_none),
        cmocka_unit_test(long_series_end_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
