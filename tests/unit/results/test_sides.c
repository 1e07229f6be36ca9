/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides of stored results: matching, completeness, facts, and every way in which files can be
 * bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "results/sides.h"
#include "results/summary.h"
#include "tests/support/gate_settings.h"
#include "tests/support/synthetic.h"

static struct tables *result(void) {
    struct tables *ts = tables_create();
    struct table *metrics = tables_get(ts, "metrics");
    synthetic_environment(ts, "cpu.model", "one", "");
    synthetic_environment(ts, "load.1min", "0.1", "");
    synthetic_environment(ts, "build.revision", "abc", "");
    for (const struct metric *m = summary_metrics; m->name; m++) {
        static const char *const better[] = {"none", "lower", "higher"};
        const int64_t row = table_add(metrics, 1);
        table_set_text(metrics, row, "name", m->name);
        table_set_text(metrics, row, "unit", m->unit);
        table_set_text(metrics, row, "better", better[m->better]);
        table_set_i64(metrics, row, "exact", m->exact);
    }
    return ts;
}

static void meta(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    const int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static int64_t put(struct tables *ts, const char *label, double ms, uint64_t seed) {
    const int64_t p = synthetic_point(ts, "", label, 1e9, 2e9);
    synthetic_rounds(ts, p, 8, ms, 0.002, seed);
    return p;
}

static struct tables *done(struct tables *ts) {
    assert_int_equal(summary_compute(ts, NULL), 0);
    return ts;
}

static struct tables *usual(double factor, uint64_t seed) {
    struct tables *ts = result();
    put(ts, "batch=1", 10 * factor, seed);
    put(ts, "batch=2", 20 * factor, seed);
    return done(ts);
}

static struct gate *judged(enum gate_kind kind, struct sides sides, const char *rows,
                           struct err *err) {
    struct gate_settings s = gate_defaults();
    s.rows = rows;
    s.between_run = 0.004;
    struct gate *g = gate_create(kind, &s, 0);
    if (sides_gate(&sides, g, err)) gate_close(&g);
    return g;
}

static struct sides two(struct sides_file *files, struct tables *old, struct tables *new) {
    files[0] = (struct sides_file){"old.h5", old};
    files[1] = (struct sides_file){"new.h5", new};
    return (struct sides){.old = files, .n_old = 1, .new = files + 1, .n_new = 1};
}

/* Judges two results, which it closes; checks the exit code. */
static struct gate *pair(struct tables *old, struct tables *new, int code) {
    struct sides_file files[2];
    struct err err = {0};
    struct gate *g = judged(GATE_STORED, two(files, old, new), "", &err);
    assert_non_null(g);
    assert_int_equal(gate_exit(g), code);
    tables_close(&old);
    tables_close(&new);
    return g;
}

static void refused(struct tables *old, struct tables *new, const char *sentence) {
    struct sides_file files[2];
    struct err err = {0};
    struct gate *g = judged(GATE_STORED, two(files, old, new), "", &err);
    assert_null(g);
    assert_int_equal(err.code, ERR_INPUT);
    if (!strstr(err.text, sentence)) fail_msg("'%s' has no '%s'", err.text, sentence);
    tables_close(&old);
    tables_close(&new);
}

static void noted(const struct gate *g, const char *sentence) {
    for (size_t i = 0; i < g->n_notes; i++)
        if (strstr(g->notes[i], sentence)) return;
    fail_msg("no note says '%s'", sentence);
}

static void verdicts(void **state) {
    (void)state;
    struct gate *g = pair(usual(1, 1), usual(1, 2), 0);
    assert_int_equal(g->n_rows, 2);
    assert_int_equal(gate_count(g, GATE_PASS), 2);
    assert_string_equal(g->rows[0].unit, "ms");
    assert_true(fabs(g->rows[1].old_value - 20) < 0.1);
    assert_int_equal(g->n_equal, 4); /* flops and bytes of both rows */
    gate_close(&g);
    g = pair(usual(1, 1), usual(1.2, 2), 1);
    assert_int_equal(gate_count(g, GATE_SLOWER), 2);
    assert_true(fabs(g->geometric - 1.2) < 0.01 && g->n_geometric == 2);
    gate_close(&g);
    g = pair(usual(1, 1), usual(0.8, 2), 0);
    assert_int_equal(gate_count(g, GATE_FASTER), 2);
    gate_close(&g);
    g = pair(usual(1, 1), usual(1000, 2), 1); /* seconds for milliseconds */
    assert_int_equal(gate_count(g, GATE_SLOWER), 2);
    gate_close(&g);
}

/* Random subsets of rows in random order on both sides: each is there exactly once. */
static void no_row_vanishes(void **state) {
    (void)state;
    for (uint64_t trial = 0; trial < 30; trial++) {
        struct tables *side[2];
        int there[2][12] = {{0}}, missing = 0, new = 0, both = 0;
        for (uint64_t s = 0; s < 2; s++) {
            int32_t order[12];
            side[s] = result();
            for (int i = 0; i < 12; i++) order[i] = i;
            random_shuffle(random_key(trial, s), order, 12);
            for (uint64_t i = 0; i < 12; i++) {
                char label[20];
                if (i && random_below(random_key(trial, 2 + s), i, 3) == 0) continue;
                there[s][order[i]] = 1;
                snprintf(label, sizeof label, "batch=%d", order[i]);
                const int64_t p = put(side[s], label, 10, trial);
                if (random_below(random_key(trial, 4 + s), i, 5) == 0)
                    table_set_text(tables_get(side[s], "points"), p, "state", "oom");
            }
            done(side[s]);
        }
        for (int i = 0; i < 12; i++) {
            both += there[0][i] && there[1][i];
            missing += there[0][i] && !there[1][i];
            new += !there[0][i] && there[1][i];
        }
        struct sides_file files[2];
        struct err err = {0};
        struct gate *g = judged(GATE_STORED, two(files, side[0], side[1]), "", &err);
        assert_non_null(g);
        assert_int_equal(g->n_rows, both + missing + new);
        assert_int_equal(gate_count(g, GATE_MISSING), missing);
        assert_int_equal(gate_count(g, GATE_NEW), new);
        if (missing) assert_int_equal(gate_exit(g), 3);
        gate_close(&g);
        tables_close(&side[0]);
        tables_close(&side[1]);
    }
}

static struct tables *with_state(const char *state, const char *reason) {
    struct tables *ts = result();
    put(ts, "batch=1", 10, 1);
    const int64_t p = put(ts, "batch=2", 20, 1);
    done(ts);
    table_set_text(tables_get(ts, "points"), p, "state", state);
    table_set_text(tables_get(ts, "points"), p, "reason", reason);
    return ts;
}

static void a_row_that_failed_is_named(void **state) {
    (void)state;
    static const char *const states[] = {"wrong", "skipped", "oom", "timeout", "failed", ""};
    for (size_t i = 0; i < 6; i++) {
        struct gate *g = pair(usual(1, 1), with_state(states[i], "as the test says"), 3);
        assert_int_equal(g->rows[1].verdict, GATE_STATE);
        assert_string_equal(gate_word(&g->rows[1]), *states[i] ? states[i] : "skipped");
        assert_non_null(strstr(g->rows[1].reason, "new: as the test says"));
        assert_int_equal(g->n_geometric, 1); /* a time of 0 makes no mean of 0 */
        gate_close(&g);
        g = pair(with_state(states[i], "before"), usual(1, 1), 3);
        assert_non_null(strstr(g->rows[1].reason, "old: before"));
        gate_close(&g);
    }
}

static void bad_files(void **state) {
    (void)state;
    refused(usual(1, 1), done(result()), "new.h5 has no rows");
    struct tables *twice = usual(1, 1);
    put(twice, "batch=1", 10, 1);
    refused(usual(1, 1), done(twice), "new.h5 has the row 'batch=1' twice");
    struct tables *nameless = usual(1, 1);
    table_set_text(tables_get(nameless, "points"), 1, "cell", "");
    refused(nameless, usual(1, 1), "old.h5: row 1 ('batch=2') has no cell");
    struct tables *timeless = usual(1, 1); /* rows are ok, and nothing was timed */
    table_cut(tables_get(timeless, "samples"), 0);
    table_cut(tables_get(timeless, "visits"), 0);
    table_cut(tables_get(timeless, "summary"), 0);
    refused(usual(1, 1), timeless, "new.h5 has no metric 'time' (it has: none)");
}

static void a_metric_that_nobody_has(void **state) {
    (void)state;
    struct tables *a = usual(1, 1), *b = usual(1, 1);
    struct sides_file files[2];
    struct err err = {0};
    const struct sides sides = two(files, a, b);
    static const struct {
        const char *metric;
        int direction;
        const char *sentence;
    } cases[] = {
        {"tmie", GATE_AUTO, "old.h5 has no metric 'tmie'; did you mean 'time'? (it has: time"},
        {"flops", GATE_AUTO, "'flops' has no better direction"},
        {"flops", GATE_LOWER, NULL}};
    for (size_t i = 0; i < 3; i++) {
        struct gate_settings s = gate_defaults();
        s.metric = cases[i].metric;
        s.direction = cases[i].direction;
        struct gate *g = gate_create(GATE_STORED, &s, 0);
        assert_int_equal(sides_gate(&sides, g, &err), cases[i].sentence ? ERR_INPUT : 0);
        if (cases[i].sentence) assert_non_null(strstr(err.text, cases[i].sentence));
        gate_close(&g);
    }
    tables_close(&a);
    tables_close(&b);
}

static struct tables *theory(double kv_bytes) {
    struct tables *ts = result();
    const int64_t p = synthetic_point(ts, "", "batch=1", 1e9, 2e9);
    struct table *metrics = tables_get(ts, "metrics"), *summary = tables_get(ts, "summary");
    int64_t row = table_add(metrics, 1);
    table_set_text(metrics, row, "name", "kv_bytes");
    table_set_text(metrics, row, "unit", "byte");
    table_set_text(metrics, row, "better", "lower");
    table_set_i64(metrics, row, "exact", 1);
    table_set_text(tables_get(ts, "points"), p, "basis", "theory");
    row = table_add(summary, 1);
    table_set_i64(summary, row, "point", p);
    table_set_text(summary, row, "metric", "kv_bytes");
    static const char *const of[] = {"mean", "min", "max"};
    for (int i = 0; i < 3; i++) table_set_f64(summary, row, of[i], kv_bytes);
    return ts;
}

/* Two results of formulas alone have no times: their exact numbers decide. */
static void theory_has_no_time(void **state) {
    (void)state;
    struct err err = {0};
    for (int more = -1; more <= 1; more++) {
        struct tables *a = theory(4096), *b = theory(4096 + more);
        struct sides_file files[2];
        const struct sides sides = two(files, a, b);
        const struct gate_settings s = gate_defaults();
        struct gate *g = gate_create(GATE_STORED, &s, 0);
        struct text line = {0};
        assert_int_equal(sides_gate(&sides, g, &err), 0);
        assert_int_equal(g->n_rows, more ? 1 : 0);
        assert_int_equal(gate_exit(g), more > 0 ? 1 : 0);
        noted(g, "1 row has no times, as formulas have none");
        gate_verdict_line(g, &line);
        if (!more) assert_non_null(strstr(line.data, "exact numbers equal"));
        if (more) assert_string_equal(gate_word(&g->rows[0]), more > 0 ? "worse" : "better");
        text_free(&line);
        gate_close(&g);
        tables_close(&a);
        tables_close(&b);
    }
}

static void columns_without_numbers(void **state) {
    (void)state;
    struct tables *ts = usual(1, 1);
    struct table *samples = tables_get(ts, "samples");
    int64_t *wall = table_i64(samples, "wall_ns");
    for (int64_t i = 0; i < table_rows(samples); i++)
        if (table_int(samples, i, "visit") >= 8) wall[i] = I64_NONE; /* all of batch=2 */
    struct gate *g = pair(usual(1, 1), done(ts), 3);
    assert_int_equal(g->rows[0].verdict, GATE_PASS);
    assert_int_equal(g->rows[1].verdict, GATE_STATE);
    assert_non_null(strstr(g->rows[1].reason, "the new side has no time above 0"));
    gate_close(&g);
}

static void units_that_changed(void **state) {
    (void)state;
    struct tables *ts = usual(1, 1);
    struct table *summary = tables_get(ts, "summary");
    for (int64_t i = 0; i < table_rows(summary); i++) table_set_text(summary, i, "unit", "s");
    struct gate *g = pair(usual(1, 1), ts, 3);
    assert_string_equal(gate_word(&g->rows[0]), "unit changed");
    assert_non_null(strstr(g->rows[0].reason, "time was in 'ms' and is in 's'"));
    gate_close(&g);
}

static struct tables *on(const char *cpu) {
    struct tables *ts = usual(1, 1);
    table_set_text(tables_get(ts, "environment"), 0, "value", cpu);
    table_set_text(tables_get(ts, "environment"), 1, "value", "9");   /* load: of the moment */
    table_set_text(tables_get(ts, "environment"), 2, "value", "def"); /* what is compared */
    return ts;
}

static void facts_that_differ(void **state) {
    (void)state;
    struct gate *g = pair(on("one"), on("one"), 0);
    gate_close(&g);
    g = pair(usual(1, 1), on("another"), 4);
    assert_int_equal(gate_count(g, GATE_INCOMPARABLE), 2);
    assert_non_null(strstr(g->rows[0].reason, "cpu.model"));
    noted(g, "cpu.model differs: one, in new.h5 another (--across cpu.model)");
    gate_close(&g);
    static const char *const across[] = {"cpu.model", "cpu", "cpu.mod"};
    for (size_t i = 0; i < 3; i++) {
        struct tables *a = on("one"), *b = on("another");
        struct sides_file files[2];
        struct sides sides = two(files, a, b);
        struct err err = {0};
        sides.across = across + i, sides.n_across = 1;
        g = judged(GATE_STORED, sides, "", &err);
        assert_int_equal(gate_exit(g), i < 2 ? 0 : 4);
        if (i < 2) noted(g, "compared across cpu.model");
        gate_close(&g);
        tables_close(&a);
        tables_close(&b);
    }
    struct tables *newer = on("one"); /* a fact that the older file does not know */
    synthetic_environment(newer, "cpu.colour", "blue", "");
    g = pair(on("one"), newer, 0);
    noted(g, "not known to one of the files, so not compared: cpu.colour");
    gate_close(&g);
}

static void declared_defaults(void **state) {
    (void)state;
    static const struct sides_fact facts[] = {{"measure.cold", "false"}, {NULL, NULL}};
    for (int i = 0; i < 3; i++) {
        struct tables *a = usual(1, 1), *b = usual(1, 1);
        struct sides_file files[2];
        struct sides sides = two(files, a, b);
        struct err err = {0};
        sides.facts = facts;
        if (i) synthetic_fact(b, "measure.cold", i == 1 ? "false" : "true");
        struct gate *g = judged(GATE_STORED, sides, "", &err);
        assert_int_equal(gate_exit(g), i < 2 ? 0 : 4);
        gate_close(&g);
        tables_close(&a);
        tables_close(&b);
    }
}

static void trials_are_never_compared(void **state) {
    (void)state;
    static const char *const modes[] = {"quick", "profile"}, *const all[] = {"quick", "profile"};
    for (int i = 0; i < 4; i++) {
        struct tables *a = usual(1, 1), *b = usual(1, 1);
        struct sides_file files[2];
        struct sides sides = two(files, a, b);
        struct err err = {0};
        meta(i & 1 ? a : b, modes[i / 2], "yes");
        sides.across = all, sides.n_across = 2; /* not even across it */
        struct gate *g = judged(GATE_STORED, sides, "", &err);
        assert_int_equal(gate_exit(g), 4);
        gate_close(&g);
        tables_close(&a);
        tables_close(&b);
    }
}

static void exact_metrics_have_no_tolerance(void **state) {
    (void)state;
    struct tables *ts = usual(1, 1);
    table_set_f64(tables_get(ts, "points"), 1, "bytes", 2e9 + 1);
    struct gate *g = pair(usual(1, 1), ts, 1);
    assert_int_equal(g->n_rows, 3);
    assert_string_equal(g->rows[2].name, "batch=2 bytes");
    assert_string_equal(gate_word(&g->rows[2]), "worse");
    assert_non_null(strstr(g->rows[2].reason, "2000000000 to 2000000001 byte"));
    gate_close(&g);
    ts = usual(1, 1);
    table_set_f64(tables_get(ts, "points"), 0, "flops", 1e9 - 1);
    g = pair(usual(1, 1), ts, 0);
    assert_string_equal(gate_word(&g->rows[1]), "better");
    gate_close(&g);
}

static void several_runs(void **state) {
    (void)state;
    struct tables *runs[6];
    struct sides_file files[6];
    struct err err = {0};
    for (uint64_t i = 0; i < 6; i++) {
        runs[i] = usual((i < 3 ? 1 : 1.1) * (1 + 0.002 * random_normal(8, i)), i);
        files[i] = (struct sides_file){i < 3 ? "old.h5" : "new.h5", runs[i]};
    }
    struct sides sides = {.old = files, .n_old = 3, .new = files + 3, .n_new = 3};
    struct gate *g = judged(GATE_COMPARE, sides, "", &err);
    assert_int_equal(g->rows[0].verdict, GATE_SLOWER);
    assert_int_equal(g->rows[0].old_side.runs, 3);
    assert_int_equal(g->rows[0].rounds, 24);
    gate_close(&g);
    /* A row that one of the runs lacks is told, not averaged over the others. */
    struct tables *less = result();
    put(less, "batch=1", 11, 5);
    tables_close(&runs[5]);
    files[5].tables = runs[5] = done(less);
    g = judged(GATE_COMPARE, sides, "", &err);
    assert_string_equal(gate_word(&g->rows[1]), "missing");
    assert_int_equal(gate_exit(g), 3);
    gate_close(&g);
    for (int i = 0; i < 6; i++) tables_close(&runs[i]);
}

static struct gate *with_history(size_t runs, int days, struct err *err) {
    struct tables *past[12], *a = usual(1, 1), *b = usual(1.2, 2);
    struct sides_file files[2], history[12];
    for (uint64_t i = 0; i < runs; i++) {
        char created[40];
        past[i] = usual(1 + 0.004 * random_normal(3, i), i);
        snprintf(created, sizeof created, "2026-01-%02dT00:00:00Z", 1 + (int)i % days);
        meta(past[i], "created", created);
        history[i] = (struct sides_file){"past.h5", past[i]};
    }
    struct sides sides = two(files, a, b);
    sides.history = history, sides.n_history = runs;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_STORED, &s, 0);
    assert_int_equal(sides_gate(&sides, g, err), 0);
    tables_close(&a);
    tables_close(&b);
    for (size_t i = 0; i < runs; i++) tables_close(&past[i]);
    return g;
}

