/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries: every derived metric by hand-made numbers, every state and flag, and nothing where
 * there is no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/random.h"
#include "results/summary.h"
#include "tests/support/result_example.h"

static int64_t row_of(struct tables *ts, const char *table, struct table **t) {
    *t = tables_get(ts, table);
    return table_add(*t, 1);
}

static int64_t add_point(struct tables *ts, const char *workload, double bytes, double flops) {
    struct table *t;
    int64_t r = row_of(ts, "points", &t);
    table_set_i64(t, r, "point", r);
    table_set_text(t, r, "workload", workload);
    table_set_f64(t, r, "bytes", bytes);
    table_set_f64(t, r, "flops", flops);
    table_set_f64(t, r, "live_bytes", 1e9);
    table_set_text(t, r, "binding", "f32");
    return r;
}

static void add_phase(struct tables *ts, int64_t point, int64_t phase, const char *name,
                      const char *item, double items, bool marks) {
    struct table *t;
    int64_t r = row_of(ts, "phases", &t);
    table_set_i64(t, r, "point", point);
    table_set_i64(t, r, "phase", phase);
    table_set_text(t, r, "name", name);
    table_set_text(t, r, "item", item);
    table_set_f64(t, r, "items", items);
    table_set_i64(t, r, "marks", marks);
}

static int64_t add_visit(struct tables *ts, int64_t point, int64_t round, const char *state) {
    struct table *t;
    int64_t r = row_of(ts, "visits", &t);
    table_set_i64(t, r, "visit", r);
    table_set_i64(t, r, "point", point);
    table_set_i64(t, r, "round", round);
    table_set_i64(t, r, "control", 0);
    table_set_text(t, r, "state", state);
    table_set_text(t, r, "steady", "yes");
    return r;
}

static int64_t add_sample(struct tables *ts, int64_t visit, int64_t order, int64_t wall_ns,
                          int64_t batch) {
    struct table *t;
    int64_t r = row_of(ts, "samples", &t);
    table_set_i64(t, r, "visit", visit);
    table_set_i64(t, r, "order", order);
    table_set_i64(t, r, "batch", batch);
    table_set_i64(t, r, "wall_ns", wall_ns);
    table_set_i64(t, r, "labels", 0);
    return r;
}

static void add_mark(struct tables *ts, int64_t visit, int64_t sample, int64_t mark, int64_t who,
                     int64_t n, int64_t t_ns) {
    struct table *t;
    int64_t r = row_of(ts, "marks", &t);
    table_set_i64(t, r, "visit", visit);
    table_set_i64(t, r, "sample", sample);
    table_set_i64(t, r, "mark", mark);
    table_set_i64(t, r, "who", who);
    table_set_i64(t, r, "n", n);
    table_set_i64(t, r, "t_ns", t_ns);
}

static void add_value(struct tables *ts, int64_t visit, const char *metric, double v) {
    struct table *t;
    int64_t r = row_of(ts, "values", &t);
    table_set_i64(t, r, "visit", visit);
    table_set_text(t, r, "metric", metric);
    table_set_f64(t, r, "value", v);
}

static void add_metric(struct tables *ts, const char *workload, const char *name, bool exact) {
    struct table *t;
    int64_t r = row_of(ts, "metrics", &t);
    table_set_text(t, r, "workload", workload);
    table_set_text(t, r, "name", name);
    table_set_text(t, r, "unit", "byte");
    table_set_i64(t, r, "exact", exact);
}

static void add_fact(struct tables *ts, const char *key, const char *value) {
    struct table *t;
    int64_t r = row_of(ts, "environment", &t);
    table_set_text(t, r, "key", key);
    table_set_text(t, r, "value", value);
}

static void compute(struct tables *ts) {
    struct err err = {0};
    assert_int_equal(summary_compute(ts, &err), 0);
}

static const char *of_point(const struct tables *ts, int64_t point, const char *column) {
    return table_text(tables_peek(ts, "points"), point, column);
}

static const char *unit_of(const struct tables *ts, int64_t point, const char *metric) {
    const struct table *t = tables_peek(ts, "summary");
    for (int64_t r = 0; r < table_rows(t); r++)
        if (table_int(t, r, "point") == point && !strcmp(table_text(t, r, "metric"), metric))
            return table_text(t, r, "unit");
    return "absent";
}

