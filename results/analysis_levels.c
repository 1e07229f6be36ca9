/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth of each level of cache: rows of a sweep of working sets, told apart by the machine's
 * cache sizes. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/rows.h"
#include "results/summary.h"

struct levels_params {
    const char *x, *y, *by;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)
enum { LEVELS = 4 };
static const char *const names[LEVELS] = {"L1", "L2", "L3", "memory"};

/* Sizes in bytes as a row's threads have them: L1 and L2 are each core's own, so several threads
   have as many; 0: there is none, or the machine did not say. */
static void sizes_of(const struct tables *ts, int64_t point, double size[LEVELS]) {
    for (int l = 0; l < LEVELS - 1; l++) {
        size[l] = rows_cache_bytes(ts, point, l + 1);
        if (l < 2) size[l] *= (double)rows_threads(ts, point);
    }
    size[LEVELS - 1] = INFINITY;
}

/* The row that stands for a level: of those whose set fits it and not the level before, the one
   nearest to the middle of the two on a logarithmic scale; for memory the largest. -1: none. */
static int32_t row_of(const struct rows_group *g, double below, double size) {
    int32_t best = -1;
    double nearest = INFINITY;
    const double aim = isfinite(size) ? log(below > 0 ? sqrt(below * size) : size / 2) : INFINITY;
    for (int32_t i = 0; i < g->n; i++) {
        const double x = g->x[i];
        if (x > 0.75 * size || x < (isfinite(size) ? 1.25 : 1.5) * below) continue;
        const double d = isfinite(aim) ? fabs(log(x) - aim) : -log(x);
        if (best < 0 || d < nearest) nearest = d, best = i;
    }
    return best;
}

static void run_group(struct tables *ts, const char *only_case, const struct levels_params *p,
                      const struct rows_group *g) {
    const bool bytes_a_second = !strcmp(rows_unit(ts, p->y), "byte/s");
    const double scale = bytes_a_second ? 1e-9 : 1;
    const char *unit = bytes_a_second ? "GB/s" : rows_unit(ts, p->y);
    const int64_t threads = rows_threads(ts, g->point[0]);
    double size[LEVELS], below = 0, memory = (double)NAN;
    int32_t row[LEVELS];
    sizes_of(ts, g->point[0], size);
    for (int l = 0; l < LEVELS; l++) {
        row[l] = size[l] > below ? row_of(g, below, size[l]) : -1;
        if (size[l] > below && isfinite(size[l])) below = size[l];
    }
    if (row[LEVELS - 1] >= 0) memory = rows_metric(ts, g->point[row[LEVELS - 1]], p->y);
    for (int l = 0; l < LEVELS; l++) {
        char name[160], bytes[40];
        struct text t = {0};
        snprintf(name, sizeof name, "%s, %lld thread%s", names[l], (long long)threads,
                 threads == 1 ? "" : "s");
        struct finding f = {"levels", only_case, name, NAN, NAN, NAN, unit, NULL};
        if (!(size[l] > 0)) continue;
        if (isfinite(size[l])) {
            text_printf(&t, "%s", format_bytes_iec(bytes, sizeof bytes, size[l]));
            if (l < 2 && threads > 1) text_printf(&t, " of %lld cores", (long long)threads);
        }
        if (row[l] < 0) {
            analysis_found(ts, &f, "%s%sno working set is clearly its own", t.len ? t.data : "",
                           t.len ? ": " : "");
            text_free(&t);
            continue;
        }
        const int64_t point = g->point[row[l]];
        f.value = scale * rows_metric(ts, point, p->y);
        f.lo = scale * summary_get(ts, point, p->y, "ci_lo");
        f.hi = scale * summary_get(ts, point, p->y, "ci_hi");
        text_printf(&t, "%sat %s", t.len ? ", " : "",
                    format_bytes_iec(bytes, sizeof bytes, g->x[row[l]]));
        if (l < LEVELS - 1 && f.value / (scale * memory) > 0)
            text_printf(&t, ": %s \xc3\x97 memory", NUM(f.value / (scale * memory)));
        analysis_found(ts, &f, "%s", t.data);
        text_free(&t);
    }
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct levels_params *p = params;
    struct rows rows;
    (void)err;
    rows_gather(ts, only_case, p->x, p->by, &rows);
    struct finding f = {"levels", only_case, "levels", NAN, NAN, NAN, "", NULL};
    if (!rows.n_groups)
        analysis_found(ts, &f, "not computed: no row has a number for %s", p->x);
    else if (!(rows_cache_bytes(ts, rows.groups[0].point[0], 1) > 0))
        analysis_found(ts, &f, "not computed: the caches of what the rows ran on are not known");
    else
        for (int32_t g = 0; g < rows.n_groups; g++) run_group(ts, only_case, p, &rows.groups[g]);
    rows_free(&rows);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct levels_params, x), "workload.bytes", 0, 0, NULL, "",
     "swept working set"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct levels_params, y), "bandwidth", 0, 0, NULL, "",
     "metric"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct levels_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {0},
};

const struct analysis analysis_levels = {
    .name = "levels",
    .brief = "bandwidth of each level of cache and of memory, by working set",
    .params = options,
    .params_size = sizeof(struct levels_params),
    .run = run,
};
