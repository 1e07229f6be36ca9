/* SPDX-License-Identifier: Apache-2.0 */
/* From samples and marks to series, from a series to a row of the summary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/stats.h"
#include "results/summary_parts.h"

enum { LABEL_FAILED = 8 };

/* ---- which samples and marks belong to which visit */

static int by_point(const void *a, const void *b) {
    const struct summary_visit *p = a, *q = b;
    if (p->point != q->point) return p->point < q->point ? -1 : 1;
    if (p->round != q->round) return p->round < q->round ? -1 : 1;
    return p->row < q->row ? -1 : p->row > q->row;
}

static bool has_numbers(const char *state) {
    return !*state || !strcmp(state, "ok") || !strcmp(state, "degraded") ||
           !strcmp(state, "implausible");
}

static void visits_find(struct summary_index *x) {
    const struct table *t = tables_peek(x->ts, "visits");
    int64_t rows = table_rows(t), most = -1;
    const int64_t *id = table_see_i64(t, "visit");
    x->visit = must_alloc((size_t)(rows + 1) * sizeof *x->visit);
    for (int64_t r = 0; r < rows; r++) {
        int64_t point = table_int(t, r, "point");
        if (point < 0 || point >= x->n_points || id[r] < 0) continue;
        struct summary_visit *v = &x->visit[x->n_visits++];
        v->row = r;
        v->point = point;
        v->round = table_int(t, r, "round");
        v->control = table_int(t, r, "control") == 1;
        v->failed = !has_numbers(table_text(t, r, "state"));
        v->counts = !v->control && !v->failed;
        /* Ids are dense; absurd ones of a broken file must not size an array. */
        if (id[r] > most && id[r] < 4 * rows + 1024) most = id[r];
    }
    qsort(x->visit, (size_t)x->n_visits, sizeof *x->visit, by_point);
    x->n_ids = most + 1;
    x->visit_at = must_alloc((size_t)(x->n_ids + 1) * sizeof *x->visit_at);
    for (int64_t i = 0; i < x->n_ids; i++) x->visit_at[i] = -1;
    x->point_visits = must_alloc((size_t)(x->n_points + 1) * sizeof *x->point_visits);
    int64_t point = 0;
    for (int64_t i = 0; i < x->n_visits; i++) {
        int64_t v = id[x->visit[i].row];
        x->visit[i].order = i;
        if (v < x->n_ids) x->visit_at[v] = i;
        while (point <= x->visit[i].point) x->point_visits[point++] = i;
    }
    while (point <= x->n_points) x->point_visits[point++] = x->n_visits;
}

/* Runs of equal visit ids; a second run of the same visit would be a broken file, and is left out.
 */
static void runs_find(struct summary_index *x, const char *table, bool marks) {
    const struct table *t = tables_peek(x->ts, table);
    const int64_t *id = table_see_i64(t, "visit");
    int64_t rows = table_rows(t), end;
    for (int64_t r = 0; r < rows; r = end) {
        for (end = r + 1; end < rows && id[end] == id[r];) end++;
        int64_t at = id[r] >= 0 && id[r] < x->n_ids ? x->visit_at[id[r]] : -1;
        if (at < 0) continue;
        struct summary_visit *v = &x->visit[at];
        if (marks && !v->n_marks) v->first_mark = r, v->n_marks = end - r;
        if (!marks && !v->n) v->first = r, v->n = end - r;
    }
}

static void phases_find(struct summary_index *x) {
    const struct table *t = tables_peek(x->ts, "phases");
    int64_t rows = table_rows(t);
    const int64_t *point = table_see_i64(t, "point");
    x->point_phases = must_alloc((size_t)(x->n_points + 2) * sizeof *x->point_phases);
    x->phase_row = must_alloc((size_t)(rows + 1) * sizeof *x->phase_row);
    for (int64_t r = 0; r < rows; r++)
        if (point[r] >= 0 && point[r] < x->n_points) x->point_phases[point[r] + 2]++;
    for (int64_t p = 1; p <= x->n_points; p++) x->point_phases[p + 1] += x->point_phases[p];
    for (int64_t r = 0; r < rows; r++)
        if (point[r] >= 0 && point[r] < x->n_points)
            x->phase_row[x->point_phases[point[r] + 1]++] = r;
}

