/* SPDX-License-Identifier: Apache-2.0 */
/* Rows against the roofs that the same run measured: ridge points, and the share of the attainable
 * rate. */
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

struct roofline_params {
    const char *where;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)

static bool of_kind(const struct table *c, int64_t row, bool bandwidth, const char *type) {
    const char *name = table_text(c, row, "name");
    if (bandwidth) return !strcmp(name, "read");
    return (!strcmp(name, "fma") || !strcmp(name, "gemm")) &&
           !strcmp(table_text(c, row, "type"), type);
}

/* The best of a round: bandwidth at the largest working set only, since caches have no ridge with
 * DRAM. */
static double best_of_round(const struct table *c, int64_t round, bool bandwidth, const char *type,
                            int64_t bytes) {
    double best = (double)NAN;
    for (int64_t i = 0; i < table_rows(c); i++) {
        double v = table_real(c, i, "value");
        if (table_int(c, i, "round") != round || !of_kind(c, i, bandwidth, type)) continue;
        if (bandwidth && table_int(c, i, "bytes") < bytes) continue;
        if (!(v <= best)) best = isfinite(v) ? v : best;
    }
    return best;
}

/* Ridge = peak / bandwidth; its interval from the rounds that measured both. */
static void write_ridge(struct tables *ts, const char *only_case, const char *type) {
    const struct table *c = tables_peek(ts, "ceilings");
    double peak, bandwidth, upper, value, logs[512];
    int64_t largest = 0, last = -1;
    size_t n = 0;
    char name[120];
    snprintf(name, sizeof name, "ridge %.90s", type);
    struct finding f = {"roofline", only_case, name, NAN, NAN, NAN, "FLOP/byte", NULL};
    summary_ceiling(ts, "bandwidth", type, &bandwidth, &upper);
    summary_ceiling(ts, "arithmetic", type, &peak, &upper);
    f.value = peak / bandwidth;
    for (int64_t i = 0; i < table_rows(c); i++) {
        int64_t bytes = table_int(c, i, "bytes"), round = table_int(c, i, "round");
        if (of_kind(c, i, true, "") && bytes > largest) largest = bytes;
        if (round > last) last = round;
    }
    for (int64_t r = 0; r <= last && n < 512 && r < 4096; r++) {
        double v =
            log(best_of_round(c, r, false, type, 0) / best_of_round(c, r, true, "", largest));
        if (isfinite(v)) logs[n++] = v;
    }
    if (n >= 2) rows_log_interval(logs, n, &value, &f.lo, &f.hi);
    if (isfinite(f.value))
        analysis_found(
            ts, &f,
            "measured: peak %s GFLOP/s over %s GB/s, each the best round; the interval is "
            "that of a round",
            NUM(peak / 1e9), NUM(bandwidth / 1e9));
    else
        analysis_found(ts, &f, "no ridge: this run measured no %s",
                       isfinite(bandwidth) ? "peak of this type" : "bandwidth");
}

static void write_row(struct tables *ts, const char *only_case, int64_t point, const char *phase,
                      double flops, double bytes, double ms, double lo, double hi) {
    const struct table *points = tables_peek(ts, "points");
    double peak, bandwidth, upper;
    char name[200];
    const char *kase = table_text(points, point, "case"),
               *label = table_text(points, point, "label");
    snprintf(name, sizeof name, "%.60s%s%.80s%s%.40s", kase, *kase && *label ? " " : "", label,
             *phase ? " " : "", phase);
    struct finding f = {"roofline", only_case, *name ? name : "row", NAN,
                        NAN,        NAN,       "of attainable",      NULL};
    if (!(flops > 0 && bytes > 0)) {
        analysis_found(ts, &f, "no point: the ledger has %s FLOP and %s byte", NUM(flops),
                       NUM(bytes));
        return;
    }
    if (!(ms > 0)) {
        analysis_found(ts, &f, "%s FLOP/byte; no rate: the row has no time", NUM(flops / bytes));
        return;
    }
    const char *type;
    summary_ceiling(ts, "bandwidth", "", &bandwidth, &upper);
    peak = rows_peak(ts, point, &type);
    double intensity = flops / bytes, rate = flops / (ms / 1e3);
    double roof = intensity * bandwidth;
    bool compute = peak < roof;
    if (compute) roof = peak;
    if (!isfinite(peak) || !isfinite(bandwidth)) {
        analysis_found(ts, &f, "%s FLOP/byte, %s GFLOP/s; no roof: no ceilings", NUM(intensity),
                       NUM(rate / 1e9));
        return;
    }
    f.value = rate / roof;
    f.lo = flops / (hi / 1e3) / roof; /* the longest time is the least share */
    f.hi = flops / (lo / 1e3) / roof;
    analysis_found(ts, &f, "%s FLOP/byte, %s of %s GFLOP/s, bound by %s", NUM(intensity),
                   NUM(rate / 1e9), NUM(roof / 1e9), compute ? "arithmetic" : "bandwidth");
}

