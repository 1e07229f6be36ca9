/* SPDX-License-Identifier: Apache-2.0 */
/* Series over stored runs: gathering, judging, printing. */
#include "harness/history_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/pairs.h"
#include "results/rows.h"
#include "results/stats.h"

enum { PAGE = 100, MOST_NOTES = 64 };

static void note(struct runs_set *s, const char *sentence) {
    if (!s->notes) s->notes = arena_alloc(s->arena, MOST_NOTES * sizeof *s->notes);
    if (s->n_notes < MOST_NOTES) s->notes[s->n_notes++] = arena_text(s->arena, sentence);
}

static int by_time(const void *a, const void *b) {
    const struct sides_file *x = a, *y = b;
    const int c = strcmp(tables_meta(x->tables, "created"), tables_meta(y->tables, "created"));
    return c ? c : strcmp(x->name, y->name);
}

/* --- gathering --- */

struct builder {
    struct runs_set *set;
    size_t cap;
};

static struct runs_row *row_of(struct builder *b, const char *cell, size_t n_runs) {
    struct runs_set *s = b->set;
    for (size_t i = 0; i < s->n_rows; i++)
        if (!strcmp(s->rows[i].cell, cell)) return &s->rows[i];
    if (s->n_rows == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 32;
        s->rows = must_realloc(s->rows, b->cap * sizeof *s->rows);
    }
    struct runs_row *r = &s->rows[s->n_rows++];
    *r = (struct runs_row){.cell = arena_text(s->arena, cell), .drift = NAN, .drift_p = NAN};
    r->value = arena_alloc(s->arena, n_runs * sizeof *r->value);
    r->log = arena_alloc(s->arena, n_runs * sizeof *r->log);
    r->run = arena_alloc(s->arena, n_runs * sizeof *r->run);
    return r;
}

static double run_mean(const struct rounds *rounds, int64_t point, double *mean_log) {
    double sum = 0, logs = 0, n = 0;
    for (int64_t k = 0; k < rounds->n_rounds; k++) {
        const double v = rounds_get(rounds, point, rounds->rounds[k]);
        if (!(v > 0) || !isfinite(v)) continue;
        sum += v;
        logs += log(v);
        n++;
    }
    *mean_log = logs / n;
    return n > 0 ? sum / n : (double)NAN;
}

static void add_value(struct runs_row *r, size_t run, double value, double mean_log) {
    if (isnan(value) || (r->n && r->run[r->n - 1] == run)) return; /* once a run */
    r->value[r->n] = value;
    r->log[r->n] = mean_log;
    r->run[r->n++] = run;
}

static void add_run(struct builder *b, const struct sides_file *f, size_t run, size_t n_runs,
                    const char *where) {
    const struct table *points = tables_peek(f->tables, "points");
    struct rounds rounds;
    rounds_read(f->tables, b->set->metric, &rounds);
    for (int64_t p = 0; p < table_rows(points); p++) {
        double mean_log;
        if (*where && !rows_match(f->tables, p, where)) continue;
        struct runs_row *r = row_of(b, table_text(points, p, "cell"), n_runs);
        const char *label = table_text(points, p, "label"), *c = table_text(points, p, "case");
        r->name = arena_printf(b->set->arena, "%s%s%s", c, *c ? " " : "",
                               *label ? label : table_text(points, p, "workload"));
        const double mean = run_mean(&rounds, p, &mean_log);
        if (!rows_usable(f->tables, p) || isnan(mean)) continue;
        r->unit = arena_text(b->set->arena, rows_unit(f->tables, b->set->metric));
        add_value(r, run, mean, mean_log);
    }
    rounds_free(&rounds);
}

/* Of a comparison: each row's new over anchor, the mean over its rounds. */
static void add_comparison(struct builder *b, const struct sides_file *f, size_t run, size_t n_runs,
                           const char *where) {
    struct gate_settings settings;
    struct arena *arena = arena_create();
    pairs_settings(f->tables, &settings, arena);
    settings.rows = where;
    struct gate *g = pairs_gate(f->tables, &settings);
    for (size_t i = 0; i < g->n_rows; i++) {
        const struct gate_row *row = &g->rows[i];
        if (row->exact) continue;
        struct runs_row *r = row_of(b, row->cell, n_runs);
        double sum = 0, n = 0;
        for (size_t k = 0; k < row->n && row->verdict != GATE_STATE; k++)
            if (!isnan(row->y[k])) sum += row->y[k], n++;
        r->name = arena_text(b->set->arena, row->name);
        add_value(r, run, n > 0 ? exp(sum / n) : (double)NAN, sum / n);
    }
    gate_close(&g);
    arena_close(&arena);
}

