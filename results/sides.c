/* SPDX-License-Identifier: Apache-2.0 */
/* Matching the rows of two sides of stored results, and what stands between comparing them. */
#include "results/sides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/sides_parts.h"
#include "results/stats.h"
#include "results/summary.h"

static int by_cell(const void *a, const void *b) {
    return strcmp(((const struct cell_at *)a)->cell, ((const struct cell_at *)b)->cell);
}

static int64_t find(const struct matched_file *f, const char *cell) {
    const struct cell_at key = {cell, 0};
    const struct cell_at *at =
        f->n ? bsearch(&key, f->cells, (size_t)f->n, sizeof key, by_cell) : NULL;
    return at ? at->point : -1;
}

static const char *label_of(const struct tables *ts, int64_t point) {
    const struct table *t = tables_peek(ts, "points");
    const char *label = table_text(t, point, "label");
    return *label ? label : table_text(t, point, "workload");
}

static int open_file(struct matching *s, const struct sides_file *from, struct matched_file *f,
                     struct err *err) {
    const struct table *t = tables_peek(from->tables, "points");
    *f = (struct matched_file){.name = from->name, .tables = from->tables, .n = table_rows(t)};
    if (!f->n) return err_set(err, ERR_INPUT, "%s has no rows", f->name);
    f->cells = arena_alloc(s->arena, (size_t)f->n * sizeof *f->cells);
    for (int64_t i = 0; i < f->n; i++) {
        f->cells[i] = (struct cell_at){table_text(t, i, "cell"), i};
        if (!*f->cells[i].cell)
            return err_set(err, ERR_INPUT, "%s: row %lld ('%s') has no cell to be found by",
                           f->name, (long long)i, label_of(f->tables, i));
    }
    qsort(f->cells, (size_t)f->n, sizeof *f->cells, by_cell);
    for (int64_t i = 1; i < f->n; i++)
        if (!strcmp(f->cells[i].cell, f->cells[i - 1].cell))
            return err_set(err, ERR_INPUT, "%s has the row '%s' twice", f->name,
                           label_of(f->tables, f->cells[i].point));
    rounds_read(f->tables, s->metric, &f->rounds);
    return 0;
}

/* --- the metric --- */

void sides_known_metrics(const struct tables *ts, const char *metric, struct text *out) {
    const struct table *t = tables_peek(ts, "summary");
    const char **names = must_alloc(((size_t)table_rows(t) + 1) * sizeof *names);
    struct text list = {0};
    size_t n = 0;
    for (int64_t i = 0; i < table_rows(t); i++) {
        const char *name = table_text(t, i, "metric");
        if (list.len && text_has_word(list.data, name, strlen(name))) continue;
        text_printf(&list, "%s%s", list.len ? " " : "", name);
        names[n++] = name;
    }
    const char *near = text_nearest(metric, names, n);
    if (near) text_printf(out, "; did you mean '%s'?", near);
    text_printf(out, " (it has: %s)", list.len ? list.data : "none");
    text_free(&list);
    free(names);
}

static bool has_metric(const struct matched_file *f, const char *metric) {
    if (f->rounds.n) return true;
    for (int64_t i = 0; i < f->n; i++)
        if (isfinite(rows_metric(f->tables, i, metric))) return true;
    return false;
}

static bool any_usable(const struct matched_file *f) {
    for (int64_t i = 0; i < f->n; i++)
        if (rows_usable(f->tables, i)) return true;
    return false;
}

static bool is_theory(const struct matched_file *f) {
    const struct table *t = tables_peek(f->tables, "points");
    for (int64_t i = 0; i < f->n; i++)
        if (strcmp(table_text(t, i, "basis"), "theory") != 0) return false;
    return f->n > 0;
}

static int check_metric(struct matching *s, struct err *err) {
    const struct matched_file *files[] = {s->old, s->new};
    const size_t counts[] = {s->sides->n_old, s->sides->n_new};
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            const struct matched_file *f = &files[side][i];
            struct text known = {0};
            /* where every row failed the rows say so; formulas have exact numbers and no times */
            if (has_metric(f, s->metric) || !any_usable(f)) continue;
            if (is_theory(f) && !strcmp(s->metric, "time")) continue;
            sides_known_metrics(f->tables, s->metric, &known);
            err_set(err, ERR_INPUT, "%s has no metric '%.60s'%s", f->name, s->metric, known.data);
            text_free(&known);
            return ERR_INPUT;
        }
    }
    s->better = sides_better(s->new[0].tables, s->metric);
    if (!strcmp(s->metric, "time")) s->better = BETTER_LOWER;
    if (s->better == BETTER_NONE && s->gate->settings.direction == GATE_AUTO)
        return err_set(err, ERR_INPUT,
                       "'%s' has no better direction: set gate.direction to lower or higher",
                       s->metric);
    return 0;
}

