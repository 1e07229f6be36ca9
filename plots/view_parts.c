/* SPDX-License-Identifier: Apache-2.0 */
/* Divided rows: the times of their parts, small ones together, and the undivided row beside each.
 */
#include "plots/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"
#include "results/summary.h"

enum { NAMES_MOST = 16 };
#define SMALL 0.02 /* parts below that share in every row are drawn as one */

struct part {
    const char *name;
    double largest; /* share in any row */
};

/* "context=64", "context=256" are called 64 and 256 along an axis `context`. */
static void name_rows(struct shares *v) {
    const size_t n = strcspn(v->row[0].label, "=");
    v->x_name = "";
    for (int32_t i = 0; i < v->n; i++) {
        const char *label = v->row[i].label;
        if (strchr(label, ' ') || strcspn(label, "=") != n || !label[n] ||
            strncmp(label, v->row[0].label, n))
            return;
    }
    v->x_name = arena_textn(v->arena, v->row[0].label, n);
    for (int32_t i = 0; i < v->n; i++) v->row[i].label += n + 1;
}

static double part_ms(const struct tables *ts, int64_t point, const char *name) {
    char metric[120];
    snprintf(metric, sizeof metric, "%.100s_time", name);
    return summary_get(ts, point, metric, "mean");
}

static double sum_of(const struct tables *ts, int64_t point, const struct part *parts, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double ms = part_ms(ts, point, parts[i].name);
        sum += ms >= 0 ? ms : 0;
    }
    return sum;
}

static int by_size(const void *a, const void *b) {
    const double x = ((const struct part *)a)->largest, y = ((const struct part *)b)->largest;
    return (x < y) - (x > y);
}

/* All timed phases of the rows, largest first. */
static int find_parts(const struct tables *ts, const int64_t *rows, int64_t n_rows,
                      struct part *parts) {
    const struct table *phases = tables_peek(ts, "phases");
    int n = 0;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < table_rows(phases) && n < NAMES_MOST; i++) {
            const char *name = table_text(phases, i, "name");
            bool seen = table_int(phases, i, "point") != rows[r];
            for (int k = 0; k < n && !seen; k++) seen = !strcmp(parts[k].name, name);
            if (!seen && part_ms(ts, rows[r], name) >= 0) parts[n++] = (struct part){name, 0};
        }
    for (int64_t r = 0; r < n_rows; r++) {
        const double sum = sum_of(ts, rows[r], parts, n);
        for (int k = 0; k < n; k++) {
            const double share = part_ms(ts, rows[r], parts[k].name) / sum;
            if (share > parts[k].largest) parts[k].largest = share;
        }
    }
    if (n) qsort(parts, (size_t)n, sizeof *parts, by_size);
    return n;
}

/* How many are drawn by name. */
static int32_t named_parts(const struct part *parts, int n) {
    int32_t named = 0;
    while (named < n && named < PARTS_MOST && parts[named].largest >= SMALL) named++;
    if (named < n && named == PARTS_MOST) named--; /* room for the rest */
    return named;
}

static void read_row(const struct tables *ts, int64_t point, const struct part *parts, int n,
                     int32_t named, struct shares_row *row) {
    for (int k = 0; k < n; k++) {
        const double ms = part_ms(ts, point, parts[k].name);
        if (!(ms >= 0)) continue;
        row->ms[k < named ? k : named] += ms;
        row->sum += ms;
    }
}

static void read_whole(const struct tables *ts, int64_t point, const char *at, const char *over,
                       struct shares_row *row) {
    row->whole = row->whole_lo = row->whole_hi = (double)NAN;
    for (int64_t k = 0; k < table_rows(tables_peek(ts, "points")) && *over; k++) {
        if (k == point || !rows_match(ts, k, over) || !rows_pair(ts, point, k, at, over)) continue;
        row->whole = rows_metric(ts, k, "time");
        const double lo = summary_get(ts, k, "time", "ci_lo"),
                     hi = summary_get(ts, k, "time", "ci_hi");
        row->whole_lo = isfinite(lo) ? lo : row->whole;
        row->whole_hi = isfinite(hi) ? hi : row->whole;
        return;
    }
}

static void scale(struct shares *v) {
    double most = 0;
    for (int32_t i = 0; i < v->n; i++) most = fmax(most, v->row[i].sum);
    const double unit = most >= 1e4 ? 1e-3 : most < 0.1 ? 1e3 : 1;
    v->t_unit = most >= 1e4 ? "s" : most < 0.1 ? "\xc2\xb5s" : "ms";
    double *y = arena_alloc(v->arena, (2 * (size_t)v->n + 1) * sizeof *y);
    for (int32_t i = 0; i < v->n; i++) {
        struct shares_row *row = &v->row[i];
        for (int32_t k = 0; k < v->n_parts; k++) row->ms[k] *= unit;
        row->sum *= unit, row->whole *= unit, row->whole_lo *= unit, row->whole_hi *= unit;
        y[2 * i] = row->sum;
        y[2 * i + 1] = row->whole_hi;
    }
    axis_fit(&v->y, y, 2 * (size_t)v->n, false, true);
}

int shares_read(const struct tables *ts, struct shares *v, struct err *err) {
    const int64_t number = declared_analysis(ts, "parts"),
                  n = table_rows(tables_peek(ts, "points"));
    const char *at = declared_key(ts, number, "at"), *over = declared_key(ts, number, "over");
    const char *only_case = declared_key(ts, number, "case");
    struct part parts[NAMES_MOST];
    *v = (struct shares){.arena = arena_create()};
    if (!*at) at = "workload.split=parts";
    if (!*over) over = "workload.split=whole";
    int64_t *rows = arena_alloc(v->arena, (size_t)(n + 1) * sizeof *rows), n_rows = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *kase = table_text(tables_peek(ts, "points"), i, "case");
        if (*only_case && strcmp(only_case, kase)) continue;
        if (rows_match(ts, i, at) && rows_usable(ts, i)) rows[n_rows++] = i;
    }
    const int n_parts = find_parts(ts, rows, n_rows, parts);
    if (n_parts < 2)
        return err_set(err, ERR_UNSUPPORTED, "no parts plot: no row is divided into timed parts");
    const int32_t named = named_parts(parts, n_parts);
    v->n_parts = named < n_parts ? named + 1 : named;
    for (int32_t k = 0; k < named; k++) v->part[k] = arena_text(v->arena, parts[k].name);
    if (named < n_parts) v->part[named] = "other";
    v->row = arena_alloc(v->arena, (size_t)n_rows * sizeof *v->row);
    for (int64_t i = 0; i < n_rows; i++) {
        struct shares_row *row = &v->row[v->n++];
        struct text label = {0};
        rows_label(ts, rows[i], at, &label);
        row->label = arena_text(v->arena, label.len ? label.data : "all");
        text_free(&label);
        read_row(ts, rows[i], parts, n_parts, named, row);
        read_whole(ts, rows[i], at, over, row);
    }
    name_rows(v);
    scale(v);
    return 0;
}

void shares_free(struct shares *v) {
    if (v->arena) arena_close(&v->arena);
}