/* Whether a file is of the kind of the newest one; else why not. */
static bool same_kind(const struct runs_set *s, const struct tables *ts, char *why, size_t size) {
    const char *anchor = tables_meta(ts, "side_a");
    if (!pairs_begun(ts) == !s->anchor && (!s->anchor || !strcmp(anchor, s->anchor))) return true;
    if (!s->anchor)
        snprintf(why, size, "a comparison of two sides");
    else if (!pairs_begun(ts))
        snprintf(why, size, "no comparison");
    else
        snprintf(why, size, "its side a is another: %.80s", anchor);
    return false;
}

/* --- accepted steps --- */

/* A line of another form would accept nothing, and nobody would be told. */
static int check_accepted(const char *path, const char *list, struct err *err) {
    int number = 1, year, month, day;
    for (const char *line = list; *line; number++) {
        const size_t n = strcspn(line, "\n");
        const char *tab = memchr(line, '\t', n);
        const bool two = tab && memchr(tab + 1, '\t', n - (size_t)(tab + 1 - line));
        const bool dated = two && tab - line >= 10 &&
                           sscanf(line, "%4d-%2d-%2d", &year, &month, &day) == 3 && month >= 1 &&
                           month <= 12 && day >= 1 && day <= 31;
        if (n && *line != '#' && !dated)
            return err_set(err, ERR_INPUT,
                           "%s:%d:1: a line is DAY, ROW (or *) and WHY with tabs between, the day "
                           "as 2026-11-20",
                           path, number);
        line += n + (line[n] == '\n');
    }
    return 0;
}

/* "2026-11-20<TAB>batch=1<TAB>why": the step that begins with a run of that day. */
static const char *accepted_why(struct runs_set *s, char *list, const char *day, const char *row) {
    for (char *line = list; line && *line;) {
        char *end = strchr(line, '\n');
        const size_t n = end ? (size_t)(end - line) : strlen(line);
        const char *tab = memchr(line, '\t', n);
        const char *second = tab ? memchr(tab + 1, '\t', n - (size_t)(tab + 1 - line)) : NULL;
        if (*line != '#' && second && (size_t)(tab - line) >= 10 && !strncmp(line, day, 10)) {
            const size_t name = (size_t)(second - tab - 1);
            if ((name == 1 && tab[1] == '*') ||
                (strlen(row) == name && !memcmp(tab + 1, row, name)))
                return arena_textn(s->arena, second + 1, n - (size_t)(second + 1 - line));
        }
        line = end ? end + 1 : NULL;
    }
    return NULL;
}

static void judge(struct runs_set *s, struct runs_row *r, char *accepted) {
    r->n_steps = history_steps(r->log, r->n, log1p(s->tolerance), 1, r->steps, RUNS_STEPS);
    r->anchor = 0;
    for (size_t i = 0; i < r->n_steps; i++) {
        const char *day = s->runs[r->run[r->steps[i].at]].created;
        r->accepted[i] = accepted ? accepted_why(s, accepted, day, r->name) : NULL;
        if (r->accepted[i]) r->anchor = r->steps[i].at;
    }
    r->drift = history_drift(r->log + r->anchor, r->n - r->anchor, 2, &r->drift_p);
}

static enum better direction_of(const struct tables *ts, const char *metric,
                                const struct gate_settings *settings) {
    if (settings->direction != GATE_AUTO)
        return settings->direction == GATE_HIGHER ? BETTER_HIGHER : BETTER_LOWER;
    return sides_better(ts, metric);
}

/* The name of an earlier file that holds the same result, or NULL: one run is no two. */
static const char *copied(const struct gate_files *f, size_t i) {
    const char *created = tables_meta(f->items[i].tables, "created");
    for (size_t k = i; k-- && !strcmp(tables_meta(f->items[k].tables, "created"), created);)
        if (gate_files_are_one(f->items[k].name, f->items[i].name)) return f->items[k].name;
    return NULL;
}

