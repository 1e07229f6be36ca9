/* SPDX-License-Identifier: Apache-2.0 */
/* Results made up from known laws: tables as a run would leave them, with seeded noise. */
#ifndef TESTS_SUPPORT_SYNTHETIC_H
#define TESTS_SUPPORT_SYNTHETIC_H
#include <stdint.h>

#include "results/table.h"

/* A protocol fact; scope 'protocol'. */
void synthetic_fact(struct tables *, const char *key, const char *value);
void synthetic_environment(struct tables *, const char *key, const char *value, const char *unit);
/* A row in state ok, named by `label`; returns its index. */
int64_t synthetic_point(struct tables *, const char *case_name, const char *label, double flops,
                        double bytes);
/* A swept number of a row. */
void synthetic_key(struct tables *, int64_t point, const char *key, int64_t value);
void synthetic_word(struct tables *, int64_t point, const char *key, const char *value);
/* A visit of `samples` samples of ms (1 + noise * normal), all seeded by point, round and sample.
 */
int64_t synthetic_visit(struct tables *, int64_t point, int64_t round, double ms, int samples,
                        double noise, uint64_t seed);
/* `rounds` visits; round means scatter by `spread`, samples around them by `spread` / 2. */
void synthetic_rounds(struct tables *, int64_t point, int rounds, double ms, double spread,
                      uint64_t seed);
/* One phase of the row that is all of it. */
void synthetic_phase(struct tables *, int64_t point, const char *name, double items, double flops,
                     double bytes);
/* n phases, one after the other, in every execution that the row has already: shares (n) of its
   time. */
void synthetic_parts(struct tables *, int64_t point, const char *const *names, const double *shares,
                     int n);
/* A ceiling measured beside the rows, a percent less in each round; byte/s or FLOP/s. */
void synthetic_ceiling(struct tables *, const char *name, const char *type, const char *unit,
                       int64_t bytes, double value, int rounds);
/* The row of fits with that analysis and name; -1 if there is none. */
int64_t synthetic_fit(const struct tables *, const char *analysis, const char *name);
double synthetic_value(const struct tables *, const char *analysis, const char *name);
const char *synthetic_verdict(const struct tables *, const char *analysis, const char *name);
#endif
