/* SPDX-License-Identifier: Apache-2.0 */
/* One row over another, or one metric over another: decode over prefill cost, recompute over cache
 * (E01, E04, E05). */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"

struct ratio_params {
    const char *metric, *over_metric, *at, *over, *expect, *x, *below;
    bool grows;
};

#define NUM(v) rows_number((char[32]){0}, v, 4)

struct pair {
    int64_t a, b;
    double x, value, lo, hi;
};

/* ">1", ">= 1", "<2", "<= 2": the side and the limit; false where there is no expectation. */
static bool read_expect(const char *s, bool *greater, bool *or_equal, double *limit) {
    s += strspn(s, " ");
    if (*s != '<' && *s != '>') return false;
    *greater = *s++ == '>';
    *or_equal = *s == '=';
    s += *or_equal;
    return parse_f64(s + strspn(s, " "), limit);
}

/* The whole interval must lie on the right side to be ok, on the wrong one to be failed. */
static const char *judge(const struct pair *p, bool greater, bool or_equal, double limit) {
    if (!isfinite(p->lo) || !isfinite(p->hi)) return "none";
    if (greater) {
        if (p->lo > limit || (or_equal && p->lo >= limit)) return "ok";
        return p->hi < limit || (!or_equal && p->hi <= limit) ? "failed" : "none";
    }
    if (p->hi < limit || (or_equal && p->hi <= limit)) return "ok";
    return p->lo > limit || (!or_equal && p->lo >= limit) ? "failed" : "none";
}

/* Of rows that bring their own intervals: no round tells more, so the widest that these allow. */
static void given_interval(const struct tables *ts, const struct ratio_params *p, const char *over,
                           struct pair *pair) {
    const double top_lo = summary_get(ts, pair->a, p->metric, "ci_lo"),
                 top_hi = summary_get(ts, pair->a, p->metric, "ci_hi"),
                 bottom_lo = summary_get(ts, pair->b, over, "ci_lo"),
                 bottom_hi = summary_get(ts, pair->b, over, "ci_hi");
    if (!(bottom_lo > 0 && top_lo >= 0 && isfinite(top_hi) && isfinite(bottom_hi))) return;
    pair->lo = top_lo / bottom_hi;
    pair->hi = top_hi / bottom_lo;
}

static void measure(const struct tables *ts, const struct ratio_params *p, const struct rounds *top,
                    const struct rounds *bottom, struct pair *pair) {
    const char *over = *p->over_metric ? p->over_metric : p->metric;
    double *logs = must_alloc((size_t)(top->n_rounds + 1) * sizeof *logs);
    size_t n = 0;
    pair->lo = pair->hi = (double)NAN;
    pair->value = rows_metric(ts, pair->a, p->metric) / rows_metric(ts, pair->b, over);
    if (!isfinite(pair->value)) pair->value = (double)NAN;
    if (rows_exact(ts, p->metric) && rows_exact(ts, over)) {
        pair->lo = pair->hi = pair->value;
    } else {
        for (int64_t k = 0; k < top->n_rounds; k++) {
            double v = log(rounds_get(top, pair->a, top->rounds[k]) /
                           rounds_get(bottom, pair->b, top->rounds[k]));
            if (isfinite(v)) logs[n++] = v;
        }
        double value;
        if (n >= 2)
            rows_log_interval(logs, n, &value, &pair->lo, &pair->hi);
        else
            given_interval(ts, p, over, pair);
    }
    free(logs);
}

static int by_x(const void *a, const void *b) {
    const struct pair *p = a, *q = b;
    if (p->x < q->x || p->x > q->x) return p->x < q->x ? -1 : 1;
    return p->a < q->a ? -1 : p->a > q->a;
}

