/* SPDX-License-Identifier: Apache-2.0 */
/* What more threads bring: speed over that of the fewest, efficiency, and the share that does not
 * scale. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/rows.h"

struct speedup_params {
    const char *x, *y, *by;
    double expect;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)

/* Speed of one row over another's: of a rate the ratio, of a time its inverse. */
static double faster(bool rate, double v, double base) { return rate ? v / base : base / v; }

static void write_row(struct tables *ts, const char *only_case, const struct speedup_params *p,
                      const struct rows_group *g, int32_t i, const struct rounds *r, bool rate) {
    char name[200];
    double *logs = must_alloc((size_t)(r->n_rounds + 1) * sizeof *logs), value;
    size_t n = 0;
    const double more = g->x[i] / g->x[0];
    snprintf(name, sizeof name, "%s%s%s %s over %s", g->name, *g->name ? ", " : "",
             rows_short(p->x), NUM(g->x[i]), NUM(g->x[0]));
    struct finding f = {"speedup", only_case, name, NAN, NAN, NAN, "", NULL};
    f.value = faster(rate, rows_metric(ts, g->point[i], p->y), rows_metric(ts, g->point[0], p->y));
    for (int64_t k = 0; k < r->n_rounds; k++) {
        double v = log(faster(rate, rounds_get(r, g->point[i], r->rounds[k]),
                              rounds_get(r, g->point[0], r->rounds[k])));
        if (isfinite(v)) logs[n++] = v;
    }
    if (n >= 2) rows_log_interval(logs, n, &value, &f.lo, &f.hi);
    free(logs);
    if (!isfinite(f.value)) {
        analysis_found(ts, &f, "not computed: a row has no %s", p->y);
        return;
    }
    if (p->expect > 0 && isfinite(f.lo))
        f.verdict = f.lo / more >= p->expect ? "ok" : f.hi / more < p->expect ? "failed" : "none";
    /* Amdahl: 1 / S = s + (1 - s) / n, s being what does not scale. */
    const double serial = (more / f.value - 1) / (more - 1);
    struct text t = {0};
    text_printf(&t, "efficiency %s %%", NUM(100 * f.value / more));
    if (serial > 0 && serial < 1)
        text_printf(&t, ", as if %s %% of the work did not scale", NUM(100 * serial));
    if (p->expect > 0) text_printf(&t, "; expected at least %s %%", NUM(100 * p->expect));
    analysis_found(ts, &f, "%s", t.data);
    text_free(&t);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct speedup_params *p = params;
    struct rows rows;
    struct rounds rounds;
    (void)err;
    rows_gather(ts, only_case, p->x, p->by, &rows);
    rounds_read(ts, p->y, &rounds);
    const bool rate = rows_is_rate(rows_unit(ts, p->y));
    const char *left_out = rows.left_out.len ? rows.left_out.data : "";
    int32_t written = 0;
    for (int32_t g = 0; g < rows.n_groups; g++)
        for (int32_t i = 1; i < rows.groups[g].n; i++, written++)
            write_row(ts, only_case, p, &rows.groups[g], i, &rounds, rate);
    struct finding f = {"speedup", only_case, rows_short(p->x), NAN, NAN, NAN, "", NULL};
    if (!written)
        analysis_found(ts, &f, "not computed: no two numbers among the values of %s%s%s",
                       rows_short(p->x), *left_out ? "; left out: " : "", left_out);
    else if (*left_out)
        analysis_found(ts, &f, "left out: %s", left_out);
    rounds_free(&rounds);
    rows_free(&rows);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct speedup_params, x), "device.threads", 0, 0, NULL, "",
     "swept key of what there is more of"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct speedup_params, y), "time", 0, 0, NULL, "",
     "metric: a time or a rate"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct speedup_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"expect", NULL, OPT_REAL, 0, offsetof(struct speedup_params, expect), "0", 0, 1, NULL, "",
     "least efficiency, judged by the interval's bound; 0: none"},
    {0},
};

const struct analysis analysis_speedup = {
    .name = "speedup",
    .brief = "speed over that of the smallest x, and the efficiency",
    .params = options,
    .params_size = sizeof(struct speedup_params),
    .run = run,
};
