/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' arithmetic on printed times (E01, E05) and on printed gains of batches (E19), out of
 * what a run derives from samples and marks: rates, costs of a token, a ratio of two rows. */
#include "results/analysis.h"
#include "results/summary.h"
#include "tests/golden/seed_records.h"
#include "tests/support/synthetic.h"

/* The cached run as printed: 40 tokens in 1.0224 s, then 47 steps of 0.1665 s. */
enum { PROMPT = 40, TOKENS = 48 };
static const double prefill_s = 1.0224, step_s = 0.1665;
static struct arena *arena;
static struct tables *run; /* rows: cached, recompute */

static void add_phase(int64_t point, int64_t phase, const char *name, double items, double bytes) {
    synthetic_phase(run, point, name, items, 0, bytes);
    struct table *t = tables_get(run, "phases");
    const int64_t row = table_rows(t) - 1;
    table_set_i64(t, row, "phase", phase);
    table_set_text(t, row, "item", phase ? "token" : "prompt token");
    table_set_i64(t, row, "marks", phase == 1);
}

static void add_mark(int64_t visit, int64_t mark, int64_t n, double s) {
    struct table *t = tables_get(run, "marks");
    const int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", visit);
    table_set_i64(t, row, "sample", 0);
    table_set_i64(t, row, "mark", mark);
    table_set_i64(t, row, "who", mark < 0 ? -1 : 0);
    table_set_i64(t, row, "n", n);
    table_set_i64(t, row, "t_ns", llround(s * 1e9));
}

/* Decode reads all weights once a step, in elements of 4 bytes. */
static void make_run(void) {
    const struct model_config config = drive_config("seed-0.5b", arena);
    const double weights = 4.0 * (double)model_parameters(&config.shape);
    const double cached_s = prefill_s + (TOKENS - 1) * step_s;
    run = tables_create();
    for (int round = 0; round < 2; round++) {
        const bool first = !round;
        if (first) {
            assert_int_equal(synthetic_point(run, "", "mode=cached", 0, 0), 0);
            assert_int_equal(synthetic_point(run, "", "mode=recompute", 0, 0), 1);
            synthetic_word(run, 0, "workload.mode", "cached");
            synthetic_word(run, 1, "workload.mode", "recompute");
            add_phase(0, 0, "prefill", PROMPT, weights);
            add_phase(0, 1, "decode", TOKENS - 1, (TOKENS - 1) * weights);
        }
        const int64_t visit = synthetic_visit(run, 0, round, cached_s * 1e3, 1, 0, 1);
        add_mark(visit, -1, 0, 0);
        add_mark(visit, 0, 1, prefill_s);
        add_mark(visit, -2, 0, prefill_s);
        for (int i = 1; i < TOKENS; i++) add_mark(visit, 0, 1, prefill_s + i * step_s);
        /* Recompute as the seed predicts it: every position at the prefill's cost (E01.5). */
        const double positions = (double)ledger_positions(PROMPT, TOKENS, false);
        synthetic_visit(run, 1, round, positions * prefill_s / PROMPT * 1e3, 1, 0, 1);
    }
    synthetic_fact(run, "analysis.0.kind", "ratio");
    synthetic_fact(run, "analysis.0.metric", "time");
    synthetic_fact(run, "analysis.0.at", "workload.mode=recompute");
    synthetic_fact(run, "analysis.0.over", "workload.mode=cached");
    struct err err = {0};
    if (summary_compute(run, &err) || analyses_run(run, &err)) fail_msg("%s", err.text);
}

/* Steps that gain as printed: 16 sequences have 6.0 times the rate of one, 32 have 1.09 times
 * theirs. Whole milliseconds, so that no digit is lost. */
static struct tables *made_batches(void) {
    static const double step_ms[] = {654, 1744, 3200};
    static const int64_t batch[] = {1, 16, 32};
    static const struct {
        const char *metric, *at, *over;
    } ratios[] = {
        {"time", "16", "1"}, {"time", "32", "16"}, {"decode_rate", "32", "1"}, {"time", "32", "1"}};
    struct tables *t = tables_create();
    struct err err = {0};
    char key[60], value[60];
    for (int i = 0; i < 3; i++) {
        const int64_t point = synthetic_point(t, "", "", 0, 0);
        synthetic_key(t, point, "workload.batch", batch[i]);
        synthetic_phase(t, point, "decode", (double)batch[i], 0, 0);
        for (int round = 0; round < 2; round++)
            synthetic_visit(t, point, round, step_ms[i], 1, 0, 1);
    }
    for (int i = 0; i < 4; i++) {
        const char *const keys[] = {"kind", "metric", "at", "over"};
        for (int k = 0; k < 4; k++) {
            snprintf(key, sizeof key, "analysis.%d.%s", i, keys[k]);
            snprintf(value, sizeof value, "%s%s", k < 2 ? "" : "workload.batch=",
                     k == 0   ? "ratio"
                     : k == 1 ? ratios[i].metric
                     : k == 2 ? ratios[i].at
                              : ratios[i].over);
            synthetic_fact(t, key, value);
        }
    }
    if (summary_compute(t, &err) || analyses_run(t, &err)) fail_msg("%s", err.text);
    return t;
}

static bool gains(const struct record *r) {
    static const char *const names[] = {"time: 16 / 1", "time: 32 / 16", "decode_rate: 32 / 1",
                                        "time: 32 / 1"};
    if (r->n > 4) return false; /* bytes of caches: test_seed_theory.c */
    struct tables *t = made_batches();
    expect(r, synthetic_value(t, "ratio", names[r->n - 1]));
    tables_close(&t);
    return true;
}

static double metric(int64_t point, const char *name) {
    const double v = summary_get(run, point, name, "mean");
    if (isnan(v)) fail_msg("no %s", name);
    return v;
}

static bool one(const struct record *r) {
    const double prefill_ms = 1e3 / metric(0, "prefill_rate"),
                 decode_ms = 1e3 / metric(0, "decode_rate");
    if (r->family == 1) switch (r->n) {
        case 4: expect(r, metric(0, "time") / 1e3); return true;
        case 5: expect(r, metric(1, "time") / 1e3); return true;
        case 6: expect(r, synthetic_value(run, "ratio", "time: recompute / cached")); return true;
        default: return false; /* counts: test_seed.c */
        }
    switch (r->n) {
    case 1: expect(r, prefill_ms); return true;
    case 2: expect(r, metric(0, "tpot")); return true;
    case 3: expect(r, decode_ms / prefill_ms); return true;
    case 4: expect(r, metric(0, "decode_rate")); return true;
    case 5: expect(r, metric(0, "prefill_rate")); return true;
    case 6: /* bytes of a step / its time */
    case 7: {
        const struct table *phases = tables_peek(run, "phases");
        const double bytes = table_real(phases, 1, "bytes") / table_real(phases, 1, "items");
        expect(r, bytes * (r->n == 6 ? 1 : 0.5) * metric(0, "decode_rate") / 1e9);
        return true;
    }
    default: return false;
    }
}

static void records(void **state) {
    static const struct product products[] = {{1, one}, {5, one}, {19, gains}, {0}};
    (void)state;
    make_run();
    /* TTFT and all gaps add up to the whole. */
    assert_true(fabs(metric(0, "ttft") - 1022.4) < 1e-9);
    assert_true(fabs(metric(0, "e2e") - 8847.9) < 1e-9);
    assert_int_equal(each_record(products), 3 + 7 + 4);
    tables_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(records)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