static void near(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g is not %.17g", got, expected);
}

#define GET(point, metric, part) summary_get(ts, point, metric, part)

/* Two rounds of two samples: 10, 14 and 20, 24 ms; four executions a sample. */
static void times_and_rates(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "decode", 2e6, 4e6);
    add_phase(ts, p, 0, "decode", "token", 8, false);
    static const int64_t ms[2][2] = {{10, 14}, {20, 24}};
    for (int64_t r = 0; r < 2; r++) {
        int64_t v = add_visit(ts, p, r, "ok");
        for (int64_t i = 0; i < 2; i++) add_sample(ts, v, i, ms[r][i] * 4000000, 4);
    }
    compute(ts);
    near(GET(p, "time", "mean"), 17); /* of 12 and 22 */
    near(GET(p, "time", "n"), 4);
    near(GET(p, "time", "n_rounds"), 2);
    near(GET(p, "time", "median"), 17);
    near(GET(p, "time", "min"), 10);
    near(GET(p, "time", "max"), 24);
    near(GET(p, "time", "mad"), 5); /* of 7, 3, 3, 7 */
    near(GET(p, "time", "stddev"), sqrt((49 + 9 + 9 + 49) / 3.0));
    double half = 12.706204736174705 * sqrt(50) / sqrt(2); /* t(1) sd/sqrt(2) */
    near(GET(p, "time", "ci_lo"), 17 - half);
    near(GET(p, "time", "ci_hi"), 17 + half);
    assert_true(isnan(GET(p, "time", "p90")) && isnan(GET(p, "time", "drift")));
    /* Rates by the mean time of each visit: what was done over how long it took. */
    near(GET(p, "decode_rate", "mean"), (8 / 0.012 + 8 / 0.022) / 2);
    near(GET(p, "decode_rate", "max"), 800);
    near(GET(p, "decode_time", "mean"), 17);
    near(GET(p, "bandwidth", "mean"), (2e6 / 0.012 + 2e6 / 0.022) / 2);
    near(GET(p, "flop_rate", "mean"), (4e6 / 0.012 + 4e6 / 0.022) / 2);
    assert_string_equal(unit_of(ts, p, "time"), "ms");
    assert_string_equal(unit_of(ts, p, "decode_rate"), "token/s");
    assert_string_equal(unit_of(ts, p, "mbu"), "absent"); /* no ceiling was measured */
    assert_string_equal(of_point(ts, p, "bound"), "");
    assert_true(isnan(GET(p, "no such", "mean")) && isnan(GET(7, "time", "mean")));
    tables_close(&ts);
}

/* Marks of phases: prefill from 0, decode from 3 ms, prefill again 5 ... 6, then decode to the end
 * at 10. */
static void phases_by_marks(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "generate", 0, 0), v = add_visit(ts, p, 0, "ok");
    add_phase(ts, p, 0, "prefill", "prompt token", 512, false);
    add_phase(ts, p, 1, "decode", "token", 60, false);
    add_phase(ts, p, 2, "never", "token", 60, false);
    add_sample(ts, v, 0, 10000000, 1);
    add_mark(ts, v, 0, -1, 0, 0, 0);
    add_mark(ts, v, 0, -2, 0, 0, 3000000);
    add_mark(ts, v, 0, -1, 0, 0, 5000000);
    add_mark(ts, v, 0, -2, 0, 0, 6000000);
    compute(ts);
    near(GET(p, "prefill_time", "mean"), 4);
    near(GET(p, "decode_time", "mean"), 6);
    near(GET(p, "prefill_rate", "mean"), 512 / 0.004);
    near(GET(p, "decode_rate", "mean"), 60 / 0.006);
    assert_string_equal(unit_of(ts, p, "prefill_rate"), "token/s");
    assert_string_equal(unit_of(ts, p, "never_time"), "absent");
    assert_true(isnan(GET(p, "time", "ci_lo")) &&
                isnan(GET(p, "time", "stddev"))); /* one of each */
    tables_close(&ts);
}

/* Three requests: tokens at 5, 7, 8 and one step of three at 14; one of a single token; one whose
 * first step brings two. */
