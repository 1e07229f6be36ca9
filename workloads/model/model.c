/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of [model] and of shape files, what may not be combined, and exact counts from the shape
 * alone. */
#include "workloads/model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/problems.h"
#include "base/text.h"
#include "workloads/model/ledger.h"
#include "workloads/model/rope.h"

const char *const part_names[N_PARTS + 1] = {"embed", "norm", "qkv",  "rope",   "attention",
                                             "out",   "mlp",  "head", "select", NULL};
static const char *const rope_words[] = {"halves", "pairs", NULL};
const char *const rope_scaling_names[] = {"none", "linear", "llama3", "yarn", "file", NULL};

#define SHAPE(field)                                                                               \
    .offset = offsetof(struct model_shape, field), .flags = OPT_SWEEP | OPT_IDENTITY
const struct option shape_options[] = {
    {.key = "n_layers",
     .type = OPT_INT,
     SHAPE(n_layers),
     .min = 1,
     .max = 1024,
     .unit = "layers",
     .help = "Transformer blocks, each attention and a gated MLP."},
    {.key = "d_model",
     .type = OPT_INT,
     SHAPE(d_model),
     .min = 2,
     .max = 65536,
     .unit = "values",
     .help = "Width of the residual stream."},
    {.key = "n_q",
     .type = OPT_INT,
     SHAPE(n_q),
     .min = 1,
     .max = 1024,
     .unit = "heads",
     .help = "Query heads."},
    {.key = "n_kv",
     .type = OPT_INT,
     SHAPE(n_kv),
     .min = 1,
     .max = 1024,
     .unit = "heads",
     .help =
         "Key-value heads: n_q is multi-head, 1 multi-query, between them grouped-query attention."},
    {.key = "d_h",
     .type = OPT_INT,
     SHAPE(d_h),
     .min = 2,
     .max = 1024,
     .unit = "values",
     .help = "Width of a head; even."},
    {.key = "d_ff",
     .type = OPT_INT,
     SHAPE(d_ff),
     .min = 1,
     .max = 262144,
     .unit = "values",
     .help = "Width between the gated MLP's two halves."},
    {.key = "vocab",
     .type = OPT_INT,
     SHAPE(vocab),
     .min = 2,
     .max = 1048576,
     .unit = "ids",
     .help = "Number of token ids: rows of the embedding and of the head."},
    {.key = "qkv_bias",
     .type = OPT_FLAG,
     SHAPE(qkv_bias),
     .def = "false",
     .unit = "",
     .help = "Whether the q, k and v projections add a bias."},
    {.key = "tied",
     .type = OPT_FLAG,
     SHAPE(tied),
     .def = "false",
     .unit = "",
     .help = "Whether the head is the embedding itself instead of a matrix of its own."},
    {.key = "rope_base",
     .type = OPT_REAL,
     SHAPE(rope_base),
     .def = "10000",
     .min = 1,
     .max = 1e9,
     .unit = "",
     .help = "Base of the rotary angles: pair i turns by base^(-2i/d_h) a position."},
    {.key = "eps",
     .type = OPT_REAL,
     SHAPE(eps),
     .def = "1e-5",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "Added to the mean square in RMSNorm."},
    {.key = "rope_style",
     .type = OPT_WORD,
     SHAPE(rope_style),
     .def = "halves",
     .words = rope_words,
     .unit = "",
     .help = "Which values turn together: (i, i + d_h/2) or (2i, 2i + 1)."},
    {.key = "rope_scaling",
     .type = OPT_WORD,
     SHAPE(rope_scaling),
     .def = "none",
     .words = rope_scaling_names,
     .unit = "",
     .help =
         "How rotary angles are stretched for longer contexts: linear, all by rope_factor; llama3, only those that turn fewer than rope_low times in rope_context, and less up to rope_high; yarn, the same on a ramp over the pairs, cosine and sine times rope_magnify; file, by the factors in the model's file (rope_freqs.weight)."},
    {.key = "rope_factor",
     .type = OPT_REAL,
     SHAPE(rope_factor),
     .def = "1",
     .min = 1,
     .max = 1e6,
     .unit = "",
     .help = "How many times slower the stretched angles turn."},
    {.key = "rope_context",
     .type = OPT_INT,
     SHAPE(rope_context),
     .def = "8192",
     .min = 1,
     .max = 1 << 30,
     .unit = "tokens",
     .help = "Context that the model was made for before its angles were stretched: llama3, yarn."},
    {.key = "rope_low",
     .type = OPT_REAL,
     SHAPE(rope_low),
     .def = "1",
     .min = 1e-3,
     .max = 1e6,
     .unit = "turns",
     .help = "Pairs that turn less often in rope_context are stretched by all of rope_factor."},
    {.key = "rope_high",
     .type = OPT_REAL,
     SHAPE(rope_high),
     .def = "4",
     .min = 1e-3,
     .max = 1e6,
     .unit = "turns",
     .help = "Pairs that turn more often in rope_context stay as they are; above rope_low."},
    {.key = "rope_magnify",
     .type = OPT_REAL,
     SHAPE(rope_magnify),
     .def = "1",
     .min = 1e-3,
     .max = 1e3,
     .unit = "",
     .help = "Cosine and sine are multiplied by it: yarn's attention factor."},
    {.key = "source",
     .type = OPT_TEXT,
     .offset = offsetof(struct model_shape, source),
     .def = "",
     .unit = "",
     .help = "Where the shape comes from, one sentence."},
    {0},
};

