/* SPDX-License-Identifier: Apache-2.0 */
/* Points joined with their summary rows, cell by cell. */
#include "results/long_rows.h"

#include <string.h>

#include "base/text.h"
#include "results/rows.h"

static const char *const point_columns[] = {"point",  "case",  "label",   "workload",
                                            "device", "cell",  "state",   "flags",
                                            "reason", "bound", "witness", "basis"};
enum { N_POINT_COLUMNS = sizeof point_columns / sizeof *point_columns };

struct line {
    const struct long_style *style;
    struct text *out;
    struct text cell;
    bool begun;
};

static void put(struct line *l, const char *value) {
    if (l->begun) text_puts(l->out, l->style->separator);
    l->style->cell(l->out, value);
    l->begun = true;
}

static void put_cell(struct line *l, const struct table *t, int64_t row, int column) {
    l->cell.len = 0;
    text_add(&l->cell, "", 0);
    if (row >= 0 && column >= 0) table_cell(t, row, (size_t)column, &l->cell);
    put(l, l->cell.data);
}

static void end(struct line *l) {
    text_puts(l->out, l->style->line_end);
    l->begun = false;
}

static void put_point(struct line *l, const struct tables *ts, int64_t p) {
    const struct table *points = tables_peek(ts, "points");
    for (int i = 0; i < N_POINT_COLUMNS; i++)
        put_cell(l, points, p, table_find(points, point_columns[i]));
    for (size_t k = 0; k < table_columns(points); k++)
        if (rows_swept(ts, k)) put_cell(l, points, p, (int)k);
}

static void put_summary(struct line *l, const struct table *t, int64_t row) {
    for (size_t k = 1; k < table_columns(t); k++) put_cell(l, t, row, (int)k);
    end(l);
}

static void put_names(struct line *l, const struct tables *ts) {
    const struct table *points = tables_peek(ts, "points"), *t = tables_peek(ts, "summary");
    for (int i = 0; i < N_POINT_COLUMNS; i++) put(l, point_columns[i]);
    for (size_t k = 0; k < table_columns(points); k++)
        if (rows_swept(ts, k)) put(l, table_column_at(points, k)->name);
    for (size_t k = 1; k < table_columns(t); k++) put(l, table_column_at(t, k)->name);
    end(l);
}

void long_rows(const struct tables *ts, const struct long_style *style, struct text *out) {
    const struct table *t = tables_peek(ts, "summary");
    const int64_t *of = table_see_i64(t, "point");
    int64_t at = 0, rows = table_rows(t), points = table_rows(tables_peek(ts, "points"));
    struct line l = {.style = style, .out = out};
    put_names(&l, ts);
    for (int64_t p = 0; p < points; p++) {
        while (at < rows && of[at] < p) at++;
        if (at == rows || of[at] != p) {
            put_point(&l, ts, p);
            put_summary(&l, t, -1);
        }
        for (; at < rows && of[at] == p; at++) {
            put_point(&l, ts, p);
            put_summary(&l, t, at);
        }
    }
    text_free(&l.cell);
}

void long_lost(const struct tables *ts, const char *format, struct text *lost) {
    static const char *const without[] = {"ceilings", "fits", "published"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (table_rows(tables_peek(ts, without[i])))
            text_printf(lost, "%s has no place for %s; json has\n", format, without[i]);
}
