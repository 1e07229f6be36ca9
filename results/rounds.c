/* SPDX-License-Identifier: Apache-2.0 */
/* What each visit says of a metric: means over its samples, before any of it is averaged over
 * rounds. */
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/summary.h"

enum { LABEL_FAILED = 8 };

/* Visits that count, by their index; samples of one visit stand together and in order. */
struct visit {
    int64_t point, round; /* point -1: does not count */
    int64_t first, n;     /* its samples */
    double sum, count;    /* of what is averaged */
};
struct visits {
    struct visit *v;
    int64_t n;
};

static void visits_read(const struct tables *ts, struct visits *visits) {
    const struct table *vt = tables_peek(ts, "visits"), *st = tables_peek(ts, "samples");
    const int64_t *id = table_see_i64(vt, "visit"), *point = table_see_i64(vt, "point");
    const int64_t *round = table_see_i64(vt, "round"), *control = table_see_i64(vt, "control");
    const int64_t *of = table_see_i64(st, "visit");
    int64_t n = table_rows(vt), n_points = table_rows(tables_peek(ts, "points"));
    *visits = (struct visits){must_alloc((size_t)(n + 1) * sizeof *visits->v), n};
    for (int64_t i = 0; i < n; i++) visits->v[i].point = -1;
    for (int64_t i = 0; i < n; i++) {
        const char *state = table_text(vt, i, "state");
        if (id[i] < 0 || id[i] >= n || control[i] == 1 || point[i] < 0 || point[i] >= n_points ||
            round[i] < 0 ||
            (*state && strcmp(state, "ok") && strcmp(state, "degraded") &&
             strcmp(state, "implausible")))
            continue;
        visits->v[id[i]].point = point[i];
        visits->v[id[i]].round = round[i];
    }
    for (int64_t i = 0; i < table_rows(st); i++) {
        if (of[i] < 0 || of[i] >= n) continue;
        struct visit *v = &visits->v[of[i]];
        if (!v->n) v->first = i;
        if (v->first + v->n == i) v->n++;
    }
}

static void add(struct visit *v, double value) {
    if (!isfinite(value)) return;
    v->sum += value;
    v->count += 1;
}

/* ns of one execution of sample i; NAN if it failed. */
static double execution_ns(const struct table *samples, int64_t i) {
    int64_t wall = table_int(samples, i, "wall_ns"), batch = table_int(samples, i, "batch");
    int64_t labels = table_int(samples, i, "labels");
    if (wall == I64_NONE || wall < 0 || batch < 1) return (double)NAN;
    if (labels != I64_NONE && (labels & LABEL_FAILED)) return (double)NAN;
    return (double)wall / (double)batch;
}

static void add_times(const struct tables *ts, struct visits *visits) {
    const struct table *samples = tables_peek(ts, "samples");
    for (int64_t i = 0; i < visits->n; i++)
        for (int64_t k = 0; k < visits->v[i].n; k++)
            add(&visits->v[i], execution_ns(samples, visits->v[i].first + k));
}

/* ns that phase number `phase` took in one execution: from where it begins to where another does,
 * or the end. */
static void add_phase_times(const struct tables *ts, struct visits *visits, const int64_t *phase) {
    const struct table *marks = tables_peek(ts, "marks"), *samples = tables_peek(ts, "samples");
    const int64_t *visit = table_see_i64(marks, "visit"), *sample = table_see_i64(marks, "sample");
    const int64_t *mark = table_see_i64(marks, "mark"), *t = table_see_i64(marks, "t_ns");
    int64_t n = table_rows(marks);
    for (int64_t i = 0; i < n;) {
        int64_t end = i + 1, v = visit[i];
        while (end < n && visit[end] == v && sample[end] == sample[i]) end++;
        if (v >= 0 && v < visits->n && visits->v[v].point >= 0 && sample[i] >= 0 &&
            sample[i] < visits->v[v].n) {
            double total = 0, from = (double)NAN;
            double wall = execution_ns(samples, visits->v[v].first + sample[i]);
            for (int64_t k = i; k < end; k++) {
                if (mark[k] >= 0) continue;
                if (isfinite(from)) total += (double)t[k] - from;
                from = -1 - mark[k] == phase[visits->v[v].point] ? (double)t[k] : (double)NAN;
            }
            if (isfinite(from)) total += wall - from;
            if (isfinite(wall) && total > 0) add(&visits->v[v], total);
        }
        i = end;
    }
}