/* Rows that meet `at`, each with the one that meets `over` and agrees in everything else. */
static size_t find_pairs(const struct tables *ts, const char *only_case,
                         const struct ratio_params *p, struct pair **pairs, struct text *left_out) {
    const struct table *points = tables_peek(ts, "points");
    int64_t n = table_rows(points), n_over = 0;
    size_t count = 0;
    bool alone = !strcmp(p->at, p->over);
    int64_t *over = must_alloc((size_t)(n + 1) * sizeof *over);
    *pairs = must_alloc((size_t)(n + 1) * sizeof **pairs);
    for (int64_t i = 0; i < n; i++)
        if (!alone && rows_match(ts, i, p->over)) over[n_over++] = i;
    for (int64_t i = 0; i < n; i++) {
        int64_t b = alone ? i : -1;
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_match(ts, i, p->at)) continue;
        for (int64_t k = 0; k < n_over && b < 0; k++)
            if (rows_pair(ts, i, over[k], p->at, p->over)) b = over[k];
        if (b < 0) continue;
        int64_t bad = !rows_usable(ts, i) ? i : !rows_usable(ts, b) ? b : -1;
        if (bad >= 0) {
            if (left_out->len < 300)
                text_printf(left_out, "%s%s (%s)", left_out->len ? ", " : "",
                            table_text(points, bad, "label"), table_text(points, bad, "state"));
            continue;
        }
        (*pairs)[count++] = (struct pair){i, b, *p->x ? rows_key(ts, i, p->x) : (double)i, 0, 0, 0};
    }
    free(over);
    if (count) qsort(*pairs, count, sizeof **pairs, by_x);
    return count;
}

/* "workload.mode=recompute, workload.n=4" is called "recompute 4". */
static void add_values(struct text *t, const char *where) {
    for (const char *at = where; *at;) {
        size_t n = strcspn(at, ","), k = strcspn(at, "=");
        const char *v = k < n ? at + k + 1 : at;
        v += strspn(v, " ");
        text_printf(t, " %.*s", (int)(at + n - v), v);
        at += n + (at[n] == ',');
    }
}

static void what_over_what(const struct ratio_params *p, struct text *t) {
    const char *over = *p->over_metric ? p->over_metric : p->metric;
    if (strcmp(over, p->metric)) {
        text_printf(t, "%s / %s", p->metric, over);
        return;
    }
    text_printf(t, "%s:", p->metric);
    add_values(t, p->at);
    text_puts(t, " /");
    add_values(t, p->over);
}

/* What tells this pair from the others: ", tokens=32". */
static void which_pair(const struct tables *ts, const struct pair *pairs, size_t n, size_t which,
                       struct text *t) {
    const struct table *points = tables_peek(ts, "points");
    if (n > 1000) return; /* nobody reads so many, and it is quadratic */
    for (size_t c = 0; c < table_columns(points); c++) {
        struct text mine = {0}, other = {0};
        bool differs = false;
        if (!rows_swept(ts, c)) continue;
        table_cell(points, pairs[which].a, c, &mine);
        for (size_t i = 0; i < n && !differs; i++) {
            other.len = 0;
            table_cell(points, pairs[i].a, c, &other);
            differs = other.len != mine.len || (mine.len && strcmp(other.data, mine.data));
        }
        if (differs && mine.len)
            text_printf(t, ", %s=%s", rows_short(table_column_at(points, c)->name), mine.data);
        text_free(&mine);
        text_free(&other);
    }
}

/* E01: the ratio grows with x. Judged between the first and the last row by intervals that do not
 * overlap. */
static void check_growth(struct tables *ts, const char *only_case, const struct ratio_params *p,
                         const struct pair *pairs, size_t n) {
    struct finding f = {"ratio", only_case, "grows", NAN, NAN, NAN, "", NULL};
    if (n < 2) {
        analysis_found(ts, &f, "not computed: %zu pairs of rows", n);
        return;
    }
    const struct pair *first = pairs, *last = pairs + n - 1;
    f.value = last->value / first->value;
    if (last->lo > first->hi) f.verdict = "ok";
    if (last->hi < first->lo) f.verdict = "failed";
    analysis_found(ts, &f, "from %s to %s over %s %s \xe2\x80\xa6 %s", NUM(first->value),
                   NUM(last->value), *p->x ? rows_short(p->x) : "rows", NUM(first->x),
                   NUM(last->x));
}

