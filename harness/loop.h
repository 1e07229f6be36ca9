/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop: warm up until steady, sample until known well enough, check the output,
 * report. */
#ifndef HARNESS_LOOP_H
#define HARNESS_LOOP_H
#include "harness/protocol.h"
#include "harness/sample_log.h"
#include "workloads/common/run.h"

struct err;
struct tables;

struct visit_request {
    const struct point *point;
    const struct measure_params *measure;
    int64_t visit, round, position, worker;
    int64_t share_ns;    /* of wall time for warm-up and samples of this visit */
    bool control, first; /* first: the point's first visit in this worker */
};
/* Measures one visit on an open device. Everything that it learned goes into rows of out: visits,
   values, memory, ranges and an update row of points; samples, warm-ups and marks stay in the log.
   Never fails: what goes wrong is the visit's state. */
void loop_visit(const struct visit_request *, struct device *, const struct run_store *,
                struct sample_log *, struct tables *out);

#endif
