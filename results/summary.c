/* SPDX-License-Identifier: Apache-2.0 */
/* From visits to rows: state and flags with their reasons, then the metrics of every row that may
 * have numbers. */
#include "results/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary_parts.h"

#define VISITS_SHARE                                                                               \
    0.25 /* so many visits must say not_steady or disturbed before the row does                    \
          */
#define DISTURBED_SHARE 0.10 /* or so many samples carry the label */
enum { ROUNDS_LEAST = 5, SAMPLES_LEAST = 10, LABELS_DISTURBED = 2 | 4 };

struct work_in_progress {
    struct summary_index x;
    struct tables *ts;
    struct table *points;
    int64_t *value_row;    /* rows of `values`, by point, metric, visit */
    int64_t *point_values; /* (n_points + 1): where a point's begin in value_row */
    int64_t *rank;         /* (rows of values): place of its visit */
    struct text state_reason, flags, flag_reasons;
};

/* ---- states */

static const char *const states[] = {"ok",      "degraded", "implausible", "wrong",
                                     "skipped", "oom",      "timeout",     "failed"};

static int severity(const char *state) {
    for (int i = 0; i < (int)(sizeof states / sizeof *states); i++)
        if (!strcmp(state, states[i])) return i;
    return 0;
}

/* A reason of the visit's state: what stands before the reasons of its flags ("disturbed: ..."). */
static void add_visit_reason(struct text *out, const struct table *visits, int64_t row) {
    const char *reason = table_text(visits, row, "reason");
    text_puts(out, *reason ? reason : "no reason was given");
}

/* Decides points.state; false if the row gets no numbers. */
static bool judge_visits(struct work_in_progress *w, int64_t point) {
    const struct table *visits = tables_peek(w->ts, "visits");
    int64_t n, bad = 0, all = 0, worst_row = -1, wrong_row = -1;
    const struct summary_visit *v = summary_visits(&w->x, point, &n);
    int worst = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *state = table_text(visits, v[i].row, "state");
        if (!strcmp(state, "wrong") && wrong_row < 0) wrong_row = v[i].row;
        if (v[i].control) continue;
        all++;
        bad += !v[i].counts;
        if (!v[i].counts && severity(state) > worst) {
            worst = severity(state);
            worst_row = v[i].row;
        }
    }
    text_free(&w->state_reason);
    const char *state = "ok";
    if (!n && given_has(w->ts, point)) return true;
    if (!all && wrong_row < 0) { /* refused before the run, or never reached */
        const char *was = table_text(w->points, point, "state");
        if (severity(was) > severity("implausible")) return false;
        table_set_text(w->points, point, "state", "skipped");
        table_set_text(w->points, point, "reason", "it was not measured before the run ended");
        return false;
    }
    if (wrong_row >= 0) {
        state = "wrong";
        add_visit_reason(&w->state_reason, visits, wrong_row);
    } else if (bad == all) {
        state = states[worst];
        add_visit_reason(&w->state_reason, visits, worst_row);
    } else if (bad) {
        state = "degraded";
        text_printf(&w->state_reason, "%lld of %lld visits %s: ", (long long)bad, (long long)all,
                    states[worst]);
        add_visit_reason(&w->state_reason, visits, worst_row);
    }
    table_set_text(w->points, point, "state", state);
    return wrong_row < 0 && bad < all;
}

/* ---- flags */

static void flag(struct work_in_progress *w, const char *name, size_t len, const char *reason) {
    if (text_has_word(w->flags.data ? w->flags.data : "", name, len)) return;
    text_printf(&w->flags, "%s%.*s", w->flags.len ? " " : "", (int)len, name);
    text_printf(&w->flag_reasons, "%s%.*s: %s", w->flag_reasons.len ? "; " : "", (int)len, name,
                reason);
}

static void flag_word(struct work_in_progress *w, const char *name, const char *reason) {
    flag(w, name, strlen(name), reason);
}

/* Of "not_steady: a; disturbed: b" the sentence of one flag. */
static void add_flag_sentence(struct text *out, const char *reasons, const char *name, size_t len) {
    for (const char *at = reasons; (at = strstr(at, name)); at++) {
        if ((at > reasons && at[-1] != ' ') || at[len] != ':') continue;
        at += len + 1;
        at += strspn(at, " ");
        const char *end = strstr(at, "; ");
        text_printf(out, " (%.*s)", end ? (int)(end - at) : (int)strlen(at), at);
        return;
    }
}

