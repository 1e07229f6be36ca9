/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `ledger`: what a decode step takes and what fits, predicted from a shape and a data
 * sheet. */
#include <math.h>

#include "base/option.h"
#include "base/problems.h"
#include "workloads/model/ledger.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

struct ledger_params {
    int64_t batch, context, reserve, memory_bytes, slo_ns, parameters;
    double hbm_bytes_per_s, dense_bf16_flop_per_s;
    const char *sheet;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct ledger_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 1 << 24,
     .unit = "sequences",
     .help = "B: sequences that decode together."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "1024",
     .min = 1,
     .max = 1 << 28,
     .unit = "tokens",
     .help = "S: tokens that each of them holds; one user's, where users are counted."},
    {.key = "sheet",
     .type = OPT_TEXT,
     PARAM(sheet),
     .def = "",
     .unit = "",
     .help = "Name of a file in protocols/devices/ (or in devices/ beside the protocol): its "
             "figures, where the keys below are not given."},
    {.key = "hbm_bytes_per_s",
     .type = OPT_REAL,
     PARAM(hbm_bytes_per_s),
     .def = "0",
     .min = 0,
     .max = 1e18,
     .unit = "byte/s",
     .help = "Bandwidth of the device's memory; 0: unknown, and no times."},
    {.key = "dense_bf16_flop_per_s",
     .type = OPT_REAL,
     PARAM(dense_bf16_flop_per_s),
     .def = "0",
     .min = 0,
     .max = 1e21,
     .unit = "FLOP/s",
     .help = "Dense peak, for the time of the arithmetic beside that of the bytes; 0: unknown."},
    {.key = "memory_bytes",
     .type = OPT_BYTES,
     PARAM(memory_bytes),
     .def = "0",
     .min = 0,
     .max = 0x1p60,
     .unit = "",
     .help = "Memory of the device; 0: unknown, and nothing is said about what fits."},
    {.key = "reserve",
     .type = OPT_BYTES,
     PARAM(reserve),
     .def = "0",
     .min = 0,
     .max = 0x1p60,
     .unit = "",
     .help = "Of that, for workspace and runtime: neither weights nor cache."},
    {.key = "slo",
     .type = OPT_TIME,
     PARAM(slo_ns),
     .def = "0",
     .min = 0,
     .max = 1e15,
     .unit = "",
     .help = "Time per token that must be kept: the largest batch under it; 0: none."},
    {.key = "parameters",
     .type = OPT_INT,
     PARAM(parameters),
     .def = "0",
     .min = 0,
     .max = 0x1p53,
     .unit = "",
     .help = "A round number of weights in place of the shape's, which then gives the cache alone; "
             "0: the shape's matrices."},
    {0},
};
static const struct phase phases[] = {{"step", "token"}, {0}};
static const struct metric metrics[] = {
    {"memory_gb", "GB", "memory_bytes in 10^9 bytes, as data sheets count.", BETTER_LOWER, true},
    {"token_time", "ms", "Time per output token: memory_bytes over the bandwidth (E29).",
     BETTER_LOWER, true},
    {"token_rate", "token/s", "batch over token_time.", BETTER_HIGHER, true},
    {"fits", "", "1: memory_bytes and the reserve fit the card; 0: they do not.", BETTER_HIGHER,
     true},
    {"resident_tokens", "token",
     "Tokens of all requests together beside weights and reserve; 0: these alone do not fit (E49).",
     BETTER_HIGHER, true},
    {"users", "sequence", "Sequences of `context` tokens that fit: the largest batch (E50).",
     BETTER_HIGHER, true},
    {"users_slo", "sequence", "The largest batch whose token_time keeps `slo`, of those that fit.",
     BETTER_HIGHER, true},
    {"arithmetic_time", "ms",
     "The step's FLOPs over the dense peak, which the seeds' ledger leaves out: above token_time, the step "
     "is bound by arithmetic.",
     BETTER_LOWER, true},
    {"parameters", "", "Weights of all matrices; norms and biases left out (E29).", BETTER_NONE,
     true},
    {"weight_bits", "bit", "Bits of a weight, its share of a group's scale among them (E35).",
     BETTER_LOWER, true},
    {"weight_bytes", "byte", "parameters in model.type, with scales.", BETTER_LOWER, true},
    {"weight_gib", "GiB", "weight_bytes in 2^30 bytes.", BETTER_LOWER, true},
    {"kv_bytes_per_token", "byte", "K, V and their scales of a resident token, all layers (E09).",
     BETTER_LOWER, true},
    {"kv_bytes", "byte", "Caches of the whole batch.", BETTER_LOWER, true},
    {"memory_bytes", "byte", "weight_bytes + kv_bytes: what a step reads, and what must fit.",
     BETTER_LOWER, true},
    {"token_rate_limit", "token/s",
     "token_rate's limit for endless batches: bandwidth over one cache.", BETTER_HIGHER, true},
    {"step_flops", "FLOP", "2 a weight (not the embedding) and token, 4 n_q d_h a layer and key.",
     BETTER_LOWER, true},
    {0},
};

