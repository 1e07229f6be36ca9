/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a live comparison, from the tables points and pairs: while it runs and when its file
 * is shown again. */
#ifndef RESULTS_PAIRS_H
#define RESULTS_PAIRS_H
#include <stdbool.h>
#include <stddef.h>

#include "results/gate.h"
#include "results/table.h"

struct arena;
struct pair_y { /* what the quadruples of one visit give */
    double y, mean, a_ns, b_ns;
};
/* times: (n) of a1, b1, b2, a2 in ns per execution. NAN where n = 0. */
struct pair_y pairs_y(const double (*times)[4], size_t n);

/* Whether these tables are of a comparison. */
bool pairs_there(const struct tables *);
/* Whether they are of one by their head, measured or not. */
bool pairs_begun(const struct tables *);
/* Mean ln of the time of a point of side a, in ns and over both sides: where the machine was in
   this sitting. NAN: it took no turns. */
double pairs_level(const struct tables *, int64_t a);
/* Rows with the rounds so far, judged. Equal rows of both sides are compared in their exact metrics
   too, where the tables have a summary. */
struct gate *pairs_gate(const struct tables *, const struct gate_settings *);
/* Which row of the gate each point of side a is, into row (half of the points); -1: none, since it
 * was not chosen (gate.rows) or has no time. */
void pairs_rows(const struct tables *, const struct gate_settings *, int64_t *row);
/* Completeness and exact numbers of side b against a stored baseline: every row of it must be
   there, by cell. Judge again afterwards. */
void pairs_against(struct gate *, const struct tables *, const struct tables *baseline);
/* The settings that a file of a comparison holds. Texts live in the arena. */
void pairs_settings(const struct tables *, struct gate_settings *, struct arena *);
/* The same of a file, with the settings that it holds. */
struct gate *pairs_gate_of_file(const struct tables *);

#endif