static void write_pair(struct tables *ts, const char *only_case, const struct ratio_params *p,
                       const struct pair *pair, const char *what, const char *which) {
    bool greater = false, or_equal = false;
    double limit = NAN;
    struct text name = {0};
    bool expected = read_expect(p->expect, &greater, &or_equal, &limit);
    bool exact = !(pair->lo < pair->hi); /* counted: no interval is shown, yet it can be judged */
    text_printf(&name, "%s%s", what, which);
    struct finding f = {"ratio",
                        only_case,
                        name.data,
                        pair->value,
                        exact ? (double)NAN : pair->lo,
                        exact ? (double)NAN : pair->hi,
                        "",
                        NULL};
    if (expected) f.verdict = judge(pair, greater, or_equal, limit);
    if (!isfinite(pair->value))
        analysis_found(ts, &f, "not computed: a row has no number");
    else if (expected)
        analysis_found(ts, &f, "expected %s%s", p->expect,
                       isfinite(pair->lo) ? "" : "; no verdict: no interval");
    else
        analysis_found(ts, &f, "no expectation declared");
    if (*p->below) {
        /* E01: a measured ratio stays below the ratio of something that is counted. */
        double cap = rows_metric(ts, pair->a, p->below) / rows_metric(ts, pair->b, p->below);
        name.len = 0;
        text_printf(&name, "%s below %s%s", what, p->below, which);
        f.name = name.data;
        f.verdict = isfinite(cap) ? judge(pair, false, false, cap) : "none";
        analysis_found(ts, &f, "%s has the ratio %s", p->below, NUM(cap));
    }
    text_free(&name);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct ratio_params *p = params;
    struct rounds top, bottom;
    struct pair *pairs = NULL;
    struct text left_out = {0}, what = {0}, which = {0};
    bool greater, or_equal;
    double limit;
    (void)err;
    what_over_what(p, &what);
    struct finding f = {"ratio", only_case, what.data, NAN, NAN, NAN, "", NULL};
    size_t n = find_pairs(ts, only_case ? only_case : "", p, &pairs, &left_out);
    rounds_read(ts, p->metric, &top);
    rounds_read(ts, *p->over_metric ? p->over_metric : p->metric, &bottom);
    if (*p->expect && !read_expect(p->expect, &greater, &or_equal, &limit))
        analysis_found(ts, &f, "no verdict: expect takes '>N', '>=N', '<N' or '<=N', not '%s'",
                       p->expect);
    else if (!n)
        analysis_found(ts, &f, "not computed: no pair of rows has numbers%s%s",
                       left_out.len ? "; left out: " : "", left_out.len ? left_out.data : "");
    else if (left_out.len)
        analysis_found(ts, &f, "left out: %s", left_out.data);
    for (size_t i = 0; i < n; i++) measure(ts, p, &top, &bottom, &pairs[i]);
    for (size_t i = 0; i < n; i++) {
        which.len = 0;
        which_pair(ts, pairs, n, i, &which);
        write_pair(ts, only_case, p, &pairs[i], what.data, which.len ? which.data : "");
    }
    if (p->grows) check_growth(ts, only_case, p, pairs, n);
    rounds_free(&top);
    rounds_free(&bottom);
    free(pairs);
    text_free(&left_out);
    text_free(&what);
    text_free(&which);
    return 0;
}

#define TEXT(key, def, help)                                                                       \
    { #key, NULL, OPT_TEXT, 0, offsetof(struct ratio_params, key), def, 0, 0, NULL, "", help }
static const struct option options[] = {
    TEXT(metric, NULL, "numerator"),
    TEXT(over_metric, "", "denominator, if it is another metric"),
    TEXT(at, "", "rows of the numerator: 'workload.mode=recompute'; 'case=NAME' works too"),
    TEXT(over, "", "rows of the denominator; each is paired by all other swept keys"),
    TEXT(expect, "", "'>1', '>=1', '<2', '<=2': judged by the interval's bound"),
    TEXT(x, "", "swept key that orders the pairs"),
    TEXT(below, "", "metric whose ratio over the same rows must be larger"),
    {"grows", NULL, OPT_FLAG, 0, offsetof(struct ratio_params, grows), "false", 0, 0, NULL, "",
     "the ratio must grow from the first to the last x"},
    {0},
};

const struct analysis analysis_ratio = {
    .name = "ratio",
    .brief = "one row or metric over another, with an interval and an expectation",
    .params = options,
    .params_size = sizeof(struct ratio_params),
    .run = run,
};