void summary_index_make(struct summary_index *x, struct tables *ts) {
    *x = (struct summary_index){.ts = ts, .n_points = table_rows(tables_peek(ts, "points"))};
    visits_find(x);
    runs_find(x, "samples", false);
    runs_find(x, "marks", true);
    phases_find(x);
}

void summary_index_free(struct summary_index *x) {
    free(x->visit);
    free(x->visit_at);
    free(x->point_visits);
    free(x->point_phases);
    free(x->phase_row);
}

const struct summary_visit *summary_visits(const struct summary_index *x, int64_t point,
                                           int64_t *n) {
    *n = x->point_visits[point + 1] - x->point_visits[point];
    return x->visit + x->point_visits[point];
}

/* ---- series */

void series_free(struct series *s) {
    free(s->x);
    free(s->begin);
    free(s->visit_mean);
    free(s->round);
    *s = (struct series){0};
}

void series_clear(struct series *s) {
    s->n = s->n_visits = s->distinct = 0;
    s->in_order = false;
}

void series_add(struct series *s, double v) {
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->x = must_realloc(s->x, s->cap * sizeof *s->x);
    }
    s->x[s->n++] = v;
}

void series_visit_end(struct series *s, int64_t round) {
    if (s->n_visits == s->visits_cap) {
        s->visits_cap = s->visits_cap ? s->visits_cap * 2 : 16;
        s->begin = must_realloc(s->begin, (s->visits_cap + 1) * sizeof *s->begin);
        s->visit_mean = must_realloc(s->visit_mean, s->visits_cap * sizeof *s->visit_mean);
        s->round = must_realloc(s->round, s->visits_cap * sizeof *s->round);
    }
    if (!s->n_visits) s->begin[0] = 0;
    size_t v = s->n_visits++, first = s->begin[v];
    s->begin[v + 1] = s->n;
    s->round[v] = round;
    s->visit_mean[v] = s->n > first ? stats_mean(s->x + first, s->n - first) : (double)NAN;
}

struct sample_columns {
    const int64_t *wall, *batch, *labels;
};

static struct sample_columns sample_columns(const struct tables *ts) {
    const struct table *t = tables_peek(ts, "samples");
    return (struct sample_columns){table_see_i64(t, "wall_ns"), table_see_i64(t, "batch"),
                                   table_see_i64(t, "labels")};
}

/* NAN if the sample failed. */
static double execution_ns(const struct sample_columns *c, int64_t i) {
    bool failed = c->labels[i] != I64_NONE && (c->labels[i] & LABEL_FAILED);
    if (failed || c->wall[i] < 0 || c->batch[i] < 1) return (double)NAN;
    return (double)c->wall[i] / (double)c->batch[i];
}

void series_times(const struct summary_index *x, int64_t point, struct series *out) {
    struct sample_columns c = sample_columns(x->ts);
    int64_t n;
    const struct summary_visit *v = summary_visits(x, point, &n);
    series_clear(out);
    out->in_order = true;
    for (; n; n--, v++) {
        if (!v->counts) continue;
        for (int64_t i = v->first; i < v->first + v->n; i++) {
            double ns = execution_ns(&c, i);
            if (!isnan(ns)) series_add(out, ns);
        }
        series_visit_end(out, v->round);
    }
}

struct mark_columns {
    const int64_t *sample, *mark, *who, *n, *t;
};

static struct mark_columns mark_columns(const struct tables *ts) {
    const struct table *t = tables_peek(ts, "marks");
    return (struct mark_columns){table_see_i64(t, "sample"), table_see_i64(t, "mark"),
                                 table_see_i64(t, "who"), table_see_i64(t, "n"),
                                 table_see_i64(t, "t_ns")};
}

/* One execution's marks i ... end - 1: what `phase` took, to where another begins or the execution
 * ends. */
