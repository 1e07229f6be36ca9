/* SPDX-License-Identifier: Apache-2.0 */
/* Finding one number of the summary. */
#include <math.h>
#include <string.h>

#include "results/summary.h"

int64_t summary_row(const struct tables *ts, int64_t point, const char *metric) {
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