static void token_metrics(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "generate", 0, 0), v = add_visit(ts, p, 0, "ok");
    static const int64_t marks[][3] = {{1, 1, 5},           {2, 1, 6},           {1, 1, 7},
                                       {1, 1, 8},           {70000000001, 2, 9}, {1, 3, 14},
                                       {70000000001, 1, 15}};
    add_phase(ts, p, 0, "prefill", "token", 10, true); /* TTFT is where a prefill begins */
    for (int64_t s = 0; s < 2; s++) { /* the second execution is the same: nothing leaks over */
        add_sample(ts, v, s, 20000000, 1);
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            add_mark(ts, v, s, 0, marks[i][0], marks[i][1], marks[i][2] * 1000000);
    }
    compute(ts);
    near(GET(p, "ttft", "n"), 6);
    near(GET(p, "ttft", "mean"), (5 + 6 + 9) / 3.0);
    near(GET(p, "e2e", "mean"), (14 + 6 + 15) / 3.0);
    near(GET(p, "n_out", "mean"), (6 + 1 + 3) / 3.0);
    near(GET(p, "itl", "n"), 2 * (5 + 0 + 2)); /* one a token after the first */
    near(GET(p, "itl", "mean"), (2 + 1 + 2 + 2 + 2 + 0 + 6) / 7.0);
    near(GET(p, "tpot", "n"), 4);
    near(GET(p, "tpot", "mean"), (9 / 5.0 + 6 / 2.0) / 2);
    near(GET(p, "tpot_excluded", "mean"), 2);
    /* TTFT and all ITL add up to E2E. */
    near(GET(p, "ttft", "mean") * 6 + GET(p, "itl", "mean") * 14, GET(p, "e2e", "mean") * 6);
    tables_close(&ts);
}

/* Who came later is timed from when it was meant to come; who got nothing is not timed. */
static void tokens_count_from_arrival(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "serving", 0, 0), v = add_visit(ts, p, 0, "ok");
    add_phase(ts, p, 0, "prefill", "token", 10, true);
    static const int64_t marks[][3] = {{1, 0, 3}, {1, 1, 5}, {2, 0, 1}, {3, 0, 2},
                                       {2, 1, 9}, {1, 0, 8}, {1, 1, 11}}; /* 1 was preempted at 8 */
    add_sample(ts, v, 0, 20000000, 1);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        add_mark(ts, v, 0, 0, marks[i][0], marks[i][1], marks[i][2] * 1000000);
    compute(ts);
    near(GET(p, "ttft", "n"), 2);
    near(GET(p, "ttft", "mean"), (2 + 8) / 2.0);
    near(GET(p, "e2e", "mean"), (8 + 8) / 2.0);
    near(GET(p, "itl", "mean"), 6);
    near(GET(p, "n_out", "mean"), 1.5);
    tables_close(&ts);
}

/* What a simulated execution marks counts without a sample beside it. */
static void tokens_without_samples(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "simulated", 0, 0), v = add_visit(ts, p, 0, "ok");
    add_phase(ts, p, 0, "prefill", "token", 2, true);
    add_mark(ts, v, 0, 0, 0, 1, 4000000);
    add_mark(ts, v, 0, 0, 0, 1, 6000000);
    compute(ts);
    near(GET(p, "ttft", "mean"), 4);
    near(GET(p, "itl", "mean"), 2);
    assert_string_equal(unit_of(ts, p, "time"), "absent");
    assert_string_equal(of_point(ts, p, "state"), "ok");
    tables_close(&ts);
}

/* A ceiling of 20 GB/s and 200 GFLOP/s, measured by points of the run. */
static void add_ceilings(struct tables *ts) {
    static const char *const ops[] = {"read", "fma"};
    for (int64_t k = 0; k < 2; k++) {
        int64_t p = add_point(ts, "ceiling", k ? 0 : 200e6, k ? 2e9 : 0);
        struct table *points = tables_get(ts, "points");
        table_column(points, "workload.op", COL_TEXT, "", "swept key");
        table_column(points, "workload.type", COL_TEXT, "", "swept key");
        table_set_text(points, p, "workload.op", ops[k]);
        table_set_text(points, p, "workload.type", "f32");
        table_set_text(points, p, "effective", "cpu isa=avx2 threads=2");
        for (int64_t r = 0; r < 5; r++) { /* the last round is the best: 10 ms */
            int64_t v = add_visit(ts, p, r, "ok");
            for (int64_t i = 0; i < 4; i++) add_sample(ts, v, i, 14000000 - r * 1000000, 1);
        }
    }
    add_fact(ts, "cpu.l3_bytes", "32 MiB");
}

