/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' acceptance table (R34-R38) of a row: what must be recorded before a change is
 * accepted, or that it was not. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"

struct acceptance_params {
    const char *where;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)

struct line {
    struct tables *ts;
    int64_t point;
    struct text text;
};

static void add(struct line *l, const char *what) {
    if (l->text.len) text_puts(&l->text, " \xc2\xb7 ");
    text_puts(&l->text, what);
}

/* "ttft p50 3.1, p95 5, p99 - ms": what too few requests do not tell is missing. */
static void add_quantiles(struct line *l, const char *metric) {
    static const char *const parts[] = {"median", "p95", "p99"}, *const names[] = {"p50", "p95",
                                                                                   "p99"};
    char what[80];
    snprintf(what, sizeof what, "%s", metric);
    add(l, what);
    if (!isfinite(summary_get(l->ts, l->point, metric, "mean"))) {
        text_puts(&l->text, " not recorded");
        return;
    }
    for (int i = 0; i < 3; i++) {
        const double v = summary_get(l->ts, l->point, metric, parts[i]);
        text_printf(&l->text, "%s %s %s", i ? "," : "", names[i], isfinite(v) ? NUM(v) : "-");
    }
    text_printf(&l->text, " %s", rows_unit(l->ts, metric));
}

static void add_metric(struct line *l, const char *metric, const char *before, const char *behind,
                       double factor) {
    char what[120];
    const double v = rows_metric(l->ts, l->point, metric) * factor;
    if (isfinite(v))
        snprintf(what, sizeof what, "%s%s%s", before, NUM(v), behind);
    else
        snprintf(what, sizeof what, "%s not recorded", metric);
    add(l, what);
}

static void add_key(struct line *l, const char *key) {
    struct text value = {0};
    char what[160];
    rows_key_text(l->ts, l->point, key, &value);
    snprintf(what, sizeof what, "%.40s %.100s", rows_short(key), value.len ? value.data : "-");
    add(l, what);
    text_free(&value);
}

/* Those of a trace, which every execution serves again; 0 where requests do not arrive. */
static int64_t requests_of(const struct tables *ts, int64_t point) {
    const struct table *marks = tables_peek(ts, "marks"), *visits = tables_peek(ts, "visits");
    const int64_t *visit = table_see_i64(marks, "visit"), *who = table_see_i64(marks, "who"),
                  *n = table_see_i64(marks, "n"), *mark = table_see_i64(marks, "mark");
    int64_t most = 0;
    for (int64_t v = 0; v < table_rows(visits); v++) {
        if (table_int(visits, v, "point") != point) continue;
        const int64_t id = table_int(visits, v, "visit");
        for (int64_t i = 0; i < table_rows(marks); i++)
            if (visit[i] == id && !mark[i] && !n[i] && who[i] >= most) most = who[i] + 1;
        if (most) break; /* every visit serves the same trace */
    }
    return most;
}

static void user_experience(struct line *l) {
    static const char *const metrics[] = {"ttft", "tpot", "e2e"};
    const int64_t requests = requests_of(l->ts, l->point);
    const double n = summary_get(l->ts, l->point, "e2e", "n");
    for (int i = 0; i < 3; i++) add_quantiles(l, metrics[i]);
    const double told = requests > 0 && (double)requests < n ? (double)requests : n;
    if (told > 0 && !stats_quantile_known((size_t)told, 0.99)) {
        char what[120];
        snprintf(what, sizeof what,
                 "%.0f %srequests do not tell p99 (p95, p90): 1,000 (200, 100) do", told,
                 told < n ? "different " : "");
        add(l, what);
    }
}

static void system_efficiency(struct line *l) {
    add_metric(l, "request_rate", "", " request/s", 1);
    add_metric(l, "output_rate", "", " token/s", 1);
    add_metric(l, "n_out", "of ", " tokens a request", 1);
    add_metric(l, "mfu", "", " % of the peak", 100);
    add_metric(l, "bandwidth", "", " GB/s by the ledger", 1e-9);
    if (isfinite(rows_metric(l->ts, l->point, "mbu")))
        add_metric(l, "mbu", "", " % of the bandwidth", 100);
}

static void capacity(struct line *l) {
    add_metric(l, "peak_bytes", "peak ", " MB", 1e-6);
    add_metric(l, "peak_beyond_weights", "beyond weights ", " MB", 1e-6);
    add_metric(l, "cache_occupancy", "occupancy ", " %", 100);
    add_metric(l, "fragmentation", "fragmentation ", " %", 100);
    add_metric(l, "most_concurrent", "at most ", " in flight", 1);
}

static void quality(struct line *l) {
    const struct table *points = tables_peek(l->ts, "points");
    const char *witness = table_text(points, l->point, "witness");
    char what[160];
    snprintf(what, sizeof what, "witness %s%s", *witness ? witness : "not recorded",
             !strcmp(witness, "exact")   ? ": what was written is what each request gets alone"
             : !strcmp(witness, "lossy") ? ": task metrics decide, not speed"
                                         : "");
    add(l, what);
}

static void comparability(struct line *l) {
    static const char *const keys[] = {
        "model.shape",  "model.type",          "model.kv_type",       "workload.arrival",
        "workload.gap", "workload.ttft_limit", "workload.tpot_limit", "workload.e2e_limit"};
    const char *cpu = rows_environment(l->ts, "cpu.model");
    add(l, *cpu ? cpu : "machine not recorded");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) add_key(l, keys[i]);
}

static void write_row(struct tables *ts, const char *only_case, int64_t point) {
    static const struct {
        const char *name;
        void (*say)(struct line *);
    } lines[] = {{"R34 user experience", user_experience},
                 {"R35 system efficiency", system_efficiency},
                 {"R36 capacity", capacity},
                 {"R37 quality", quality},
                 {"R38 comparability", comparability}};
    const char *label = table_text(tables_peek(ts, "points"), point, "label");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct line l = {.ts = ts, .point = point};
        char name[200];
        snprintf(name, sizeof name, "%s%s%.120s", lines[i].name, *label ? ", " : "", label);
        const struct finding f = {"acceptance", only_case, name, NAN, NAN, NAN, "", NULL};
        lines[i].say(&l);
        analysis_found(ts, &f, "%s", l.text.data);
        text_free(&l.text);
    }
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct acceptance_params *p = params;
    int64_t rows = table_rows(tables_peek(ts, "points")), n = 0;
    (void)err;
    for (int64_t i = 0; i < rows; i++) {
        const struct table *points = tables_peek(ts, "points");
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_usable(ts, i) || !rows_match(ts, i, p->where)) continue;
        write_row(ts, only_case, i);
        n++;
    }
    const struct finding none = {"acceptance", only_case, "R34-R38", NAN, NAN, NAN, "", NULL};
    if (!n) analysis_found(ts, &none, "not computed: no row that has numbers meets the condition");
    return 0;
}

static const struct option options[] = {
    {"where", NULL, OPT_TEXT, 0, offsetof(struct acceptance_params, where), "", 0, 0, NULL, "",
     "only rows that meet this condition"},
    {0},
};

const struct analysis analysis_acceptance = {
    .name = "acceptance",
    .brief =
        "the five lines that a serving run must have: latencies, rates, memory, quality, comparability",
    .params = options,
    .params_size = sizeof(struct acceptance_params),
    .run = run,
};
