/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `kv_methods`: what shapes of the cache keep of a sequence, by formula. */
#include <math.h>

#include "base/option.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

struct kv_methods_params {
    int64_t batch, length, latent, rotary, share, window, local_layers;
    int method;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct kv_methods_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "method",
     .type = OPT_WORD,
     PARAM(method),
     .def = "heads",
     .words = kv_method_names,
     .unit = "",
     .help = "heads: K and V of each KV head (shape.n_kv: MHA, GQA, MQA); latent: one low-rank "
             "vector and a rotary key (MLA); shared: neighbouring layers share K and V (CLA); "
             "window: local layers keep the last tokens only."},
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 1 << 24,
     .unit = "sequences",
     .help = "Sequences."},
    {.key = "length",
     .type = OPT_INT,
     PARAM(length),
     .def = "1024",
     .min = 1,
     .max = 1 << 28,
     .unit = "tokens",
     .help = "S: tokens of each."},
    {.key = "latent",
     .type = OPT_INT,
     PARAM(latent),
     .def = "512",
     .min = 1,
     .max = 1 << 20,
     .unit = "values",
     .help = "latent: width of the vector that K and V are rebuilt from."},
    {.key = "rotary",
     .type = OPT_INT,
     PARAM(rotary),
     .def = "64",
     .min = 0,
     .max = 1 << 20,
     .unit = "values",
     .help = "latent: width of the key that carries the positions and cannot be absorbed."},
    {.key = "share",
     .type = OPT_INT,
     PARAM(share),
     .def = "2",
     .min = 1,
     .max = 1024,
     .unit = "layers",
     .help = "shared: g neighbouring layers keep one K and V."},
    {.key = "window",
     .type = OPT_INT,
     PARAM(window),
     .def = "4096",
     .min = 1,
     .max = 1 << 28,
     .unit = "tokens",
     .help = "window: W, the tokens that a local layer keeps."},
    {.key = "local_layers",
     .type = OPT_INT,
     PARAM(local_layers),
     .def = "1024",
     .min = 0,
     .max = 1024,
     .unit = "layers",
     .help = "window: how many layers are local; at most all of them."},
    {0},
};
static const struct only only[] = {
    {"latent", "method", "latent"},       {"rotary", "method", "latent"},
    {"share", "method", "shared"},        {"window", "method", "window"},
    {"local_layers", "method", "window"}, {0}};
static const struct phase phases[] = {{"cache", "token"}, {0}};
static const struct metric metrics[] = {
    {"token_elements", "",
     "Elements of a token in a layer that keeps it: 2 n_kv d_h; latent + rotary (E16, E17).",
     BETTER_LOWER, true},
    {"kv_layer_token_bytes", "byte", "token_elements in bytes of model.kv_type, scales apart.",
     BETTER_LOWER, true},
    {"kv_bytes_per_token", "byte",
     "All layers: kv_bytes over batch and length, so with a window it falls as the length grows.",
     BETTER_LOWER, true},
    {"kv_bytes", "byte", "Cache of the whole batch.", BETTER_LOWER, true},
    {"kv_gib", "GiB", "kv_bytes in 2^30 bytes.", BETTER_LOWER, true},
    {"smaller", "", "A cache with a KV head for each query head, of all tokens, over this one.",
     BETTER_HIGHER, true},
    {"equal_heads", "head",
     "KV heads whose K and V are as many elements: token_elements / (2 d_h).", BETTER_LOWER, true},
    {0},
};

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct kv_methods_params *p = params_;
    const struct model_shape *s = &config->shape;
    const struct kv_layout layout = {.method = (enum kv_method)p->method,
                                     .latent = (double)p->latent,
                                     .rotary = (double)p->rotary,
                                     .share = (double)p->share,
                                     .window = (double)p->window,
                                     .local_layers = (double)p->local_layers};
    const double size = dtype_bits(model_kv_type(&config->params)) / 8.0;
    const double length = (double)p->length, batch = (double)p->batch;
    const double elements = kv_sequence_elements(&layout, s, length);
    const double full = 2 * (double)(s->n_q * s->d_h) * (double)s->n_layers * length;
    values_set(v, "token_elements", kv_elements(&layout, s));
    values_set(v, "kv_layer_token_bytes", size * kv_elements(&layout, s));
    values_set(v, "kv_bytes_per_token", size * elements / length);
    values_set(v, "kv_bytes", batch * size * elements);
    values_set(v, "kv_gib", batch * size * elements * 0x1p-30);
    values_set(v, "smaller", full / elements);
    values_set(v, "equal_heads", kv_elements(&layout, s) / (2 * (double)s->d_h));
}

const struct workload workload_kv_methods = {
    .name = "kv_methods",
    .brief = "the cache by heads, latent, shared layers and windows: theory",
    .help =
        "Question: how much smaller do other shapes make the cache? (seeds E13, E14, E16-E18)\n\n"
        "Theory: nothing runs. kv_memory allocates what our own model keeps (heads, windows).\n\n"
        "Formulas, elements of a sequence of S tokens: heads 2 n_kv d_h S n_layers; latent "
        "(latent + rotary) S n_layers; shared 2 n_kv d_h S ceil(n_layers / share); window 2 n_kv "
        "d_h (local min(S, W) + (n_layers - local) S). Times batch and bytes of model.kv_type; "
        "scales of int8 are left out. model.window does not enter.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct kv_methods_params),
    .metrics = metrics,
    .phases = phases,
    .compute = compute,
};
