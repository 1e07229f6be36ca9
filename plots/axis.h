/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and tick marks that a reader would choose: one axis for gnuplot and for the terminal. */
#ifndef PLOTS_AXIS_H
#define PLOTS_AXIS_H
#include <stdbool.h>
#include <stddef.h>

enum { AXIS_MOST_TICKS = 14 };
struct axis {
    double lo, hi; /* lo < hi always */
    bool log;
    int n_ticks;
    double tick[AXIS_MOST_TICKS];
    bool used; /* whether any value was finite (and positive, if log): else 0 ... 1 */
};
/* Spans the finite values (NAN and, if log, non-positive ones are passed over), with a margin;
   identical values get room on both sides. */
void axis_fit(struct axis *, const double *v, size_t n, bool log, bool from_zero);
/* Ticks at the values themselves where they are few and apart enough, as on the axis of a sweep. */
void axis_ticks_at(struct axis *, const double *v, size_t n);
/* Whether values span enough, evenly enough in logarithms, to be drawn on a log axis. */
bool axis_wants_log(const double *v, size_t n);
double axis_place(const struct axis *,
                  double v); /* 0 ... 1 along the axis; NAN if it has no place */
/* "250", "1.5 k", "20 G": short, exact enough for a tick. */
char *axis_label(char buf[32], double v);
/* The label of tick i, in the manner of the others: "1 k" where "100 k" is one of them. */
char *axis_tick_label(const struct axis *, int i, char buf[32]);

#endif
