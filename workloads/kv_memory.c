/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `kv_memory`: the KV cache by formula and by allocator, and beside the weights. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/model/cache.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

struct kv_memory_params {
    int64_t batch, length;
    bool allocate;
};
struct kv_memory_self {
    struct run *run;
    struct kv_memory_params params;
    struct model_config config;
    int64_t allocated, allocated_scales; /* by the allocator, in the last execution */
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct kv_memory_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 65536,
     .unit = "sequences",
     .help = "Sequences in the cache."},
    {.key = "length",
     .type = OPT_INT,
     PARAM(length),
     .def = "1024",
     .min = 1,
     .max = 1 << 26,
     .unit = "tokens",
     .help = "Tokens that each of them holds."},
    {.key = "allocate",
     .type = OPT_FLAG,
     PARAM(allocate),
     .def = "true",
     .unit = "",
     .help =
         "Whether the cache is really allocated; false: the formula alone, for caches that this machine cannot hold."},
    {0},
};
static const struct phase phases[] = {{"allocate", "byte"}, {0}};
static const struct metric metrics[] = {
    {"kv_bytes", "byte",
     "K and V of the resident tokens by formula: batch length 2 n_layers n_kv d_h bytes(element) (E09, E10).",
     BETTER_LOWER, true},
    {"kv_scale_bytes", "byte", "Scales of an int8 cache by formula; 0 for other types.",
     BETTER_LOWER, true},
    {"kv_bytes_per_token", "byte",
     "Bytes of K and V for one resident token, scales apart (E09, E11).", BETTER_LOWER, true},
    {"kv_bytes_planned", "byte",
     "What the allocator must give: the formula, rounded up to whole blocks where paged.",
     BETTER_LOWER, true},
    {"kv_bytes_allocated", "byte",
     "What the allocator gave (R16); empty where nothing was allocated.", BETTER_LOWER, true},
    {"kv_gib", "GiB", "kv_bytes in 2^30 bytes.", BETTER_LOWER, true},
    {"resident_tokens", "token",
     "Tokens that the cache holds: batch length, or batch min(length, window).", BETTER_NONE, true},
    {"weight_bytes", "byte", "Matrices, their scales, norms and biases in the chosen format.",
     BETTER_LOWER, true},
    {"kv_over_weights", "",
     "kv_bytes over weight_bytes: beyond 1 one batch's cache is larger than the model (E12).",
     BETTER_LOWER, true},
    {"heads_saved", "",
     "n_q / n_kv: how much smaller than with a KV head for each query head (E11).", BETTER_NONE,
     true},
    {0},
};

static struct cache_spec spec_of(const struct kv_memory_params *p) {
    return (struct cache_spec){
        .n_seq = (int32_t)p->batch, .capacity = (int32_t)p->length, .most_q = 1};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct kv_memory_params *p = params_;
    if ((double)p->batch * (double)p->length * (double)model_kv_bytes_per_token(config, NULL) >
        0x1p60)
        problem(problems, "workload.length", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^60 bytes", p->batch,
                p->length);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct kv_memory_params *p = params_;
    const struct cache_spec spec = spec_of(p);
    int64_t bytes[N_CLASSES] = {0};
    cache_bytes(config, &spec, bytes);
    plan->work[0].items = (double)bytes[MEM_KV];
    plan->binding_type = DT_F32;
    plan->theory = !p->allocate;
    if (!p->allocate) return;
    plan->host_bytes = cache_host_bytes(config, &spec);
    for (int c = 0; c < N_CLASSES; c++) {
        plan->bytes[c] += bytes[c];
        plan->peak_bytes += bytes[c];
    }
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct kv_memory_self *self = s;
    (void)err;
    self->run = run;
    self->params = *(const struct kv_memory_params *)params_;
    self->config = *config;
    self->allocated = self->allocated_scales = -1;
    return 0;
}

