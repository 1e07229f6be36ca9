/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, exit codes and documents of the gate, from rounds that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "results/evalue.h"
#include "results/gate.h"
#include "tests/support/gate_settings.h"
#include "tests/support/german.h"

static struct gate_row plain_row(const char *name) {
    return (struct gate_row){.name = name,
                             .cell = "workload.name=x",
                             .metric = "time",
                             .unit = "ms",
                             .better = BETTER_LOWER,
                             .in_old = true,
                             .in_new = true,
                             .old_value = 50,
                             .new_value = 51};
}

static size_t add(struct gate *g, const char *name) {
    const struct gate_row row = plain_row(name);
    return gate_add(g, &row);
}

/* Rounds of a row that changed by `effect` (a ratio), with this spread. */
static void rounds(struct gate *g, size_t row, size_t n, double effect, double spread) {
    for (size_t k = 0; k < n; k++) {
        const double y = log(effect) + spread * random_normal(random_key(3, row), k);
        gate_round(g, row, k, y, y);
    }
}

/* As the runner of two sides does it: until nothing is open. */
static void live(struct gate *g, const double *effects, const double *spreads) {
    for (size_t k = 0; k < (size_t)g->settings.rounds && !(k && gate_done(g)); k++) {
        for (size_t r = 0; r < g->n_rows; r++) {
            if (k && !gate_open(g, r)) continue;
            const double y = log(effects[r]) + spreads[r] * random_normal(random_key(5, r), k);
            gate_round(g, r, k, y, y);
        }
        gate_judge(g);
    }
}

static void verdicts_of_rounds(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    const double effects[] = {1, 1.06, 0.9, 1.03, 1}, spreads[] = {.004, .004, .004, .03, .2};
    static const char *const names[] = {"same", "slow", "fast", "noisy", "hopeless"};
    for (int i = 0; i < 5; i++) add(g, names[i]);
    live(g, effects, spreads);
    assert_int_equal(g->rows[0].verdict, GATE_PASS);
    assert_int_equal(g->rows[1].verdict, GATE_SLOWER);
    assert_int_equal(g->rows[2].verdict, GATE_FASTER);
    assert_int_equal(g->rows[4].verdict, GATE_BLIND);
    assert_int_equal(g->rows[4].rounds, 40);
    assert_true(g->rows[1].rounds < 40 && g->rows[0].rounds >= 4);
    assert_true(g->rows[1].ratio > 1.05 && g->rows[1].lo > 1.01 && g->rows[1].hi < 1.15);
    assert_true(g->rows[2].hi < 0.99);
    assert_non_null(strstr(g->rows[1].reason, "time 50.00 to 51.00 ms: at least +"));
    assert_non_null(strstr(g->rows[1].reason, "tolerance 1 %"));
    assert_non_null(strstr(g->rows[4].reason, "cannot be seen"));
    assert_true(g->has_all);
    assert_int_equal(gate_exit(g), 1);
    gate_close(&g);
    assert_null(g);
    gate_close(&g);
}

/* The verdict is that of evalue.h at the first look that decides, and stays. */
static void the_first_look_decides(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    const size_t r = add(g, "row");
    const double bound = evalue_ln_bound(0.0025, 2); /* of the first attempt */
    double y[40];
    size_t first = 0;
    for (size_t k = 0; k < 40; k++) {
        y[k] = 0.05 + 0.01 * random_normal(9, k);
        gate_round(g, r, k, y[k], y[k]);
        const struct evalue e = evalue_of(y, k + 1);
        if (!first && k >= 3 && evalue_ln(&e, log1p(0.01)) >= bound) first = k + 1;
    }
    assert_true(fabs(gate_ln_bound(g) - bound) < 1e-12);
    gate_judge(g);
    assert_int_equal(g->rows[r].rounds, first);
    gate_round(g, r, 40, -5, -5); /* whatever comes later */
    gate_judge(g);
    assert_int_equal(g->rows[r].verdict, GATE_SLOWER);
    gate_close(&g);
}

