/* SPDX-License-Identifier: Apache-2.0 */
/* The long form of a result: one row for each point and metric, with the point's keys beside; what
 * csv and tsv write. */
#ifndef RESULTS_LONG_ROWS_H
#define RESULTS_LONG_ROWS_H
#include "results/table.h"

struct text;
/* A format's own way to write one cell; kept apart from separators and line ends. */
struct long_style {
    const char *separator, *line_end;
    void (*cell)(struct text *out, const char *value);
};
/* A line of names, then the rows. A point without numbers has one row whose metric and numbers are
 * empty. */
void long_rows(const struct tables *, const struct long_style *, struct text *out);
/* One sentence a table that has rows and no place in this form. */
void long_lost(const struct tables *, const char *format, struct text *lost);

#endif