int runs_read(struct runs_set *s, struct gate_files *f, const struct gate_settings *settings,
              const char *const *across, size_t n_across, const char *accepted, struct err *err) {
    struct builder b = {s, 0};
    char *list = NULL, why[200];
    size_t len = 0;
    *s = (struct runs_set){.arena = arena_create(), .tolerance = settings->tolerance};
    s->metric = arena_text(s->arena, *settings->metric ? settings->metric : "time");
    if (accepted) {
        int code = file_read(accepted, (size_t)1 << 24, &list, &len, err);
        if (!code) code = check_accepted(accepted, list, err);
        if (code) {
            free(list);
            return code;
        }
    }
    qsort(f->items, f->n, sizeof *f->items, by_time);
    s->runs = arena_alloc(s->arena, (f->n + 1) * sizeof *s->runs);
    const struct sides_file *newest = &f->items[f->n - 1];
    s->machine = arena_text(s->arena, rows_environment(newest->tables, "cpu.model"));
    if (pairs_begun(newest->tables)) {
        if (strcmp(s->metric, "time")) {
            free(list);
            return err_set(err, ERR_INPUT, "%s compares times in turns: there is no %.60s in it",
                           newest->name, s->metric);
        }
        s->anchor = arena_text(s->arena, tables_meta(newest->tables, "side_a"));
    }
    const enum better better =
        s->anchor ? BETTER_LOWER : direction_of(newest->tables, s->metric, settings);
    s->sign = better == BETTER_HIGHER ? -1 : 1;
    for (size_t i = 0; i < f->n; i++) {
        const struct tables *ts = f->items[i].tables;
        const char *twin = copied(f, i);
        if (twin) snprintf(why, sizeof why, "the same result as %.150s", twin);
        if (twin || !same_kind(s, ts, why, sizeof why) ||
            !sides_comparable(newest->tables, ts, gate_files_facts, across, n_across, why,
                              sizeof why)) {
            char sentence[600];
            snprintf(sentence, sizeof sentence, "left out: %.200s (%s)", f->items[i].name, why);
            note(s, sentence);
            continue;
        }
        s->runs[s->n_runs] = (struct runs_run){arena_text(s->arena, f->items[i].name),
                                               arena_text(s->arena, tables_meta(ts, "created"))};
        (s->anchor ? add_comparison : add_run)(&b, &f->items[i], s->n_runs++, f->n, settings->rows);
    }
    for (size_t i = 0; i < s->n_rows; i++) judge(s, &s->rows[i], list);
    if (s->anchor) note(s, arena_printf(s->arena, "anchor: %s", s->anchor));
    free(list);
    bool any = false;
    for (size_t i = 0; i < s->n_rows; i++) any |= s->rows[i].n > 0;
    if (any && better == BETTER_NONE)
        return err_set(err, ERR_INPUT,
                       "'%s' has no better direction: set gate.direction to lower or higher",
                       s->metric);
    if (any) return 0;
    if (s->n_rows) {
        struct text known = {0};
        sides_known_metrics(newest->tables, s->metric, &known);
        err_set(err, ERR_INPUT, "no row has a metric '%.60s'%s", s->metric, known.data);
        text_free(&known);
        return ERR_INPUT;
    }
    return err_set(err, ERR_INPUT, "%s in %zu file%s: no row has it%s%s", s->metric, f->n,
                   f->n == 1 ? "" : "s", *settings->rows ? " among " : "", settings->rows);
}

void runs_free(struct runs_set *s) {
    free(s->rows);
    arena_close(&s->arena);
    *s = (struct runs_set){.arena = NULL};
}

bool runs_drifted(const struct runs_set *s, const struct runs_row *r) {
    return r->drift_p <= HISTORY_P && fabs(r->drift) >= log1p(s->tolerance);
}

bool runs_regressed(const struct runs_set *s, const struct runs_row *r) {
    bool slower = runs_drifted(s, r) && s->sign * r->drift > 0;
    for (size_t i = 0; i < r->n_steps; i++)
        slower = slower || (!r->accepted[i] && s->sign * r->steps[i].change > 0);
    return slower;
}

/* --- printing --- */

static void put_change(const struct runs_set *s, double change, struct text *t) {
    text_printf(t, "%+.1f %%, %s", 100 * expm1(change), s->sign * change > 0 ? "slower" : "faster");
}

