/* SPDX-License-Identifier: Apache-2.0 */
/* What each round says of a metric: the series of the summary, taken before rounds are averaged. */
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/summary.h"
#include "results/summary_parts.h"

/* How a metric comes from samples and marks. */
struct source {
    enum { TIME, PHASE_TIME, PHASE_RATE, TOKENS, LEDGER, REPORTED } from;
    const char *metric;
    size_t len; /* of the phase's name */
    int token;  /* enum token_metric */
};

static bool ends_in(const char *s, const char *end, size_t *before) {
    size_t n = strlen(s), m = strlen(end);
    *before = n > m ? n - m : 0;
    return n > m && !strcmp(s + n - m, end);
}

static struct source source_of(const char *metric) {
    static const char *const tokens[N_TOKEN_METRICS] = {"ttft", "itl", "tpot", "e2e", "n_out"};
    static const char *const ledger[] = {"bandwidth", "flop_rate", "mbu", "mfu"};
    struct source s = {REPORTED, metric, 0, 0};
    for (int i = 0; i < N_TOKEN_METRICS; i++)
        if (!strcmp(metric, tokens[i])) return (struct source){TOKENS, metric, 0, i};
    for (size_t i = 0; i < 4; i++)
        if (!strcmp(metric, ledger[i])) s.from = LEDGER;
    if (!strcmp(metric, "time"))
        s.from = TIME;
    else if (ends_in(metric, "_time", &s.len))
        s.from = PHASE_TIME;
    else if (ends_in(metric, "_rate", &s.len) && s.from == REPORTED)
        s.from = PHASE_RATE;
    return s;
}

/* ns of the point's phase of that name into out, and its items; false if it has none. */
static bool read_phase(const struct summary_index *x, int64_t point, const struct source *s,
                       double *items, struct series *out) {
    const struct table *phases = tables_peek(x->ts, "phases");
    for (int64_t i = x->point_phases[point]; i < x->point_phases[point + 1]; i++) {
        int64_t row = x->phase_row[i];
        const char *name = table_text(phases, row, "name");
        if (strlen(name) != s->len || memcmp(name, s->metric, s->len)) continue;
        *items = table_real(phases, row, "items");
        return series_phase(x, point, table_int(phases, row, "phase"), out);
    }
    return false;
}

/* bandwidth, flop_rate, mbu, mfu: the ledger's numbers over the time of each execution. */
static void read_ledger(const struct summary_index *x, int64_t point, const char *metric,
                        struct series *time, struct series *out) {
    const struct table *points = tables_peek(x->ts, "points");
    bool bytes = !strcmp(metric, "bandwidth") || !strcmp(metric, "mbu");
    double peak = 1, upper;
    if (metric[0] == 'm')
        summary_ceiling(x->ts, bytes ? "bandwidth" : "arithmetic",
                        table_text(points, point, "binding"), &peak, &upper);
    series_times(x, point, time);
    series_rate(time, table_real(points, point, bytes ? "bytes" : "flops") * 1e9 / peak, out);
}

static bool read_point(const struct summary_index *x, int64_t point, const struct source *s,
                       struct series *time, struct series tokens[N_TOKEN_METRICS],
                       struct series *out) {
    double items = (double)NAN;
    switch (s->from) {
    case TIME: series_times(x, point, out); break;
    case PHASE_TIME:
        if (!read_phase(x, point, s, &items, out)) return false;
        break;
    case PHASE_RATE:
        if (!read_phase(x, point, s, &items, time)) return false;
        series_rate(time, items * 1e9, out);
        return true;
    case LEDGER: read_ledger(x, point, s->metric, time, out); return true;
    case TOKENS: return series_tokens(x, point, tokens);
    case REPORTED: return false;
    }
    series_scale(out, 1e-6); /* ns to ms */
    return true;
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

struct list {
    size_t n, room;
};

static void add(struct rounds *r, struct list *list, int64_t point, int64_t round, double v) {
    if (!isfinite(v)) return;
    if (list->n == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        r->items = must_realloc(r->items, list->room * sizeof *r->items);
    }
    r->items[list->n++] = (struct round_value){point, round, v};
}

/* What a workload or a probe reported in each visit. */
static void read_values(const struct summary_index *x, const char *metric, struct rounds *r,
                        struct list *list) {
    const struct table *values = tables_peek(x->ts, "values");
    const int64_t *visit = table_see_i64(values, "visit");
    for (int64_t i = 0; i < table_rows(values); i++) {
        if (visit[i] < 0 || visit[i] >= x->n_ids || x->visit_at[visit[i]] < 0) continue;
        const struct summary_visit *v = &x->visit[x->visit_at[visit[i]]];
        if (v->counts && !strcmp(table_text(values, i, "metric"), metric))
            add(r, list, v->point, v->round, table_real(values, i, "value"));
    }
}

/* Sorted, one value a round: two visits of a point in one round (a resumed one) are averaged. */
static void settle(struct rounds *r, size_t n) {
    int64_t kept = 0, same = 1;
    if (n) qsort(r->items, n, sizeof *r->items, by_point);
    r->rounds = must_alloc((n + 1) * sizeof *r->rounds);
    for (size_t i = 0; i < n; i++) {
        struct round_value *last = kept ? &r->items[kept - 1] : NULL;
        if (last && !by_point(last, &r->items[i])) {
            last->value += (r->items[i].value - last->value) / (double)++same;
            continue;
        }
        same = 1;
        r->items[kept++] = r->items[i];
    }
    r->n = kept;
    for (int64_t i = 0; i < kept; i++) r->rounds[i] = r->items[i].round;
    if (kept) qsort(r->rounds, (size_t)kept, sizeof *r->rounds, by_number);
    for (int64_t i = 0; i < kept; i++)
        if (!i || r->rounds[i] != r->rounds[r->n_rounds - 1])
            r->rounds[r->n_rounds++] = r->rounds[i];
}

void rounds_read(const struct tables *ts, const char *metric, struct rounds *r) {
    struct summary_index x;
    struct series time = {0}, out = {0}, tokens[N_TOKEN_METRICS] = {{0}};
    struct source s = source_of(metric);
    struct list list = {0, 0};
    *r = (struct rounds){NULL, 0, NULL, 0};
    summary_index_make(&x, (struct tables *)ts); /* it only reads; its other users write */
    read_values(&x, metric, r, &list);           /* what is reported goes before what is derived */
    bool *reported = must_alloc((size_t)x.n_points + 1);
    for (size_t i = 0; i < list.n; i++) reported[r->items[i].point] = true;
    for (int64_t p = 0; p < x.n_points && s.from != REPORTED; p++) {
        if (reported[p] || !read_point(&x, p, &s, &time, tokens, &out)) continue;
        const struct series *from = s.from == TOKENS ? &tokens[s.token] : &out;
        for (size_t v = 0; v < from->n_visits; v++)
            add(r, &list, p, from->round[v], from->visit_mean[v]);
    }
    settle(r, list.n);
    free(reported);
    for (int k = 0; k < N_TOKEN_METRICS; k++) series_free(&tokens[k]);
    series_free(&time);
    series_free(&out);
    summary_index_free(&x);
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
