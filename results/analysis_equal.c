/* SPDX-License-Identifier: Apache-2.0 */
/* Exact equalities: a metric is the same in all rows (E10), two metrics agree in every row (E09),
 * or a metric has the value that somebody else computed (E20). */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"

struct equal_params {
    const char *metric, *with, *value, *source, *where, *by;
    double tolerance;
};

/* A cell of points may be text (output_hash): then texts are compared. */
struct cell {
    struct text text;
    double number;
};

static void cell_read(const struct tables *ts, int64_t point, const char *metric, struct cell *c) {
    const struct table *points = tables_peek(ts, "points");
    int column = table_find(points, metric);
    c->text.len = 0;
    c->number = rows_metric(ts, point, metric);
    if (column >= 0 && table_column_at(points, (size_t)column)->type == COL_TEXT) {
        table_cell(points, point, (size_t)column, &c->text);
    } else if (isfinite(c->number)) {
        char buf[40];
        text_puts(&c->text, format_exact(buf, sizeof buf, c->number));
    }
}

static bool cells_equal(const struct cell *a, const struct cell *b, double tolerance) {
    if (isfinite(a->number) && isfinite(b->number))
        return fabs(a->number - b->number) <= tolerance * fmax(fabs(a->number), fabs(b->number));
    return a->text.len == b->text.len && a->text.len &&
           !memcmp(a->text.data, b->text.data, a->text.len);
}

static void group_name(const struct tables *ts, int64_t point, const char *by, struct text *t) {
    char key[128];
    t->len = 0;
    for (const char *at = by; *at;) {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", ");
        if (!n) break;
        snprintf(key, sizeof key, "%.*s", (int)(n < 127 ? n : 127), at);
        if (t->len) text_puts(t, " ");
        rows_key_text(ts, point, key, t);
        at += n;
    }
}

/* The first row of each group that has a value: what the others are compared with. */
struct firsts {
    struct first {
        const char *group, *label;
        struct cell cell;
    } * v;
    size_t n, room;
    struct arena *arena;
};

static struct first *first_of(struct firsts *f, const char *group) {
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->v[i].group, group)) return &f->v[i];
    return NULL;
}

static void first_add(struct firsts *f, const char *group, const char *label,
                      const struct cell *c) {
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 8;
        f->v = must_realloc(f->v, f->room * sizeof *f->v);
    }
    struct first *new = &f->v[f->n++];
    *new = (struct first){arena_text(f->arena, group), label, {{0}, c->number}};
    text_puts(&new->cell.text, c->text.data);
}

static void firsts_free(struct firsts *f) {
    for (size_t i = 0; i < f->n; i++) text_free(&f->v[i].cell.text);
    free(f->v);
    arena_close(&f->arena);
}

struct tally {
    int64_t compared, wrong, empty;
    struct text why;
};

static void compare(struct tally *t, const struct cell *a, const char *a_is, const struct cell *b,
                    const char *b_is, double tolerance) {
    t->compared++;
    if (cells_equal(a, b, tolerance)) return;
    if (!t->wrong++)
        text_printf(&t->why, "%s has %s, %s has %s", a_is, a->text.data, b_is, b->text.data);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct equal_params *p = params;
    const struct table *points = tables_peek(ts, "points");
    struct firsts firsts = {.arena = arena_create()};
    struct cell a = {{0}, NAN}, b = {{0}, NAN};
    struct text name = {0}, group = {0};
    struct tally tally = {0};
    double value = NAN;
    (void)err;
    const bool given = *p->value && !*p->with;
    if (given) {
        text_puts(&b.text, p->value);
        if (!parse_f64(p->value, &b.number)) b.number = (double)NAN;
    }
    for (int64_t i = 0; i < table_rows(points); i++) {
        const char *label = table_text(points, i, "label");
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_usable(ts, i) || !rows_match(ts, i, p->where)) continue;
        cell_read(ts, i, p->metric, &a);
        if (*p->with) cell_read(ts, i, p->with, &b);
        if (!a.text.len || (*p->with && !b.text.len)) {
            tally.empty++;
            continue;
        }
        value = a.number;
        if (given) {
            compare(&tally, &a, label, &b, *p->source ? p->source : "the protocol", p->tolerance);
            continue;
        }
        if (*p->with) {
            compare(&tally, &a, label, &b, p->with, p->tolerance);
            continue;
        }
        group_name(ts, i, p->by, &group);
        const struct first *first = first_of(&firsts, group.len ? group.data : "");
        if (first)
            compare(&tally, &a, label, &first->cell, first->label, p->tolerance);
        else
            first_add(&firsts, group.len ? group.data : "", label, &a);
    }
    if (*p->with)
        text_printf(&name, "%s = %s", p->metric, p->with);
    else if (given)
        text_printf(&name, "%s = %s%s%s", p->metric, p->value, *p->where ? ", " : "", p->where);
    else
        text_printf(&name, "%s equal in all rows", p->metric);
    struct finding f = {"equal", only_case, name.data, NAN, NAN, NAN, rows_unit(ts, p->metric),
                        NULL};
    if (tally.compared) f.verdict = tally.wrong ? "failed" : "ok";
    /* else there is no one value */
    bool one = !given && (*p->with ? tally.compared == 1 : firsts.n < 2);
    if (tally.compared && !tally.wrong && one) f.value = value;
    if (!tally.compared)
        analysis_found(ts, &f, "not compared: %lld rows lack a value, the others are too few",
                       (long long)tally.empty);
    else if (tally.wrong)
        analysis_found(ts, &f, "%lld of %lld comparisons differ: %s", (long long)tally.wrong,
                       (long long)tally.compared, tally.why.data);
    else
        analysis_found(ts, &f, "%lld of %lld comparisons hold%s%s%s", (long long)tally.compared,
                       (long long)tally.compared, tally.empty ? "; some rows lack a value" : "",
                       given && *p->source ? "; " : "", given ? p->source : "");
    firsts_free(&firsts);
    text_free(&a.text);
    text_free(&b.text);
    text_free(&name);
    text_free(&group);
    text_free(&tally.why);
    return 0;
}

#define TEXT(key, def, help)                                                                       \
    { #key, NULL, OPT_TEXT, 0, offsetof(struct equal_params, key), def, 0, 0, NULL, "", help }
static const struct option options[] = {
    TEXT(metric, NULL, "an exact metric, or a column of points"),
    TEXT(with, "", "the metric that must equal it in every row; empty: all rows are compared"),
    TEXT(value, "", "what it must be in every row, as another program or a sheet of paper has it"),
    TEXT(source, "", "where that value comes from"),
    TEXT(where, "", "only rows that meet this condition"),
    TEXT(by, "", "keys: rows are compared only within equal values of these"),
    {"tolerance", NULL, OPT_REAL, 0, offsetof(struct equal_params, tolerance), "0", 0, 1, NULL, "",
     "relative difference that still counts as equal"},
    {0},
};

const struct analysis analysis_equal = {
    .name = "equal",
    .brief = "a metric is the same in all rows, or equals another one or a given value in each",
    .params = options,
    .params_size = sizeof(struct equal_params),
    .run = run,
};
