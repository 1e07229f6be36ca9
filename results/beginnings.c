/* SPDX-License-Identifier: Apache-2.0 */
/* Warm-ups and samples of a visit, one after the other. */
#include "results/beginnings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/rows.h"
#include "results/stats.h"

enum { EXECUTIONS_MOST = 100000, LABEL_FAILED = 8 };

static int by_point(const void *a, const void *b) {
    const struct beginning *p = a, *q = b;
    if (p->point != q->point) return p->point < q->point ? -1 : 1;
    return (p->round > q->round) - (p->round < q->round);
}

/* Where the rows of each visit begin and how many there are: visits' rows stand together. */
struct stretch {
    int64_t first, n;
};
static struct stretch *stretches(const struct table *t, int64_t visits) {
    const int64_t *of = table_see_i64(t, "visit");
    struct stretch *s = must_alloc((size_t)(visits + 1) * sizeof *s);
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (of[i] < 0 || of[i] >= visits) continue;
        if (!s[of[i]].n) s[of[i]].first = i;
        if (s[of[i]].first + s[of[i]].n == i) s[of[i]].n++;
    }
    return s;
}

/* ms of one execution; NAN where it failed. */
static double sample_ms(const struct table *t, int64_t row) {
    const int64_t wall = table_int(t, row, "wall_ns"), batch = table_int(t, row, "batch"),
                  labels = table_int(t, row, "labels");
    if (wall < 0 || batch < 1 || (labels != I64_NONE && (labels & LABEL_FAILED)))
        return (double)NAN;
    return (double)wall / (double)batch / 1e6;
}

static void fill(struct beginning *b, const struct table *warmup, struct stretch w,
                 const struct table *samples, struct stretch s) {
    const int64_t most = w.n + s.n < EXECUTIONS_MOST ? w.n + s.n : EXECUTIONS_MOST;
    b->ms = must_alloc((size_t)(most + 1) * sizeof *b->ms);
    for (int64_t i = 0; i < w.n && b->n < most; i++) {
        const int64_t wall = table_int(warmup, w.first + i, "wall_ns");
        if (wall < 0) break;
        b->ms[b->n++] = (double)wall / 1e6;
    }
    b->warmups = b->n;
    for (int64_t i = 0; i < s.n && b->n < most; i++) {
        const double ms = sample_ms(samples, s.first + i);
        if (!isfinite(ms)) break;
        b->ms[b->n++] = ms;
    }
}

void beginnings_read(const struct tables *ts, struct beginnings *out) {
    const struct table *visits = tables_peek(ts, "visits"), *warmup = tables_peek(ts, "warmup"),
                       *samples = tables_peek(ts, "samples");
    const int64_t rows = table_rows(visits), points = table_rows(tables_peek(ts, "points"));
    int64_t ids = 0;
    for (int64_t i = 0; i < rows; i++)
        if (table_int(visits, i, "visit") >= ids) ids = table_int(visits, i, "visit") + 1;
    if (ids > 100 * (rows + 1)) ids = 100 * (rows + 1); /* a made-up file; numbers are dense */
    struct stretch *w = stretches(warmup, ids), *s = stretches(samples, ids);
    *out = (struct beginnings){.items = must_alloc((size_t)(rows + 1) * sizeof *out->items)};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t id = table_int(visits, i, "visit"), point = table_int(visits, i, "point");
        if (id < 0 || id >= ids || point < 0 || point >= points) continue;
        if (table_int(visits, i, "control") == 1 || !s[id].n || !rows_usable(ts, point)) continue;
        if (strcmp(table_text(visits, i, "state"), "ok")) continue;
        struct beginning *b = &out->items[out->n++];
        *b = (struct beginning){.point = point,
                                .round = table_int(visits, i, "round"),
                                .steady = !strcmp(table_text(visits, i, "steady"), "yes")};
        fill(b, warmup, w[id], samples, s[id]);
    }
    if (out->n) qsort(out->items, (size_t)out->n, sizeof *out->items, by_point);
    free(w);
    free(s);
}

void beginnings_free(struct beginnings *b) {
    for (int64_t i = 0; i < b->n; i++) free(b->items[i].ms);
    free(b->items);
    *b = (struct beginnings){0};
}

double beginning_level(const struct beginning *b) {
    if (b->n < 2) return (double)NAN;
    const size_t half = (size_t)(b->n - b->n / 2);
    double *later = must_alloc(half * sizeof *later);
    memcpy(later, b->ms + b->n / 2, half * sizeof *later);
    const double level = stats_quantile(later, half, 0.5);
    free(later);
    return level;
}
