/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `spin`: a chain of dependent integer steps, so that 5 % more of them take 5 % more time.
 */
#include "base/option.h"
#include "kernels/device.h"
#include "workloads/workload.h"

/* Knuth's MMIX generator: a multiplication that waits for the one before, and an addition. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

struct spin_params {
    int64_t work;
};
struct spin_self {
    struct run *run;
    uint64_t seed;
    int64_t work;
    volatile uint64_t result; /* of the last execution */
};

static const struct option params[] = {
    {.key = "work",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = offsetof(struct spin_params, work),
     .def = "1000000",
     .min = 1,
     .max = 1e12,
     .unit = "steps",
     .help = "Dependent steps of one execution; each takes a few cycles of a core."},
    {0},
};
static const struct phase phases[] = {{"spin", "step"}, {0}};

static void plan(const void *p, const struct model_config *config, struct plan *plan) {
    const struct spin_params *spin = p;
    (void)config;
    plan->work[0].items = (double)spin->work;
    plan->peak_bytes = 0;
}

static int prepare(void *s, const void *p, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct spin_self *self = s;
    (void)config, (void)err;
    self->run = run;
    self->seed = run_seed(run);
    self->work = ((const struct spin_params *)p)->work;
    return 0;
}

static bool is_virtual(const struct spin_self *self) {
    return run_device(self->run)->kind->has & DEV_VIRTUAL_CLOCK;
}

static void execute(void *s) {
    struct spin_self *self = s;
    if (is_virtual(self)) { /* 1 ns a step, beside what the device is told to take */
        run_wait(self->run, self->work);
        return;
    }
    uint64_t x = self->seed;
    for (int64_t i = 0; i < self->work; i++) x = x * MULTIPLIER + INCREMENT;
    self->result = x;
}

/* All steps at once, by squaring the map x -> a x + c (Brown 1994, "Random number generation with
 * arbitrary strides"). */
static uint64_t leap(uint64_t x, int64_t steps) {
    uint64_t a = MULTIPLIER, c = INCREMENT;
    for (; steps; steps >>= 1) {
        if (steps & 1) x = x * a + c;
        c += a * c;
        a *= a;
    }
    return x;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct spin_self *self = s;
    (void)err;
    *w = (struct witness){.contract = CONTRACT_NONE, .holds = true, .first_difference = -1};
    if (is_virtual(self)) return 0;
    w->contract = CONTRACT_EXACT;
    w->compared = 1;
    w->hash = self->result;
    w->plain_hash = leap(self->seed, self->work);
    w->holds = w->identical = w->hash == w->plain_hash;
    w->first_difference = w->holds ? -1 : 0;
    return 0;
}

const struct workload workload_spin = {
    .name = "spin",
    .brief = "a chain of dependent steps: so much work, so much time",
    .help = "Question: does a comparison see a change of which it is known how large it is?\n\n"
            "Inside the timing: `work` steps x = a x + c of 64-bit integers, each of which waits "
            "for the one before; no memory is touched. 5 % more steps take 5 % more time.\n\n"
            "Outside: everything else.\n\n"
            "Witness: the last x equals that of a leap over all steps at once (exact).\n\n"
            "On a virtual clock a step takes 1 ns.\n",
    .params = params,
    .params_size = sizeof(struct spin_params),
    .self_size = sizeof(struct spin_self),
    .phases = phases,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
};