/* +2 % everywhere: below what a row can tell, above the tolerance. */
static void a_common_change_is_seen_over_all_rows(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    double effects[20], spreads[20];
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "row %d", i);
        add(g, name);
        effects[i] = 1.02, spreads[i] = 0.01;
    }
    live(g, effects, spreads);
    assert_int_equal(g->all.verdict, GATE_SLOWER);
    assert_true(g->all.rounds <= 10);
    assert_int_equal(gate_exit(g), 1);
    gate_close(&g);
}

static void more_of_a_rate_is_better(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    struct gate_row row = plain_row("rate");
    row.better = BETTER_HIGHER;
    const size_t up = gate_add(g, &row), down = gate_add(g, &row);
    rounds(g, up, 12, 1.2, 0.004);
    rounds(g, down, 12, 0.8, 0.004);
    gate_judge(g);
    assert_int_equal(g->rows[up].verdict, GATE_FASTER);
    assert_int_equal(g->rows[down].verdict, GATE_SLOWER);
    assert_true(g->rows[up].lo > 1.1 && g->rows[down].hi < 0.9);
    gate_close(&g);
}

static struct gate *one(enum gate_kind kind, struct gate_row row, struct gate_settings s) {
    struct gate *g = gate_create(kind, &s, 0);
    gate_add(g, &row);
    if (kind == GATE_LIVE && row.in_old && row.in_new) rounds(g, 0, 10, 1, 0.001);
    gate_judge(g);
    return g;
}

static void exit_of(struct gate_row row, enum gate_verdict verdict, const char *word, int code) {
    struct gate *g = one(GATE_LIVE, row, gate_defaults());
    assert_int_equal(g->rows[0].verdict, verdict);
    assert_string_equal(gate_word(&g->rows[0]), word);
    assert_int_equal(gate_exit(g), code);
    if (verdict != GATE_PASS && verdict != GATE_NEW) assert_true(*g->rows[0].reason);
    gate_close(&g);
}

static void every_way_to_fail(void **state) {
    (void)state;
    static const char *const states[] = {"wrong", "implausible", "skipped",
                                         "oom",   "timeout",     "failed"};
    struct gate_row row = plain_row("row");
    exit_of(row, GATE_PASS, "pass", 0);
    for (int i = 0; i < 6; i++) {
        row.state = states[i];
        exit_of(row, GATE_STATE, states[i], 3);
    }
    row = plain_row("row"), row.state = "degraded";
    exit_of(row, GATE_PASS, "pass", 0);
    row = plain_row("row"), row.flags = "disturbed not_steady";
    exit_of(row, GATE_PASS, "pass", 0);
    row.flags = "disturbed throttled";
    exit_of(row, GATE_STATE, "throttled", 3);
    row.flags = "fell_back";
    exit_of(row, GATE_STATE, "fell_back", 3);
    row = plain_row("row"), row.in_new = false;
    exit_of(row, GATE_MISSING, "missing", 3);
    row = plain_row("row"), row.in_old = false;
    exit_of(row, GATE_NEW, "new", 0);
    row = plain_row("row"), row.incomparable = "cpu.model";
    exit_of(row, GATE_INCOMPARABLE, "incomparable", 4);
    struct gate *g = gate_create(GATE_LIVE, &(struct gate_settings){.metric = "", .rows = ""}, 0);
    gate_judge(g);
    assert_int_equal(gate_exit(g), 3); /* an empty selection judges nothing */
    gate_close(&g);
}

static void exact_rows(void **state) {
    (void)state;
    struct gate_row row = plain_row("row bytes");
    row.exact = true, row.metric = "bytes", row.unit = "byte";
    row.old_value = row.new_value = 1e9;
    exit_of(row, GATE_PASS, "pass", 0);
    row.new_value = 1e9 + 1; /* tolerance 0 */
    exit_of(row, GATE_SLOWER, "worse", 1);
    row.new_value = 1e9 - 1;
    exit_of(row, GATE_FASTER, "better", 0);
    row.better = BETTER_NONE;
    exit_of(row, GATE_SLOWER, "worse", 1);
    row.better = BETTER_HIGHER;
    exit_of(row, GATE_SLOWER, "worse", 1);
    row.new_value = NAN;
    exit_of(row, GATE_SLOWER, "worse", 1);
}

