/* SPDX-License-Identifier: Apache-2.0 */
/* Does the gate's test keep what it promises, on rounds of every shape: false alarms under looks
 * after every round, coverage of its interval, power. Seeded: a failure is no bad luck. */
/* ctest: timeout 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "results/evalue.h"

enum { ROUNDS = 40, PAIRS = 10000 };

enum shape { NORMAL, LOGNORMAL, BIMODAL, AR1, DRIFTING, N_SHAPES };
static const char *const shape_names[] = {"normal", "log-normal", "bimodal", "AR(1)", "drifting"};

struct machine { /* what a turn of an unchanged program takes, and its memory */
    enum shape shape;
    uint64_t key, at;
    double level, turns;
};

static double turn(struct machine *m) {
    const double z = random_normal(m->key, m->at++);
    m->turns++;
    switch (m->shape) {
    case NORMAL: return 1 + 0.03 * z;
    case LOGNORMAL: return exp(0.3 * z);
    case BIMODAL: return (random_unit(m->key, m->at++) < 0.5 ? 1 : 1.2) + 0.01 * z;
    case AR1: return exp(m->level = 0.95 * m->level + 0.02 * z);
    default: return 1 + 0.01 * m->turns + 0.03 * z; /* fourteen times as slow at the end */
    }
}

/* One round: new over old is `effect`; its quadruples ABBA or BAAB by coin flip; two fresh workers,
   each with a placement of its own. */
static double round_of(struct machine *m, double effect) {
    enum { QUADRUPLES = 8 };
    double d[QUADRUPLES];
    const double place = 0.003 * (random_normal(m->key, m->at) - random_normal(m->key, m->at + 1));
    m->at += 2;
    for (int q = 0; q < QUADRUPLES; q++) {
        double t[4];
        for (int i = 0; i < 4; i++) t[i] = turn(m);
        d[q] = random_at(m->key, m->at++) >> 63 ? evalue_quadruple(t[0], t[1], t[2], t[3])
                                                : evalue_quadruple(t[1], t[0], t[3], t[2]);
    }
    return effect + place + evalue_trimmed_mean(d, QUADRUPLES, 0.2);
}

/* Whether a row is called slower than `theta` at some look. */
static bool called(struct machine *m, double effect, double theta, double ln_bound) {
    double y[ROUNDS];
    for (size_t n = 1; n <= ROUNDS; n++) {
        y[n - 1] = round_of(m, effect);
        const struct evalue e = evalue_of(y, n);
        if (n >= EVALUE_LEAST && e.mean > theta && evalue_ln(&e, theta) >= ln_bound) return true;
    }
    return false;
}

static int64_t calls(enum shape shape, double effect, double theta, double ln_bound, int64_t pairs,
                     uint64_t seed) {
    int64_t n = 0;
    for (int64_t p = 0; p < pairs; p++) {
        struct machine m = {shape, random_key(seed, (uint64_t)p), 0, 0, 0};
        n += called(&m, effect, theta, ln_bound);
    }
    return n;
}

/* The same on rounds that are normal themselves. */
static int64_t plain_calls(double effect, double theta, double ln_bound, int64_t pairs,
                           uint64_t seed) {
    int64_t calls_seen = 0;
    for (int64_t p = 0; p < pairs; p++) {
        double y[ROUNDS];
        for (size_t n = 1; n <= ROUNDS; n++) {
            y[n - 1] = effect + 0.01 * random_normal(random_key(seed, (uint64_t)p), n);
            const struct evalue e = evalue_of(y, n);
            if (n < EVALUE_LEAST || e.mean <= theta || evalue_ln(&e, theta) < ln_bound) continue;
            calls_seen++;
            break;
        }
    }
    return calls_seen;
}

/* A rate above the declared one would be told from it at one in a million. One row alone at 5 %,
   beyond no change at all, never passing: the hardest case. */
static void no_more_false_alarms_than_declared(void **state) {
    (void)state;
    for (enum shape s = 0; s < N_SHAPES; s++) {
        const int64_t k = calls(s, 0, 0, evalue_ln_bound(0.05, 1), PAIRS, 11 + s);
        if (evalue_binomial_upper(k, PAIRS, 0.05) >= 1e-6) continue;
        print_error("%s: %lld of %d A/A pairs are called slower; declared are 5 %%\n",
                    shape_names[s], (long long)k, PAIRS);
        fail();
    }
    /* The count is able to fail: a change of 2 % is no A/A pair. */
    assert_true(calls(NORMAL, 0.02, 0, evalue_ln_bound(0.05, 1), 1000, 1) > 900);
}

/* All of 20 rows together, as a gate looks at them. */
static void twenty_rows_together(void **state) {
    (void)state;
    enum { ROWS = 20, GATES = 2000 };
    int64_t red = 0;
    for (int64_t g = 0; g < GATES; g++)
        red += plain_calls(0, 0, evalue_ln_bound(0.005, ROWS + 1), ROWS, 100 + (uint64_t)g) > 0;
    assert_true(evalue_binomial_upper(red, GATES, 0.005) >= 1e-6);
}

/* The interval holds the truth at every look together; a wrong one of 95 % would miss 5 %. */
static void interval_covers_at_all_looks(void **state) {
    (void)state;
    const double bound = evalue_ln_bound(0.025, 1); /* two-sided 95 % */
    const uint64_t key = random_key(5, 0);
    int64_t missed = 0;
    for (uint64_t p = 0; p < PAIRS; p++) {
        double y[ROUNDS], lo, hi;
        bool out = false;
        for (size_t n = 0; n < ROUNDS; n++) {
            y[n] = 0.03 + 0.01 * random_normal(key, p * ROUNDS + n);
            const struct evalue e = evalue_of(y, n + 1);
            evalue_interval(&e, bound, &lo, &hi);
            out = out || (n + 1 >= EVALUE_LEAST && (lo > 0.03 || hi < 0.03));
        }
        missed += out;
    }
    assert_true(evalue_binomial_upper(missed, PAIRS, 0.05) >= 1e-6);
    assert_true(missed > 0); /* it is no interval of everything */
}

/* What is called detectable is found in 95 % of the cases, or a little more by the earlier looks.
 */
static void power_is_what_is_said(void **state) {
    (void)state;
    const double bound = evalue_ln_bound(0.005, 21);
    const double f = evalue_detectable(ROUNDS, bound, 0.95);
    const int64_t found = plain_calls(log1p(0.01) + f * 0.01, log1p(0.01), bound, PAIRS, 77);
    assert_true(evalue_binomial_lower(found, PAIRS, 0.95) >= 1e-6);
    assert_true(found < PAIRS * 98 / 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_false_alarms_than_declared),
        cmocka_unit_test(twenty_rows_together),
        cmocka_unit_test(interval_covers_at_all_looks),
        cmocka_unit_test(power_is_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
