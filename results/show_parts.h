/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of show share: a grid of text cells that is cut to a width, and wrapped sentences.
 */
#ifndef RESULTS_SHOW_PARTS_H
#define RESULTS_SHOW_PARTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/table.h"

struct arena;
struct show_options;
struct text;

struct grid_column {
    const char *head;
    const char **cell; /* (rows), in the arena; NULL is empty */
    int priority;      /* the lowest are dropped first where the width is short */
    bool left;         /* words: aligned left, the head too */
    bool warns;        /* cells other than "ok" and "" are coloured */
};
enum { GRID_MOST = 64 };
struct grid {
    struct arena *arena;
    struct grid_column column[GRID_MOST];
    int n;
    int64_t rows;
};
/* A new last column with empty cells; NULL when there are GRID_MOST already. */
struct grid_column *grid_add(struct grid *, const char *head, int priority, bool left);
void grid_print(struct grid *, const struct show_options *, struct text *out);
void grid_print_markdown(const struct grid *, struct text *out);

/* A file may hold anything: what a terminal would obey becomes a space. */
void show_plain(struct text *out, const char *s);
/* "  head  text", wrapped at the width behind an indent of `column`; several calls with one head
 * show it once. */
void show_line(struct text *out, int width, const char *head, size_t column, const char *text);

/* All groups of rows (a case and a workload each) as grids, or one metric of all rows in full. */
void show_rows(const struct tables *, const struct show_options *, struct text *out);
/* The same groups as GitHub tables, all columns, under headings. */
void show_markdown(const struct tables *, struct text *out);
void show_metric(const struct tables *, const struct show_options *, struct text *out);

#endif