static void execute(void *s) {
    struct kv_memory_self *self = s;
    struct device *device = run_device(self->run);
    const struct tracker *tracker = device->tracker;
    const struct cache_spec spec = spec_of(&self->params);
    struct cache *cache = NULL;
    struct err err = {0};
    if (!self->params.allocate) return;
    int64_t kv = tracker_live(tracker, MEM_KV), scales = tracker_live(tracker, MEM_SCALE);
    if (cache_create(&cache, device, &self->config, &spec, &err)) {
        run_fail(self->run, "%s", err.text);
        return;
    }
    self->allocated = tracker_live(tracker, MEM_KV) - kv;
    self->allocated_scales = tracker_live(tracker, MEM_SCALE) - scales;
    cache_close(&cache);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct kv_memory_self *self = s;
    const struct cache_spec spec = spec_of(&self->params);
    int64_t bytes[N_CLASSES] = {0};
    (void)err;
    *w = (struct witness){.contract = CONTRACT_NONE,
                          .holds = true,
                          .identical = true,
                          .first_difference = -1,
                          .max_error = NAN};
    if (!self->params.allocate) return 0;
    cache_bytes(&self->config, &spec, bytes);
    w->contract = CONTRACT_EXACT;
    w->compared = 2;
    w->hash = (uint64_t)(self->allocated + self->allocated_scales);
    w->plain_hash = (uint64_t)(bytes[MEM_KV] + bytes[MEM_SCALE]);
    w->identical = w->holds =
        self->allocated == bytes[MEM_KV] && self->allocated_scales == bytes[MEM_SCALE];
    snprintf(w->note, sizeof w->note, "bytes that the allocator gave against the formula");
    return 0;
}

static void report(void *s, struct values *values) {
    struct kv_memory_self *self = s;
    const struct kv_memory_params *p = &self->params;
    const struct cache_spec spec = spec_of(p);
    const int64_t window = self->config.params.window;
    int64_t bytes[N_CLASSES] = {0}, scales, weight_scales;
    cache_bytes(&self->config, &spec, bytes);
    int64_t per_token = model_kv_bytes_per_token(&self->config, &scales);
    int64_t tokens = p->batch * (window > 0 && window < p->length ? window : p->length);
    int64_t weights = model_weight_bytes(&self->config, &weight_scales);
    values_set(values, "kv_bytes", (double)(tokens * per_token));
    values_set(values, "kv_scale_bytes", (double)(tokens * scales));
    values_set(values, "kv_bytes_per_token", (double)per_token);
    values_set(values, "kv_bytes_planned", (double)bytes[MEM_KV]);
    values_set(values, "kv_bytes_allocated", self->allocated < 0 ? NAN : (double)self->allocated);
    values_set(values, "kv_gib", (double)(tokens * per_token) * 0x1p-30);
    values_set(values, "resident_tokens", (double)tokens);
    values_set(values, "weight_bytes", (double)(weights + weight_scales));
    values_set(values, "kv_over_weights",
               (double)(tokens * per_token) / (double)(weights + weight_scales));
    values_set(values, "heads_saved",
               (double)self->config.shape.n_q / (double)self->config.shape.n_kv);
}

const struct workload workload_kv_memory = {
    .name = "kv_memory",
    .brief = "bytes of the KV cache: formula, allocator, and beside the weights",
    .help = "Question: how large is the cache, does the formula agree with the allocator, and "
            "when does it outgrow the model? (seeds E09-E13)\n\n"
            "Exact, no time: the cache of `batch` sequences of `length` tokens is allocated as a "
            "session would (every layer's K and V, scales of int8, the block table) and given "
            "back; no weights are made. allocate = false: formula only.\n\n"
            "Formulas: bytes per token = 2 n_layers n_kv d_h bytes(element), the 2 being K and V; "
            "times batch and length, which enter only as their product (E10); query heads do not "
            "enter, so grouped heads divide it by n_q / n_kv (E11). int8 adds 4 bytes per token, "
            "layer and head for each of K and V. A sliding window in a contiguous cache holds "
            "min(length, window) tokens; paged caches are rounded up to whole blocks and keep all "
            "tokens.\n\n"
            "Units: bytes; kv_gib is binary, as the seeds count although they print GB.\n\n"
            "Witness: allocated = planned, to the byte.\n",
    .flags = WORK_MODEL | WORK_ONCE | WORK_ALLOCATES,
    .params = params,
    .params_size = sizeof(struct kv_memory_params),
    .self_size = sizeof(struct kv_memory_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
};
