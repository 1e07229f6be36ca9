/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of bins as bars, row by row, as the seeds print them (E37). */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/rows.h"

enum { MOST_BARS = 200, MOST_BINS = 64 };
struct histogram_params {
    const char *metrics, *where;
    int64_t longest;
};

int analysis_bar(double count, int longest) {
    if (!(count > 0)) return 0;
    return count < longest ? (int)count : longest;
}

/* The n-th name of the list; false: there are fewer. */
static bool nth(const char *list, int n, char name[64]) {
    for (int i = 0;; i++) {
        list += strspn(list, ", ");
        const size_t len = strcspn(list, ", ");
        if (!len) return false;
        if (i == n) {
            snprintf(name, 64, "%.*s", (int)(len < 63 ? len : 63), list);
            return true;
        }
        list += len;
    }
}

static int bars_of(const struct histogram_params *p, const char *only_case, struct tables *ts,
                   int64_t row) {
    const char *label = table_text(tables_peek(ts, "points"), row, "label");
    char metric[64], name[240], bar[MOST_BARS + 1];
    int n = 0;
    for (int i = 0; i < MOST_BINS && nth(p->metrics, i, metric); i++) {
        const double count = rows_metric(ts, row, metric);
        const int len = analysis_bar(count, (int)p->longest);
        if (!isfinite(count)) continue;
        memset(bar, '#', (size_t)len);
        bar[len] = 0;
        snprintf(name, sizeof name, "%s%s%s", metric, *label ? ", " : "", label);
        const struct finding f = {"histogram",           only_case, name, count, NAN, NAN,
                                  rows_unit(ts, metric), NULL};
        analysis_found(ts, &f, "%s", bar);
        n++;
    }
    return n;
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct histogram_params *p = params;
    const int64_t rows = table_rows(tables_peek(ts, "points"));
    int64_t n = 0;
    (void)err;
    for (int64_t i = 0; i < rows; i++) {
        const char *of = table_text(tables_peek(ts, "points"), i, "case");
        if ((*only_case && strcmp(only_case, of)) || !rows_usable(ts, i)) continue;
        if (rows_match(ts, i, p->where)) n += bars_of(p, only_case, ts, i);
    }
    const struct finding none = {"histogram", only_case, "histogram", NAN, NAN, NAN, "", NULL};
    if (!n) analysis_found(ts, &none, "no row has any of %s", p->metrics);
    return 0;
}

static const struct option options[] = {
    {"metrics", NULL, OPT_TEXT, 0, offsetof(struct histogram_params, metrics), NULL, 0, 0, NULL, "",
     "metrics that count the bins, in order, with commas between them"},
    {"where", NULL, OPT_TEXT, 0, offsetof(struct histogram_params, where), "", 0, 0, NULL, "",
     "only rows that meet this condition"},
    {"longest", NULL, OPT_INT, 0, offsetof(struct histogram_params, longest), "40", 1, MOST_BARS,
     NULL, "characters", "a bar has min(longest, count) of them, as E37's do"},
    {0},
};

const struct analysis analysis_histogram = {
    .name = "histogram",
    .brief = "counts of bins as bars of characters, a finding each",
    .params = options,
    .params_size = sizeof(struct histogram_params),
    .run = run,
};
