/* SPDX-License-Identifier: Apache-2.0 */
/* Finding one number of the summary. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "results/rows.h"
#include "results/summary.h"

/* Whether two rows agree in every swept key that both have. */
static bool agree(const struct table *points, int64_t a, int64_t b, const struct tables *ts) {
    struct text x = {0}, y = {0};
    bool same = true;
    for (size_t c = 0; same && c < table_columns(points); c++) {
        if (!rows_swept(ts, c)) continue;
        x.len = y.len = 0;
        table_cell(points, a, c, &x);
        table_cell(points, b, c, &y);
        same = !x.len || !y.len || !strcmp(x.data, y.data);
    }
    text_free(&x);
    text_free(&y);
    return same;
}

/* The row of the case `name` (n bytes) that stands beside a row of another case, or -1. */
static int64_t companion(const struct tables *ts, int64_t point, const char *name, size_t n) {
    const struct table *points = tables_peek(ts, "points");
    for (int64_t i = 0; i < table_rows(points); i++) {
        const char *own = table_text(points, i, "case");
        if (!strncmp(own, name, n) && !own[n] && agree(points, point, i, ts)) return i;
    }
    return -1;
}

int64_t summary_row(const struct tables *ts, int64_t point, const char *metric) {
    const char *colon = strchr(metric, ':');
    if (colon) {
        const int64_t other = companion(ts, point, metric, (size_t)(colon - metric));
        return other < 0 ? -1 : summary_row(ts, other, colon + 1);
    }
    const struct table *t = tables_peek(ts, "summary");
    const int64_t *of = table_see_i64(t, "point");
    int64_t lo = 0, rows = table_rows(t), hi = rows;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (of[mid] < point)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < rows && of[lo] == point; lo++)
        if (!strcmp(table_text(t, lo, "metric"), metric)) return lo;
    return -1;
}

double summary_get(const struct tables *ts, int64_t point, const char *metric, const char *part) {
    int64_t row = summary_row(ts, point, metric);
    return row < 0 ? (double)NAN : table_real(tables_peek(ts, "summary"), row, part);
}
