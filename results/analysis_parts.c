/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a divided row goes, and whether its parts make up the undivided row. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/summary.h"

struct parts_params {
    const char *at, *over;
    double tolerance;
};

#define SMALL 0.5 /* per cent */
enum { PARTS_MOST = 16 };

struct share {
    const char *name;
    double ms;
};

static int by_size(const void *a, const void *b) {
    double x = ((const struct share *)a)->ms, y = ((const struct share *)b)->ms;
    return (x < y) - (x > y);
}

/* The timed phases of a row. */
static int read_parts(const struct tables *ts, int64_t point, struct share *parts) {
    const struct table *phases = tables_peek(ts, "phases");
    int n = 0;
    for (int64_t i = 0; i < table_rows(phases) && n < PARTS_MOST; i++) {
        char metric[120];
        if (table_int(phases, i, "point") != point) continue;
        const char *name = table_text(phases, i, "name");
        snprintf(metric, sizeof metric, "%.100s_time", name);
        double ms = summary_get(ts, point, metric, "mean");
        if (ms >= 0) parts[n++] = (struct share){name, ms};
    }
    return n;
}

/* Sum of the parts' times in one round. */
static double sum_of_round(const struct rounds *times, int n, int64_t point, int64_t round) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += rounds_get(&times[i], point, round);
    return sum;
}

/* "mlp 52.1 %, head 21.3 %, ...": largest first, the smallest together. */
static void say_shares(const struct share *parts, int n, double sum, struct text *t) {
    double rest = 0;
    for (int i = 0; i < n; i++) {
        const double share = 100 * parts[i].ms / sum;
        if (share < SMALL)
            rest += share;
        else
            text_printf(t, "%s%s %.1f %%", i ? ", " : "", parts[i].name, share);
    }
    if (rest >= 0.05) text_printf(t, ", other %.1f %%", rest);
}

static void run_row(struct tables *ts, const char *only_case, const struct parts_params *p,
                    int64_t point, int64_t whole) {
    struct share parts[PARTS_MOST];
    struct rounds each[PARTS_MOST], undivided;
    struct text t = {0}, label = {0}, name = {0};
    const int n = read_parts(ts, point, parts);
    rows_label(ts, point, p->at, &label);
    text_printf(&name, "%s%ssum of the parts", label.data, label.len ? ", " : "");
    struct finding f = {"parts", only_case, name.data, NAN, NAN, NAN, "of the whole", NULL};
    double sum = 0, *logs, value;
    if (n < 2) {
        analysis_found(ts, &f, "not computed: the row has no parts with times");
        goto out;
    }
    for (int i = 0; i < n; i++) sum += parts[i].ms;
    qsort(parts, (size_t)n, sizeof *parts, by_size);
    say_shares(parts, n, sum, &t);
    if (whole < 0) {
        analysis_found(ts, &f, "%s; no undivided row to compare the sum with", t.data);
        goto out;
    }
    rounds_read(ts, "time", &undivided);
    for (int i = 0; i < n; i++) {
        char metric[120];
        snprintf(metric, sizeof metric, "%.100s_time", parts[i].name);
        rounds_read(ts, metric, &each[i]);
    }
    f.value = sum / rows_metric(ts, whole, "time");
    logs = must_alloc((size_t)(undivided.n_rounds + 1) * sizeof *logs);
    size_t rounds = 0;
    for (int64_t k = 0; k < undivided.n_rounds; k++) {
        const int64_t round = undivided.rounds[k];
        double v = log(sum_of_round(each, n, point, round) / rounds_get(&undivided, whole, round));
        if (isfinite(v)) logs[rounds++] = v;
    }
    if (rounds >= 2) rows_log_interval(logs, rounds, &value, &f.lo, &f.hi);
    const bool close = fabs(f.value - 1) <= p->tolerance;
    const bool within = f.lo <= 1 && f.hi >= 1;
    const bool judged = isfinite(f.lo) && isfinite(f.value);
    if (judged && (close || within)) f.verdict = "ok";
    analysis_found(
        ts, &f, "%s: %s", t.data,
        !isfinite(f.value) ? "the undivided row has no time"
        : !judged          ? "one round has no interval: no verdict on the sum"
        : within           ? "they make up the whole within the interval"
        : close            ? "they make up the whole within the tolerance"
        : f.value > 1
            ? "they take MORE than the whole: what lies between them costs time, and short parts look too large"
            : "they take LESS than the whole: the two rows met different conditions");
    for (int i = 0; i < n; i++) rounds_free(&each[i]);
    rounds_free(&undivided);
    free(logs);
out:
    text_free(&t);
    text_free(&label);
    text_free(&name);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct parts_params *p = params;
    const struct table *points = tables_peek(ts, "points");
    const int64_t n = table_rows(points);
    int64_t rows = 0;
    struct finding f = {"parts", only_case, "parts", NAN, NAN, NAN, "", NULL};
    struct text label = {0};
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_match(ts, i, p->at)) continue;
        rows++;
        if (!rows_usable(ts, i)) {
            rows_label(ts, i, p->at, &label);
            f.name = label.len ? label.data : "row";
            analysis_found(ts, &f, "not computed: the row is %s", table_text(points, i, "state"));
            continue;
        }
        int64_t whole = -1;
        for (int64_t k = 0; k < n && whole < 0 && *p->over; k++)
            if (k != i && rows_match(ts, k, p->over) && rows_usable(ts, k) &&
                rows_pair(ts, i, k, p->at, p->over))
                whole = k;
        run_row(ts, only_case, p, i, whole);
    }
    text_free(&label);
    f.name = "parts";
    if (!rows) analysis_found(ts, &f, "not computed: no row meets '%s'", p->at);
    return 0;
}

static const struct option options[] = {
    {"at", NULL, OPT_TEXT, 0, offsetof(struct parts_params, at), "workload.split=parts", 0, 0, NULL,
     "", "divided rows: each phase that has a time is a part"},
    {"over", NULL, OPT_TEXT, 0, offsetof(struct parts_params, over), "workload.split=whole", 0, 0,
     NULL, "", "undivided rows; each is paired by all other swept keys"},
    {"tolerance", NULL, OPT_REAL, 0, offsetof(struct parts_params, tolerance), "0.01", 0, 1, NULL,
     "", "the sum may differ from the whole by that share, whatever the interval"},
    {0},
};

const struct analysis analysis_parts = {
    .name = "parts",
    .brief = "shares of the parts of a divided row, and whether they sum to the undivided one",
    .params = options,
    .params_size = sizeof(struct parts_params),
    .run = run,
};