/* For every point the number of the phase, its items; -1 where it has none; whether it is the only
 * phase. */
struct phases {
    int64_t *number;
    double *items, *flops, *bytes;
    int64_t *count;
};

static void phases_read(const struct tables *ts, const char *name, size_t len, struct phases *p) {
    const struct table *phases = tables_peek(ts, "phases"), *points = tables_peek(ts, "points");
    int64_t n = table_rows(points);
    p->number = must_alloc((size_t)(n + 1) * sizeof *p->number);
    p->count = must_alloc((size_t)(n + 1) * sizeof *p->count);
    p->items = must_alloc((size_t)(n + 1) * sizeof *p->items);
    for (int64_t i = 0; i < n; i++) p->number[i] = -1;
    for (int64_t i = 0; i < table_rows(phases); i++) {
        int64_t point = table_int(phases, i, "point");
        const char *is = table_text(phases, i, "name");
        if (point < 0 || point >= n) continue;
        p->count[point]++;
        if (strlen(is) != len || memcmp(is, name, len)) continue;
        p->number[point] = table_int(phases, i, "phase");
        p->items[point] = table_real(phases, i, "items");
    }
}

static void phases_free(struct phases *p) {
    free(p->number);
    free(p->count);
    free(p->items);
}

static bool ends_in(const char *s, const char *end, size_t *before) {
    size_t n = strlen(s), m = strlen(end);
    *before = n > m ? n - m : 0;
    return n > m && !strcmp(s + n - m, end);
}

/* NAME_time (ms) and NAME_rate (items per second of the phase NAME). */
static void add_phase(const struct tables *ts, struct visits *visits, const char *name, size_t len,
                      bool rate) {
    struct phases p;
    phases_read(ts, name, len, &p);
    add_phase_times(ts, visits, p.number);
    for (int64_t i = 0; i < visits->n; i++) {
        struct visit *v = &visits->v[i];
        if (v->point < 0) continue;
        int64_t number = p.number[v->point];
        if (number >= 0 && !(v->count > 0) && p.count[v->point] == 1) /* its phase is all of it */
            for (int64_t k = 0; k < v->n; k++)
                add(v, execution_ns(tables_peek(ts, "samples"), v->first + k));
        if (number < 0 || !(v->count > 0)) {
            v->count = 0;
        } else {
            double ms = v->sum / v->count / 1e6;
            v->sum = rate ? p.items[v->point] / (ms / 1e3) : ms;
            v->count = 1;
        }
    }
    phases_free(&p);
}

static void add_values(const struct tables *ts, struct visits *visits, const char *metric) {
    const struct table *values = tables_peek(ts, "values");
    const int64_t *visit = table_see_i64(values, "visit");
    for (int64_t i = 0; i < table_rows(values); i++)
        if (visit[i] >= 0 && visit[i] < visits->n &&
            !strcmp(table_text(values, i, "metric"), metric))
            add(&visits->v[visit[i]], table_real(values, i, "value"));
}

