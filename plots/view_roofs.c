/* SPDX-License-Identifier: Apache-2.0 */
/* Roofs and what stands under them: the ceilings of this run, and every row or phase that has a
 * ledger and a time. */
#include "plots/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"
#include "results/summary.h"

/* One roof per distinct kind: the best round. Bandwidth: the largest working set is memory; the
 * fastest is a cache. */
static void add_roof(struct roof *list, int32_t *n, const char *name, double value) {
    for (int32_t i = 0; i < *n; i++)
        if (!strcmp(list[i].name, name)) {
            list[i].value = fmax(list[i].value, value);
            return;
        }
    if (*n < ROOFS_MOST) list[(*n)++] = (struct roof){name, value, false};
}

static void read_roofs(const struct tables *ts, struct roofs *v) {
    const struct table *c = tables_peek(ts, "ceilings");
    double memory, upper, cache = 0;
    int64_t cache_bytes = 0;
    summary_ceiling(ts, "bandwidth", "", &memory, &upper);
    for (int64_t i = 0; i < table_rows(c); i++) {
        const char *name = table_text(c, i, "name"), *type = table_text(c, i, "type");
        double value = table_real(c, i, "value");
        if (!(value > 0 && isfinite(value))) continue;
        if (!strcmp(name, "read") && value > cache) {
            cache = value;
            cache_bytes = table_int(c, i, "bytes");
        }
        if (strcmp(name, "fma") && strcmp(name, "gemm")) continue;
        add_roof(v->peak, &v->n_peaks, arena_printf(v->arena, "%s %s", name, type), value);
    }
    if (memory > 0) {
        v->bandwidth[v->n_bandwidths++] = (struct roof){"memory", memory, true};
        if (cache > 1.3 * memory) {
            char size[32];
            format_bytes_iec(size, sizeof size, (double)cache_bytes);
            v->bandwidth[v->n_bandwidths++] =
                (struct roof){arena_printf(v->arena, "cache (%s)", size), cache, false};
        }
    }
    int32_t best = -1;
    for (int32_t i = 0; i < v->n_peaks; i++)
        if (best < 0 || v->peak[i].value > v->peak[best].value) best = i;
    if (best >= 0) v->peak[best].main = true;
}

static void add_row(const struct tables *ts, struct roofs *v, int64_t point, const char *phase,
                    double flops, double bytes, double ms) {
    const struct table *points = tables_peek(ts, "points");
    const char *kase = table_text(points, point, "case");
    if (!(flops > 0 && bytes > 0 && ms > 0)) return;
    const char *group = *phase ? phase : *kase ? kase : table_text(points, point, "workload");
    v->row[v->n++] = (struct roof_row){arena_text(v->arena, group),
                                       arena_text(v->arena, table_text(points, point, "label")),
                                       flops / bytes, flops / (ms / 1e3)};
}

/* As the analysis does it: the phases of a row where it has several with a ledger and a time, else
 * the row. */
static void add_point(const struct tables *ts, struct roofs *v, int64_t point) {
    const struct table *phases = tables_peek(ts, "phases"), *points = tables_peek(ts, "points");
    const int64_t *of = table_see_i64(phases, "point");
    int32_t before = v->n, count = 0;
    for (int64_t i = 0; i < table_rows(phases); i++) count += of[i] == point;
    for (int64_t i = 0; count > 1 && i < table_rows(phases); i++) {
        char metric[120];
        if (of[i] != point) continue;
        snprintf(metric, sizeof metric, "%.100s_time", table_text(phases, i, "name"));
        add_row(ts, v, point, table_text(phases, i, "name"), table_real(phases, i, "flops"),
                table_real(phases, i, "bytes"), summary_get(ts, point, metric, "mean"));
    }
    if (v->n == before)
        add_row(ts, v, point, "", table_real(points, point, "flops"),
                table_real(points, point, "bytes"), summary_get(ts, point, "time", "mean"));
}

static int by_group(const void *a, const void *b) {
    const struct roof_row *p = a, *q = b;
    int c = strcmp(p->group, q->group);
    if (c) return c;
    return (p->intensity > q->intensity) - (p->intensity < q->intensity);
}

int roofs_read(const struct tables *ts, struct roofs *v, struct err *err) {
    const struct table *points = tables_peek(ts, "points"), *phases = tables_peek(ts, "phases");
    *v = (struct roofs){.arena = arena_create()};
    read_roofs(ts, v);
    if (!v->n_bandwidths || !v->n_peaks)
        return err_set(err, ERR_UNSUPPORTED, "no roofline plot: this run measured no %s",
                       v->n_bandwidths ? "peak" : "bandwidth");
    size_t most = (size_t)(table_rows(points) + table_rows(phases) + 1);
    v->row = arena_alloc(v->arena, most * sizeof *v->row);
    for (int64_t i = 0; i < table_rows(points); i++)
        if (rows_usable(ts, i) && strcmp(table_text(points, i, "workload"), "ceiling"))
            add_point(ts, v, i);
    if (!v->n)
        return err_set(err, ERR_UNSUPPORTED,
                       "no roofline plot: no row has FLOPs, bytes and a time");
    qsort(v->row, (size_t)v->n, sizeof *v->row, by_group);
    /* The axes hold all rows, and the ridge in sight. */
    double *x = arena_alloc(v->arena, ((size_t)v->n + 2) * sizeof *x);
    double *y = arena_alloc(v->arena, ((size_t)v->n + ROOFS_MOST) * sizeof *y), top = 0;
    for (int32_t i = 0; i < v->n; i++) x[i] = v->row[i].intensity, y[i] = v->row[i].rate;
    for (int32_t i = 0; i < v->n_peaks; i++)
        y[v->n + i] = v->peak[i].value, top = fmax(top, v->peak[i].value);
    x[v->n] = top / v->bandwidth[0].value * 4;
    x[v->n + 1] = top / v->bandwidth[0].value / 16;
    axis_fit(&v->x, x, (size_t)v->n + 2, true, false);
    axis_fit(&v->y, y, (size_t)v->n + (size_t)v->n_peaks, true, false);
    v->y.hi *= 1.5; /* room for the names of the roofs */
    return 0;
}

void roofs_free(struct roofs *v) {
    if (v->arena) arena_close(&v->arena);
}
