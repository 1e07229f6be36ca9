/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an import of whose times only averages are known: no rounds, so no interval. */
#include "results/summary_parts.h"

bool given_has(const struct tables *ts, int64_t point) {
    const struct table *t = tables_peek(ts, "given");
    const int64_t *of = table_see_i64(t, "point");
    for (int64_t r = 0; r < table_rows(t); r++)
        if (of[r] == point) return true;
    return false;
}

void given_emit(struct tables *ts, int64_t point) {
    static const char *const numbers[] = {"mean", "stddev", "median"};
    const struct table *t = tables_peek(ts, "given");
    struct table *summary = tables_get(ts, "summary"), *points = tables_get(ts, "points");
    const int64_t *of = table_see_i64(t, "point");
    for (int64_t r = 0; r < table_rows(t); r++) {
        if (of[r] != point) continue;
        int64_t row = table_add(summary, 1);
        table_set_i64(summary, row, "point", point);
        table_set_text(summary, row, "metric", table_text(t, r, "metric"));
        table_set_text(summary, row, "unit", table_text(t, r, "unit"));
        table_set_i64(summary, row, "n", table_int(t, r, "n"));
        for (size_t i = 0; i < 3; i++)
            table_set_f64(summary, row, numbers[i], table_real(t, r, numbers[i]));
    }
    table_set_text(points, point, "state", "ok");
    table_set_text(points, point, "flags", "aggregates");
    table_set_text(points, point, "reason",
                   "aggregates: its file gives averages, not what they are averages of");
}