static int64_t add_timed(struct tables *ts, double bytes, double flops, int64_t wall_ns) {
    int64_t p = add_point(ts, "decode", bytes, flops);
    for (int64_t r = 0; r < 5; r++) {
        int64_t v = add_visit(ts, p, r, "ok");
        for (int64_t i = 0; i < 4; i++) add_sample(ts, v, i, wall_ns + i % 2 * 1000, 1);
    }
    return p;
}

/* A decode step on a filled cache is no start of a request: it has tokens, and no TTFT. */
static void no_ttft_without_prefill(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "decode", 0, 0), v = add_visit(ts, p, 0, "ok");
    add_phase(ts, p, 0, "decode", "token", 2, true);
    add_mark(ts, v, 0, 0, 0, 1, 4000000);
    add_mark(ts, v, 0, 0, 0, 1, 6000000);
    compute(ts);
    assert_string_equal(unit_of(ts, p, "ttft"), "absent");
    near(GET(p, "itl", "mean"), 2);
    tables_close(&ts);
}

/* Beyond in the mean, but the rounds do not agree on it; and one round, which has no interval: no
 * verdict. */
static void beyond_by_chance(void **state) {
    (void)state;
    static const int64_t wall[] = {30000000, 60000000, 35000000, 45000000, 40000000};
    struct tables *ts = tables_create();
    add_ceilings(ts);
    int64_t p = add_point(ts, "decode", 1e9, 1e9), q = add_point(ts, "decode", 1e9, 1e9);
    for (int64_t r = 0; r < 5; r++) add_sample(ts, add_visit(ts, p, r, "ok"), 0, wall[r], 1);
    add_sample(ts, add_visit(ts, q, 0, "ok"), 0, 30000000, 1);
    compute(ts);
    assert_true(GET(p, "mbu", "mean") > 1.1 && GET(q, "mbu", "mean") > 1.6);
    assert_string_equal(of_point(ts, p, "state"), "ok");
    assert_string_equal(of_point(ts, q, "state"), "ok");
    tables_close(&ts);
}

static void shares_of_the_ceilings(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    double value, upper;
    add_ceilings(ts);
    int64_t memory = add_timed(ts, 1e9, 1e9, 62500000);
    int64_t compute_bound = add_timed(ts, 1e9, 20e9, 125000000);
    compute(ts);
    summary_ceiling(ts, "bandwidth", "", &value, &upper);
    near(value, 20e9);
    near(upper, 20e9);
    summary_ceiling(ts, "arithmetic", "f32", &value, &upper);
    near(value, 200e9);
    summary_ceiling(ts, "arithmetic", "bf16", &value, &upper);
    assert_true(isnan(value) && isnan(upper));
    assert_int_equal(table_rows(tables_get(ts, "ceilings")), 10);
    assert_int_equal(table_int(tables_get(ts, "ceilings"), 0, "threads"), 2);
    assert_true(fabs(GET(memory, "mbu", "mean") - 0.8) < 1e-4);
    assert_true(fabs(GET(memory, "mfu", "mean") - 0.08) < 1e-5);
    assert_string_equal(of_point(ts, memory, "bound"), "bandwidth");
    assert_true(fabs(GET(compute_bound, "mfu", "mean") - 0.8) < 1e-4);
    assert_string_equal(of_point(ts, compute_bound, "bound"), "compute");
    assert_string_equal(unit_of(ts, 0, "mbu"), "absent"); /* a ceiling is not judged by itself */
    assert_string_equal(of_point(ts, memory, "state"), "ok");
    assert_int_equal(summary_exit(ts), 0);
    tables_close(&ts);
}

