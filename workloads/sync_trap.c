/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `sync_trap`: one product, and two readings of one stopwatch: when the call returned, and
 * when the device was done. */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/option.h"
#include "kernels/device.h"
#include "workloads/common/product.h"

enum { KEPT = 512 }; /* executions whose readings are kept: warm-ups leave the ring, or are few */
struct trap_params {
    int64_t n;
};
struct trap_self {
    struct product_self product;
    double flops;
    int64_t returned[KEPT], done[KEPT]; /* ns since the call began */
    int64_t executions;
};

static const struct option params[] = {
    {.key = "n",
     .type = OPT_INT,
     .offset = offsetof(struct trap_params, n),
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .def = "1024",
     .min = 1,
     .max = 1 << 14,
     .unit = "values",
     .help = "Rows, inputs and outputs of the product: y (n, n) = x (n, n) W^T."},
    {0},
};
static const struct phase phases[] = {{"product", "FLOP"}, {0}};
static const struct metric metrics[] = {
    {"returned_time", "ms",
     "The trap: a stopwatch that is read when the call returns; median of the last 512 executions.",
     BETTER_NONE, false},
    {"done_time", "ms", "The stopwatch read after a wait for the device (R01, R02).", BETTER_LOWER,
     false},
    {"trap", "", "done_time / returned_time: how many times too fast the trap is.", BETTER_NONE,
     false},
    {"claimed_flop_rate", "FLOP/s", "FLOPs / returned_time: what the trap would report.",
     BETTER_NONE, false},
    {"true_flop_rate", "FLOP/s", "FLOPs / done_time.", BETTER_HIGHER, false},
    {0},
};

/* One square matrix, as warm as caches keep it. */
static struct product_params product_of(const struct trap_params *p) {
    return (struct product_params){
        .m = p->n, .n = p->n, .k = p->n, .rotate = 1, .matrix = PRODUCT_OUT};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct product_params product = product_of(params_);
    product_check(&product, config, problems);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct product_params product = product_of(params_);
    product_plan(&product, config, false, plan);
    plan->host_bytes = (int64_t)sizeof(struct trap_self);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct trap_self *self = s;
    const struct trap_params *p = params_;
    const struct product_params product = product_of(p);
    self->flops = 2 * (double)p->n * (double)p->n * (double)p->n;
    return product_prepare(&self->product, &product, config, run, err);
}

static void execute(void *s) {
    struct trap_self *self = s;
    struct device *device = self->product.device;
    struct err err; /* not zeroed as a whole: it lies within the timing */
    err.code = 0;
    err.text[0] = 0;
    const int64_t at = self->executions++ % KEPT, begin = run_now(self->product.run);
    product_execute(&self->product);
    const int64_t returned = run_now(self->product.run);
    if (device->kind->sync(device, &err)) run_fail(self->product.run, "%s", err.text);
    self->returned[at] = returned - begin;
    self->done[at] = run_now(self->product.run) - begin;
}

static int witness(void *s, struct witness *w, struct err *err) {
    return product_witness(&((struct trap_self *)s)->product, w, err);
}

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ns; NAN before the first execution. */
static double median(int64_t *x, int64_t n) {
    if (!n) return (double)NAN;
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? (double)x[n / 2] : ((double)x[n / 2 - 1] + (double)x[n / 2]) / 2;
}

static void report(void *s, struct values *values) {
    struct trap_self *self = s;
    const int64_t n = self->executions < KEPT ? self->executions : KEPT;
    const double returned = median(self->returned, n), done = median(self->done, n);
    values_set(values, "returned_time", returned / 1e6);
    values_set(values, "done_time", done / 1e6);
    values_set(values, "trap", returned > 0 ? done / returned : (double)NAN);
    values_set(values, "claimed_flop_rate",
               returned > 0 ? 1e9 * self->flops / returned : (double)NAN);
    values_set(values, "true_flop_rate", done > 0 ? 1e9 * self->flops / done : (double)NAN);
}

static void dispose(void *s) { product_dispose(&((struct trap_self *)s)->product); }

const struct workload workload_sync_trap = {
    .name = "sync_trap",
    .brief = "one product, timed without and with a wait for the device: the launch-time trap",
    .help =
        "Question: how wrong is a time that is taken when a call returns? (seed E58)\n\n"
        "A call on a GPU only queues a kernel; a stopwatch that is read when it returns shows the "
        "launch. One execution reads it twice: when the call returned, and after a wait for the "
        "device. The harness itself always waits before both ends of a sample, so `time` is never "
        "the trap.\n\n"
        "Inside the timing: one product of n x n matrices, and a wait. [model] gives the type "
        "alone.\n\n"
        "Outside: making the matrices.\n\n"
        "Expect: where calls return when the work is done (cpu, ref), both readings agree. On a "
        "GPU the first hardly grows with n, and the rate that it claims passes the peak. The same "
        "holds for collectives. device.queued makes the fake device behave so.\n\n"
        "Ledger: 2 n^3 FLOPs. Witness: as of `gemm`.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct trap_params),
    .self_size = sizeof(struct trap_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