static double weight_bytes(const struct ledger_params *p, const struct model_config *config) {
    int64_t scales = 0;
    if (!p->parameters)
        return (double)(model_weight_bytes(config, &scales) - ledger_vector_bytes(&config->shape)) +
               (double)scales;
    return (double)p->parameters * theory_weight_bytes(config); /* a number has no rows */
}

static double step_flops(const struct ledger_params *p, const struct model_config *config,
                         double parameters, double tokens) {
    const struct model_shape *s = &config->shape;
    /* Rows of the embedding are read, not multiplied; a tied head is multiplied. */
    const double looked_up = s->tied || p->parameters ? 0 : (double)s->vocab * (double)s->d_model;
    const double attention = 4 * (double)(s->n_q * s->d_h) * (double)s->n_layers * tokens;
    return (double)p->batch * (2 * (parameters - looked_up) + attention);
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct ledger_params *p = params_;
    const double batch = (double)p->batch, window = (double)config->params.window;
    int64_t scales;
    const int64_t kv = model_kv_bytes_per_token(config, &scales);
    const struct serving s = {.weight_bytes = weight_bytes(p, config),
                              .kv_token_bytes = (double)(kv + scales),
                              .kv_tokens = window > 0 ? fmin(window, (double)p->context)
                                                      : (double)p->context,
                              .bandwidth = p->hbm_bytes_per_s,
                              .card_bytes = (double)p->memory_bytes,
                              .reserve_bytes = (double)p->reserve};
    const double parameters =
        p->parameters ? (double)p->parameters : theory_matrix_parameters(&config->shape);
    const double memory = serving_memory(&s, batch), step = serving_step(&s, batch);
    const double flops = step_flops(p, config, parameters, s.kv_tokens);
    const double peak = p->dense_bf16_flop_per_s;
    values_set(v, "parameters", parameters);
    values_set(v, "weight_bits", 8 * s.weight_bytes / parameters);
    values_set(v, "weight_bytes", s.weight_bytes);
    values_set(v, "weight_gib", s.weight_bytes * 0x1p-30);
    values_set(v, "kv_bytes_per_token", s.kv_token_bytes);
    values_set(v, "kv_bytes", batch * serving_sequence(&s));
    values_set(v, "memory_bytes", memory);
    values_set(v, "memory_gb", memory / 1e9);
    values_set(v, "token_time", 1e3 * step);
    values_set(v, "token_rate", batch / step);
    values_set(v, "token_rate_limit",
               s.bandwidth > 0 ? s.bandwidth / serving_sequence(&s) : (double)NAN);
    values_set(v, "step_flops", flops);
    values_set(v, "arithmetic_time", peak > 0 ? 1e3 * flops / peak : (double)NAN);
    values_set(v, "fits",
               s.card_bytes > 0 ? (double)(memory + s.reserve_bytes <= s.card_bytes) : (double)NAN);
    values_set(v, "resident_tokens", serving_resident(&s));
    values_set(v, "users", serving_users(&s));
    values_set(v, "users_slo",
               p->slo_ns ? serving_users_within(&s, (double)p->slo_ns * 1e-9) : (double)NAN);
}

const struct workload workload_ledger = {
    .name = "ledger",
    .brief = "a decode step and what fits, predicted from a shape and a data sheet: theory",
    .help =
        "Question: how long should a decode step take, how large is its memory, and how many tokens "
        "and users fit a card? (seeds E29, E30, E49, E50)\n\n"
        "Theory: nothing runs, no device is asked. `bench plan MODEL --sheet NAME` prints the same "
        "for one model.\n\n"
        "Formulas: P = 2 V D + n_layers (3 D F + 2 D n_q d_h + 2 D n_kv d_h) (V D where the head is "
        "tied); memory M = P bytes(weight) + B S kv_bytes_per_token; time per token M / bandwidth; "
        "throughput B over that. Tokens that fit: floor((card - reserve - weights) / "
        "kv_bytes_per_token), users that many over `context`. int4 with a 16-bit scale per 128 is "
        "4.125 bits (E35). model.window bounds what a sequence holds.\n\n"
        "Left out (R22): launches, synchronisation, scheduling, allocator, network, activations; "
        "overlap is perfect, and the whole input embedding is charged to every step although B rows "
        "of it are read. That weights fit proves nothing: look at resident_tokens (R29).\n\n"
        "Units: GB is 10^9 bytes, GiB 2^30. `slo` and `sheet`: see the keys.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct ledger_params),
    .metrics = metrics,
    .phases = phases,
    .compute = compute,
};
