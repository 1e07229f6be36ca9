/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `op_counts`: multiply-adds of attention over a whole generation, by formula and as a
 * device executed them. */
#include <inttypes.h>
#include <math.h>

#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/fill.h"
#include "workloads/common/slow.h"
#include "workloads/model/inputs.h"
#include "workloads/model/ledger.h"

/* Names a convention: which part of the score matrix recomputing is charged. */
enum op_counts_mode { MODE_CACHED, MODE_TRIANGLE, MODE_FULL };
struct op_counts_params {
    int64_t tokens;
    int mode;
    bool count;
};
struct op_counts_self {
    struct run *run;
    struct op_counts_params params;
    struct model_config config;
    struct cache *cache;
    struct tensor q, o;
    struct step step; /* one row of one sequence */
    void *step_memory;
    int64_t macs; /* of the last execution, by the device; -1: not counted */
};

static const char *const mode_words[] = {"cached", "triangle", "full", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct op_counts_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "64",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "T: tokens generated from a cold start, one a step."},
    {.key = "mode",
     .type = OPT_WORD,
     PARAM(mode),
     .def = "cached",
     .words = mode_words,
     .unit = "",
     .help = "cached: step t scores one row of t keys; triangle: all t rows again, each over the "
             "keys up to its own; full: all t rows over all t keys, as the whole score matrix."},
    {.key = "count",
     .type = OPT_FLAG,
     PARAM(count),
     .def = "true",
     .unit = "",
     .help = "Whether the generation is executed and counted, on a device that counts (ref); "
             "false: the formula alone, for lengths that would take too long."},
    {0},
};
static const struct phase phases[] = {{"attend", "row"}, {0}};
static const struct metric metrics[] = {
    {"macs", "MAC",
     "Multiply-adds by formula, times n_layers n_q: cached d T (T + 1), triangle d T (T + 1)(T + 2) / "
     "3, full d T (T + 1)(2 T + 1) / 3 (E03).",
     BETTER_LOWER, true},
    {"macs_counted", "MAC",
     "Multiply-adds that the device executed; empty where none ran. Must be equal.", BETTER_LOWER,
     true},
    {"formula_flops", "FLOP", "macs in the other convention: a multiply-add is 2 FLOP.",
     BETTER_LOWER, true},
    {"over_cached", "", "macs over those of cached: full (2 T + 1) / 3, triangle (T + 2) / 3.",
     BETTER_LOWER, true},
    {0},
};

/* d T (T + 1) times 1, (T + 2) / 3 or (2 T + 1) / 3: a sum of squares is whole. */
static double macs_of(const struct op_counts_params *p, const struct model_shape *s, int mode) {
    const unsigned __int128 t = (unsigned __int128)p->tokens;
    const unsigned __int128 times = mode == MODE_CACHED     ? 3
                                    : mode == MODE_TRIANGLE ? t + 2
                                                            : 2 * t + 1;
    return (double)(t * (t + 1) * times / 3 * (unsigned __int128)(s->d_h * s->n_q * s->n_layers));
}

static struct cache_spec spec_of(const struct op_counts_params *p) {
    return (struct cache_spec){.n_seq = 1, .capacity = (int32_t)p->tokens, .most_q = 1};
}

static void adapt(void *params_, const struct device_kind *kind) {
    struct op_counts_params *p = params_;
    p->count = p->count && kind->has & DEV_COUNTS;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct op_counts_params *p = params_;
    const double most = 2e10, macs = macs_of(p, &config->shape, p->mode);
    if (config->params.window)
        problem(problems, "model.window", NULL,
                "a sliding window is not counted here: its formula is another one");
    if (p->count && macs > most)
        problem(problems, "workload.tokens", "workload.count",
                "%.3g multiply-adds would take too long to count one by one: at most %.0e, or "
                "count = false",
                macs, most);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct op_counts_params *p = params_;
    const struct cache_spec spec = spec_of(p);
    const double t = (double)p->tokens, rows = p->mode == MODE_CACHED ? t : t * (t + 1) / 2;
    plan->theory = !p->count;
    plan->binding_type = DT_F32;
    if (!p->count) return;
    plan->work[0].flops = 2 * macs_of(p, &config->shape, p->mode);
    plan->work[0].items = rows;
    cache_bytes(config, &spec, plan->bytes);
    plan->bytes[MEM_ACTIVATION] += 2 * 4 * config->shape.n_q * config->shape.d_h;
    plan->bytes[MEM_STATE] += (int64_t)step_bytes(1, 1, 0);
    plan->host_bytes = cache_host_bytes(config, &spec);
    plan->peak_bytes = 0;
}

