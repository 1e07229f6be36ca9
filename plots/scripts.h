/* SPDX-License-Identifier: Apache-2.0 */
/* What each gnuplot script is given: variables in settings.gp, data as tables with a header. */
#ifndef PLOTS_SCRIPTS_H
#define PLOTS_SCRIPTS_H
#include "base/text.h"
#include "plots/axis.h"
#include "results/table.h"

struct err;
struct gnuplot;

/* NAME = 'text', NAME = number or NaN, axis_NAME = the commands that set range, ticks and scale of
   the letter x or y; bare_NAME = the same with ticks that carry no labels. */
void script_text(struct text *, const char *name, const char *value);
void script_number(struct text *, const char *name, double value);
void script_axis(struct text *, const char *name, const char *letter, const struct axis *);

/* Add the settings and write the data files of one kind; ERR_UNSUPPORTED with the reason if there
 * is nothing to draw. */
int script_knee(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_scaling(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_parts(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_roofline(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_memory(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_samples(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_tradeoff(const struct tables *, struct gnuplot *, struct text *settings, struct err *);
int script_warmup(const struct tables *, struct gnuplot *, struct text *settings, struct err *);

#endif
