/* SPDX-License-Identifier: Apache-2.0 */
/* From quadruples of turns to what a round says of a row, and from rounds to the gate's rows. */
#include "results/pairs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/option.h"
#include "base/text.h"
#include "results/evalue.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"

#define TRIM 0.2 /* of the quadruples, from each end */
enum { MOST_ROUNDS = 100000 };

struct pair_y pairs_y(const double (*times)[4], size_t n) {
    struct pair_y y = {NAN, NAN, NAN, NAN};
    double *d = must_alloc((n + 1) * sizeof *d), a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        const double *t = times[i];
        d[i] = evalue_quadruple(t[0], t[1], t[2], t[3]);
        a += (t[0] + t[3]) / 2;
        b += (t[1] + t[2]) / 2;
    }
    if (n) {
        y.mean = stats_mean(d, n);
        y.y = evalue_trimmed_mean(d, n, TRIM); /* reorders d */
        y.a_ns = a / (double)n;
        y.b_ns = b / (double)n;
    }
    free(d);
    return y;
}

double pairs_level(const struct tables *ts, int64_t a) {
    const struct table *pairs = tables_peek(ts, "pairs");
    double sum = 0;
    size_t n = 0;
    for (int64_t r = 0; r < table_rows(pairs); r++) {
        const double ns = table_real(pairs, r, "a_ns") * table_real(pairs, r, "b_ns");
        if (table_int(pairs, r, "a") != a || !(ns > 0)) continue;
        sum += log(ns) / 2;
        n++;
    }
    return n ? sum / (double)n : (double)NAN;
}

bool pairs_there(const struct tables *ts) { return table_rows(tables_peek(ts, "pairs")) > 0; }

bool pairs_begun(const struct tables *ts) { return *tables_meta(ts, "side_a"); }

/* Each of the words once; without `apart`, whose occurrence is the answer. */
static bool join_words(struct text *all, const char *words, const char *apart) {
    bool met = false;
    for (const char *w = words; *w;) {
        const size_t n = strcspn(w, " ");
        const bool there = all->len && text_has_word(all->data, w, n);
        const bool one = strlen(apart) == n && !strncmp(apart, w, n);
        met = met || one;
        if (n && !there && !one) text_printf(all, "%s%.*s", all->len ? " " : "", (int)n, w);
        w += n + (w[n] == ' ');
    }
    return met;
}

/* Of a row: what its visits say together. */
struct gathered {
    double a_ns, b_ns;
    size_t rounds;
    const char *state, *reason;
    struct text flags, weights;
    bool any;
};

static void gather(const struct table *pairs, int64_t a, struct gathered *g) {
    size_t throttled = 0;
    *g = (struct gathered){.state = "", .reason = ""};
    for (int64_t r = 0; r < table_rows(pairs); r++) {
        if (table_int(pairs, r, "a") != a) continue;
        const char *state = table_text(pairs, r, "state");
        const double ns = table_real(pairs, r, "a_ns");
        g->any = true;
        throttled += join_words(&g->flags, table_text(pairs, r, "flags"), "throttled");
        join_words(&g->weights, table_text(pairs, r, "weights"), "");
        if (strcmp(state, "ok") && !*g->state) {
            g->state = state;
            g->reason = table_text(pairs, r, "reason");
        }
        if (isnan(ns)) continue;
        g->a_ns += ns;
        g->b_ns += table_real(pairs, r, "b_ns");
        g->rounds++;
    }
    /* A clock that falls in one round falls for both sides; one that is low in most is no basis,
       which the first rounds cannot know: they would end the row. */
    if (g->rounds >= EVALUE_LEAST && 2 * throttled > g->rounds)
        join_words(&g->flags, "throttled", "");
    if (!g->any && table_rows(pairs)) g->state = "skipped";
}

/* What the reader must know about a row beside its numbers. */
static void describe(const struct gathered *g, struct text *why) {
    if (*g->reason) text_puts(why, g->reason);
    if (!g->any && *g->state) text_puts(why, "the comparison ended before it was reached");
    if (g->weights.len && strstr(g->weights.data, "private"))
        text_printf(why, "%seach side has its own copy of the weights", why->len ? "; " : "");
}

static bool chosen(const struct tables *ts, const struct gate_settings *settings, int64_t a) {
    return !*settings->rows || rows_match(ts, a, settings->rows);
}