const char *const kv_type_names[] = {"f32", "f16", "bf16", "int8", NULL};
const char *const kv_layout_names[] = {"contiguous", "paged", NULL};
const char *const float_names[] = {"f32", "f16", "bf16", NULL};
enum { ACTIVATION_INT8 = 4 };
const char *const activation_names[] = {"auto", "f32", "f16", "bf16", [ACTIVATION_INT8] = "int8",
                                        NULL};
static const enum dtype activation_types[] = {DT_F32, DT_F32, DT_F16, DT_BF16, DT_F32};
static const enum dtype kv_types[] = {DT_F32, DT_F16, DT_BF16, DT_I8};

/* As weight_format_names, and one more: that index is the list's end in weight_formats. */
static const char *const type_words[] = {
    "f32",  "f16",         "bf16",     "int8", "int8-tensor",   "int8-group",
    "int4", "int4-tensor", "int4-row", "nf4",  MODEL_AS_STORED, NULL};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct model_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
const struct option model_options[] = {
    {.key = "shape",
     .type = OPT_TEXT,
     PARAM(shape),
     .def = NULL,
     .unit = "",
     .help =
         "Name of a file in protocols/models/, without .toml: `bench list models`; or model.file."},
    {.key = "type",
     .type = OPT_WORD,
     PARAM(type),
     .def = "bf16",
     .words = type_words,
     .unit = "",
     .help =
         "How the matrices are stored: element type, and where their scales lie; as_stored: the nearest to what most weights of model.file are stored as."},
    {.key = "kv_type",
     .type = OPT_WORD,
     PARAM(kv_type),
     .def = "bf16",
     .words = kv_type_names,
     .unit = "",
     .help =
         "Element type of the KV cache; int8 has one f32 scale per token, layer and head for K and for V."},
    {.key = "activation",
     .type = OPT_WORD,
     PARAM(activation),
     .def = "auto",
     .words = activation_names,
     .unit = "",
     .help =
         "Element type of what ops hand to each other (residual stream and logits: f32); auto: what the device prefers beside the weights; int8: f32, of which products with int8 or int4 weights round each row to int8, with one scale, and multiply codes in int32."},
    {.key = "layout",
     .type = OPT_WORD,
     PARAM(layout),
     .def = "contiguous",
     .words = kv_layout_names,
     .unit = "",
     .help = "One piece of cache a sequence, or blocks found through a table."},
    {.key = "block",
     .type = OPT_INT,
     PARAM(block),
     .def = "16",
     .min = 1,
     .max = 65536,
     .unit = "tokens",
     .help = "Tokens per block of a paged cache."},
    {.key = "window",
     .type = OPT_INT,
     PARAM(window),
     .def = "0",
     .min = 0,
     .max = 1 << 24,
     .unit = "tokens",
     .help =
         "Sliding window: a token attends to itself and to window - 1 before it; 0: to all. Contiguous caches keep a ring."},
    {.key = "group",
     .type = OPT_INT,
     PARAM(group),
     .def = "0",
     .min = 0,
     .max = 65536,
     .unit = "weights",
     .help = "Weights per scale of a group format; 0: 128, or 64 for nf4."},
    {.key = "seed",
     .type = OPT_INT,
     PARAM(seed),
     .def = "1",
     .min = 0,
     .max = 0x1p53,
     .unit = "",
     .help = "Seed of the synthetic weights."},
    {.key = "file",
     .type = OPT_TEXT,
     .offset = offsetof(struct model_params, file),
     .flags = OPT_SWEEP,
     .def = "",
     .unit = "",
     .help =
         "Instead of a shape with synthetic weights: a .gguf file, a .safetensors file with config.json beside it, a folder with these, or the name of a model that `bench model` brings. Decoders of the kinds llama (mistral, smollm) and qwen2; given by --set, it replaces the protocol's shape."},
    {.key = "digest",
     .type = OPT_TEXT,
     .offset = offsetof(struct model_params, digest),
     .flags = OPT_IDENTITY,
     .def = "",
     .unit = "",
     .help =
         "Tells files of models apart; filled in from model.file (names, types and shapes of its tensors and 12 KiB of each), and a given one must agree."},
    {0},
};

enum dtype model_kv_type(const struct model_params *params) { return kv_types[params->kv_type]; }

enum dtype model_activation(const struct model_params *params, const struct device_kind *kind) {
    if (params->activation) return activation_types[params->activation];
    return device_activation(kind, model_weight_format(params)->type);
}

enum dtype model_input(const struct model_params *params) {
    return params->activation == ACTIVATION_INT8 ? DT_I8 : DT_F32;
}

enum dtype model_binding(const struct model_config *config) {
    return model_input(&config->params) == DT_I8 ? DT_I8 : config->activation;
}