static void flag_from_visits(struct work_in_progress *w, const struct summary_visit *v, int64_t n,
                             const char *name, size_t len) {
    const struct table *visits = tables_peek(w->ts, "visits");
    int64_t with = 0, all = 0, first = -1;
    for (int64_t i = 0; i < n; i++) {
        if (v[i].control) continue;
        all++;
        if (!text_has_word(table_text(visits, v[i].row, "flags"), name, len)) continue;
        with++;
        if (first < 0) first = v[i].row;
    }
    bool passing = (len == 10 && !strncmp(name, "not_steady", len)) ||
                   (len == 9 && !strncmp(name, "disturbed", len));
    if (!with || (passing && (double)with < VISITS_SHARE * (double)all)) return;
    char word[64];
    struct text reason = {0};
    snprintf(word, sizeof word, "%.*s", (int)len, name);
    text_printf(&reason, "%lld of %lld visits", (long long)with, (long long)all);
    add_flag_sentence(&reason, table_text(visits, first, "reason"), word, strlen(word));
    flag(w, name, len, reason.data);
    text_free(&reason);
}

static void flags_of_visits(struct work_in_progress *w, int64_t point) {
    const struct table *visits = tables_peek(w->ts, "visits");
    int64_t n;
    const struct summary_visit *v = summary_visits(&w->x, point, &n);
    const char *quick = tables_meta(w->ts, "quick");
    if (!strcmp(quick, "yes") || !strcmp(quick, "true") || !strcmp(quick, "1"))
        flag_word(w, "quick", "one round only, never comparable");
    for (int64_t i = 0; i < n; i++) {
        const char *at = table_text(visits, v[i].row, "flags");
        for (; !v[i].control && *at;) {
            at += strspn(at, " ");
            size_t len = strcspn(at, " ");
            if (len && !text_has_word(w->flags.data ? w->flags.data : "", at, len))
                flag_from_visits(w, v, n, at, len);
            at += len;
        }
    }
}

/* not_steady and disturbed also from what the visits measured, not only from what they said. */
static void flags_of_samples(struct work_in_progress *w, int64_t point) {
    const struct table *visits = tables_peek(w->ts, "visits"),
                       *samples = tables_peek(w->ts, "samples");
    const int64_t *labels = table_see_i64(samples, "labels");
    int64_t n, unsteady = 0, all = 0, disturbed = 0, total = 0;
    const struct summary_visit *v = summary_visits(&w->x, point, &n);
    char reason[120];
    for (int64_t i = 0; i < n; i++) {
        if (!v[i].counts) continue;
        all++;
        unsteady += !strcmp(table_text(visits, v[i].row, "steady"), "no");
        for (int64_t k = v[i].first; k < v[i].first + v[i].n; k++)
            disturbed += labels[k] != I64_NONE && (labels[k] & LABELS_DISTURBED);
        total += v[i].n;
    }
    if (unsteady && (double)unsteady >= VISITS_SHARE * (double)all) {
        snprintf(reason, sizeof reason, "%lld of %lld visits", (long long)unsteady, (long long)all);
        flag_word(w, "not_steady", reason);
    }
    if (disturbed && (double)disturbed > DISTURBED_SHARE * (double)total) {
        snprintf(reason, sizeof reason, "%lld of %lld samples", (long long)disturbed,
                 (long long)total);
        flag_word(w, "disturbed", reason);
    }
}

static void flags_of_times(struct work_in_progress *w, const struct series *times) {
    double mean, lo, hi, drift, error;
    char reason[200];
    size_t rounds = series_rounds(times, &mean, &lo, &hi, &drift, &error);
    if (!rounds) return;
    bool quick = text_has_word(w->flags.data ? w->flags.data : "", "quick", 5);
    if (!quick && (rounds < ROUNDS_LEAST || times->n < SAMPLES_LEAST)) {
        snprintf(reason, sizeof reason, "%zu samples in %zu round%s; at least %d in %d are wanted",
                 times->n, rounds, rounds == 1 ? "" : "s", (int)SAMPLES_LEAST, (int)ROUNDS_LEAST);
        flag_word(w, "few_samples", reason);
    }
    if (fabs(drift) > fmax(0.01, 3 * error)) {
        snprintf(reason, sizeof reason, "%+.1f %% from the first round to the last", 100 * drift);
        flag_word(w, "drifting", reason);
    }
    if (stats_bimodal(times->x, times->n))
        flag_word(w, "bimodal", "the samples have two separate levels: the mean describes neither");
}