/* Sittings of a program with itself whose levels are 0, s, ..., as ln: their spread by hand. */
static struct tables *sitting(double level, const char *b, const char *cpu) {
    struct tables *ts = tables_create();
    struct table *pairs = tables_get(ts, "pairs");
    synthetic_environment(ts, "cpu.model", cpu, "");
    meta(ts, "side_a", "as declared");
    meta(ts, "side_b", b);
    for (int side = 0; side < 2; side++) {
        synthetic_point(ts, "", "batch=1", 1e9, 2e9);
        synthetic_point(ts, "", "batch=2", 1e9, 2e9);
    }
    for (int64_t k = 0; k < 8; k++) { /* rounds of batch=1 alone */
        const int64_t row = table_add(pairs, 1);
        table_set_i64(pairs, row, "a", 0);
        table_set_f64(pairs, row, "a_ns", 1e7 * exp(level + (k % 2 ? 0.001 : -0.001)));
        table_set_f64(pairs, row, "b_ns", 1e7 * exp(level + (k % 2 ? -0.001 : 0.001)));
    }
    return ts;
}

static struct gate *with_sittings(size_t n, const char *b, const char *cpu) {
    struct tables *past[4], *old = usual(1, 1), *new = usual(1.2, 2);
    struct sides_file files[2], calibration[4];
    struct err err = {0};
    for (size_t i = 0; i < n; i++) {
        past[i] = sitting(0.004 * (double)i, b, cpu);
        calibration[i] = (struct sides_file){"sitting.h5", past[i]};
    }
    struct sides sides = two(files, old, new);
    sides.calibration = calibration, sides.n_calibration = n;
    const struct gate_settings s = gate_defaults();
    struct gate *g = gate_create(GATE_STORED, &s, 0);
    assert_int_equal(sides_gate(&sides, g, &err), 0);
    tables_close(&old);
    tables_close(&new);
    for (size_t i = 0; i < n; i++) tables_close(&past[i]);
    return g;
}