/* Never a count: 256 regressions are not 0. */
static void regressions_are_not_counted(void **state) {
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        const struct gate_settings s = gate_defaults();
        struct gate *g = gate_create(GATE_LIVE, &s, 0);
        for (int i = 0; i < 256; i++) {
            add(g, "row");
            rounds(g, (size_t)i, 20, exp(0.5 * sign), 0.003);
        }
        gate_judge(g);
        assert_int_equal(gate_count(g, sign > 0 ? GATE_SLOWER : GATE_FASTER), 256);
        assert_int_equal(gate_exit(g), sign > 0 ? 1 : 0);
        gate_close(&g);
    }
}

static void undecided_and_blind(void **state) {
    (void)state;
    struct gate_settings s = gate_defaults();
    s.rounds = 10;
    for (int strict = 0; strict < 2; strict++) {
        s.strict = strict;
        struct gate *g = gate_create(GATE_LIVE, &s, 0);
        for (int i = 0; i < 4; i++) {
            add(g, "row");
            rounds(g, (size_t)i, 10, 1, i ? 0.001 : 0.2);
        }
        gate_judge(g);
        assert_int_equal(gate_count(g, GATE_BLIND), 1);
        assert_int_equal(gate_exit(g), strict ? 5 : 0); /* a quarter is tolerated */
        add(g, "row");
        rounds(g, 4, 10, 1, 0.3);
        gate_judge(g);
        assert_int_equal(gate_exit(g), 5); /* more is not, strict or not */
        gate_close(&g);
    }
    struct gate *g = one(GATE_LIVE, plain_row("row"), s);
    g->rows[0].n = 2; /* two rounds only */
    gate_judge(g);
    assert_int_equal(g->rows[0].verdict, GATE_UNDECIDED);
    assert_non_null(strstr(g->rows[0].reason, "2 rounds of at least 4"));
    gate_close(&g);
}

/* A change of the documentation that happened to come out at +6 %: rounds that scatter by 12 % say
   nothing, and the same mean with rounds that agree is a regression. */
static void the_bound_decides_and_not_the_mean(void **state) {
    (void)state;
    for (int agree = 0; agree < 2; agree++) {
        struct gate_settings s = gate_defaults();
        s.max_blind = 1;
        struct gate *g = gate_create(GATE_LIVE, &s, 0);
        add(g, "row");
        for (size_t k = 0; k < 16; k++) {
            const double y = log(1.06) + (agree ? 0.002 : 0.12) * (k % 2 ? 1 : -1);
            gate_round(g, 0, k, y, y);
        }
        gate_judge(g);
        const struct gate_row *r = &g->rows[0];
        assert_true(fabs(r->ratio - 1.06) < 1e-3 * (agree ? 3 : 1));
        if (agree) {
            assert_int_equal(r->verdict, GATE_SLOWER);
            assert_true(r->lo > 1.01);
        } else {
            assert_true(r->verdict == GATE_UNDECIDED || r->verdict == GATE_BLIND);
            assert_true(r->lo < 1 && r->hi > 1.06);
        }
        assert_int_equal(gate_exit(g), agree ? 1 : 0);
        gate_close(&g);
    }
}