static void beyond_a_ceiling(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    add_ceilings(ts);
    int64_t just = add_timed(ts, 1e9, 1e9, 48500000);   /* 103 % of the bandwidth */
    int64_t beyond = add_timed(ts, 1e9, 1e9, 40000000); /* 125 % */
    int64_t cached = add_timed(ts, 1e9, 1e9, 40000000); /* but it lives in the cache */
    int64_t flops = add_timed(ts, 0, 20e9, 80000000);   /* 125 % of the peak */
    table_set_f64(tables_get(ts, "points"), cached, "live_bytes", 4 << 20);
    compute(ts);
    assert_string_equal(of_point(ts, just, "state"), "ok");
    assert_string_equal(of_point(ts, cached, "state"), "ok");
    assert_string_equal(of_point(ts, beyond, "state"), "implausible");
    assert_non_null(strstr(of_point(ts, beyond, "reason"), "125 % of the measured ceiling"));
    assert_string_equal(of_point(ts, flops, "state"), "implausible");
    assert_true(GET(beyond, "mbu", "mean") > 1.2); /* never clamped */
    assert_int_equal(summary_exit(ts), 3);
    tables_close(&ts);
}

static void reported_values(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    add_metric(ts, "generate", "kv_bytes", true);
    int64_t p = add_point(ts, "generate", 0, 0), q = add_point(ts, "generate", 0, 0);
    for (int64_t r = 0; r < 5; r++) {
        int64_t v = add_visit(ts, p, r, "ok"), w = add_visit(ts, q, r, "ok");
        add_value(ts, v, "kv_bytes", 4096);
        add_value(ts, v, "probe.faults", (double)r);
        add_value(ts, v, "peak_bytes", 1000.0 + (double)(r % 2));
        add_value(ts, v, "lost", NAN);
        add_value(ts, w, "kv_bytes", r == 3 ? 4097 : 4096);
    }
    compute(ts);
    near(GET(p, "kv_bytes", "mean"), 4096);
    near(GET(p, "kv_bytes", "n"), 5);
    assert_true(isnan(GET(p, "kv_bytes", "ci_lo")) && isnan(GET(p, "kv_bytes", "stddev")));
    assert_string_equal(unit_of(ts, p, "kv_bytes"), "byte");
    near(GET(p, "probe.faults", "mean"), 2);
    near(GET(p, "probe.faults", "ci_lo"), 2 - 2.7764451051977987 * sqrt(2.5) / sqrt(5));
    near(table_real(tables_get(ts, "points"), p, "peak_bytes"), 1001);
    assert_string_equal(unit_of(ts, p, "lost"), "absent");
    assert_string_equal(of_point(ts, p, "state"), "ok");
    assert_string_equal(of_point(ts, q, "state"), "failed");
    assert_string_equal(of_point(ts, q, "reason"),
                        "kv_bytes is exact, but visits gave 4096 and 4097");
    assert_string_equal(unit_of(ts, q, "kv_bytes"), "absent");
    tables_close(&ts);
}

/* One point whose visits end so; samples of 10 ms in those that are ok. */
static struct tables *with_states(const char *const *states) {
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "decode", 0, 0);
    for (int64_t r = 0; states[r]; r++) {
        int64_t v = add_visit(ts, p, r, states[r]);
        if (strcmp(states[r], "ok")) table_set_text(tables_get(ts, "visits"), v, "reason", HOSTILE);
        for (int64_t i = 0; i < 3; i++) add_sample(ts, v, i, 10000000 + i, 1);
    }
    compute(ts);
    return ts;
}

