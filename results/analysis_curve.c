/* SPDX-License-Identifier: Apache-2.0 */
/* A metric against a swept key as it is: nothing is fitted, a picture is drawn. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"

struct curve_params {
    const char *x, *y, *by, *beside;
};

#define NUM(v) rows_number((char[32]){0}, v, 4)

static void run_group(struct tables *ts, const char *only_case, const void *params,
                      const struct rows_group *g, const struct rounds *r, const char *left_out) {
    const struct curve_params *p = params;
    int32_t first = -1, last = -1;
    char name[160];
    (void)r;
    snprintf(name, sizeof name, *g->name ? "%.60s (%.90s)" : "%.60s", p->y, g->name);
    struct finding f = {"curve", only_case, name, NAN, NAN, NAN, rows_unit(ts, p->y), NULL};
    for (int32_t i = 0; i < g->n; i++) {
        if (!isfinite(rows_metric(ts, g->point[i], p->y))) continue;
        if (first < 0) first = i;
        last = i;
    }
    if (first < 0) {
        analysis_found(ts, &f, "no row has %s%s%s", p->y, *left_out ? "; left out: " : "",
                       left_out);
        return;
    }
    f.value = rows_metric(ts, g->point[last], p->y);
    analysis_found(ts, &f, "from %s at %s = %s to %s at %s%s%s",
                   NUM(rows_metric(ts, g->point[first], p->y)), rows_short(p->x), NUM(g->x[first]),
                   NUM(f.value), NUM(g->x[last]), *left_out ? "; left out: " : "", left_out);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct curve_params *p = params;
    const struct finding none = {"curve", only_case, "curve", NAN, NAN, NAN, "", NULL};
    (void)err;
    analysis_groups(ts, &(struct analysis_axes){p->x, p->y, p->by}, &none, "no curve", p,
                    run_group);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct curve_params, x), NULL, 0, 0, NULL, "",
     "swept key, or a metric: then name groups with `by`"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct curve_params, y), "time", 0, 0, NULL, "", "metric"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct curve_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"beside", NULL, OPT_TEXT, 0, offsetof(struct curve_params, beside), "", 0, 0, NULL, "",
     "a second metric of the same unit, a broken line beside each curve: what was predicted"},
    {0},
};

const struct analysis analysis_curve = {
    .name = "curve",
    .brief = "a metric against a swept key, drawn as it is",
    .params = options,
    .params_size = sizeof(struct curve_params),
    .run = run,
};