/* --- rows --- */

static int severity(const char *state) {
    static const char *const order[] = {"ok",      "degraded", "implausible", "wrong",
                                        "skipped", "oom",      "timeout",     "failed"};
    for (int i = 0; i < 8; i++)
        if (!strcmp(state, order[i])) return i;
    return 8;
}

struct gathered { /* one row over the files of one side */
    struct gate_side side;
    const char *state, *reason, *unit, *effective;
    struct text flags;
    double value; /* mean over the runs */
    size_t present;
    const char *absent_in;
};

/* Adds the words of a list that are not there yet. */
static void add_words(struct text *to, const char *list) {
    for (const char *at = list; *at;) {
        const size_t len = strcspn(at, " ");
        if (len && !text_has_word(to->data, at, len))
            text_printf(to, "%s%.*s", to->len ? " " : "", (int)len, at);
        at += len + (at[len] == ' ');
    }
}

static void gather(struct matching *s, const struct matched_file *files, size_t n, const char *cell,
                   struct gathered *g) {
    double sum = 0;
    size_t values = 0;
    *g = (struct gathered){.state = "", .reason = "", .unit = NULL, .effective = "", .value = NAN};
    text_add(&g->flags, "", 0);
    for (size_t i = 0; i < n; i++) {
        const struct matched_file *f = &files[i];
        const int64_t point = find(f, cell);
        if (point < 0) {
            g->absent_in = f->name;
            continue;
        }
        const struct table *t = tables_peek(f->tables, "points");
        const char *state = table_text(t, point, "state"), *flags = table_text(t, point, "flags");
        g->present++;
        if (!*state) state = "skipped"; /* planned, and never visited */
        if (!*g->state || severity(state) > severity(g->state)) {
            g->state = state;
            g->reason = table_text(t, point, "reason");
        }
        add_words(&g->flags, flags);
        g->effective = table_text(t, point, "effective");
        if (!rows_usable(f->tables, point)) continue;
        if (!g->unit) g->unit = rows_unit(f->tables, s->metric);
        double *v = must_alloc((size_t)(f->rounds.n_rounds + 1) * sizeof *v);
        size_t m = 0;
        for (int64_t k = 0; k < f->rounds.n_rounds; k++) {
            v[m] = rounds_get(&f->rounds, point, f->rounds.rounds[k]);
            m += isfinite(v[m]);
        }
        gate_side_add(&g->side, v, m);
        const double mean = m ? stats_mean(v, m) : rows_metric(f->tables, point, s->metric);
        const double stored = summary_get(f->tables, point, s->metric, "mean");
        if (m && isfinite(stored) && fabs(mean - stored) > 1e-6 * fabs(stored))
            gate_note(s->gate, "%s: the stored %s of '%s' is not what its samples give", f->name,
                      s->metric, label_of(f->tables, point));
        if (isfinite(mean)) sum += mean, values++;
        free(v);
    }
    if (values) g->value = sum / (double)values;
}

/* ---- exact metrics: what must be the same to the last unit */

struct exact {
    const char *metric, *unit;
    enum better better;
    double value; /* NAN: not there, or it varies within a run */
};

/* The value of all runs, if it is one. */
static double exact_value(const struct matched_file *files, size_t n, const char *cell,
                          const char *metric) {
    double value = (double)NAN;
    for (size_t i = 0; i < n; i++) {
        const int64_t point = find(&files[i], cell);
        if (point < 0 || !rows_usable(files[i].tables, point)) return (double)NAN;
        const double lo = summary_get(files[i].tables, point, metric, "min");
        const double hi = summary_get(files[i].tables, point, metric, "max");
        double v = lo;
        if (lo < hi) return (double)NAN;
        if (isnan(lo)) v = table_real(tables_peek(files[i].tables, "points"), point, metric);
        if (isnan(v) || (i && (v < value || v > value))) return (double)NAN;
        value = v;
    }
    return value;
}

static void exact_row(struct matching *s, const struct gate_row *of, const char *metric,
                      const char *unit, enum better better) {
    struct text name = {0};
    const double a = exact_value(s->old, s->sides->n_old, of->cell, metric);
    const double b = exact_value(s->new, s->sides->n_new, of->cell, metric);
    if (isnan(a) || isnan(b)) return; /* a number that varies is no exact one */
    if (a <= b && a >= b) {
        s->gate->n_equal++;
        return;
    }
    text_printf(&name, "%s %s", of->name, metric);
    gate_add(s->gate, &(struct gate_row){.name = name.data,
                                         .cell = of->cell,
                                         .metric = metric,
                                         .unit = unit,
                                         .better = better,
                                         .exact = true,
                                         .in_old = true,
                                         .in_new = true,
                                         .incomparable = "",
                                         .old_value = a,
                                         .new_value = b});
    text_free(&name);
}