static void states_by_severity(void **state) {
    (void)state;
    static const struct {
        const char *const visits[6];
        const char *state, *reason;
        int numbers, exit;
    } cases[] = {
        {{"ok", "ok", "ok", "ok", "ok"}, "ok", "", 1, 0},
        {{"ok", "failed", "ok", "ok", "ok"}, "degraded", "1 of 5 visits failed: " HOSTILE, 1, 0},
        {{"ok", "oom", "timeout", "ok", "ok"}, "degraded", "2 of 5 visits timeout: " HOSTILE, 1, 0},
        {{"oom", "oom"}, "oom", HOSTILE, 0, 3},
        {{"skipped", "skipped"}, "skipped", HOSTILE, 0, 3},
        {{"timeout", "oom"}, "timeout", HOSTILE, 0, 3},
        {{"failed"}, "failed", HOSTILE, 0, 3},
        {{"ok", "ok", "wrong", "ok", "failed"}, "wrong", HOSTILE, 0, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tables *ts = with_states(cases[i].visits);
        assert_string_equal(of_point(ts, 0, "state"), cases[i].state);
        assert_int_equal(
            strncmp(of_point(ts, 0, "reason"), cases[i].reason, strlen(cases[i].reason)), 0);
        assert_int_equal(isfinite(GET(0, "time", "mean")), cases[i].numbers);
        if (!cases[i].numbers) assert_int_equal(table_rows(tables_get(ts, "summary")), 0);
        assert_int_equal(summary_exit(ts), cases[i].exit);
        assert_true(table_rows(tables_get(ts, "samples")) > 0); /* raw samples stay */
        tables_close(&ts);
    }
}

static void never_measured(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    add_point(ts, "decode", 0, 0);
    add_point(ts, "decode", 0, 0);
    table_set_text(tables_get(ts, "points"), 1, "state", "oom");
    table_set_text(tables_get(ts, "points"), 1, "reason", "refused before the run");
    compute(ts);
    assert_string_equal(of_point(ts, 0, "state"), "skipped");
    assert_non_null(strstr(of_point(ts, 0, "reason"), "not measured"));
    assert_string_equal(of_point(ts, 1, "state"), "oom");
    assert_string_equal(of_point(ts, 1, "reason"), "refused before the run");
    tables_close(&ts);
}

static void flag_visit(struct tables *ts, int64_t v, const char *flags, const char *reason) {
    table_set_text(tables_get(ts, "visits"), v, "flags", flags);
    table_set_text(tables_get(ts, "visits"), v, "reason", reason);
}

static void flags_with_reasons(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p[5];
    for (int k = 0; k < 5; k++) {
        p[k] = add_point(ts, "decode", 0, 0);
        for (int64_t r = 0; r < 8; r++) {
            int64_t v = add_visit(ts, p[k], r, "ok");
            if (k == 0 && r < 2)
                flag_visit(ts, v, "not_steady disturbed", "not_steady: n; disturbed: 4 % stolen");
            if (k == 0 && r == 2) flag_visit(ts, v, "disturbed", "disturbed: x");
            if (k == 1 && r == 5)
                flag_visit(ts, v, "disturbed", "disturbed: once is no row's fault");
            if (k == 1 && r == 6)
                flag_visit(ts, v, "fell_back", "fell_back: asked for avx2; ran scalar");
            for (int64_t i = 0; i < 20; i++) {
                int64_t wall = 10000000 + (int64_t)(1e5 * random_normal(3, (uint64_t)(r * 20 + i)));
                if (k == 2) wall += r * 200000;
                if (k == 3 && i % 2) wall += 3000000;
                int64_t s = add_sample(ts, v, i, wall, 1);
                if (k == 4 && i < 3)
                    table_set_i64(tables_get(ts, "samples"), s, "labels", i == 1 ? 4 : 2);
            }
        }
    }
    compute(ts);
    assert_string_equal(of_point(ts, p[0], "flags"), "not_steady disturbed");
    assert_string_equal(of_point(ts, p[0], "reason"),
                        "not_steady: 2 of 8 visits (n); disturbed: 3 of 8 visits (4 % stolen)");
    assert_string_equal(of_point(ts, p[1], "flags"), "fell_back");
    assert_string_equal(of_point(ts, p[1], "reason"), "fell_back: 1 of 8 visits (asked for avx2)");
    assert_string_equal(of_point(ts, p[2], "flags"), "drifting");
    assert_non_null(strstr(of_point(ts, p[2], "reason"), "+13"));
    assert_string_equal(of_point(ts, p[3], "flags"), "bimodal");
    assert_string_equal(of_point(ts, p[4], "flags"), "disturbed");
    assert_non_null(strstr(of_point(ts, p[4], "reason"), "24 of 160 samples"));
    for (int k = 0; k < 5; k++) assert_string_equal(of_point(ts, p[k], "state"), "ok");
    assert_int_equal(summary_exit(ts), 3); /* fell_back */
    tables_close(&ts);
}

static void few_or_quick(void **state) {
    (void)state;
    static const char *const three[] = {"ok", "ok", "ok", NULL};
    struct tables *ts = with_states(three);
    int64_t p = add_point(ts, "decode", 0, 0); /* what one row has the next may have too */
    for (int64_t r = 0; r < 3; r++) add_sample(ts, add_visit(ts, p, r, "ok"), 0, 10000000, 1);
    compute(ts);
    assert_string_equal(of_point(ts, 0, "flags"), "few_samples");
    assert_string_equal(of_point(ts, p, "flags"), "few_samples");
    assert_string_equal(of_point(ts, p, "reason"),
                        "few_samples: 3 samples in 3 rounds; at least 10 in 5 are wanted");
    struct table *meta = tables_get(ts, "meta");
    table_add(meta, 1);
    table_set_text(meta, 0, "key", "quick");
    table_set_text(meta, 0, "value", "yes");
    compute(ts);
    assert_string_equal(of_point(ts, 0, "flags"), "quick");
    assert_string_equal(of_point(ts, p, "flags"), "quick");
    tables_close(&ts);
}

/* Control visits are none of the row's; their distance to the first visit is the drift within
 * rounds. */
static void controls(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "decode", 0, 0);
    for (int64_t r = 0; r < 5; r++)
        for (int64_t c = 0; c < 2; c++) {
            int64_t v = add_visit(ts, p, r, "ok");
            table_set_i64(tables_get(ts, "visits"), v, "control", c);
            for (int64_t i = 0; i < 3; i++)
                add_sample(ts, v, i, 10000000 + c * 400000 + r * 100, 1);
        }
    compute(ts);
    near(GET(p, "time", "n_rounds"), 5);
    near(GET(p, "time", "n"), 15);
    assert_non_null(strstr(tables_meta(ts, "control_drift"), "+4.0 %"));
    assert_non_null(strstr(tables_meta(ts, "control_drift"), "drifting"));
    tables_close(&ts);
}