/* What is found between two copies of the same code is said, and is no regression. */
static void equal_code_is_never_slower(void **state) {
    (void)state;
    const double effects[] = {1.06, 0.9, 1}, spreads[] = {.004, .004, .004};
    for (int strict = 0; strict < 2; strict++) {
        struct gate_settings s = gate_defaults();
        s.strict = strict;
        struct gate *g = gate_create(GATE_LIVE, &s, 0);
        g->same_code = true;
        for (int i = 0; i < 3; i++) add(g, "row");
        live(g, effects, spreads);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(g->rows[i].verdict, GATE_UNDECIDED);
            assert_true(g->rows[i].n < 40); /* found, so not measured on */
            assert_non_null(strstr(g->rows[i].reason, "by its interval"));
            assert_non_null(strstr(g->rows[i].reason, "the same machine code"));
        }
        assert_int_equal(g->rows[2].verdict, GATE_PASS);
        assert_null(strstr(g->rows[2].reason, "machine code"));
        assert_int_equal(gate_exit(g), strict ? 5 : 0);
        gate_close(&g);
    }
    struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    g->same_code = true;
    struct gate_row exact = plain_row("row flops");
    exact.exact = true;
    gate_add(g, &exact); /* equal code that counts otherwise is a fault */
    gate_judge(g);
    assert_int_equal(gate_exit(g), 1);
    gate_close(&g);
}

static void attempts_share_alpha(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    double spent = 0;
    for (int k = 0; k < 40; k++) spent += gate_alpha(&s, k);
    assert_true(spent <= s.alpha && spent > 0.999 * s.alpha);
    for (int k = 0; k < 4; k++) {
        struct gate *g = gate_create(GATE_LIVE, &s, k);
        add(g, "row");
        assert_true(fabs(gate_ln_bound(g) - evalue_ln_bound(0.005 / (2 << k), 2)) < 1e-12);
        struct text t = {0};
        gate_judge(g);
        gate_json(g, &t);
        cJSON *j = cJSON_Parse(t.data);
        assert_int_equal(cJSON_GetObjectItem(j, "attempt")->valueint, k + 1);
        cJSON_Delete(j);
        text_free(&t);
        gate_close(&g);
    }
}

static void settings_that_contradict(void **state) {
    (void)state;
    struct gate_settings s = gate_defaults();
    struct err err = {0};
    assert_int_equal(gate_check(&s, 20, 0, &err), 0);
    s.rounds = 5; /* 20 rows need 6 */
    assert_int_equal(gate_check(&s, 20, 0, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "at least 6 rounds in attempt 1"));
    s.rounds = 6;
    assert_int_equal(gate_check(&s, 20, 0, &err), 0);
    s.tolerance = 0.05;
    assert_int_equal(gate_check(&s, 0, 0, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "gate.tolerance = 5 % is not below gate.detect = 5 %"));
}

static void stored_side(struct gate_side *side, double level, double spread, int runs,
                        uint64_t seed) {
    for (int r = 0; r < runs; r++) {
        double v[8];
        const double run = 0.005 * random_normal(seed, 1000 + (uint64_t)r);
        for (uint64_t i = 0; i < 8; i++)
            v[i] = level * exp(run + spread * random_normal(seed, 8 * (uint64_t)r + i));
        gate_side_add(side, v, 8);
    }
}

static struct gate_row stored_row(double ratio, double spread, int runs) {
    struct gate_row row = plain_row("row");
    stored_side(&row.old_side, 50, spread, runs, 1);
    stored_side(&row.new_side, 50 * ratio, spread, runs, 2);
    return row;
}

static enum gate_verdict stored(struct gate_row row, double between, bool *unknown, int *code) {
    struct gate_settings s = gate_defaults();
    s.between_run = between;
    struct gate *g = one(GATE_STORED, row, s);
    const enum gate_verdict v = g->rows[0].verdict;
    *unknown = g->rows[0].between_unknown;
    *code = gate_exit(g);
    gate_close(&g);
    return v;
}