static void put_row(const struct runs_set *s, const struct runs_row *r, size_t width,
                    struct text *out) {
    char a[32], b[32];
    text_printf(out, "  %s", r->name);
    text_puts(out, "  ");
    text_pad(out, width + 4);
    text_printf(out, "%zu", r->n);
    text_pad(out, width + 11);
    if (!r->n) {
        text_puts(out, "-          -          no numbers\n");
        return;
    }
    text_puts(out, format_number(a, sizeof a, r->value[0], 4));
    text_pad(out, width + 22);
    text_puts(out, format_number(b, sizeof b, r->value[r->n - 1], 4));
    text_puts(out, " ");
    text_pad(out, width + 33);
    if (isnan(r->drift)) {
        const size_t since = r->n - r->anchor;
        text_printf(out, "%zu run%s since the anchor, %d are needed", since, since == 1 ? "" : "s",
                    2 * HISTORY_SEGMENT);
    } else {
        text_printf(out, "%+.1f %%, p %.4f", 100 * expm1(r->drift), r->drift_p);
        if (runs_drifted(s, r))
            text_printf(out, "  %s", s->sign * r->drift > 0 ? "slower" : "faster");
    }
    text_puts(out, "\n");
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct history_step *step = &r->steps[i];
        const struct runs_run *run = &s->runs[r->run[step->at]];
        struct text t = {0};
        text_puts(&t, "step ");
        put_change(s, step->change, &t);
        text_printf(&t, ", from %.10s on (%s), p %.4f", run->created, run->name, step->p);
        if (r->accepted[i]) text_printf(&t, "; accepted: %s", r->accepted[i]);
        text_wrap(out, 6, PAGE, t.data);
        text_puts(out, "\n");
        text_free(&t);
    }
}

void runs_text(const struct runs_set *s, struct text *out) {
    size_t width = 8, slower = 0;
    const char *unit = "";
    for (size_t i = 0; i < s->n_rows; i++) {
        const size_t w = utf8_width(s->rows[i].name);
        width = w > width ? (w > 40 ? 40 : w) : width;
        slower += runs_regressed(s, &s->rows[i]);
        if (s->rows[i].unit) unit = s->rows[i].unit;
    }
    text_printf(out, "%s%s%s over %zu %s%s%s", s->metric, *unit ? ", " : "", unit, s->n_runs,
                s->anchor ? "comparison" : "run", s->n_runs == 1 ? "" : "s",
                s->anchor ? ": new / anchor" : "");
    if (s->n_runs)
        text_printf(out, ", %.10s to %.10s", s->runs[0].created, s->runs[s->n_runs - 1].created);
    text_puts(out, "\n\n  row");
    text_pad(out, width + 4);
    text_puts(out, "runs   first      last       since anchor\n");
    for (size_t i = 0; i < s->n_rows; i++) put_row(s, &s->rows[i], width, out);
    struct text t = {0};
    text_printf(&t,
                "steps and drift of at least %g %% at p \xe2\x89\xa4 %g, %d runs a level at least",
                100 * s->tolerance, HISTORY_P, HISTORY_SEGMENT);
    text_wrap(out, 2, PAGE, t.data);
    text_puts(out, "\n");
    text_free(&t);
    text_notes(out, PAGE, (const char *const *)s->notes, s->n_notes);
    if (slower)
        text_printf(out, "%zu row%s slower\n", slower, slower == 1 ? "" : "s");
    else
        text_puts(out, "no row became slower\n");
}

struct tables *runs_plot(const struct runs_set *s) {
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "points"), *meta = tables_get(ts, "meta");
    static const char *const meta_keys[] = {"title", "question"};
    for (int i = 0; i < 2; i++) {
        const int64_t row = table_add(meta, 1);
        char title[200];
        snprintf(title, sizeof title, "%s over %zu runs", s->metric, s->n_runs);
        table_set_text(meta, row, "key", meta_keys[i]);
        table_set_text(meta, row, "value", title);
    }
    struct table *environment = tables_get(ts, "environment");
    const int64_t fact = table_add(environment, 1);
    table_set_text(environment, fact, "key", "cpu.model");
    table_set_text(environment, fact, "value", s->machine);
    table_column(t, "series", COL_I64, "", "");
    table_column(t, "run", COL_I64, "", "");
    table_column(t, "ratio", COL_F64, "", "");
    table_column(t, "step", COL_F64, "", "");
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct runs_row *r = &s->rows[i];
        for (size_t k = 0; k < r->n; k++) {
            const int64_t row = table_add(t, 1);
            table_set_text(t, row, "label", r->name);
            table_set_i64(t, row, "series", (int64_t)i + 1);
            table_set_i64(t, row, "run", (int64_t)r->run[k] + 1);
            table_set_f64(t, row, "ratio", exp(r->log[k] - r->log[0]));
            for (size_t j = 0; j < r->n_steps; j++)
                if (r->steps[j].at == k) table_set_f64(t, row, "step", exp(r->log[k] - r->log[0]));
        }
    }
    return ts;
}