static void failed_samples_do_not_count(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "decode", 0, 0), v = add_visit(ts, p, 0, "ok");
    add_sample(ts, v, 0, 10000000, 1);
    table_set_i64(tables_get(ts, "samples"), add_sample(ts, v, 1, 0, 1), "labels", 8);
    add_sample(ts, v, 2, 30000000, 0); /* broken: no executions */
    compute(ts);
    near(GET(p, "time", "n"), 1);
    near(GET(p, "time", "mean"), 10);
    tables_close(&ts);
}

static void twice_is_once(void **state) {
    (void)state;
    struct tables *ts = result_example();
    compute(ts);
    int64_t rows = table_rows(tables_get(ts, "summary"));
    double mean = GET(1, "time", "mean");
    assert_true(rows > 0);
    compute(ts);
    assert_int_equal(table_rows(tables_get(ts, "summary")), rows);
    assert_true(GET(1, "time", "mean") == mean);
    assert_string_equal(of_point(ts, 3, "state"), "oom");
    tables_close(&ts);
}

/* Indices that point nowhere, as a broken file may have them. */
static void broken_indices(void **state) {
    (void)state;
    static const int64_t nowhere[] = {-1, 5, INT64_MAX, I64_NONE, INT64_MAX / 2};
    struct tables *ts = tables_create();
    int64_t p = add_point(ts, "ceiling", 1e9, 1e9), v = add_visit(ts, p, 0, "ok");
    add_sample(ts, v, 0, 1000, 1);
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        int64_t n = nowhere[i], w = add_visit(ts, n, n, "ok");
        table_set_i64(tables_get(ts, "visits"), w, "visit", n);
        add_sample(ts, n, n, n, n);
        add_mark(ts, n, n, n, n, n, n);
        add_mark(ts, v, n, 0, n, n, n);
        add_value(ts, n, "x", 1);
        add_phase(ts, n, n, "x", "", INFINITY, true);
        add_phase(ts, p, n, "x", "", NAN, true);
    }
    compute(ts);
    near(GET(p, "time", "n"), 1);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_and_rates),
        cmocka_unit_test(phases_by_marks),
        cmocka_unit_test(token_metrics),
        cmocka_unit_test(tokens_without_samples),
        cmocka_unit_test(shares_of_the_ceilings),
        cmocka_unit_test(beyond_a_ceiling),
        cmocka_unit_test(reported_values),
        cmocka_unit_test(states_by_severity),
        cmocka_unit_test(never_measured),
        cmocka_unit_test(flags_with_reasons),
        cmocka_unit_test(few_or_quick),
        cmocka_unit_test(controls),
        cmocka_unit_test(failed_samples_do_not_count),
        cmocka_unit_test(twice_is_once),
        cmocka_unit_test(no_ttft_without_prefill),
        cmocka_unit_test(tokens_count_from_arrival),
        cmocka_unit_test(beyond_by_chance),
        cmocka_unit_test(broken_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