static double phase_ns(const struct mark_columns *m, int64_t i, int64_t end, int64_t phase,
                       double wall) {
    double total = 0, from = (double)NAN;
    bool seen = false;
    for (; i < end; i++) {
        if (m->mark[i] >= 0) continue;
        if (!isnan(from)) total += (double)m->t[i] - from;
        from = m->mark[i] == -1 - phase ? (double)m->t[i] : (double)NAN;
        seen = seen || !isnan(from);
    }
    if (!isnan(from)) total += wall - from;
    return seen ? total : (double)NAN;
}

bool series_phase(const struct summary_index *x, int64_t point, int64_t phase, struct series *out) {
    struct mark_columns m = mark_columns(x->ts);
    struct sample_columns c = sample_columns(x->ts);
    int64_t n;
    const struct summary_visit *v = summary_visits(x, point, &n);
    bool single = x->point_phases[point + 1] - x->point_phases[point] == 1;
    series_clear(out);
    out->in_order = true;
    for (; n; n--, v++) {
        if (!v->counts) continue;
        int64_t end, stop = v->first_mark + v->n_marks;
        for (int64_t i = v->first_mark; i < stop; i = end) {
            int64_t sample = m.sample[i];
            for (end = i + 1; end < stop && m.sample[end] == sample;) end++;
            if (sample < 0 || sample >= v->n) continue;
            double wall = execution_ns(&c, v->first + sample);
            double ns = phase_ns(&m, i, end, phase, wall);
            if (!isnan(ns) && !isnan(wall)) series_add(out, ns);
        }
        series_visit_end(out, v->round);
    }
    if (!out->n && single) series_times(x, point, out); /* its phase is all of it */
    return out->n > 0;
}

/* ---- tokens */

struct stream { /* of one execution: who, and what it has committed */
    int64_t who, generation;
    double arrival, first, last; /* ns */
    int64_t tokens;
};
struct streams { /* open addressing, emptied by raising the generation */
    struct stream *slot;
    size_t cap, used;
    int64_t generation;
};

