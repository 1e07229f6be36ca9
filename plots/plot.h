/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a result: gnuplot scripts fed whole tables, SVG and PNG; and curves drawn with
 * characters for a terminal. */
#ifndef PLOTS_PLOT_H
#define PLOTS_PLOT_H
#include "results/table.h"

struct err;
struct text;

/* Kinds that suit these tables (NULL-terminated, static), best first: knee, scaling, parts,
 * roofline, memory, samples, warmup, tradeoff. */
const char *const *plot_kinds(const struct tables *);
/* Draws kind to stem.svg and stem.png; the footer names `result`, the file that the tables are
   from. scripts: folder of the *.gp files. ERR_UNSUPPORTED with a sentence when gnuplot is absent
   or there is nothing to draw; a failing gnuplot is ERR_SYSTEM with its first line. */
int plot_draw(const struct tables *, const char *kind, const char *result, const char *stem,
              const char *scripts, struct err *);
/* The same curve as text, at most width columns and height lines. */
int plot_ascii(const struct tables *, const char *kind, int width, int height, struct text *,
               struct err *);

#endif
