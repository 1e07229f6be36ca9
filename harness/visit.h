/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one visit, shared by the loop that measures and the rows that tell of it. */
#ifndef HARNESS_VISIT_H
#define HARNESS_VISIT_H
#include "base/clock.h"
#include "base/text.h"
#include "harness/loop.h"
#include "harness/watch.h"

struct look;

#define LONG_NS     1000000000 /* an execution over 1 s: two warm-ups, two samples are enough */
#define RANGES_MOST 100000     /* of one profiled visit */

struct block { /* samples that are looked at together: whether something disturbed them */
    int64_t from, since_ns;
    struct watch watch;
};

struct visit { /* the state of one visit */
    const struct visit_request *request;
    const struct workload *workload;
    struct device *device;
    struct sample_log *log;
    struct look *each; /* probes around every sample; NULL outside of the samples and by default */
    struct run run;
    void *self;
    bool prepared, virtual_clock, steady;
    int64_t batch; /* executions per sample */
    int64_t resolution_ns;
    int64_t device_ns;  /* the last timed span by the device's own clock; I64_NONE: it has none */
    int64_t typical_ns; /* one execution, from warm-up */
    int64_t begin_ns;   /* of the visit, device clock */
    int64_t end_ns;     /* of the last timed span */
    int64_t spent_ns;   /* in warm-up and samples */
    int64_t disturbed;  /* samples so labelled */
    double half_width;
    char state[16], why_stopped[240];
    struct text flags, reason;
    struct witness witness;
    bool witnessed;
    uint64_t hash_before;
    struct look *look;   /* probes during the samples; NULL on a virtual clock */
    struct watch before; /* the samples, or the visit */
    struct block block;
    bool traced;
    int64_t allocations; /* before the samples */
    double probe_cost;
    double *x; /* (n samples) for the statistics */
    int64_t x_cap, x_n;
};

static inline int64_t visit_now(const struct visit *v) {
    return v->virtual_clock ? v->device->kind->now(v->device) : clock_ns();
}

/* Runs `batch` executions between two synchronisations; the time between the two clock reads, or -1
 * if something failed (warm_up.c). */
int64_t visit_execute(struct visit *, int64_t batch);
/* A workload that marks, resets or waits is timed execution by execution; so is anything on a
 * scripted clock. */
bool visit_may_batch(const struct visit *);
void visit_warm_up(struct visit *);

/* The visit's state (the first cause stands), a flag, or the state that fits an error; each with
 * its reason. */
void visit_state(struct visit *, const char *state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void visit_flag(struct visit *, const char *flag, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void visit_error(struct visit *, const struct err *);

/* Rows of the tables memory, values, kernels, ranges, points and phases (updates) and visits. */
void visit_memory_rows(struct visit *, struct tables *);
void visit_value(struct visit *, struct tables *, const char *name, double value);
void visit_range_rows(struct visit *, struct tables *);
/* After visit_range_rows: the table kernels, each launch under the range that was open then. */
void visit_kernel_rows(struct visit *, struct tables *);
void visit_point_row(struct visit *, struct tables *, int64_t peak, const char *site, int phase);
/* The point's plan with the ledger of what the last execution really did; whether that may differ.
 */
bool visit_plan(const struct visit *, struct plan *);
/* The ledger of what was really done, in place of the plan's. */
void visit_work_rows(struct visit *, struct tables *);
void visit_row(struct visit *, struct tables *, const struct watch *before,
               const struct watch *after, double probe_cost);

#endif