void pairs_rows(const struct tables *ts, const struct gate_settings *settings, int64_t *row) {
    const struct table *pairs = tables_peek(ts, "pairs");
    const int64_t n = table_rows(tables_peek(ts, "points")) / 2;
    int64_t rows = 0;
    for (int64_t a = 0; a < n; a++) row[a] = chosen(ts, settings, a) ? 0 : -1;
    for (int64_t r = 0; r < table_rows(pairs); r++) {
        const int64_t a = table_int(pairs, r, "a");
        if (a < 0 || a >= n || table_int(pairs, r, "quads") != 0) continue;
        /* An exact workload has no time: it was visited, and took no turns. */
        if (!strcmp(table_text(pairs, r, "state"), "ok")) row[a] = -1;
    }
    for (int64_t a = 0; a < n; a++)
        if (row[a] >= 0) row[a] = rows++;
}

/* "decode batch=1", or the workload where there is nothing to tell it from. */
static void row_name(const struct table *points, int64_t a, struct text *name) {
    const char *only_case = table_text(points, a, "case"), *label = table_text(points, a, "label");
    text_printf(name, "%s%s%s", only_case, *only_case && *label ? " " : "", label);
    if (!name->len) text_puts(name, table_text(points, a, "workload"));
}

static void add_row(struct gate *gate, const struct tables *ts, int64_t a, int64_t n_rows) {
    const struct table *points = tables_peek(ts, "points");
    struct text name = {0}, why = {0};
    struct gathered g;
    gather(tables_peek(ts, "pairs"), a, &g);
    for (int side = 0; side < 2 && !*g.state; side++) { /* what the summary found */
        const int64_t point = a + side * n_rows;
        if (strcmp(table_text(points, point, "state"), "implausible")) continue;
        g.state = "implausible";
        g.reason = table_text(points, point, "reason");
    }
    describe(&g, &why);
    row_name(points, a, &name);
    const double scale = g.rounds ? 1e-6 / (double)g.rounds : NAN;
    const struct gate_row row = {
        .name = name.data,
        .cell = table_text(points, a, "cell"),
        .metric = "time",
        .unit = "ms",
        .better = BETTER_LOWER,
        .in_old = true,
        .in_new = a + n_rows < table_rows(points),
        .state = g.state,
        .flags = g.flags.len ? g.flags.data : "",
        .incomparable = "",
        .why = why.len ? why.data : "",
        .old_value = g.a_ns * scale,
        .new_value = g.b_ns * scale,
    };
    gate_add(gate, &row);
    text_free(&name);
    text_free(&why);
    text_free(&g.flags);
    text_free(&g.weights);
}

/* Numbers that do not depend on the clock, of two rows of one cell. */
static void add_exact(struct gate *gate, const struct tables *old_ts, int64_t a,
                      const struct tables *ts, int64_t b) {
    const struct table *metrics = tables_peek(ts, "metrics"), *points = tables_peek(ts, "points");
    const char *workload = table_text(points, b, "workload");
    struct text name = {0};
    row_name(points, b, &name);
    for (int64_t m = 0; m < table_rows(metrics); m++) {
        const char *metric = table_text(metrics, m, "name"),
                   *of = table_text(metrics, m, "workload");
        if (table_int(metrics, m, "exact") != 1 || (*of && strcmp(of, workload))) continue;
        const double old = summary_get(old_ts, a, metric, "mean"),
                     new = summary_get(ts, b, metric, "mean");
        if (isnan(old)) continue; /* an older program may not have reported it */
        if (isnan(new) && !rows_usable(ts, b)) continue; /* the row's own state says why */
        if (!(old < new) && !(old > new) && !isnan(new)) {
            gate->n_equal++;
            continue;
        }
        const char *better = table_text(metrics, m, "better");
        const struct gate_row row = {
            .name = name.data,
            .cell = table_text(points, b, "cell"),
            .metric = metric,
            .unit = table_text(metrics, m, "unit"),
            .better = !strcmp(better, "lower")    ? BETTER_LOWER
                      : !strcmp(better, "higher") ? BETTER_HIGHER
                                                  : BETTER_NONE,
            .exact = true,
            .in_old = true,
            .in_new = true,
            .state = "",
            .flags = "",
            .incomparable = "",
            .why = "",
            .old_value = old,
            .new_value = new,
        };
        gate_add(gate, &row);
    }
    text_free(&name);
}

