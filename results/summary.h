/* SPDX-License-Identifier: Apache-2.0 */
/* From samples and marks to rows: metrics of every point, states and flags, ceilings, MBU and MFU,
 * which bound is met. */
#ifndef RESULTS_SUMMARY_H
#define RESULTS_SUMMARY_H
#include "base/metric.h"
#include "results/table.h"

struct text;

struct err;

/* Metrics that are derived for every workload: time (ms), bandwidth, flop_rate, mbu, mfu, and per
   phase NAME_time, NAME_rate; with a mark 'token' also ttft, itl, tpot, e2e, n_out; memory:
   peak_bytes. Documented once, here. */
extern const struct metric summary_metrics[];

/* Recomputes tables summary and ceilings and the state, flags, reason and peak columns of points
   from visits, samples, marks, values and memory. Idempotent; O(samples). Rows in states wrong,
   skipped, oom, timeout, failed get no summary rows. */
int summary_compute(struct tables *, struct err *);

/* The ceiling that judges a point: highest mean of a round among ceilings of that kind (bandwidth:
   read, at the largest working set and most threads; arithmetic: fma and gemm of the type), its 95
   % upper bound; NAN if the run measured none. */
void summary_ceiling(const struct tables *, const char *kind, const char *type, double *value,
                     double *upper);

/* Its row in the table summary, whose rows stand by ascending point; -1 if absent. "CASE:METRIC": that of
   the row of another case which agrees with this one in every swept key that both have. */
int64_t summary_row(const struct tables *, int64_t point, const char *metric);
/* One number of the summary; NAN if absent. part: "mean", "ci_lo", "median", ... */
double summary_get(const struct tables *, int64_t point, const char *metric, const char *part);
/* Why the whole file counts as incomplete though rows have numbers: analyses that failed, exact
   published figures that differ; in words, "" where there are none. */
void summary_broken(const struct tables *, struct text *);
/* The worst state's exit code of the whole file (measurement.md sections 2 and 4): 0 or 3. */
int summary_exit(const struct tables *);

#endif
