/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `null`: does nothing, so that whatever is measured is the harness. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/range.h"
#include "kernels/device.h"
#include "workloads/workload.h"

struct null_params {
    int64_t marks, spin_ns, touch, ranges;
};
struct null_self {
    struct run *run;
    struct null_params params;
    volatile unsigned char *memory; /* (touch) */
    uint64_t executions;
};

static const struct option params[] = {
    {.key = "marks",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = offsetof(struct null_params, marks),
     .def = "0",
     .min = 0,
     .max = 1e6,
     .unit = "marks",
     .help = "Marks set by one execution: what a token mark costs."},
    {.key = "spin",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = offsetof(struct null_params, spin_ns),
     .def = "0",
     .min = 0,
     .max = 60e9,
     .unit = "",
     .help = "Busy time of one execution: a sample must not come out shorter."},
    {.key = "touch",
     .type = OPT_BYTES,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = offsetof(struct null_params, touch),
     .def = "0",
     .min = 0,
     .max = 0x1p32,
     .unit = "",
     .help = "Bytes of host memory written by one execution, one in 64."},
    {.key = "ranges",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = offsetof(struct null_params, ranges),
     .def = "0",
     .min = 0,
     .max = 1e6,
     .unit = "ranges",
     .help = "Named ranges (NVTX) opened and closed by one execution: what a pair costs while "
             "nobody listens."},
    {0},
};
static const struct phase phases[] = {{"nothing", "execution"}, {0}};
static const struct mark marks[] = {{"mark", 0}, {0}};

static void plan(const void *p, const struct model_config *config, struct plan *plan) {
    const struct null_params *null = p;
    (void)config;
    plan->work[0].items = 1;
    plan->work[0].bytes[MEM_OTHER] = (double)null->touch;
    plan->host_bytes = null->touch;
    plan->most_marks = null->marks;
    plan->peak_bytes = 0;
    plan->binding_type = DT_F32;
}

static int prepare(void *s, const void *p, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct null_self *self = s;
    (void)config;
    (void)err;
    self->run = run;
    self->params = *(const struct null_params *)p;
    if (self->params.touch) self->memory = must_alloc((size_t)self->params.touch);
    return 0;
}

static void execute(void *s) {
    struct null_self *self = s;
    self->executions++;
    if (self->params.spin_ns) {
        if (run_device(self->run)->kind->has & DEV_VIRTUAL_CLOCK)
            run_wait(self->run,
                     self->params.spin_ns); /* a virtual clock stands still while one polls it */
        else
            while (run_now(self->run) < self->params.spin_ns) continue;
    }
    for (int64_t i = 0; i < self->params.touch; i += 64) self->memory[i]++;
    for (int64_t i = 0; i < self->params.ranges; i++) {
        range_push(RANGE_LAYER, "nothing", i);
        range_pop();
    }
    for (int64_t i = 0; i < self->params.marks; i++) run_mark(self->run, 0, 0, 1);
}

static void dispose(void *s) {
    struct null_self *self = s;
    free((void *)self->memory);
}

const struct workload workload_null = {
    .name = "null",
    .brief = "nothing at all: what the harness itself costs",
    .help = "Question: what does a sample cost when there is nothing to measure?\n\n"
            "Inside the timing: one call of an empty function; then, if asked for, a busy wait of "
            "`spin`, one write in every 64 bytes of `touch`, `ranges` named ranges and `marks` "
            "marks.\n\n"
            "Outside: everything else.\n\n"
            "Reading it: the time per execution is the floor under every other workload; the "
            "difference between two numbers of marks or ranges is the price of one; with `spin` no "
            "sample may be shorter than what was asked.\n\n"
            "Ledger: no FLOPs; `touch` bytes. It runs on every device, virtual clocks included.\n",
    .params = params,
    .params_size = sizeof(struct null_params),
    .self_size = sizeof(struct null_self),
    .phases = phases,
    .marks = marks,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .dispose = dispose,
};