static bool same_cell(const struct table *x, int64_t a, const struct table *y, int64_t b) {
    return !strcmp(table_text(x, a, "cell"), table_text(y, b, "cell"));
}

void pairs_against(struct gate *gate, const struct tables *ts, const struct tables *baseline) {
    const struct table *points = tables_peek(ts, "points"), *old = tables_peek(baseline, "points");
    const int64_t n = table_rows(points) / 2;
    for (int64_t i = 0; i < table_rows(old); i++) {
        int64_t b = n;
        if (!chosen(baseline, &gate->settings, i)) continue;
        while (b < 2 * n && !same_cell(old, i, points, b)) b++;
        if (b < 2 * n) {
            add_exact(gate, baseline, i, ts, b);
            continue;
        }
        struct text name = {0};
        row_name(old, i, &name);
        const struct gate_row row = {
            .name = name.data,
            .cell = table_text(old, i, "cell"),
            .metric = "time",
            .unit = "ms",
            .better = BETTER_LOWER,
            .in_old = true,
            .state = "",
            .flags = "",
            .incomparable = "",
            .why = "",
            .old_value = summary_get(baseline, i, "time", "mean"),
            .new_value = (double)NAN,
        };
        gate_add(gate, &row);
        text_free(&name);
    }
}

/* Beside what became slower or faster: which functions are other machine code. */
static void note_code(struct gate *gate, const struct tables *ts) {
    const char *changed = tables_meta(ts, "changed_code");
    const bool found = gate_count(gate, GATE_SLOWER) || gate_count(gate, GATE_FASTER) ||
                       (gate->has_all && gate->all.verdict == GATE_SLOWER);
    if (*changed && found) gate_note(gate, "machine code: %s", changed);
}

struct gate *pairs_gate(const struct tables *ts, const struct gate_settings *settings) {
    const struct table *points = tables_peek(ts, "points"), *pairs = tables_peek(ts, "pairs");
    const int64_t n = table_rows(points) / 2;
    int64_t attempt = 1;
    if (!parse_i64(tables_meta(ts, "attempt"), &attempt) || attempt < 1 || attempt > 1000)
        attempt = 1;
    struct gate *gate = gate_create(GATE_LIVE, settings, (int)attempt - 1);
    gate->same_code = !strcmp(tables_meta(ts, "same_code"), "yes");
    gate->old_name = "a";
    gate->new_name = "b";
    int64_t *row = must_alloc((size_t)(n + 1) * sizeof *row);
    pairs_rows(ts, settings, row);
    for (int64_t a = 0; a < n; a++)
        if (row[a] >= 0) add_row(gate, ts, a, n);
    for (int64_t r = 0; r < table_rows(pairs); r++) {
        const int64_t a = table_int(pairs, r, "a"), round = table_int(pairs, r, "round");
        const double y = table_real(pairs, r, "y");
        if (a < 0 || a >= n || row[a] < 0 || round < 0 || round >= MOST_ROUNDS || isnan(y))
            continue;
        gate_round(gate, (size_t)row[a], (size_t)round, y, table_real(pairs, r, "mean"));
    }
    for (int64_t a = 0; a < n; a++)
        if (chosen(ts, settings, a) && same_cell(points, a, points, a + n))
            add_exact(gate, ts, a, ts, a + n);
    free(row);
    gate_judge(gate);
    note_code(gate, ts);
    return gate;
}

void pairs_settings(const struct tables *ts, struct gate_settings *settings, struct arena *arena) {
    option_defaults(gate_options, settings, arena);
    for (const struct option *o = gate_options; o->key; o++) {
        char key[80];
        snprintf(key, sizeof key, "gate.%s", o->key);
        const char *value = rows_fact(ts, key);
        if (*value) option_parse(o, value, settings, arena, NULL);
    }
}

struct gate *pairs_gate_of_file(const struct tables *ts) {
    struct gate_settings settings;
    struct arena *arena = arena_create();
    pairs_settings(ts, &settings, arena);
    struct gate *gate = pairs_gate(ts, &settings);
    const char *a = tables_meta(ts, "side_a"), *b = tables_meta(ts, "side_b");
    if (*a) gate->old_name = a;
    if (*b) gate->new_name = b;
    arena_close(&arena);
    return gate;
}