/* ---- what was reported */

static struct work_in_progress
    *sorting; /* qsort has no context; summaries are made by one thread */

static int by_metric(const void *a, const void *b) {
    int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    const struct table *t = tables_peek(sorting->ts, "values");
    int64_t vp = sorting->rank[p], vq = sorting->rank[q];
    int64_t pp = sorting->x.visit[vp].point, pq = sorting->x.visit[vq].point;
    if (pp != pq) return pp < pq ? -1 : 1;
    const char *mp = table_text(t, p, "metric"), *mq = table_text(t, q, "metric");
    int c = mp == mq ? 0 : strcmp(mp, mq);
    if (c) return c;
    if (vp != vq) return vp < vq ? -1 : 1;
    return p < q ? -1 : p > q;
}

static void values_index(struct work_in_progress *w) {
    const struct table *t = tables_peek(w->ts, "values");
    const int64_t *visit = table_see_i64(t, "visit");
    const double *value = table_see_f64(t, "value");
    int64_t rows = table_rows(t), kept = 0, point = 0;
    w->value_row = must_alloc((size_t)(rows + 1) * sizeof *w->value_row);
    w->rank = must_alloc((size_t)(rows + 1) * sizeof *w->rank);
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = visit[r] >= 0 && visit[r] < w->x.n_ids ? w->x.visit_at[visit[r]] : -1;
        if (at < 0 || !w->x.visit[at].counts || !isfinite(value[r])) continue;
        w->rank[r] = at;
        w->value_row[kept++] = r;
    }
    sorting = w;
    qsort(w->value_row, (size_t)kept, sizeof *w->value_row, by_metric);
    sorting = NULL;
    w->point_values = must_alloc((size_t)(w->x.n_points + 1) * sizeof *w->point_values);
    for (int64_t i = 0; i < kept; i++)
        while (point <= w->x.visit[w->rank[w->value_row[i]]].point) w->point_values[point++] = i;
    while (point <= w->x.n_points) w->point_values[point++] = kept;
}

/* The values of one metric: value_row[from] ... value_row[end - 1]. */
static int64_t metric_end(const struct work_in_progress *w, int64_t from, int64_t stop) {
    const struct table *t = tables_peek(w->ts, "values");
    const char *name = table_text(t, w->value_row[from], "metric");
    int64_t end = from + 1;
    while (end < stop && !strcmp(table_text(t, w->value_row[end], "metric"), name)) end++;
    return end;
}

