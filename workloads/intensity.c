/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `intensity`: FLOPs, bytes and place under a card's roof of one block, by formula. */
#include <math.h>

#include "base/option.h"
#include "workloads/model/ledger.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

enum block { BLOCK_GEMM, BLOCK_MLP, BLOCK_ATTENTION };
struct intensity_params {
    int block;
    int64_t batch, tokens, context;
    double hbm_bytes_per_s, dense_bf16_flop_per_s;
    const char *sheet;
};

static const char *const block_words[] = {"gemm", "mlp", "attention", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct intensity_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "block",
     .type = OPT_WORD,
     PARAM(block),
     .def = "gemm",
     .words = block_words,
     .unit = "",
     .help = "gemm: batch x tokens rows by the (d_model, d_ff) matrix; mlp: gate, up and down; "
             "attention: scores and weighted sum of one layer."},
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 1 << 24,
     .unit = "sequences",
     .help = "B."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "1",
     .min = 1,
     .max = 1 << 24,
     .unit = "tokens",
     .help = "T: tokens of each sequence now; 1 is decode."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "0",
     .min = 0,
     .max = 1 << 28,
     .unit = "tokens",
     .help = "S: tokens that attention looks at; 0: T, as a prompt."},
    {.key = "sheet",
     .type = OPT_TEXT,
     PARAM(sheet),
     .def = "",
     .unit = "",
     .help = "Name of a file in protocols/devices/: its figures, where the keys below are not "
             "given."},
    {.key = "hbm_bytes_per_s",
     .type = OPT_REAL,
     PARAM(hbm_bytes_per_s),
     .def = "0",
     .min = 0,
     .max = 1e18,
     .unit = "byte/s",
     .help = "Bandwidth of the device's memory; 0: unknown, and no roof."},
    {.key = "dense_bf16_flop_per_s",
     .type = OPT_REAL,
     PARAM(dense_bf16_flop_per_s),
     .def = "0",
     .min = 0,
     .max = 1e21,
     .unit = "FLOP/s",
     .help = "Dense peak; 0: unknown, and no roof."},
    {0},
};
static const struct only only[] = {{"context", "block", "attention"}, {0}};
static const struct phase phases[] = {{"block", "row"}, {0}};
static const struct metric metrics[] = {
    {"intensity", "FLOP/byte", "block_flops over block_bytes.", BETTER_HIGHER, true},
    {"ridge", "FLOP/byte", "Peak over bandwidth of the card: below it memory binds (E26).",
     BETTER_NONE, true},
    {"memory_bound", "", "1: the bytes take longer than the arithmetic.", BETTER_NONE, true},
    {"block_flops", "FLOP", "gemm 2BTDF, mlp 6BTDF, attention 4BST n_q d_h (E25, E27, E28).",
     BETTER_LOWER, true},
    {"block_bytes", "byte",
     "With 2-byte elements: gemm 2BTD + 2DF + 2BTF, mlp 4BTD + 4BTF + 6DF, attention 4BS n_kv d_h + "
     "4BT n_q d_h.",
     BETTER_LOWER, true},
    {"attainable", "FLOP/s", "min(peak, intensity bandwidth).", BETTER_HIGHER, true},
    {"roof_time", "ms", "block_flops over attainable: no kernel is faster.", BETTER_LOWER, true},
    {"block_macs", "MAC", "Half of block_flops: a multiply-add is 2 FLOP.", BETTER_LOWER, true},
    {"ridge_rows", "row", "gemm: rows at which the intensity reaches the ridge; empty: never.",
     BETTER_LOWER, true},
    {0},
};

/* auto: 2 bytes, whatever the device at hand would keep. */
static double activation_size(const struct model_config *config) {
    return config->params.activation ? dtype_bits(config->activation) / 8.0 : 2;
}

static struct block_cost cost_of(const struct intensity_params *p,
                                 const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const double a = activation_size(config), kv = dtype_bits(model_kv_type(&config->params)) / 8.0;
    const int64_t context = p->context ? p->context : p->tokens;
    if (p->block == BLOCK_GEMM)
        return ledger_gemm(p->batch * p->tokens, s->d_model, s->d_ff, theory_weight_bytes(config),
                           a);
    if (p->block == BLOCK_MLP)
        return ledger_mlp(p->batch, p->tokens, s->d_model, s->d_ff, theory_weight_bytes(config), a);
    struct block_cost cost = ledger_attention(p->batch, context, p->tokens, s->n_q * s->d_h, kv, a);
    cost.kv_bytes *= (double)s->n_kv / (double)s->n_q; /* E28 has a KV head for each query head */
    return cost;
}

/* Rows B with 2BDF / (a B (D + F) + w D F) = ridge. */
static double ridge_rows(const struct model_config *config, double ridge) {
    const double d = (double)config->shape.d_model, f = (double)config->shape.d_ff;
    const double room = 2 * d * f - ridge * activation_size(config) * (d + f);
    return room > 0 ? ridge * theory_weight_bytes(config) * d * f / room : (double)NAN;
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct intensity_params *p = params_;
    const struct block_cost cost = cost_of(p, config);
    const double peak = p->dense_bf16_flop_per_s, bandwidth = p->hbm_bytes_per_s;
    const double intensity = ledger_intensity(cost);
    values_set(v, "intensity", intensity);
    values_set(v, "block_flops", cost.flops);
    values_set(v, "block_macs", cost.flops / 2);
    values_set(v, "block_bytes", ledger_bytes(cost));
    if (!(peak > 0 && bandwidth > 0)) return;
    const double ridge = ledger_ridge(peak, bandwidth);
    const double rate = ledger_attainable(intensity, peak, bandwidth);
    values_set(v, "ridge", ridge);
    if (p->block == BLOCK_GEMM) values_set(v, "ridge_rows", ridge_rows(config, ridge));
    values_set(v, "attainable", rate);
    values_set(v, "roof_time", 1e3 * cost.flops / rate);
    values_set(v, "memory_bound", intensity < ridge);
}

const struct workload workload_intensity = {
    .name = "intensity",
    .brief = "arithmetic intensity of a product, an MLP or attention under a card's roof: theory",
    .help =
        "Question: which block is bound by memory and which by arithmetic, in prefill and in decode, "
        "and what does batching change? (seeds E25-E28)\n\n"
        "Theory: nothing runs. The workloads gemm and attention measure the same blocks.\n\n"
        "Formulas, D = d_model, F = d_ff, 2-byte elements: product I = BTDF / (BTD + DF + BTF), about "
        "BT while that is small; gated MLP 6BTDF over 4BTD + 4BTF + 6DF; attention, without causal "
        "halving, T n_q S / (S n_kv + T n_q), free of B: S / 2 for a prompt, below 1 for a token where "
        "each query head has keys of its own. model.type and model.kv_type change the bytes of "
        "weights and cache, model.activation (auto: 2 bytes) those of the rest.\n\n"
        "Roof (E26): ridge = peak / bandwidth; attainable = min(peak, I bandwidth). They belong to one "
        "card, type and kernel (R23).\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct intensity_params),
    .metrics = metrics,
    .phases = phases,
    .compute = compute,
};