static int create(struct op_counts_self *self, struct err *err) {
    struct device *device = run_device(self->run);
    const struct cache_spec spec = spec_of(&self->params);
    const struct model_shape *s = &self->config.shape;
    const int64_t width = s->n_q * s->d_h;
    int code = cache_create(&self->cache, device, &self->config, &spec, err);
    if (!code) code = cache_reserve(self->cache, 0, 0, spec.capacity, err);
    if (!code) code = tensor_create(&self->q, device, DT_F32, 1, width, "query", err);
    if (!code) code = tensor_create(&self->o, device, DT_F32, 1, width, "attention out", err);
    if (code) return code;
    self->step_memory = device_alloc(device, step_bytes(1, 1, 0), MEM_STATE, "step");
    if (!self->step_memory) return err_set(err, ERR_MEMORY, "no memory for a step");
    step_place(&self->step, self->step_memory, 1, 1, 0);
    self->step.most_q = 1;
    self->step.most_kv = spec.capacity;
    self->step.q_begin[1] = 1;
    cache_publish(self->cache);
    fill_cache(self->cache, run_seed(self->run));
    fill_uniform(device, self->q.data, DT_F32, width, run_seed(self->run));
    return 0;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct op_counts_self *self = s;
    self->run = run;
    self->params = *(const struct op_counts_params *)params_;
    self->config = *config;
    self->macs = -1;
    return self->params.count ? create(self, err) : 0;
}

/* One row at position pos, through the attention of every layer. */
static void attend(struct op_counts_self *self, int64_t pos) {
    struct device *device = run_device(self->run);
    const float scale = 1.0f / sqrtf((float)self->config.shape.d_h);
    self->step.pos[0] = (int32_t)pos;
    self->step.kv_len[0] = (int32_t)pos + 1;
    for (int32_t i = 0; i < self->cache->n_layers; i++)
        device->ops->attention(device, &self->o, &self->q, &self->cache->layers[i], &self->step,
                               scale);
}

static void execute(void *s) {
    struct op_counts_self *self = s;
    if (!self->params.count) return;
    const struct op_counts *counts = run_device(self->run)->counts;
    const int64_t before = counts->attention;
    for (int64_t t = 1; t <= self->params.tokens; t++) {
        if (self->params.mode == MODE_CACHED) attend(self, t - 1);
        for (int64_t r = 0; self->params.mode != MODE_CACHED && r < t; r++)
            attend(self, self->params.mode == MODE_FULL ? t - 1 : r);
    }
    self->macs = counts->attention - before;
}

static void report(void *s, struct values *values) {
    struct op_counts_self *self = s;
    const struct op_counts_params *p = &self->params;
    const double macs = macs_of(p, &self->config.shape, p->mode);
    values_set(values, "macs", macs);
    values_set(values, "macs_counted", self->macs < 0 ? (double)NAN : (double)self->macs);
    values_set(values, "formula_flops", 2 * macs);
    values_set(values, "over_cached", macs / macs_of(p, &self->config.shape, MODE_CACHED));
}

static void dispose(void *s) {
    struct op_counts_self *self = s;
    if (!self->cache) return;
    device_free(self->cache->device, self->step_memory);
    device_free(self->cache->device, self->q.data);
    device_free(self->cache->device, self->o.data);
    cache_close(&self->cache);
}

const struct workload workload_op_counts = {
    .name = "op_counts",
    .brief = "multiply-adds of attention over a generation: by formula and as executed",
    .help =
        "Question: how does the arithmetic of attention grow over a whole generation, with the KV "
        "cache and by recomputing? (seed E03)\n\n"
        "Exact, no time: tokens 1 ... T are generated from a cold start; each row of each step "
        "goes through the device's own attention, layer by layer, and the device `ref` counts the "
        "multiply-adds of its inner loops as it executes them. Other devices do not count: then, "
        "and with count = false, the row is theory.\n\n"
        "Formulas, d = d_h, times n_layers n_q (KV heads do not enter): cached, sum of 2 t d = d T "
        "(T + 1); full, sum of 2 t^2 d = d T (T + 1)(2 T + 1) / 3; triangle, sum of t (t + 1) d = d "
        "T (T + 1)(T + 2) / 3. Ratios to cached: (2 T + 1) / 3 and (T + 2) / 3.\n\n"
        "Convention: macs are multiply-adds, formula_flops are twice as many; scores and the "
        "weighted sum of values only, no projections, no softmax.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct op_counts_params),
    .self_size = sizeof(struct op_counts_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .adapt = adapt,
    .prepare = prepare,
    .execute = execute,
    .report = report,
    .dispose = dispose,
};
