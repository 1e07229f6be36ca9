/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `training`: what training keeps in memory, by formula. */
#include <math.h>

#include "base/option.h"
#include "base/problems.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

struct training_params {
    int64_t parameters, batch, tokens, segment, entry, saved;
    double weight_size, gradient_size, state_size, master_size, element_size;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct training_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define SIZE(name, default, what)                                                                  \
    {                                                                                              \
        .key = #name, .type = OPT_REAL, PARAM(name), .def = default, .min = 0, .max = 16,          \
        .unit = "byte", .help = what                                                               \
    }
static const struct option params[] = {
    {.key = "parameters",
     .type = OPT_INT,
     PARAM(parameters),
     .def = "0",
     .min = 0,
     .max = 0x1p53,
     .unit = "",
     .help = "P; 0: the shape's, norms and biases among them."},
    SIZE(weight_size, "4", "s_w: bytes of a weight."),
    SIZE(gradient_size, "4", "s_g: bytes of a gradient."),
    SIZE(state_size, "4", "s_o: bytes of each of AdamW's two states."),
    SIZE(master_size, "0", "s_master: bytes of a master copy of a weight; 0: there is none."),
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
     .def = "1024",
     .min = 1,
     .max = 1 << 28,
     .unit = "tokens",
     .help = "T: tokens of each sequence."},
    SIZE(element_size, "2", "s: bytes of an element of activations and scores."),
    {.key = "segment",
     .type = OPT_INT,
     PARAM(segment),
     .def = "1",
     .min = 1,
     .max = 1024,
     .unit = "layers",
     .help = "K: layers between two checkpoints; at most all of them."},
    {.key = "entry",
     .type = OPT_BYTES,
     PARAM(entry),
     .def = "0",
     .min = 0,
     .max = 0x1p60,
     .unit = "",
     .help = "c: bytes kept at a segment's entry; 0: one residual tensor."},
    {.key = "saved",
     .type = OPT_BYTES,
     PARAM(saved),
     .def = "0",
     .min = 0,
     .max = 0x1p60,
     .unit = "",
     .help = "a: bytes that one layer saves for its backward pass; 0: unknown, nothing is said of "
             "checkpoints."},
    {0},
};
static const struct phase phases[] = {{"state", "parameter"}, {0}};
static const struct metric metrics[] = {
    {"static_bytes", "byte",
     "P times bytes_per_parameter: weights, gradients, AdamW's states, master copy.", BETTER_LOWER,
     true},
    {"checkpoint_peak_mib", "MiB", "checkpoint_peak in 2^20 bytes.", BETTER_LOWER, true},
    {"best_segment", "layer", "The K with the lowest peak.", BETTER_NONE, true},
    {"bytes_per_parameter", "byte", "s_w + s_g + 2 s_o + s_master (E51).", BETTER_LOWER, true},
    {"residual_bytes", "byte", "One tensor of the residual stream, B T D s (E52).", BETTER_LOWER,
     true},
    {"attention_bytes", "byte", "One matrix of scores, B n_q T^2 s (E52, E57).", BETTER_LOWER,
     true},
    {"equal_tokens", "token", "T at which the two are equal: D / n_q.", BETTER_NONE, true},
    {"logsumexp_bytes", "byte", "What a fused kernel keeps instead: 4 B n_q T (E57).", BETTER_LOWER,
     true},
    {"fused_bytes", "byte", "Traffic of a fused pass: Q, K, V, O once, 4 B T D s (E57).",
     BETTER_LOWER, true},
    {"naive_extra_bytes", "byte", "What a naive pass moves beyond: 4 B n_q T^2 s (E57).",
     BETTER_LOWER, true},
    {"saved_bytes", "byte", "Without checkpoints: n_layers a (E54).", BETTER_LOWER, true},
    {"kept_bytes", "byte", "With them, for long: ceil(n_layers / K) c.", BETTER_LOWER, true},
    {"checkpoint_peak", "byte", "ceil(n_layers / K) c + K a (E54).", BETTER_LOWER, true},
    {0},
};

static void checkpoints(const struct training_params *p, const struct model_shape *s,
                        double residual, struct values *v) {
    const double layers = (double)s->n_layers, saved = (double)p->saved;
    const double entry = p->entry ? (double)p->entry : residual;
    const double segment = fmin((double)p->segment, layers);
    const double peak = checkpoint_peak(layers, segment, entry, saved);
    values_set(v, "saved_bytes", layers * saved);
    values_set(v, "kept_bytes", ceil(layers / segment) * entry);
    values_set(v, "checkpoint_peak", peak);
    values_set(v, "checkpoint_peak_mib", peak * 0x1p-20);
    values_set(v, "best_segment", checkpoint_best(layers, entry, saved));
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct training_params *p = params_;
    const struct model_shape *s = &config->shape;
    const double parameters = p->parameters ? (double)p->parameters : (double)model_parameters(s);
    const double each = p->weight_size + p->gradient_size + 2 * p->state_size + p->master_size;
    const double rows = (double)p->batch * (double)p->tokens, heads = (double)s->n_q;
    const double residual = rows * (double)s->d_model * p->element_size;
    const double scores = rows * heads * (double)p->tokens * p->element_size;
    values_set(v, "bytes_per_parameter", each);
    values_set(v, "static_bytes", parameters * each);
    values_set(v, "residual_bytes", residual);
    values_set(v, "attention_bytes", scores);
    values_set(v, "equal_tokens", (double)s->d_model / heads);
    values_set(v, "logsumexp_bytes", 4 * rows * heads);
    values_set(v, "fused_bytes", 4 * residual);
    values_set(v, "naive_extra_bytes", 4 * scores);
    if (p->saved) checkpoints(p, s, residual, v);
}

const struct workload workload_training = {
    .name = "training",
    .brief = "memory of training: static state, activations, checkpoints: theory",
    .help =
        "Question: what does training keep beside the weights, and what do precision, fused "
        "attention and checkpoints change? (seeds E51, E52, E54, E57)\n\n"
        "Theory: nothing runs. `train` measures a step, `fusion` what one op instead of many saves.\n\n"
        "Formulas: static state P (s_w + s_g + 2 s_o + s_master) for AdamW, metadata and temporary "
        "buffers excluded; a residual tensor B T D s, a matrix of scores B n_q T^2 s; a fused "
        "kernel keeps 4 B n_q T bytes of row sums instead and moves Q, K, V and O once. With "
        "checkpoints every K layers the peak is about ceil(n_layers / K) c + K a.\n\n"
        "Left out: what one layer saves depends on how ops are split; `train` says what ours do "
        "(layer_bytes): give it as `saved`.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct training_params),
    .metrics = metrics,
    .phases = phases,
    .compute = compute,
};
