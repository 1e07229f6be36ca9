/* SPDX-License-Identifier: Apache-2.0 */
/* What a person reads: the table of rows, fits, flags and published figures of one result; the same
 * for run, resume and show. */
#ifndef RESULTS_SHOW_H
#define RESULTS_SHOW_H
#include <stdbool.h>
#include "results/table.h"

struct text;
struct show_options {
    const char *metric; /* NULL: the workload's own choice of columns; else one metric in full (n,
                           mean, sd, percentiles, interval) */
    int width;          /* columns; 0: 100 */
    bool colour;
    bool facts; /* also protocol and environment facts */
};
/* The tables that are read here: `what` of store_read. Samples and marks are not among them. */
extern const char *const show_needs[];
/* Title and question, model and device line, ceilings, row table, fits, published, flags and
 * reasons. UTF-8. */
void show_tables(const struct tables *, const struct show_options *, struct text *);
/* The first lines alone, for the start of a run. */
void show_head(const struct tables *, struct text *);

#endif