static void a_calibration_gives_the_spread(void **state) {
    (void)state;
    struct gate *g = with_sittings(4, "as declared", "one");
    /* 0, 4, 8 and 12 thousandths: variance 80/3 of their squares */
    assert_true(fabs(g->rows[0].between - 1e-3 * sqrt(80.0 / 3)) < 1e-9);
    assert_true(fabs(g->rows[0].between_df - 3) < 1e-12);
    assert_false(g->rows[0].between_unknown);
    assert_true(g->rows[1].between_unknown); /* no sitting has this row */
    noted(g, "by 4 sittings of a calibration");
    gate_close(&g);
    g = with_sittings(1, "as declared", "one");
    assert_true(g->rows[0].between_unknown);
    noted(g, "the calibration has 1 sitting; 2 are needed");
    gate_close(&g);
    g = with_sittings(4, "workload.batch=2", "one");
    assert_true(g->rows[0].between_unknown);
    noted(g, "no comparison of a program with itself");
    gate_close(&g);
    g = with_sittings(4, "as declared", "another");
    assert_true(g->rows[0].between_unknown);
    noted(g, "left out of the calibration: sitting.h5 (cpu.model is another)");
    gate_close(&g);
}

static void a_history_gives_the_spread(void **state) {
    (void)state;
    struct err err = {0};
    struct gate *g = with_history(10, 10, &err);
    assert_int_equal(gate_count(g, GATE_SLOWER), 2);
    assert_true(g->rows[0].between > 0.001 && g->rows[0].between < 0.01);
    assert_true(g->rows[0].between_df > 8.5 && g->rows[0].between_df < 9.5);
    gate_close(&g);
    g = with_history(10, 7, &err); /* ten runs of seven days */
    assert_int_equal(gate_exit(g), 5);
    noted(g, "the history is of 7 days; 8 are needed");
    gate_close(&g);
    g = with_history(7, 7, &err);
    assert_int_equal(gate_exit(g), 5);
    assert_non_null(strstr(g->rows[0].reason, "between-run spread unknown"));
    gate_close(&g);
}