static void exact_rows(struct matching *s, const struct gate_row *of) {
    const struct table *t = tables_peek(s->new[0].tables, "metrics");
    exact_row(s, of, "flops", "FLOP", BETTER_LOWER);
    exact_row(s, of, "bytes", "byte", BETTER_LOWER);
    exact_row(s, of, "peak_bytes", "byte", BETTER_LOWER);
    exact_row(s, of, "n_out", "token", BETTER_NONE);
    for (int64_t i = 0; i < table_rows(t); i++)
        if (table_int(t, i, "exact") == 1)
            exact_row(s, of, table_text(t, i, "name"), table_text(t, i, "unit"),
                      sides_better(s->new[0].tables, table_text(t, i, "name")));
}

/* ---- the spread between runs, from a history */

static void from_history(struct matching *s, const char *cell, struct gate_row *row) {
    struct gathered g;
    gather(s, s->history, s->sides->n_history, cell, &g);
    if (g.side.runs >= SIDES_DAYS && g.side.between > 0) {
        row->between = g.side.between;
        row->between_df = (double)(g.side.runs - 1);
    }
    text_free(&g.flags);
}

static size_t days_of(const struct sides *s) {
    size_t days = 0;
    for (size_t i = 0; i < s->n_history; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = !strncmp(tables_meta(s->history[i].tables, "created"),
                            tables_meta(s->history[k].tables, "created"), 10);
        days += !seen;
    }
    return days;
}

static void add_cell(struct matching *s, const char *cell, const struct matched_file *from,
                     int64_t point) {
    const struct table *t = tables_peek(from->tables, "points");
    struct gathered a, b;
    struct text name = {0}, why = {0};
    gather(s, s->old, s->sides->n_old, cell, &a);
    gather(s, s->new, s->sides->n_new, cell, &b);
    const char *case_name = table_text(t, point, "case");
    text_printf(&name, "%s%s%s", case_name, *case_name ? " " : "", label_of(from->tables, point));
    struct gate_row row = {.name = name.data,
                           .cell = cell,
                           .metric = s->metric,
                           .unit = b.unit   ? b.unit
                                   : a.unit ? a.unit
                                            : "",
                           .better = s->better,
                           .in_old = a.present > 0,
                           .in_new = b.present > 0,
                           .incomparable = s->differ,
                           .old_value = a.value,
                           .new_value = b.value,
                           .old_side = a.side,
                           .new_side = b.side};
    const struct gathered *worst = severity(b.state) >= severity(a.state) ? &b : &a;
    row.state = a.present && b.present ? worst->state : "";
    if (severity(worst->state) > 1 && a.present && b.present)
        text_printf(&why, "%s: %s", worst == &b ? "new" : "old",
                    *worst->reason ? worst->reason : "no reason is stored");
    if (a.present && b.present && (a.absent_in || b.absent_in)) {
        row.state = "missing";
        text_printf(&why, "%s%s has no such row", why.len ? "; " : "",
                    b.absent_in ? b.absent_in : a.absent_in);
    } else if (a.unit && b.unit && strcmp(a.unit, b.unit)) {
        row.state = "unit changed";
        text_printf(&why, "%s was in '%s' and is in '%s'", s->metric, a.unit, b.unit);
    }
    if (a.present && b.present && strcmp(a.effective, b.effective))
        text_printf(&why, "%sran as %s, now as %s", why.len ? "; " : "", a.effective, b.effective);
    row.why = why.len ? why.data : "";
    struct text flags = {0};
    text_add(&flags, "", 0);
    add_words(&flags, a.flags.data);
    add_words(&flags, b.flags.data);
    row.flags = flags.data;
    if (s->sides->n_history) from_history(s, cell, &row);
    if (!(row.between > 0)) sides_from_sittings(s, cell, &row);
    if (a.side.runs && b.side.runs && !(row.between > 0)) s->n_unknown++;
    const bool comparable = a.present && b.present && !*s->differ;
    const size_t before = s->gate->n_equal + s->gate->n_rows;
    /* What ran once, or follows from formulas, has exact numbers and no time. */
    const bool timeless = comparable && !strcmp(s->metric, "time") && severity(row.state) <= 1 &&
                          isnan(a.value) && isnan(b.value);
    if (timeless) exact_rows(s, &row);
    if (timeless && s->gate->n_equal + s->gate->n_rows > before) {
        s->n_timeless++;
    } else {
        gate_add(s->gate, &row);
        if (comparable && !timeless) exact_rows(s, &row);
    }
    text_free(&flags);
    text_free(&name);
    text_free(&why);
    text_free(&a.flags);
    text_free(&b.flags);
}

