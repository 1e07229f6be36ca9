/* SPDX-License-Identifier: Apache-2.0 */
/* Flatness: a metric moves over a sweep by no more than the ledger predicts and the noise explains
 * (E07). */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/arena.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"

enum { AGAINST_BYTES, AGAINST_FLOPS, AGAINST_NOTHING };
struct flat_params {
    const char *x, *y, *by;
    int against;
    double tolerance;
};

#define NUM(v) rows_number((char[32]){0}, v, 4)

/* Largest over smallest of a ledger column among the rows. */
static double predicted_growth(const struct tables *ts, const struct rows_group *g, int against) {
    const struct table *points = tables_peek(ts, "points");
    double lo = INFINITY, hi = 0;
    if (against == AGAINST_NOTHING) return 1;
    for (int32_t i = 0; i < g->n; i++) {
        double v = table_real(points, g->point[i], against == AGAINST_BYTES ? "bytes" : "flops");
        if (!(v > 0)) return (double)NAN;
        lo = fmin(lo, v);
        hi = fmax(hi, v);
    }
    return hi / lo;
}

static void run_group(struct tables *ts, const char *only_case, const void *params,
                      const struct rows_group *g, const struct rounds *r, const char *left_out) {
    const struct flat_params *p = params;
    char name[200];
    int32_t top = -1, bottom = -1;
    double largest = 0, smallest = INFINITY;
    snprintf(name, sizeof name, "%s max/min%s%s", p->y, *g->name ? " " : "", g->name);
    struct finding f = {"flat", only_case, name, NAN, NAN, NAN, "", NULL};
    for (int32_t i = 0; i < g->n; i++) {
        double v = rows_metric(ts, g->point[i], p->y);
        if (!(v > 0)) continue;
        if (v > largest) largest = v, top = i;
        if (v < smallest) smallest = v, bottom = i;
    }
    if (top < 0 || g->n < 2) {
        analysis_found(ts, &f, "not computed: %s rows have %s%s%s", top < 0 ? "no" : "too few",
                       p->y, *left_out ? "; left out: " : "", left_out);
        return;
    }
    double predicted = predicted_growth(ts, g, p->against);
    f.value = largest / smallest;
    double *logs = must_alloc((size_t)(r->n_rounds + 1) * sizeof *logs);
    size_t n = 0;
    for (int64_t k = 0; k < r->n_rounds; k++) {
        double v = log(rounds_get(r, g->point[top], r->rounds[k]) /
                       rounds_get(r, g->point[bottom], r->rounds[k]));
        if (isfinite(v)) logs[n++] = v;
    }
    if (n >= 2) {
        /* The two rows were chosen for lying apart: the level is that of all pairs together. */
        double pairs = (double)g->n * ((double)g->n - 1) / 2, mean = stats_mean(logs, n);
        double half = stats_t_quantile(1 - 0.025 / pairs, (double)n - 1) * stats_stddev(logs, n) /
                      sqrt((double)n);
        f.lo = exp(mean - half);
        f.hi = exp(mean + half);
    } else if (rows_exact(ts, p->y)) {
        f.lo = f.hi = f.value;
    }
    free(logs);
    double allowed = (predicted >= 1 ? predicted : 1) * (1 + p->tolerance);
    /* A measured check fails only when even the near end of the interval is beyond. */
    if (isfinite(f.lo)) f.verdict = f.lo > allowed ? "failed" : "ok";
    struct text t = {0};
    text_printf(&t, "largest at %s %s, smallest at %s", rows_short(p->x), NUM(g->x[top]),
                NUM(g->x[bottom]));
    if (p->against == AGAINST_NOTHING)
        text_printf(&t, "; %s allowed", NUM(allowed));
    else if (isfinite(predicted))
        text_printf(&t, "; the ledger's %s grow %s times, %s allowed",
                    p->against == AGAINST_BYTES ? "bytes" : "FLOPs", NUM(predicted), NUM(allowed));
    else
        text_puts(&t, "; no ledger to predict from");
    if (!isfinite(f.lo)) text_puts(&t, "; no verdict: one round has no interval");
    if (*left_out) text_printf(&t, "; left out: %s", left_out);
    analysis_found(ts, &f, "%s", t.data);
    text_free(&t);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct flat_params *p = params;
    const struct finding none = {"flat", only_case, p->y, NAN, NAN, NAN, "", NULL};
    (void)err;
    analysis_groups(ts, &(struct analysis_axes){p->x, p->y, p->by}, &none, "not computed", p,
                    run_group);
    return 0;
}

static const char *const against_words[] = {"bytes", "flops", "nothing", NULL};
static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct flat_params, x), NULL, 0, 0, NULL, "",
     "swept key over which the metric should not move"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct flat_params, y), "time", 0, 0, NULL, "", "metric"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct flat_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"against", NULL, OPT_WORD, 0, offsetof(struct flat_params, against), "bytes", 0, 0,
     against_words, "", "which growth of the ledger is allowed"},
    {"tolerance", NULL, OPT_REAL, 0, offsetof(struct flat_params, tolerance), "0.05", 0, 10, NULL,
     "", "share beyond the predicted growth that is allowed"},
    {0},
};

const struct analysis analysis_flat = {
    .name = "flat",
    .brief = "largest over smallest mean of a sweep against the growth that the ledger predicts",
    .params = options,
    .params_size = sizeof(struct flat_params),
    .run = run,
};