const struct weight_format *model_weight_format(const struct model_params *params) {
    return &weight_formats[params->type];
}

bool model_from_file(const struct model_params *params) { return params->file && *params->file; }

int model_group(const struct model_params *params) {
    const struct weight_format *format = model_weight_format(params);
    if (format->scale != SCALE_GROUP) return 0;
    if (params->group) return (int)params->group;
    return format->type == DT_NF4 ? 64 : 128;
}

void model_check(const struct model_config *config, struct problems *problems) {
    const struct model_shape *s = &config->shape;
    const struct model_params *p = &config->params;
    if (s->n_kv > 0 && s->n_q % s->n_kv != 0)
        problem(problems, "shape.n_kv", "shape.n_q", "%lld KV heads do not divide %lld query heads",
                (long long)s->n_kv, (long long)s->n_q);
    if (s->d_h % 2 != 0)
        problem(problems, "shape.d_h", NULL,
                "a head of %lld values cannot be rotated in pairs: an even width is needed",
                (long long)s->d_h);
    rope_check(config, problems);
    if (s->n_q * s->d_h > 65536)
        problem(problems, "shape.d_h", "shape.n_q",
                "%lld heads of %lld are wider than 65536 in all", (long long)s->n_q,
                (long long)s->d_h);
    if (p->group && model_weight_format(p)->name && model_weight_format(p)->scale != SCALE_GROUP)
        problem(problems, "model.group", "model.type",
                "%s has no groups: group applies to int8-group, int4 and nf4",
                model_weight_format(p)->name);
    if (!model_weight_format(p)->name)
        problem(problems, "model.type", NULL, "as_stored is for models of a file: model.file");
    else if (quant_input_refused(model_weight_format(p)->type, model_input(p), 0))
        problem(
            problems, "model.activation", "model.type",
            "int8 inputs are multiplied with int8 and int4 weights, and those of %s are neither",
            model_weight_format(p)->name);
    /* Beyond this the arithmetic of plans would leave 64 bits long before any machine could hold
     * it. */
    double parameters =
        (double)s->n_layers * ((double)s->d_model * (double)(2 * s->n_q * s->d_h + 3 * s->d_ff)) +
        2.0 * (double)s->vocab * (double)s->d_model;
    if (parameters > 0x1p45)
        problem(problems, "model.shape", NULL, "about %.0f parameters; at most 2^45 are understood",
                parameters);
}

int64_t model_parameters(const struct model_shape *s) {
    int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    int64_t layer = s->d_model * (q + 2 * kv)  /* q, k, v */
                    + q * s->d_model           /* o */
                    + 3 * s->d_model * s->d_ff /* gate, up, down */
                    + 2 * s->d_model           /* two norms */
                    + (s->qkv_bias ? q + 2 * kv : 0);
    return s->n_layers * layer + s->d_model + (s->tied ? 1 : 2) * s->vocab * s->d_model;
}

int64_t model_weight_bytes(const struct model_config *config, int64_t *scale_bytes) {
    struct matrix_bytes sum = {0};
    struct matrix_bytes layer = ledger_layer_weights(config);
    struct matrix_bytes head = ledger_matrix(config, config->shape.vocab, config->shape.d_model);
    int64_t copies = config->shape.tied ? 1 : 2;
    sum.payload = config->shape.n_layers * layer.payload + copies * head.payload;
    sum.scales = config->shape.n_layers * layer.scales + copies * head.scales;
    if (scale_bytes) *scale_bytes = sum.scales;
    return sum.payload + ledger_vector_bytes(&config->shape);
}

int64_t model_kv_bytes_per_token(const struct model_config *config, int64_t *scale_bytes) {
    const struct model_shape *s = &config->shape;
    enum dtype type = model_kv_type(&config->params);
    /* E09: the 2 is K and V; query heads do not enter. */
    if (scale_bytes)
        *scale_bytes = type == DT_I8 ? 2 * s->n_layers * s->n_kv * (int64_t)sizeof(float) : 0;
    return 2 * s->n_layers * s->n_kv * s->d_h * (dtype_bits(type) / 8);
}

uint64_t model_key(const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const struct model_params *p = &config->params;
    /* What the packed bytes and where they lie depend on; rotary base, eps and the cache do not
     * enter them. */
    int64_t v[] = {s->n_layers,    s->d_model, s->n_q,        s->n_kv, s->d_h,
                   s->d_ff,        s->vocab,   s->qkv_bias,   s->tied, p->type,
                   model_group(p), p->seed,    model_input(p)};
    const uint64_t key = hash_bytes(v, sizeof v, 1);
    return model_from_file(p) ? hash_bytes(p->digest, strlen(p->digest), key) : key;
}

uint64_t model_hash(const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const struct model_params *p = &config->params;
    uint64_t eps;
    memcpy(&eps, &s->eps, sizeof eps);
    uint64_t v[] = {rope_hash(s),
                    eps,
                    (uint64_t)s->rope_style,
                    (uint64_t)p->kv_type,
                    (uint64_t)p->window,
                    (uint64_t)config->activation};
    return hash_bytes(v, sizeof v, model_key(config));
}
