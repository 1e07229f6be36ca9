/* SPDX-License-Identifier: Apache-2.0 */
/* Every execution in the order in which it ran, over its row's median: drift, disturbance and shape
 * at one glance. */
#include "plots/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"
#include "results/stats.h"

enum { SAMPLES_MOST = 20000, LABEL_FAILED = 8 };

struct visit_order {
    int64_t id, point, round, control;
    double t0;
    int64_t first, n; /* its samples */
};

static int by_time(const void *a, const void *b) {
    const struct visit_order *p = a, *q = b;
    if (p->round != q->round) return p->round < q->round ? -1 : 1;
    if (p->t0 < q->t0 || p->t0 > q->t0) return p->t0 < q->t0 ? -1 : 1;
    return p->id < q->id ? -1 : p->id > q->id;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct visit_order *read_visits(const struct tables *ts, struct arena *arena, int64_t *n) {
    const struct table *t = tables_peek(ts, "visits"), *s = tables_peek(ts, "samples");
    const int64_t *of = table_see_i64(s, "visit");
    int64_t rows = table_rows(t);
    struct visit_order *v = arena_alloc(arena, (size_t)(rows + 1) * sizeof *v);
    int64_t *at = arena_alloc(arena, (size_t)(rows + 1) * sizeof *at); /* id -> place + 1 */
    for (int64_t i = 0; i < rows; i++) {
        v[i] = (struct visit_order){table_int(t, i, "visit"),
                                    table_int(t, i, "point"),
                                    table_int(t, i, "round"),
                                    table_int(t, i, "control") == 1,
                                    table_real(t, i, "t0"),
                                    0,
                                    0};
        if (!isfinite(v[i].t0)) v[i].t0 = 0;
        if (v[i].id >= 0 && v[i].id < rows) at[v[i].id] = i + 1;
    }
    for (int64_t i = 0; i < table_rows(s); i++) {
        if (of[i] < 0 || of[i] >= rows || !at[of[i]]) continue;
        struct visit_order *o = &v[at[of[i]] - 1];
        if (!o->n) o->first = i;
        if (o->first + o->n == i) o->n++;
    }
    if (rows) qsort(v, (size_t)rows, sizeof *v, by_time);
    *n = rows;
    return v;
}

static double execution_ms(const struct table *s, int64_t i) {
    int64_t batch = table_int(s, i, "batch"), wall = table_int(s, i, "wall_ns");
    int64_t labels = table_int(s, i, "labels");
    if (batch < 1 || wall < 0 || (labels != I64_NONE && (labels & LABEL_FAILED)))
        return (double)NAN;
    return (double)wall / (double)batch / 1e6;
}

/* At most ROWS_MOST rows, spread evenly over those that have samples. */
static int32_t choose_rows(const struct tables *ts, const struct visit_order *v, int64_t n,
                           int64_t *chosen, int32_t *left, struct arena *arena) {
    int64_t points = table_rows(tables_peek(ts, "points")), with = 0;
    bool *has = arena_alloc(arena, (size_t)points + 1);
    for (int64_t i = 0; i < n; i++)
        if (v[i].point >= 0 && v[i].point < points && v[i].n && rows_usable(ts, v[i].point))
            with += !has[v[i].point], has[v[i].point] = true;
    int32_t count = with < ROWS_MOST ? (int32_t)with : ROWS_MOST, k = 0;
    int64_t seen = 0;
    for (int64_t p = 0; p < points && k < count; p++) {
        if (!has[p]) continue;
        int64_t next = count > 1 ? k * (with - 1) / (count - 1) : 0;
        if (seen++ == next) chosen[k++] = p;
    }
    *left = (int32_t)(with - k);
    return k;
}

static void read_row(const struct tables *ts, const struct visit_order *v, int64_t n, int64_t point,
                     int64_t stride, struct sequence_row *r, struct arena *arena) {
    const struct table *s = tables_peek(ts, "samples");
    int64_t all = 0, place = 0;
    for (int64_t i = 0; i < n; i++) all += v[i].point == point && !v[i].control ? v[i].n : 0;
    r->label = arena_text(arena, table_text(tables_peek(ts, "points"), point, "label"));
    r->at = arena_alloc(arena, (size_t)(all + 1) * sizeof *r->at);
    r->ratio = arena_alloc(arena, (size_t)(all + 1) * sizeof *r->ratio);
    r->sorted = arena_alloc(arena, (size_t)(all + 1) * sizeof *r->sorted);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < v[i].n && v[i].point == point && !v[i].control; k += stride) {
            double ms = execution_ms(s, v[i].first + k);
            if (!isfinite(ms)) continue;
            r->at[r->n] = (double)(place + k);
            r->ratio[r->n] = ms;
            r->sorted[r->n++] = ms;
        }
        place += v[i].n;
    }
    if (!r->n) return;
    qsort(r->sorted, (size_t)r->n, sizeof *r->sorted, by_value);
    r->median_ms =
        r->n % 2 ? r->sorted[r->n / 2] : (r->sorted[r->n / 2 - 1] + r->sorted[r->n / 2]) / 2;
    double unit = r->median_ms > 0 ? r->median_ms : 1;
    for (int64_t i = 0; i < r->n; i++) r->ratio[i] /= unit, r->sorted[i] /= unit;
}

/* The axis holds the middle of every row; a few far outliers may leave the picture rather than
 * flatten it. */
static void fit_axis(struct sequence *s) {
    double ends[2 * ROWS_MOST];
    for (int32_t i = 0; i < s->n_rows; i++) {
        const struct sequence_row *r = &s->row[i];
        ends[2 * i] = r->n ? r->sorted[r->n / 200] : (double)NAN;
        ends[2 * i + 1] = r->n ? r->sorted[r->n - 1 - r->n / 200] : (double)NAN;
    }
    axis_fit(&s->y, ends, 2 * (size_t)s->n_rows, false, false);
}

int sequence_read(const struct tables *ts, struct sequence *s, struct err *err) {
    int64_t n, chosen[ROWS_MOST], round = -1, total = 0;
    *s = (struct sequence){.arena = arena_create()};
    struct visit_order *v = read_visits(ts, s->arena, &n);
    s->n_rows = choose_rows(ts, v, n, chosen, &s->n_left, s->arena);
    if (!s->n_rows) return err_set(err, ERR_UNSUPPORTED, "no samples plot: no row has samples");
    for (int64_t i = 0; i < n; i++) {
        if (v[i].round != round && s->n_rounds < ROUNDS_MOST && v[i].n)
            s->round_from[s->n_rounds++] = (double)total;
        if (v[i].n) round = v[i].round;
        total += v[i].n;
    }
    s->last = (double)total;
    for (int32_t i = 0; i < s->n_rows; i++)
        read_row(ts, v, n, chosen[i], 1 + total / SAMPLES_MOST, &s->row[i], s->arena);
    fit_axis(s);
    if (!s->y.used) return err_set(err, ERR_UNSUPPORTED, "no samples plot: every sample failed");
    return 0;
}

void sequence_free(struct sequence *s) {
    if (s->arena) arena_close(&s->arena);
}