static void stored_tables(void **state) {
    (void)state;
    bool unknown;
    int code;
    struct gate_row row = stored_row(1.2, 0.002, 1);
    assert_int_equal(stored(row, 0, &unknown, &code), GATE_UNDECIDED);
    assert_true(unknown);
    assert_int_equal(code, 5); /* even without --strict */
    assert_int_equal(stored(row, 0.005, &unknown, &code), GATE_SLOWER);
    assert_int_equal(code, 1);
    assert_int_equal(stored(row, 0.05, &unknown, &code), GATE_BLIND); /* 20 % is within it */
    assert_int_equal(code, 5);
    assert_int_equal(stored(stored_row(1, 0.002, 1), 0.005, &unknown, &code), GATE_PASS);
    assert_int_equal(code, 0);
    assert_int_equal(stored(stored_row(0.8, 0.002, 1), 0.005, &unknown, &code), GATE_FASTER);
    row.between = 0.01, row.between_df = 9; /* from a history */
    assert_int_equal(stored(row, 0, &unknown, &code), GATE_SLOWER);
    row = stored_row(1.2, 0.002, 6); /* several runs are their own spread */
    assert_int_equal(stored(row, 0, &unknown, &code), GATE_SLOWER);
    assert_false(unknown);
    row = stored_row(1.2, 0.002, 1);
    memset(&row.new_side, 0, sizeof row.new_side); /* no numbers: never a ratio of 0 */
    assert_int_equal(stored(row, 0.005, &unknown, &code), GATE_STATE);
    assert_int_equal(code, 3);
}

/* Three runs of one side and a stated spread: with 2 degrees of freedom and no spread within, the
   chance of a ratio f of variances is exp(-f), so 1 in 1000 is f = ln 1000 = 6.908. */
static void runs_may_refute_the_stated_spread(void **state) {
    (void)state;
    for (int old = 0; old < 2; old++) {
        for (int far = 0; far < 2; far++) {
            struct gate_row row = plain_row("row");
            struct gate_side *three = old ? &row.old_side : &row.new_side;
            const double apart = 0.01 * sqrt(far ? 6.92 : 6.89); /* their standard deviation */
            for (int i = -1; i <= 1; i++)
                gate_side_add(three, (const double[]){50 * exp(i * apart)}, 1);
            gate_side_add(old ? &row.new_side : &row.old_side, (const double[]){50}, 1);
            struct gate_settings s = gate_defaults();
            s.between_run = 0.01;
            struct gate *g = one(GATE_STORED, row, s);
            assert_int_equal(g->rows[0].between_unknown, far);
            assert_int_equal(gate_exit(g), far ? 5 : 0);
            const char *said =
                strstr(g->rows[0].reason, old ? "runs of the old side differ by 2.6 %"
                                              : "runs of the new side differ by 2.6 %");
            assert_int_equal(said != NULL, far);
            gate_close(&g);
        }
    }
}

/* Milliseconds for seconds: the factor is seen on either side. */
static void a_thousandfold_flips(void **state) {
    (void)state;
    bool unknown;
    int code;
    assert_int_equal(stored(stored_row(1, 0.002, 1), 0.005, &unknown, &code), GATE_PASS);
    assert_int_equal(stored(stored_row(1000, 0.002, 1), 0.005, &unknown, &code), GATE_SLOWER);
    assert_int_equal(stored(stored_row(0.001, 0.002, 1), 0.005, &unknown, &code), GATE_FASTER);
}

static void sides_average_runs(void **state) {
    (void)state;
    struct gate_side side = {0};
    const double a[] = {1, 1, exp(2), exp(2)}, b[] = {exp(3), NAN, 0, -1}, c[] = {exp(5)};
    gate_side_add(&side, a, 4); /* mean 1, variance 4/3, of the mean 1/3 */
    assert_true(isnan(side.between));
    assert_true(fabs(side.mean - 1) < 1e-12 && fabs(side.variance - 1.0 / 3) < 1e-12);
    gate_side_add(&side, b, 4);
    gate_side_add(&side, c, 1);
    assert_int_equal(side.runs, 3);
    assert_int_equal(side.rounds, 6);
    assert_true(fabs(side.mean - 3) < 1e-12 && fabs(side.between - 2) < 1e-12);
    assert_true(fabs(side.variance - 1.0 / 27) < 1e-12);
    gate_side_add(&side, (const double[]){NAN}, 1);
    assert_int_equal(side.runs, 3);
}