static void an_empty_selection(void **state) {
    (void)state;
    struct tables *a = usual(1, 1), *b = usual(1, 1);
    struct sides_file files[2];
    struct err err = {0};
    struct gate *g = judged(GATE_STORED, two(files, a, b), "workload.batch=77", &err);
    assert_int_equal(g->n_rows, 0);
    assert_int_equal(gate_exit(g), 3);
    noted(g, "no row has workload.batch=77; there are 2: batch=1, batch=2");
    gate_close(&g);
    tables_close(&a);
    tables_close(&b);
}

static void edited_summaries_are_said(void **state) {
    (void)state;
    struct tables *ts = usual(1, 1);
    table_set_f64(tables_get(ts, "summary"), summary_row(ts, 0, "time"), "mean", 1);
    struct gate *g = pair(usual(1, 1), ts, 0); /* the samples count */
    noted(g, "new.h5: the stored time of 'batch=1' is not what its samples give");
    gate_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(no_row_vanishes),
        cmocka_unit_test(a_row_that_failed_is_named),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(a_metric_that_nobody_has),
        cmocka_unit_test(theory_has_no_time),
        cmocka_unit_test(columns_without_numbers),
        cmocka_unit_test(units_that_changed),
        cmocka_unit_test(facts_that_differ),
        cmocka_unit_test(declared_defaults),
        cmocka_unit_test(trials_are_never_compared),
        cmocka_unit_test(exact_metrics_have_no_tolerance),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(a_history_gives_the_spread),
        cmocka_unit_test(a_calibration_gives_the_spread),
        cmocka_unit_test(an_empty_selection),
        cmocka_unit_test(edited_summaries_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