static struct stream *stream_find(struct streams *s, int64_t who) {
    size_t mask = s->cap - 1;
    size_t at = (size_t)((uint64_t)who * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (s->slot[at].generation == s->generation && s->slot[at].who != who) at = (at + 1) & mask;
    return &s->slot[at];
}

static struct stream *stream_of(struct streams *s, int64_t who) {
    if (s->used * 2 >= s->cap) {
        struct streams old = *s;
        s->cap = old.cap ? old.cap * 2 : 64;
        s->slot = must_alloc(s->cap * sizeof *s->slot);
        for (size_t i = 0; i < old.cap; i++)
            if (old.slot[i].generation == s->generation)
                *stream_find(s, old.slot[i].who) = old.slot[i];
        free(old.slot);
    }
    struct stream *found = stream_find(s, who);
    if (found->generation != s->generation) {
        *found = (struct stream){.who = who, .generation = s->generation};
        s->used++;
    }
    return found;
}

/* One execution. Times of who came later than its beginning count from a mark of no tokens. A step
   that commits several tokens gives each its share of the step; those of the first step beyond the
   first token come with it, at once. So TTFT and all ITL add up to E2E. */
static void tokens_of_execution(struct streams *all, const struct mark_columns *m, int64_t i,
                                int64_t end, struct series out[N_TOKEN_METRICS]) {
    bool trace = false; /* requests came, and were not there from the beginning */
    all->generation++;
    all->used = 0;
    for (; i < end; i++) {
        if (m->mark[i] != 0 || m->n[i] < 0 || m->n[i] > 1 << 20) continue;
        struct stream *s = stream_of(all, m->who[i]);
        double t = (double)m->t[i];
        if (!m->n[i]) {
            if (!s->tokens) s->arrival = t;
            trace = true;
            continue;
        }
        int64_t others = m->n[i];
        double each = s->tokens ? (t - s->last) / (double)others : 0;
        if (!s->tokens) {
            s->first = t;
            series_add(&out[TOKEN_TTFT], (t - s->arrival) / 1e6);
            others--;
        }
        for (int64_t k = 0; k < others; k++) series_add(&out[TOKEN_ITL], each / 1e6);
        s->tokens += m->n[i];
        s->last = t;
    }
    for (int k = 0; trace && k < N_TOKEN_METRICS; k++)
        if (k != TOKEN_ITL && all->used > out[k].distinct) out[k].distinct = all->used;
    for (size_t k = 0; k < all->cap; k++) {
        const struct stream *s = &all->slot[k];
        if (s->generation != all->generation || !s->tokens) continue;
        series_add(&out[TOKEN_E2E], (s->last - s->arrival) / 1e6);
        series_add(&out[TOKEN_N_OUT], (double)s->tokens);
        if (s->tokens > 1)
            series_add(&out[TOKEN_TPOT], (s->last - s->first) / (double)(s->tokens - 1) / 1e6);
    }
}

static bool marks_tokens(const struct summary_index *x, int64_t point) {
    const struct table *t = tables_peek(x->ts, "phases");
    for (int64_t i = x->point_phases[point]; i < x->point_phases[point + 1]; i++)
        if (table_int(t, x->phase_row[i], "marks") == 1) return true;
    return false;
}

bool series_tokens(const struct summary_index *x, int64_t point,
                   struct series out[N_TOKEN_METRICS]) {
    for (int k = 0; k < N_TOKEN_METRICS; k++) series_clear(&out[k]);
    if (!marks_tokens(x, point)) return false;
    struct mark_columns m = mark_columns(x->ts);
    struct sample_columns c = sample_columns(x->ts);
    struct streams all = {0};
    int64_t n;
    const struct summary_visit *v = summary_visits(x, point, &n);
    for (; n; n--, v++) {
        if (!v->counts) continue;
        int64_t end, stop = v->first_mark + v->n_marks;
        for (int64_t i = v->first_mark; i < stop; i = end) {
            int64_t sample = m.sample[i];
            for (end = i + 1; end < stop && m.sample[end] == sample;) end++;
            bool timed = sample >= 0 && sample < v->n; /* a simulated one has no sample */
            if (timed && isnan(execution_ns(&c, v->first + sample))) continue;
            tokens_of_execution(&all, &m, i, end, out);
        }
        for (int k = 0; k < N_TOKEN_METRICS; k++) series_visit_end(&out[k], v->round);
    }
    free(all.slot);
    return out[TOKEN_E2E].n > 0;
}

void series_rate(const struct series *from, double factor, struct series *to) {
    series_clear(to);
    to->in_order = from->in_order;
    for (size_t v = 0; v < from->n_visits; v++) {
        for (size_t i = from->begin[v]; i < from->begin[v + 1]; i++)
            if (from->x[i] > 0) series_add(to, factor / from->x[i]);
        series_visit_end(to, from->round[v]);
        double mean = from->visit_mean[v];
        to->visit_mean[v] = mean > 0 ? factor / mean : (double)NAN;
    }
}

void series_scale(struct series *s, double factor) {
    for (size_t i = 0; i < s->n; i++) s->x[i] *= factor;
    for (size_t v = 0; v < s->n_visits; v++) s->visit_mean[v] *= factor;
}

void series_copy(const struct series *from, double factor, struct series *to) {
    series_clear(to);
    to->in_order = from->in_order;
    for (size_t v = 0; v < from->n_visits; v++) {
        for (size_t i = from->begin[v]; i < from->begin[v + 1]; i++)
            series_add(to, from->x[i] * factor);
        series_visit_end(to, from->round[v]);
        to->visit_mean[v] = from->visit_mean[v] * factor;
    }
}

/* ---- rows */

/* Means of rounds into `round_mean` (n_visits): visits are in order of rounds. */
static size_t round_means(const struct series *s, double *round_mean) {
    size_t n = 0, in_round = 0;
    int64_t round = 0;
    for (size_t v = 0; v < s->n_visits; v++) {
        double mean = s->visit_mean[v];
        if (isnan(mean)) continue;
        if (n && s->round[v] == round) {
            in_round++;
            round_mean[n - 1] += (mean - round_mean[n - 1]) / (double)in_round;
            continue;
        }
        round_mean[n++] = mean;
        round = s->round[v];
        in_round = 1;
    }
    return n;
}

/* Slope over the rounds, last against first, relative to the mean; its standard error beside. */
static void drift_of(const double *y, size_t n, double mean, double *drift, double *error) {
    *drift = *error = (double)NAN;
    if (n < 3 || mean == 0) return;
    double *at = must_alloc(n * sizeof *at), middle = (double)(n - 1) / 2, squares = 0, xx = 0;
    for (size_t i = 0; i < n; i++) at[i] = (double)i;
    double slope = stats_slope(at, y, n), centre = stats_mean(y, n);
    for (size_t i = 0; i < n; i++) {
        double rest = y[i] - centre - slope * (at[i] - middle);
        squares += rest * rest;
        xx += (at[i] - middle) * (at[i] - middle);
    }
    free(at);
    double span = (double)(n - 1) / fabs(mean);
    *drift = slope * span;
    *error = sqrt(squares / (double)(n - 2) / xx) * span;
}

size_t series_rounds(const struct series *s, double *mean, double *lo, double *hi, double *drift,
                     double *drift_error) {
    double *y = must_alloc((s->n_visits + 1) * sizeof *y);
    size_t n = round_means(s, y);
    *mean = stats_mean(y, n);
    stats_t_interval(y, n, lo, hi);
    drift_of(y, n, *mean, drift, drift_error);
    free(y);
    return n;
}

/* Median over the visits. */
static double lag1_of(const struct series *s) {
    if (!s->in_order || !s->n_visits) return (double)NAN;
    double *lag = must_alloc(s->n_visits * sizeof *lag);
    size_t n = 0;
    for (size_t v = 0; v < s->n_visits; v++) {
        double r = stats_lag1(s->x + s->begin[v], s->begin[v + 1] - s->begin[v]);
        if (!isnan(r)) lag[n++] = r;
    }
    double median = stats_quantile(lag, n, 0.5);
    free(lag);
    return median;
}

static void quantiles_set(struct table *t, int64_t row, const struct series *s, double lag1) {
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"median", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    double r = lag1 > 0 ? lag1 : 0; /* correlated samples are worth fewer */
    size_t effective = (size_t)((double)s->n * (1 - r) / (1 + r));
    /* The same requests again tell nothing about rarer ones. */
    if (s->distinct && effective > s->distinct) effective = s->distinct;
    double *copy = must_alloc(s->n * sizeof *copy), lowest = s->x[0], highest = s->x[0];
    memcpy(copy, s->x, s->n * sizeof *copy);
    for (size_t i = 0; i < s->n; i++) {
        lowest = fmin(lowest, s->x[i]);
        highest = fmax(highest, s->x[i]);
    }
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        if (quantiles[i].q <= 0.5 || stats_quantile_known(effective, quantiles[i].q))
            table_set_f64(t, row, quantiles[i].name, stats_quantile(copy, s->n, quantiles[i].q));
    double median = table_real(t, row, "median");
    for (size_t i = 0; i < s->n; i++) copy[i] = fabs(s->x[i] - median);
    table_set_f64(t, row, "mad", stats_quantile(copy, s->n, 0.5));
    table_set_f64(t, row, "min", lowest);
    table_set_f64(t, row, "max", highest);
    free(copy);
}

void series_emit(struct tables *ts, int64_t point, const char *metric, const char *unit,
                 const struct series *s) {
    double mean, lo, hi, drift, error;
    if (!s->n) return;
    size_t rounds = series_rounds(s, &mean, &lo, &hi, &drift, &error);
    if (!rounds) return;
    struct table *t = tables_get(ts, "summary");
    int64_t row = table_add(t, 1);
    double lag1 = lag1_of(s);
    table_set_i64(t, row, "point", point);
    table_set_text(t, row, "metric", metric);
    table_set_text(t, row, "unit", unit);
    table_set_i64(t, row, "n", (int64_t)s->n);
    table_set_i64(t, row, "n_rounds", (int64_t)rounds);
    table_set_f64(t, row, "mean", mean);
    table_set_f64(t, row, "stddev", stats_stddev(s->x, s->n));
    table_set_f64(t, row, "ci_lo", lo);
    table_set_f64(t, row, "ci_hi", hi);
    table_set_f64(t, row, "lag1", lag1);
    table_set_f64(t, row, "drift", drift);
    quantiles_set(t, row, s, lag1);
}