static void a_comparison_only_says(void **state) {
    (void)state;
    struct gate_row row = stored_row(1.5, 0.001, 1);
    struct gate *g = one(GATE_COMPARE, row, gate_defaults());
    assert_int_equal(g->rows[0].verdict, GATE_SLOWER);
    assert_int_equal(gate_exit(g), 0);
    assert_true(fabs(gate_level(g) - 0.95) < 1e-12);
    /* Welch's interval of the two means of logarithms, by hand */
    const struct gate_side *a = &g->rows[0].old_side, *b = &g->rows[0].new_side;
    const double z = b->mean - a->mean;
    assert_true(fabs(log(g->rows[0].ratio) - z) < 1e-12);
    assert_true(fabs(log(g->rows[0].lo) + log(g->rows[0].hi) - 2 * z) < 1e-12);
    gate_close(&g);
}

static void geometric_mean_of_what_is_there(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_COMPARE, &s, 0);
    struct gate_row row = stored_row(2, 1e-9, 1), failed = row, lost = row;
    row.old_side.mean = 0, row.new_side.mean = log(2);
    gate_add(g, &row);
    row.new_side.mean = log(8);
    gate_add(g, &row);
    failed.state = "failed", failed.new_value = 0;
    lost.in_new = false;
    gate_add(g, &failed);
    gate_add(g, &lost);
    gate_judge(g);
    assert_int_equal(g->n_geometric, 2);
    assert_true(fabs(g->geometric - 4) < 1e-9);
    gate_close(&g);
}

static void a_changed_shape_is_flagged(void **state) {
    (void)state;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    const size_t r = add(g, "row");
    for (size_t k = 0; k < 10; k++) {
        const double y = 0.001 * random_normal(4, k);
        gate_round(g, r, k, y, y + 0.02); /* rare long times: the mean alone has them */
    }
    gate_judge(g);
    assert_true(g->rows[r].shape_changed);
    assert_non_null(strstr(g->rows[r].reason, "shape"));
    gate_close(&g);
}

/* --- documents --- */

#define ODD "a<b>&\"c'|d\x01 \xc3\xa4\xff`*"

static struct gate *odd_gate(void) {
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 1);
    g->title = ODD;
    g->old_name = "old.h5", g->new_name = "new.h5";
    struct gate_row row = plain_row(ODD);
    row.why = ODD;
    gate_add(g, &row);
    rounds(g, 0, 12, 1.2, 0.003);
    row.state = "failed";
    gate_add(g, &row);
    row = plain_row(
        "a name that is so long that no column of a table of a hundred characters holds it");
    row.in_new = false, row.new_value = NAN;
    gate_add(g, &row);
    row = plain_row("open");
    gate_add(g, &row);
    rounds(g, 3, 3, 1, 0.01);
    row.in_old = false;
    gate_add(g, &row);
    gate_note(g, "a note of %d words: %s", 5, ODD);
    gate_judge(g);
    return g;
}

static void text_fits_the_page(void **state) {
    (void)state;
    struct gate *g = odd_gate();
    struct text t = {0};
    gate_text(g, &t);
    size_t lines = 0;
    for (char *rest = t.data, *line; (line = strsep(&rest, "\n")); lines++)
        assert_true(utf8_width(line) <= 100);
    assert_true(lines > 8);
    text_free(&t);
    gate_close(&g);
}