/* Rows with several phases stand with each phase that has a ledger and a time of its own. */
static bool write_phases(struct tables *ts, const char *only_case, int64_t point) {
    const struct table *phases = tables_peek(ts, "phases");
    const int64_t *of = table_see_i64(phases, "point");
    int64_t n = table_rows(phases), count = 0, written = 0;
    for (int64_t i = 0; i < n; i++) count += of[i] == point;
    if (count < 2) return false;
    for (int64_t i = 0; i < n; i++) {
        char metric[120];
        if (of[i] != point) continue;
        double flops = table_real(phases, i, "flops"), bytes = table_real(phases, i, "bytes");
        if (!(flops > 0)) continue;
        const char *name = table_text(phases, i, "name");
        snprintf(metric, sizeof metric, "%.100s_time", name);
        double ms = summary_get(ts, point, metric, "mean");
        if (!(ms > 0)) continue;
        write_row(ts, only_case, point, name, flops, bytes, ms,
                  summary_get(ts, point, metric, "ci_lo"), summary_get(ts, point, metric, "ci_hi"));
        written++;
    }
    return written > 0;
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct roofline_params *p = params;
    const struct table *points = tables_peek(ts, "points"), *ceilings = tables_peek(ts, "ceilings");
    struct finding f = {"roofline", only_case, "rows", NAN, NAN, NAN, "", NULL};
    int64_t rows = 0;
    (void)err;
    for (int64_t i = 0; i < table_rows(ceilings); i++) { /* one ridge per type that has a peak */
        const char *type = table_text(ceilings, i, "type"), *name = table_text(ceilings, i, "name");
        bool seen = strcmp(name, "fma") && strcmp(name, "gemm");
        for (int64_t k = 0; k < i && !seen; k++) seen = of_kind(ceilings, k, false, type);
        if (!seen) write_ridge(ts, only_case, type);
    }
    for (int64_t i = 0; i < table_rows(points); i++) {
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_match(ts, i, p->where)) continue;
        double flops = table_real(points, i, "flops"), bytes = table_real(points, i, "bytes");
        if (!strcmp(table_text(points, i, "workload"), "ceiling")) continue; /* roofs, not rows */
        if (!rows_usable(ts, i) || !(flops > 0 && bytes > 0)) continue;
        rows++;
        if (write_phases(ts, only_case, i)) continue;
        write_row(ts, only_case, i, "", flops, bytes, summary_get(ts, i, "time", "mean"),
                  summary_get(ts, i, "time", "ci_lo"), summary_get(ts, i, "time", "ci_hi"));
    }
    if (!rows) analysis_found(ts, &f, "no row has FLOPs, bytes and a time");
    return 0;
}

static const struct option options[] = {
    {"where", NULL, OPT_TEXT, 0, offsetof(struct roofline_params, where), "", 0, 0, NULL, "",
     "only rows that meet this condition, as 'workload.mode=prefill'"},
    {0},
};

const struct analysis analysis_roofline = {
    .name = "roofline",
    .brief = "ridge points, and each row's share of what its intensity allows",
    .params = options,
    .params_size = sizeof(struct roofline_params),
    .run = run,
};
