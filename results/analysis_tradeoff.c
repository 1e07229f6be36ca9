/* SPDX-License-Identifier: Apache-2.0 */
/* What is lost against what is gained, row by row: quality beside speed (R24). */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/rows.h"
#include "results/summary.h"

struct tradeoff_params {
    const char *x, *y, *by, *also;
};

#define NUM(v) rows_number((char[32]){0}, v, 4)

/* 1: more of it is better, -1: less, 0: neither, as the metric declares. */
static int better(const struct tables *ts, const char *metric) {
    const struct table *t = tables_peek(ts, "metrics");
    const char *colon = strchr(metric, ':');
    if (colon) metric = colon + 1;
    if (rows_is_rate(rows_unit(ts, metric))) return 1;
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (strcmp(table_text(t, i, "name"), metric)) continue;
        const char *word = table_text(t, i, "better");
        return !strcmp(word, "higher") ? 1 : !strcmp(word, "lower") ? -1 : 0;
    }
    return 0;
}

static void add_number(const struct tables *ts, int64_t point, const char *metric, struct text *t) {
    const double v = rows_metric(ts, point, metric), lo = summary_get(ts, point, metric, "ci_lo"),
                 hi = summary_get(ts, point, metric, "ci_hi");
    const char *unit = rows_unit(ts, metric);
    if (!isfinite(v)) return;
    text_printf(t, "%s%s %s", t->len ? "; " : "", rows_short(metric), NUM(v));
    if (isfinite(lo) && isfinite(hi)) text_printf(t, " [%s, %s]", NUM(lo), NUM(hi));
    if (*unit && strcmp(unit, "1")) text_printf(t, " %s", unit);
}

struct chosen { /* rows that have both numbers */
    const struct rows_group *g;
    double x, y;
};

/* Whether two rows agree in what is swept of their workload: else they were asked other things. */
static bool asked_alike(const struct tables *ts, int64_t a, int64_t b) {
    const struct table *points = tables_peek(ts, "points");
    struct text x = {0}, y = {0};
    bool same = true;
    for (size_t c = 0; same && c < table_columns(points); c++) {
        if (!rows_swept(ts, c) || strncmp(table_column_at(points, c)->name, "workload.", 9))
            continue;
        x.len = y.len = 0;
        table_cell(points, a, c, &x);
        table_cell(points, b, c, &y);
        same = x.len == y.len && (!x.len || !memcmp(x.data, y.data, x.len));
    }
    text_free(&x);
    text_free(&y);
    return same;
}

/* A row of the same kind that is better in one and no worse in the other, or NULL. */
static const struct rows_group *beaten_by(const struct tables *ts, const struct chosen *all,
                                          int32_t n, int32_t i, int better_x, int better_y) {
    if (!better_x || !better_y) return NULL;
    for (int32_t k = 0; k < n; k++) {
        if (!asked_alike(ts, all[i].g->point[0], all[k].g->point[0])) continue;
        const double dx = better_x * (all[k].x - all[i].x), dy = better_y * (all[k].y - all[i].y);
        if (dx >= 0 && dy >= 0 && (dx > 0 || dy > 0)) return all[k].g;
    }
    return NULL;
}

static void write_row(struct tables *ts, const char *only_case, const struct tradeoff_params *p,
                      const struct chosen *all, int32_t n, int32_t i, int better_x, int better_y) {
    const int64_t point = all[i].g->point[0];
    struct text t = {0};
    struct finding f = {"tradeoff",
                        only_case,
                        *all[i].g->name ? all[i].g->name : rows_short(p->y),
                        all[i].y,
                        summary_get(ts, point, p->y, "ci_lo"),
                        summary_get(ts, point, p->y, "ci_hi"),
                        rows_unit(ts, p->y),
                        NULL};
    add_number(ts, point, p->x, &t);
    for (const char *at = p->also; *at;) {
        char metric[100];
        at += strspn(at, ", ");
        const size_t len = strcspn(at, ", ");
        snprintf(metric, sizeof metric, "%.*s", (int)(len < 99 ? len : 99), at);
        if (len) add_number(ts, point, metric, &t);
        at += len;
    }
    const struct rows_group *by = beaten_by(ts, all, n, i, better_x, better_y);
    if (by) text_printf(&t, "; %s is better in both", *by->name ? by->name : "another row");
    analysis_found(ts, &f, "%s", t.data);
    text_free(&t);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct tradeoff_params *p = params;
    struct rows rows;
    struct chosen all[256];
    int32_t n = 0;
    (void)err;
    rows_gather(ts, only_case, p->x, p->by, &rows);
    for (int32_t g = 0; g < rows.n_groups && n < 256; g++) {
        const double y = rows_metric(ts, rows.groups[g].point[0], p->y);
        if (isfinite(y)) all[n++] = (struct chosen){&rows.groups[g], rows.groups[g].x[0], y};
    }
    const char *left_out = rows.left_out.len ? rows.left_out.data : "";
    struct finding none = {"tradeoff", only_case, rows_short(p->y), NAN, NAN, NAN, "", NULL};
    if (!n)
        analysis_found(ts, &none, "not computed: no row has both %s and %s%s%s", p->y, p->x,
                       *left_out ? "; left out: " : "", left_out);
    else if (*left_out)
        analysis_found(ts, &none, "left out: %s", left_out);
    const int better_x = better(ts, p->x), better_y = better(ts, p->y);
    for (int32_t i = 0; i < n; i++) write_row(ts, only_case, p, all, n, i, better_x, better_y);
    rows_free(&rows);
    return 0;
}

#define TEXT(key, def, help)                                                                       \
    { #key, NULL, OPT_TEXT, 0, offsetof(struct tradeoff_params, key), def, 0, 0, NULL, "", help }
static const struct option options[] = {
    TEXT(x, NULL,
         "metric, across: 'CASE:METRIC' is that of the row of another case which agrees in every "
         "swept key"),
    TEXT(y, NULL, "metric, up, drawn with its interval"),
    TEXT(by, NULL, "swept keys whose values name the points"),
    TEXT(also, "", "further metrics that are printed beside them"),
    {0},
};

const struct analysis analysis_tradeoff = {
    .name = "tradeoff",
    .brief = "one metric against another, a point a row: quality against speed",
    .params = options,
    .params_size = sizeof(struct tradeoff_params),
    .run = run,
};
