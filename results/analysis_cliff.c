/* SPDX-License-Identifier: Apache-2.0 */
/* Cliffs: a sweep along which the cost of an item should only fall, and the steps where it rises.
 */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"

struct cliff_params {
    const char *x, *y, *by;
    double until, tolerance;
    bool strict;
};

#define WIDEST 1000
#define NUM(v) rows_number((char[32]){0}, v, 3)

struct rise { /* of y / x from one row to the next */
    double value, lo, hi;
};

static struct rise rise_of(const struct tables *ts, const struct cliff_params *p,
                           const struct rows_group *g, int32_t i, const struct rounds *r,
                           double quantile_share) {
    const double stretch = g->x[i - 1] / g->x[i];
    struct rise rise = {stretch * rows_metric(ts, g->point[i], p->y) /
                            rows_metric(ts, g->point[i - 1], p->y),
                        (double)NAN, (double)NAN};
    double *logs = must_alloc((size_t)(r->n_rounds + 1) * sizeof *logs);
    size_t n = 0;
    for (int64_t k = 0; k < r->n_rounds; k++) {
        double v = log(stretch * rounds_get(r, g->point[i], r->rounds[k]) /
                       rounds_get(r, g->point[i - 1], r->rounds[k]));
        if (isfinite(v)) logs[n++] = v;
    }
    if (n >= 2) {
        const double mean = stats_mean(logs, n),
                     half = stats_t_quantile(1 - 0.025 / quantile_share, (double)n - 1) *
                            stats_stddev(logs, n) / sqrt((double)n);
        rise.lo = exp(mean - half);
        rise.hi = exp(mean + half);
    }
    free(logs);
    return rise;
}

/* All steps together have the level: many are looked at, and the worst is shown. */
static void run_group(struct tables *ts, const char *only_case, const void *params,
                      const struct rows_group *g, const struct rounds *r, const char *left_out) {
    const struct cliff_params *p = params;
    char name[200];
    struct text t = {0};
    int32_t worst = -1, steps = 0, rises = 0;
    struct rise most = {0, (double)NAN, (double)NAN};
    bool judged = true;
    snprintf(name, sizeof name, "%s a %s%s%s", p->y, rows_short(p->x), *g->name ? ", " : "",
             g->name);
    struct finding f = {"cliff", only_case, name, NAN, NAN, NAN, "\xc3\x97", NULL};
    for (int32_t i = 1; i < g->n; i++) steps += g->x[i] <= p->until;
    for (int32_t i = 1; i < g->n && g->x[i] <= p->until; i++) {
        const struct rise rise = rise_of(ts, p, g, i, r, steps);
        if (!isfinite(rise.value)) continue;
        judged = judged && isfinite(rise.lo);
        rises += rise.lo > 1 + p->tolerance;
        if (rise.value > most.value) most = rise, worst = i;
    }
    if (worst < 0) {
        text_printf(&t, "not computed: fewer than two rows have %s", p->y);
        if (g->n && g->x[g->n - 1] > p->until)
            text_printf(&t, " up to %s %s", rows_short(p->x), NUM(p->until));
        if (*left_out) text_printf(&t, "; left out: %s", left_out);
        analysis_found(ts, &f, "%s", t.data);
        text_free(&t);
        return;
    }
    f.value = most.value;
    if (most.hi < WIDEST * most.lo) { /* beyond, its bounds say nothing */
        f.lo = most.lo;
        f.hi = most.hi;
    }
    if (judged) f.verdict = !rises ? "ok" : p->strict ? "failed" : "none";
    text_printf(&t, "largest step from %s %s to %s", rows_short(p->x), NUM(g->x[worst - 1]),
                NUM(g->x[worst]));
    if (!judged)
        text_puts(&t, "; no verdict: one round has no interval");
    else if (!rises)
        text_printf(&t, "; none of %d steps rises by more than %s %% beyond its interval", steps,
                    NUM(100 * p->tolerance));
    else
        text_printf(&t, "; %d of %d steps rise%s by more than %s %%", rises, steps,
                    rises == 1 ? "s" : "", NUM(100 * p->tolerance));
    if (*left_out) text_printf(&t, "; left out: %s", left_out);
    analysis_found(ts, &f, "%s", t.data);
    text_free(&t);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct cliff_params *p = params;
    const struct finding none = {"cliff", only_case, p->y, NAN, NAN, NAN, "", NULL};
    (void)err;
    analysis_groups(ts, &(struct analysis_axes){p->x, p->y, p->by}, &none, "not computed", p,
                    run_group);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct cliff_params, x), NULL, 0, 0, NULL, "",
     "swept number of items: rows, tokens"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct cliff_params, y), "time", 0, 0, NULL, "",
     "metric of all items together; y / x should only fall"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct cliff_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"until", NULL, OPT_REAL, 0, offsetof(struct cliff_params, until), "1e18", 0, 1e18, NULL, "",
     "largest x that is looked at"},
    {"tolerance", NULL, OPT_REAL, 0, offsetof(struct cliff_params, tolerance), "0.05", 0, 10, NULL,
     "", "share by which a step may rise"},
    {"strict", NULL, OPT_FLAG, 0, offsetof(struct cliff_params, strict), "false", 0, 0, NULL, "",
     "a step that rises fails the run"},
    {0},
};

const struct analysis analysis_cliff = {
    .name = "cliff",
    .brief = "whether the cost of an item rises anywhere along a sweep of their number",
    .params = options,
    .params_size = sizeof(struct cliff_params),
    .run = run,
};