static void documents_are_strict(void **state) {
    (void)state;
    struct gate *g = odd_gate();
    g->title = "a<b>&\"c'|d\x01 \xc3\xa4"; /* JSON text is UTF-8 */
    struct text t = {0};
    gate_write(g, "json", &t);
    cJSON *j = cJSON_ParseWithOpts(t.data, NULL, 1);
    assert_non_null(j);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(j, "rows")), 5);
    assert_int_equal(cJSON_GetObjectItem(j, "exit")->valueint, 1);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(
                    cJSON_GetArrayItem(cJSON_GetObjectItem(j, "rows"), 2), "ratio")) ||
                cJSON_IsNumber(cJSON_GetObjectItem(
                    cJSON_GetArrayItem(cJSON_GetObjectItem(j, "rows"), 2), "ratio")));
    cJSON_Delete(j);
    assert_null(strstr(t.data, "nan"));
    assert_null(strstr(t.data, "inf,"));
    t.len = 0;
    gate_write(g, "junit", &t);
    assert_non_null(strstr(t.data, "tests=\"6\" failures=\"1\" errors=\"2\" skipped=\"2\""));
    assert_non_null(strstr(t.data, "a&lt;b&gt;&amp;&quot;c&apos;"));
    assert_null(strchr(t.data, '\x01'));
    t.len = 0;
    gate_write(g, "md", &t);
    size_t bars = 0;
    for (const char *p = strstr(t.data, "| row"); p && *p && *p != '\n'; p++) bars += *p == '|';
    assert_int_equal(bars, 9);
    text_free(&t);
    gate_close(&g);
}

/* Names of files that were made elsewhere: a line stays a line, and no terminal obeys. */
static void names_are_one_line(void **state) {
    (void)state;
    static const char odd[] = "first\nsecond\tthird \x1b[31mred\x7f \xc2\x9b";
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_LIVE, &s, 0);
    g->title = g->question = g->old_name = g->new_name = odd;
    struct gate_row row = plain_row(odd);
    row.why = row.unit = odd;
    row.state = "failed\nand more";
    gate_add(g, &row);
    gate_note(g, "note of %s", odd);
    gate_judge(g);
    for (const char *const *f = gate_formats; *f; f++) {
        struct text t = {0};
        gate_write(g, *f, &t);
        const bool both = strstr(t.data, "first second third  [31mred") != NULL;
        assert_true(both);
        assert_null(strchr(t.data, '\x1b'));
        if (!strcmp(*f, "text")) {
            assert_null(strpbrk(t.data, "\t\x7f"));
            assert_null(strstr(t.data, "\xc2\x9b"));
            assert_null(strstr(t.data, "\nsecond"));
        }
        text_free(&t);
    }
    struct text t = {0};
    gate_markdown(g, &t);
    const char *line = strstr(t.data, "| first");
    assert_non_null(line);
    assert_non_null(memmem(line, strcspn(line, "\n"), "failed and more", 15));
    text_free(&t);
    gate_close(&g);
}

static void numbers_have_points(void **state) {
    (void)state;
    const bool german = german_begin();
    struct gate *g = one(GATE_LIVE, plain_row("row"), gate_defaults());
    struct text t = {0};
    for (const char *const *f = gate_formats; *f; f++) {
        t.len = 0;
        gate_write(g, *f, &t);
        assert_null(strstr(t.data, "1,0"));
        assert_null(strstr(t.data, "0,9"));
    }
    text_free(&t);
    gate_close(&g);
    german_end();
    if (!german) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_of_rounds),
        cmocka_unit_test(the_first_look_decides),
        cmocka_unit_test(a_common_change_is_seen_over_all_rows),
        cmocka_unit_test(more_of_a_rate_is_better),
        cmocka_unit_test(every_way_to_fail),
        cmocka_unit_test(exact_rows),
        cmocka_unit_test(regressions_are_not_counted),
        cmocka_unit_test(undecided_and_blind),
        cmocka_unit_test(the_bound_decides_and_not_the_mean),
        cmocka_unit_test(equal_code_is_never_slower),
        cmocka_unit_test(attempts_share_alpha),
        cmocka_unit_test(settings_that_contradict),
        cmocka_unit_test(stored_tables),
        cmocka_unit_test(runs_may_refute_the_stated_spread),
        cmocka_unit_test(a_thousandfold_flips),
        cmocka_unit_test(sides_average_runs),
        cmocka_unit_test(a_comparison_only_says),
        cmocka_unit_test(geometric_mean_of_what_is_there),
        cmocka_unit_test(a_changed_shape_is_flagged),
        cmocka_unit_test(text_fits_the_page),
        cmocka_unit_test(documents_are_strict),
        cmocka_unit_test(names_are_one_line),
        cmocka_unit_test(numbers_have_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
