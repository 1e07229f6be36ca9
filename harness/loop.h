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
struct visit; /* visit.h */

struct visit_request {
    const struct point *point;
    const struct measure_params *measure;
    int64_t visit, round, position, worker;
    int64_t share_ns;    /* of wall time for warm-up and samples of this visit */
    bool control, first; /* first: the point's first visit in this worker */
    bool turns;          /* a sample at a time, when it is asked for */
};
/* Measures one visit on an open device. Everything that it learned goes into rows of out: visits,
   values, memory, ranges and an update row of points; samples, warm-ups and marks stay in the log.
   Never fails: what goes wrong is the visit's state. */
void loop_visit(const struct visit_request *, struct device *, const struct run_store *,
                struct sample_log *, struct tables *out);

/* The same in turns with another worker's visit: prepared and warmed up (an exact workload: done);
   then a sample of so many executions whenever it is asked for, in ns of all of them, -1 if it
   failed; then its rows. The request must live as long. */
struct visit *loop_open(const struct visit_request *, struct device *, const struct run_store *,
                        struct sample_log *);
int64_t loop_turn(struct visit *, int64_t executions);
void loop_close(struct visit **, struct tables *out);

#endif