static bool is_reported(const struct work_in_progress *w, int64_t point, const char *name) {
    const struct table *t = tables_peek(w->ts, "values");
    int64_t lo = w->point_values[point], hi = w->point_values[point + 1], stop = hi;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (strcmp(table_text(t, w->value_row[mid], "metric"), name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < stop && !strcmp(table_text(t, w->value_row[lo], "metric"), name);
}

/* Unit and exactness as declared: by the workload, for all, or by ourselves. */
static const char *metric_unit(const struct tables *ts, const char *workload, const char *name,
                               bool *exact) {
    const struct table *t = tables_peek(ts, "metrics");
    int64_t found = -1;
    *exact = false;
    for (int64_t r = 0; r < table_rows(t); r++) {
        if (strcmp(table_text(t, r, "name"), name)) continue;
        const char *whose = table_text(t, r, "workload");
        if (!strcmp(whose, workload)) found = r;
        if (!*whose && found < 0) found = r;
    }
    if (found >= 0) {
        *exact = table_int(t, found, "exact") == 1;
        return table_text(t, found, "unit");
    }
    for (const struct metric *m = summary_metrics; m->name; m++)
        if (!strcmp(m->name, name)) return m->unit;
    return "";
}

static bool exact_values_agree(struct work_in_progress *w, int64_t point) {
    const struct table *t = tables_peek(w->ts, "values");
    const double *value = table_see_f64(t, "value");
    int64_t end, stop = w->point_values[point + 1];
    for (int64_t i = w->point_values[point]; i < stop; i = end) {
        bool exact;
        const char *name = table_text(t, w->value_row[i], "metric");
        end = metric_end(w, i, stop);
        metric_unit(w->ts, table_text(w->points, point, "workload"), name, &exact);
        for (int64_t k = i + 1; exact && k < end; k++) {
            double a = value[w->value_row[i]], b = value[w->value_row[k]];
            char ta[40], tb[40];
            if (!(a < b) && !(a > b)) continue;
            text_free(&w->state_reason);
            text_printf(&w->state_reason, "%s is exact, but visits gave %s and %s", name,
                        format_exact(ta, sizeof ta, a), format_exact(tb, sizeof tb, b));
            return false;
        }
    }
    return true;
}

static void emit_exact(struct tables *ts, int64_t point, const char *name, const char *unit,
                       double v, int64_t n, int64_t rounds) {
    struct table *t = tables_get(ts, "summary");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point);
    table_set_text(t, row, "metric", name);
    table_set_text(t, row, "unit", unit);
    table_set_i64(t, row, "n", n);
    table_set_i64(t, row, "n_rounds", rounds);
    table_set_f64(t, row, "mean", v);
    table_set_f64(t, row, "median", v);
    table_set_f64(t, row, "min", v);
    table_set_f64(t, row, "max", v);
}

static void emit_reported(struct work_in_progress *w, int64_t point) {
    const struct table *t = tables_peek(w->ts, "values");
    const double *value = table_see_f64(t, "value");
    struct series s = {0};
    int64_t end, stop = w->point_values[point + 1];
    for (int64_t i = w->point_values[point]; i < stop; i = end) {
        bool exact;
        const char *name = table_text(t, w->value_row[i], "metric");
        const char *unit =
            metric_unit(w->ts, table_text(w->points, point, "workload"), name, &exact);
        end = metric_end(w, i, stop);
        double highest = value[w->value_row[i]];
        series_clear(&s);
        for (int64_t k = i; k < end; k++) {
            int64_t row = w->value_row[k];
            series_add(&s, value[row]);
            highest = fmax(highest, value[row]);
            bool last = k + 1 == end || w->rank[w->value_row[k + 1]] != w->rank[row];
            if (last) series_visit_end(&s, w->x.visit[w->rank[row]].round);
        }
        if (exact)
            emit_exact(w->ts, point, name, unit, s.x[0], (int64_t)s.n, (int64_t)s.n_visits);
        else
            series_emit(w->ts, point, name, unit, &s);
        if (!strcmp(name, "peak_bytes")) table_set_f64(w->points, point, "peak_bytes", highest);
    }
    series_free(&s);
}

/* A workload that holds single values reports NAME_lo and NAME_hi beside NAME: its 95 % interval.
 */
static void take_intervals(struct work_in_progress *w, int64_t point) {
    const struct table *t = tables_peek(w->ts, "values");
    struct table *summary = tables_get(w->ts, "summary");
    for (int64_t i = w->point_values[point]; i < w->point_values[point + 1]; i++) {
        const char *low = table_text(t, w->value_row[i], "metric");
        const size_t n = strlen(low);
        char name[64];
        if (n < 4 || n >= sizeof name || strcmp(low + n - 3, "_lo")) continue;
        memcpy(name, low, n + 1);
        name[n - 3] = 0;
        const int64_t row = summary_row(w->ts, point, name);
        if (row < 0) continue;
        memcpy(name + n - 3, "_hi", 3);
        table_set_f64(summary, row, "ci_lo", summary_get(w->ts, point, low, "mean"));
        table_set_f64(summary, row, "ci_hi", summary_get(w->ts, point, name, "mean"));
    }
}

/* ---- what is derived */

static void emit_new(struct work_in_progress *w, int64_t point, const char *name, const char *unit,
                     const struct series *s) {
    if (!is_reported(w, point, name)) series_emit(w->ts, point, name, unit, s);
}

/* "prompt token" is counted in token/s. */
static void rate_unit(char *out, size_t size, const char *item) {
    const char *space = strrchr(item, ' ');
    snprintf(out, size, "%s/s", space ? space + 1 : *item ? item : "item");
}

static void emit_phases(struct work_in_progress *w, int64_t point) {
    const struct table *phases = tables_peek(w->ts, "phases");
    struct series time = {0}, rate = {0};
    for (int64_t i = w->x.point_phases[point]; i < w->x.point_phases[point + 1]; i++) {
        int64_t row = w->x.phase_row[i];
        double items = table_real(phases, row, "items");
        char name[96], unit[96];
        if (!series_phase(&w->x, point, table_int(phases, row, "phase"), &time)) continue;
        if (items > 0) {
            series_rate(&time, items * 1e9, &rate);
            snprintf(name, sizeof name, "%.80s_rate", table_text(phases, row, "name"));
            rate_unit(unit, sizeof unit, table_text(phases, row, "item"));
            emit_new(w, point, name, unit, &rate);
        }
        series_scale(&time, 1e-6);
        snprintf(name, sizeof name, "%.80s_time", table_text(phases, row, "name"));
        emit_new(w, point, name, "ms", &time);
    }
    series_free(&time);
    series_free(&rate);
}

static bool has_phase(const struct work_in_progress *w, int64_t point, const char *name) {
    const struct table *phases = tables_peek(w->ts, "phases");
    for (int64_t i = w->x.point_phases[point]; i < w->x.point_phases[point + 1]; i++)
        if (!strcmp(table_text(phases, w->x.phase_row[i], "name"), name)) return true;
    return false;
}

static void emit_tokens(struct work_in_progress *w, int64_t point) {
    static const struct {
        const char *name, *unit;
    } is[N_TOKEN_METRICS] = {[TOKEN_TTFT] = {"ttft", "ms"},
                             [TOKEN_ITL] = {"itl", "ms"},
                             [TOKEN_TPOT] = {"tpot", "ms"},
                             [TOKEN_E2E] = {"e2e", "ms"},
                             [TOKEN_N_OUT] = {"n_out", "token"}};
    struct series s[N_TOKEN_METRICS] = {0};
    if (series_tokens(&w->x, point, s)) {
        for (int k = 0; k < N_TOKEN_METRICS; k++) {
            if (k == TOKEN_TTFT && !has_phase(w, point, "prefill"))
                continue; /* a step is no start */
            emit_new(w, point, is[k].name, is[k].unit, &s[k]);
        }
        int64_t excluded = (int64_t)(s[TOKEN_E2E].n - s[TOKEN_TPOT].n);
        if (excluded)
            emit_exact(w->ts, point, "tpot_excluded", "request", (double)excluded,
                       (int64_t)s[TOKEN_E2E].n, (int64_t)s[TOKEN_E2E].n_visits);
    }
    for (int k = 0; k < N_TOKEN_METRICS; k++) series_free(&s[k]);
}

static void emit_times(struct work_in_progress *w, int64_t point, struct series *times) {
    double bytes = table_real(w->points, point, "bytes");
    double flops = table_real(w->points, point, "flops");
    struct series rate = {0};
    struct text beyond = {0};
    series_copy(times, 1e-6, &rate);
    emit_new(w, point, "time", "ms", &rate);
    if (bytes > 0) {
        series_rate(times, bytes * 1e9, &rate);
        emit_new(w, point, "bandwidth", "byte/s", &rate);
    }
    if (flops > 0) {
        series_rate(times, flops * 1e9, &rate);
        emit_new(w, point, "flop_rate", "FLOP/s", &rate);
    }
    ceilings_judge(&w->x, point, times, &beyond);
    if (beyond.len) {
        table_set_text(w->points, point, "state", "implausible");
        text_printf(&w->state_reason, "%s%s", w->state_reason.len ? "; " : "", beyond.data);
    }
    flags_of_times(w, times);
    series_free(&rate);
    text_free(&beyond);
}

static void reason_set(struct work_in_progress *w, int64_t point) {
    struct text all = {0};
    if (w->state_reason.len) text_puts(&all, w->state_reason.data);
    if (w->flag_reasons.len) text_printf(&all, "%s%s", all.len ? "; " : "", w->flag_reasons.data);
    table_set_text(w->points, point, "flags", w->flags.len ? w->flags.data : "");
    table_set_text(w->points, point, "reason", all.len ? all.data : "");
    text_free(&all);
}

static void point_compute(struct work_in_progress *w, int64_t point, struct series *times) {
    int64_t visits;
    summary_visits(&w->x, point, &visits);
    if (!visits && given_has(w->ts, point)) given_emit(w->ts, point);
    if (!visits) return;  /* its state and reason stand already */
    text_free(&w->flags); /* of the point before */
    text_free(&w->flag_reasons);
    bool numbers = judge_visits(w, point);
    if (numbers && !exact_values_agree(w, point)) {
        table_set_text(w->points, point, "state", "failed");
        numbers = false;
    }
    flags_of_visits(w, point);
    if (numbers) {
        flags_of_samples(w, point);
        series_times(&w->x, point, times);
        if (times->n) emit_times(w, point, times);
        emit_phases(w, point);
        emit_tokens(w, point);
        emit_reported(w, point);
        take_intervals(w, point);
    } else {
        table_set_f64(w->points, point, "peak_bytes", NAN); /* of a visit that came to nothing */
    }
    reason_set(w, point);
}

/* ---- drift within rounds */

static void meta_set(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    int64_t row = 0;
    while (row < table_rows(t) && strcmp(table_text(t, row, "key"), key)) row++;
    if (row == table_rows(t)) table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static double visit_mean(const struct summary_index *x, const struct summary_visit *v) {
    const struct table *t = tables_peek(x->ts, "samples");
    double sum = 0;
    for (int64_t i = v->first; i < v->first + v->n; i++)
        sum += table_real(t, i, "wall_ns") / table_real(t, i, "batch");
    return v->n ? sum / (double)v->n : (double)NAN;
}

/* The first point of a round is measured again at its end: what moved in between is the machine. */
static void control_drift(struct work_in_progress *w) {
    const struct summary_index *x = &w->x;
    double *moved = must_alloc((size_t)(x->n_visits + 1) * sizeof *moved);
    size_t n = 0;
    for (int64_t i = 0; i < x->n_visits; i++) {
        const struct summary_visit *c = &x->visit[i];
        if (!c->control || c->failed) continue;
        int64_t k, visits;
        const struct summary_visit *v = summary_visits(x, c->point, &visits);
        for (k = 0; k < visits && !(v[k].counts && v[k].round == c->round);) k++;
        if (k == visits) continue;
        double ratio = visit_mean(x, c) / visit_mean(x, &v[k]) - 1;
        if (isfinite(ratio)) moved[n++] = ratio;
    }
    if (n) {
        double mean = stats_mean(moved, n), error = stats_stddev(moved, n) / sqrt((double)n);
        char text[160];
        bool beyond = n > 1 && fabs(mean) > fmax(0.01, 3 * error);
        snprintf(text, sizeof text, "%+.1f %% within rounds, over %zu%s", 100 * mean, n,
                 beyond ? ": drifting" : "");
        meta_set(w->ts, "control_drift", text);
    }
    free(moved);
}

int summary_compute(struct tables *ts, struct err *err) {
    (void)err;
    struct work_in_progress w = {.ts = ts, .points = tables_get(ts, "points")};
    struct series times = {0};
    table_cut(tables_get(ts, "summary"), 0);
    summary_index_make(&w.x, ts);
    values_index(&w);
    for (int64_t p = 0; p < w.x.n_points; p++) {
        judge_visits(&w, p); /* once before all: ceilings come from points that may have numbers */
        table_set_text(w.points, p, "bound", "");
    }
    ceilings_compute(&w.x);
    for (int64_t p = 0; p < w.x.n_points; p++) point_compute(&w, p, &times);
    control_drift(&w);
    series_free(&times);
    summary_index_free(&w.x);
    free(w.value_row);
    free(w.point_values);
    free(w.rank);
    text_free(&w.state_reason);
    text_free(&w.flags);
    text_free(&w.flag_reasons);
    return 0;
}

/* ---- reading it */

static void counted(struct text *t, int64_t n, const char *one, const char *many) {
    if (n) text_printf(t, "%s%lld %s", t->len ? ", " : "", (long long)n, n == 1 ? one : many);
}

void summary_broken(const struct tables *ts, struct text *why) {
    const struct table *fits = tables_peek(ts, "fits"), *published = tables_peek(ts, "published");
    int64_t failed = 0, differ = 0;
    for (int64_t r = 0; r < table_rows(fits); r++)
        failed += !strcmp(table_text(fits, r, "verdict"), "failed") &&
                  strcmp(table_text(fits, r, "analysis"), "published");
    for (int64_t r = 0; r < table_rows(published); r++)
        differ += !strcmp(table_text(published, r, "kind"), "exact") &&
                  !strcmp(table_text(published, r, "verdict"), "differs");
    counted(why, failed, "analysis FAILED", "analyses FAILED");
    counted(why, differ, "exact published figure DIFFERS", "exact published figures DIFFER");
}

int summary_exit(const struct tables *ts) {
    const struct table *points = tables_peek(ts, "points");
    struct text why = {0};
    for (int64_t p = 0; p < table_rows(points); p++)
        if (severity(table_text(points, p, "state")) >= severity("implausible") ||
            rows_flagged(ts, p, "fell_back"))
            return 3;
    summary_broken(ts, &why);
    const int code = why.len ? 3 : 0;
    text_free(&why);
    return code;
}