/* Whether an earlier file of either side has brought this cell already. */
static bool seen_before(const struct matching *s, int side, size_t file, const char *cell) {
    for (size_t i = 0; i < (side ? s->sides->n_old : file); i++)
        if (find(&s->old[i], cell) >= 0) return true;
    for (size_t i = 0; side && i < file; i++)
        if (find(&s->new[i], cell) >= 0) return true;
    return false;
}

static void say_timeless(struct matching *s) {
    if (s->n_timeless)
        gate_note(s->gate,
                  "%zu row%s no times, as formulas have none: their exact numbers are judged, "
                  "another by --metric NAME",
                  s->n_timeless, s->n_timeless == 1 ? " has" : "s have");
}

/* A history or a calibration of another protocol knows other rows. */
static void say_unknown(struct matching *s) {
    const bool history = s->sides->n_history > 0;
    if (!s->n_unknown || (!history && s->n_sittings < SIDES_SITTINGS)) return;
    gate_note(s->gate, "%zu row%s too few %s for a spread between runs", s->n_unknown,
              s->n_unknown == 1 ? " is in" : "s are in",
              history ? "runs of the history" : "sittings of the calibration");
}

static void add_rows(struct matching *s) {
    const char *where = s->gate->settings.rows;
    size_t there = 0;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < (side ? s->sides->n_new : s->sides->n_old); i++) {
            const struct matched_file *f = side ? &s->new[i] : &s->old[i];
            for (int64_t p = 0; p < f->n; p++) { /* in declared order */
                const char *cell = table_text(tables_peek(f->tables, "points"), p, "cell");
                if (seen_before(s, side, i, cell)) continue;
                there++;
                if (!*where || rows_match(f->tables, p, where)) add_cell(s, cell, f, p);
            }
        }
    }
    if (s->gate->n_rows || s->n_timeless) return;
    struct text list = {0};
    rows_none(s->old[0].tables, (int64_t)there, where, &list);
    gate_note(s->gate, "%s", list.data);
    text_free(&list);
}

static int open_files(struct matching *s, const struct sides_file *from, size_t n,
                      struct matched_file **to, struct err *err) {
    *to = arena_alloc(s->arena, (n + 1) * sizeof **to);
    for (size_t i = 0; i < n; i++) {
        int code = open_file(s, &from[i], &(*to)[i], err);
        if (code) return code;
    }
    return 0;
}

static void close_files(struct matched_file *files, size_t n) {
    for (size_t i = 0; files && i < n; i++) rounds_free(&files[i].rounds);
}

static const char *names_of(struct gate *g, const struct sides_file *files, size_t n) {
    struct text t = {0};
    for (size_t i = 0; i < n; i++) text_printf(&t, "%s%s", i ? ", " : "", files[i].name);
    const char *kept = arena_text(g->arena, t.data);
    text_free(&t);
    return kept;
}

int sides_gate(const struct sides *sides, struct gate *g, struct err *err) {
    struct matching s = {.sides = sides, .gate = g, .arena = arena_create()};
    int code;
    s.metric = *g->settings.metric ? g->settings.metric : "time";
    s.differ = arena_text(s.arena, "");
    g->old_name = names_of(g, sides->old, sides->n_old);
    g->new_name = names_of(g, sides->new, sides->n_new);
    g->title = arena_text(g->arena, tables_meta(sides->new[0].tables, "title"));
    g->question = arena_text(g->arena, tables_meta(sides->new[0].tables, "question"));
    code = open_files(&s, sides->old, sides->n_old, &s.old, err);
    if (!code) code = open_files(&s, sides->new, sides->n_new, &s.new, err);
    if (!code) code = open_files(&s, sides->history, sides->n_history, &s.history, err);
    if (!code) code = check_metric(&s, err);
    if (!code) {
        const size_t days = days_of(sides);
        if (sides->n_history && days < SIDES_DAYS) {
            gate_note(g, "the history is of %zu day%s; %d are needed for a spread between runs",
                      days, days == 1 ? "" : "s", SIDES_DAYS);
            close_files(s.history, sides->n_history);
            s.history = NULL;
        }
        struct sides use = *sides;
        if (!s.history || days < SIDES_DAYS) use.n_history = 0;
        s.sides = &use;
        if (!strcmp(s.metric, "time")) sides_open_sittings(&s);
        sides_compare_facts(&s);
        add_rows(&s);
        say_unknown(&s);
        say_timeless(&s);
        gate_judge(g);
        s.sides = sides;
    }
    close_files(s.old, sides->n_old);
    close_files(s.new, sides->n_new);
    close_files(s.history, sides->n_history);
    arena_close(&s.arena);
    return code;
}