/* bandwidth, flop_rate, mbu, mfu: the ledger's numbers over the time of each visit. */
static void divide_ledger(const struct tables *ts, struct visits *visits, const char *metric) {
    const struct table *points = tables_peek(ts, "points");
    bool bytes = !strcmp(metric, "bandwidth") || !strcmp(metric, "mbu");
    bool share = metric[0] == 'm';
    for (int64_t i = 0; i < visits->n; i++) {
        struct visit *v = &visits->v[i];
        if (v->point < 0 || !(v->count > 0)) continue;
        double ns = v->sum / v->count, peak = 1, upper;
        if (share)
            summary_ceiling(ts, bytes ? "bandwidth" : "arithmetic",
                            table_text(points, v->point, "binding"), &peak, &upper);
        v->sum = table_real(points, v->point, bytes ? "bytes" : "flops") / (ns / 1e9) / peak;
        v->count = isfinite(v->sum) ? 1 : 0;
    }
}

static int by_point(const void *a, const void *b) {
    const struct round_value *p = a, *q = b;
    if (p->point != q->point) return p->point < q->point ? -1 : 1;
    return p->round < q->round ? -1 : p->round > q->round;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Visits to (point, round) values; two visits of a point in one round (a resumed one) are averaged.
 */
static void collect(const struct visits *visits, struct rounds *r, double scale) {
    r->items = must_alloc((size_t)(visits->n + 1) * sizeof *r->items);
    r->rounds = must_alloc((size_t)(visits->n + 1) * sizeof *r->rounds);
    for (int64_t i = 0; i < visits->n; i++) {
        const struct visit *v = &visits->v[i];
        if (v->point >= 0 && v->count > 0)
            r->items[r->n++] = (struct round_value){v->point, v->round, v->sum / v->count * scale};
    }
    qsort(r->items, (size_t)r->n, sizeof *r->items, by_point);
    int64_t kept = 0, same = 1;
    for (int64_t i = 0; i < r->n; i++) {
        if (kept && !by_point(&r->items[kept - 1], &r->items[i])) {
            same++;
            r->items[kept - 1].value +=
                (r->items[i].value - r->items[kept - 1].value) / (double)same;
            continue;
        }
        same = 1;
        r->items[kept++] = r->items[i];
    }
    r->n = kept;
    for (int64_t i = 0; i < kept; i++) r->rounds[i] = r->items[i].round;
    qsort(r->rounds, (size_t)kept, sizeof *r->rounds, by_number);
    for (int64_t i = 0; i < kept; i++)
        if (!i || r->rounds[i] != r->rounds[r->n_rounds - 1])
            r->rounds[r->n_rounds++] = r->rounds[i];
}

void rounds_read(const struct tables *ts, const char *metric, struct rounds *r) {
    struct visits visits;
    size_t len;
    double scale = 1;
    *r = (struct rounds){NULL, 0, NULL, 0};
    visits_read(ts, &visits);
    add_values(ts, &visits, metric); /* what is reported goes before what is derived */
    bool reported = false;
    for (int64_t i = 0; i < visits.n; i++) reported |= visits.v[i].count > 0;
    if (reported) {
    } else if (!strcmp(metric, "time")) {
        add_times(ts, &visits);
        scale = 1e-6;
    } else if (!strcmp(metric, "bandwidth") || !strcmp(metric, "flop_rate") ||
               !strcmp(metric, "mbu") || !strcmp(metric, "mfu")) {
        add_times(ts, &visits);
        divide_ledger(ts, &visits, metric);
    } else if (ends_in(metric, "_time", &len) || ends_in(metric, "_rate", &len)) {
        add_phase(ts, &visits, metric, len, metric[len + 1] == 'r');
    }
    collect(&visits, r, scale);
    free(visits.v);
}

double rounds_get(const struct rounds *r, int64_t point, int64_t round) {
    struct round_value key = {point, round, 0};
    const struct round_value *found =
        r->n ? bsearch(&key, r->items, (size_t)r->n, sizeof key, by_point) : NULL;
    return found ? found->value : (double)NAN;
}

void rounds_free(struct rounds *r) {
    free(r->items);
    free(r->rounds);
    *r = (struct rounds){NULL, 0, NULL, 0};
}
