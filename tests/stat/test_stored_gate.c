/* SPDX-License-Identifier: Apache-2.0 */
/* Stored runs against stored runs: do the intervals cover, and does the gate cry wolf no more often
 * than it says, wherever it has the spread between runs from. Seeded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "results/evalue.h"
#include "results/gate.h"
#include "results/stats.h"

enum { PAIRS = 4000, ROUNDS = 8 };
#define WITHIN 0.01

/* One run: its own level, rounds around it. */
static void add_run(struct gate_side *side, double level, double between, uint64_t key) {
    double v[ROUNDS];
    const double own = level + between * random_normal(key, 999);
    for (uint64_t i = 0; i < ROUNDS; i++) v[i] = 50 * exp(own + WITHIN * random_normal(key, i));
    gate_side_add(side, v, ROUNDS);
}

/* The spread between runs as a history of `runs` runs gives it. */
static double spread_of(int runs, double between, uint64_t key) {
    struct gate_side side = {0};
    for (int r = 0; r < runs; r++) add_run(&side, 0, between, random_key(key, (uint64_t)r));
    return side.between;
}

struct setting {
    enum gate_kind kind;
    double between; /* the truth */
    bool stated;
    int history, runs;
};

/* Pairs whose interval misses the truth, and pairs that are called slower. */
static void count(const struct setting *c, double effect, double tolerance, int64_t *missed,
                  int64_t *slower) {
    *missed = *slower = 0;
    for (uint64_t p = 0; p < PAIRS; p++) {
        const uint64_t key = random_key(41, p);
        const struct gate_settings s = {.metric = "",
                                        .rows = "",
                                        .tolerance = tolerance,
                                        .detect = 0.05,
                                        .between_run = c->stated ? c->between : 0,
                                        .alpha = 0.1, /* of which the first attempt has 5 % */
                                        .rounds = 40};
        struct gate *g = gate_create(c->kind, &s, 0);
        struct gate_row row = {.name = "row",
                               .cell = "row",
                               .metric = "time",
                               .unit = "ms",
                               .better = BETTER_LOWER,
                               .in_old = true,
                               .in_new = true,
                               .old_value = 1,
                               .new_value = 1};
        for (int r = 0; r < c->runs; r++) {
            add_run(&row.old_side, 0, c->between, random_key(key, 100 + (uint64_t)r));
            add_run(&row.new_side, effect, c->between, random_key(key, 200 + (uint64_t)r));
        }
        if (c->history) {
            row.between = spread_of(c->history, c->between, random_key(key, 300));
            row.between_df = c->history - 1;
        }
        gate_add(g, &row);
        gate_judge(g);
        const double lo = log(g->rows[0].lo), hi = log(g->rows[0].hi);
        *missed += !(lo <= effect && effect <= hi);
        *slower += g->rows[0].verdict == GATE_SLOWER;
        gate_close(&g);
    }
}

static const struct setting settings[] = {
    {GATE_COMPARE, 0, false, 0, 1},    /* what two runs alone can say, where runs do not differ */
    {GATE_COMPARE, 0.02, false, 0, 4}, /* several runs */
    {GATE_STORED, 0.02, true, 0, 1},   /* stated, and true */
    {GATE_STORED, 0.02, false, 8, 1},  /* from the least history */
    {GATE_STORED, 0.02, false, 30, 1}, /* from a long one */
    {GATE_STORED, 0.002, false, 8, 1}, /* where the rounds scatter more than the runs */
    {GATE_STORED, 0.02, false, 0, 5},
};

/* Level 95 % in all of them: M = 2 and 5 % for this attempt. */
static void intervals_cover(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        int64_t missed, slower;
        count(&settings[i], 0.03, 0, &missed, &slower);
        if (evalue_binomial_upper(missed, PAIRS, 0.05) < 1e-6)
            fail_msg("setting %zu: %lld of %d intervals miss", i, (long long)missed, PAIRS);
        assert_true(missed > PAIRS / 1000); /* nor are they without end */
    }
}

static void no_more_false_alarms_than_declared(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        int64_t missed, slower;
        count(&settings[i], 0, 0, &missed, &slower);
        if (evalue_binomial_upper(slower, PAIRS, 0.025) < 1e-6)
            fail_msg("setting %zu: %lld of %d pairs are slower", i, (long long)slower, PAIRS);
    }
}

/* What the interval of two runs alone leaves out is why a gate wants to know it. */
static void an_unknown_spread_would_cry_wolf(void **state) {
    (void)state;
    const struct setting alone = {GATE_COMPARE, 0.02, false, 0, 1};
    int64_t missed, slower;
    count(&alone, 0, 0, &missed, &slower);
    assert_true(missed > PAIRS / 2);
}

static void a_large_change_is_found(void **state) {
    (void)state;
    int64_t missed, slower;
    count(&settings[4], 0.2, 0.01, &missed, &slower);
    assert_true(slower > PAIRS * 95 / 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(no_more_false_alarms_than_declared),
        cmocka_unit_test(an_unknown_spread_would_cry_wolf),
        cmocka_unit_test(a_large_change_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
