/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and operations of a stack of attention blocks, from its shape alone. */
#include "workloads/common/stack.h"
#include "workloads/model/inputs.h"
#include "workloads/model/ledger.h"
#include "workloads/model/theory.h"

static double kv_size(const struct model_config *config) {
    return dtype_bits(model_kv_type(&config->params)) / 8.0;
}

static struct kv_layout layout_of(const struct stack_spec *spec) {
    const bool shared = spec->share > 1 && !spec->copied, ring = spec->window > 0 && !spec->masked;
    return (struct kv_layout){.method = spec->latent ? KV_LATENT
                                        : shared     ? KV_SHARED
                                        : ring       ? KV_WINDOW
                                                     : KV_HEADS,
                              .latent = (double)spec->latent,
                              .rotary = (double)spec->rotary,
                              .share = (double)spec->share,
                              .window = (double)spec->window,
                              .local_layers = (double)spec->local};
}

static struct model_shape shape_of(const struct stack_spec *spec,
                                   const struct model_config *config) {
    struct model_shape shape = config->shape;
    shape.n_kv = spec->n_kv;
    return shape;
}

/* Means of keys are kept as the keys are. */
static double mean_elements(const struct stack_spec *spec, const struct model_shape *s) {
    return spec->blocks ? (double)(s->n_layers * stack_n_blocks(spec) * spec->n_kv * s->d_h) : 0;
}

double stack_kv_bytes(const struct stack_spec *spec, const struct model_config *config) {
    const struct kv_layout layout = layout_of(spec);
    const struct model_shape s = shape_of(spec, config);
    const int64_t tokens = spec->blocks ? stack_n_blocks(spec) * spec->block : spec->length;
    return (double)spec->n_seq * kv_size(config) *
           (kv_sequence_elements(&layout, &s, (double)tokens) + mean_elements(spec, &s));
}

static int64_t chosen_tokens(const struct stack_spec *spec) {
    const int64_t n = stack_n_blocks(spec), in_newest = spec->length - (n - 1) * spec->block;
    return ((spec->blocks < n ? spec->blocks : n) - 1) * spec->block + in_newest;
}

int64_t stack_tokens_seen(const struct stack_spec *spec, const struct model_config *config) {
    const int64_t layers = config->shape.n_layers;
    const int64_t near = spec->window < spec->length ? spec->window : spec->length;
    if (spec->blocks) return layers * chosen_tokens(spec);
    if (!spec->window) return layers * spec->length;
    return spec->local * near + (layers - spec->local) * spec->length;
}

double stack_attention_macs(const struct stack_spec *spec, const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const double heads = (double)(spec->n_seq * s->n_q), d = (double)s->d_h;
    const double seen = (double)stack_tokens_seen(spec, config), layers = (double)s->n_layers;
    const double n = (double)spec->latent, rotary = (double)spec->rotary;
    if (!spec->latent) /* E28: scores and weighted sum; and a score for each block but the newest */
        return heads * d *
               (2 * seen + (spec->blocks ? layers * (double)(stack_n_blocks(spec) - 1) : 0));
    if (spec->form == LATENT_ABSORBED)
        return heads * (layers * 2 * d * n + seen * (2 * n + rotary));
    return heads * seen * (2 * d * n + 2 * d + rotary);
}

/* Bytes of a token in one layer as they are kept: elements, and scales of int8. */
static double token_bytes(const struct stack_spec *spec, const struct model_config *config,
                          double *scales) {
    const struct kv_layout layout = layout_of(spec);
    const struct model_shape s = shape_of(spec, config);
    *scales =
        model_kv_type(&config->params) == DT_I8 ? 2.0 * (double)spec->n_kv * sizeof(float) : 0;
    return kv_size(config) * kv_elements(&layout, &s);
}

/* All projections of a layer as ledger_matrix counts them. */
static struct matrix_bytes layer_bytes(const struct stack_spec *spec,
                                       const struct model_config *config, int64_t l) {
    const struct model_shape *s = &config->shape;
    const int64_t kv = spec->latent ? spec->latent : spec->n_kv * s->d_h;
    const int64_t rows[] = {stack_q_cols(spec, s), kv, stack_kv_cols(spec, s) - kv, s->d_model};
    const int64_t cols[] = {s->d_model, s->d_model, s->d_model, s->n_q * s->d_h};
    struct matrix_bytes sum = {0};
    for (int i = 0; i < 4; i++) {
        if ((i == 1 || i == 2) && (stack_owner(spec, l) != l || rows[i] == 0)) continue;
        const struct matrix_bytes one = ledger_matrix(config, rows[i], cols[i]);
        sum.payload += one.payload;
        sum.scales += one.scales;
    }
    sum.payload += 2 * s->n_q * s->d_h * spec->latent * (int64_t)sizeof(float);
    return sum;
}

void stack_work(struct work *w, const struct stack_spec *spec, const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const double rows = (double)spec->n_seq, layers = (double)s->n_layers, d = (double)s->d_model;
    const double q = (double)stack_q_cols(spec, s), kv = (double)stack_kv_cols(spec, s);
    const double mixed = (double)(s->n_q * s->d_h), size = dtype_bits(config->activation) / 8;
    const double owners =
        spec->share > 1 ? (double)((s->n_layers + spec->share - 1) / spec->share) : layers;
    double scales, token = token_bytes(spec, config, &scales);
    const double tokens = rows * ((double)stack_tokens_seen(spec, config) + layers);
    w->items += rows;
    w->flops += 2 * stack_attention_macs(spec, config) +
                2 * rows * d * (layers * (q + mixed) + owners * kv);
    for (int64_t l = 0; l < s->n_layers; l++) {
        const struct matrix_bytes one = layer_bytes(spec, config, l);
        w->bytes[MEM_WEIGHT] += (double)one.payload;
        w->bytes[MEM_SCALE] += (double)one.scales;
    }
    w->bytes[MEM_KV] += tokens * token + rows * kv_size(config) * mean_elements(spec, s);
    w->bytes[MEM_SCALE] += tokens * scales;
    /* Norm, projections, rotation, attention, projection: each operand once in and out. */
    w->bytes[MEM_ACTIVATION] +=
        rows * layers * (size * (4 * d + 3 * q + 2 * kv + 2 * mixed) + 8 * d);
}

struct model_config stack_cache_config(const struct stack_spec *spec,
                                       const struct model_config *config, bool ring) {
    struct model_config c = *config;
    const int64_t layers = c.shape.n_layers,
                  local = spec->window && !spec->masked ? spec->local : 0;
    c.shape.n_kv = spec->n_kv;
    c.shape.n_layers = ring ? local : layers - local;
    if (!ring && spec->share > 1 && !spec->copied)
        c.shape.n_layers = (layers + spec->share - 1) / spec->share;
    c.params.window = ring ? spec->window : 0;
    c.params.layout = spec->blocks > 0;
    if (spec->blocks) c.params.block = spec->block;
    return c;
}

struct cache_spec stack_cache_spec(const struct stack_spec *spec) {
    return (struct cache_spec){
        .n_seq = (int32_t)spec->n_seq, .capacity = (int32_t)spec->length, .most_q = 1};
}

static void add_caches(const struct stack_spec *spec, const struct model_config *config,
                       int64_t *bytes) {
    const struct model_shape *s = &config->shape;
    const struct cache_spec cache = stack_cache_spec(spec);
    const int64_t size = dtype_bits(model_kv_type(&config->params)) / 8;
    for (int ring = 0; !spec->latent && ring < 2; ring++) {
        const struct model_config c = stack_cache_config(spec, config, ring);
        if (c.shape.n_layers) cache_bytes(&c, &cache, bytes);
    }
    if (spec->latent) {
        bytes[MEM_WORKSPACE] += stack_room_bytes(spec, s);
        bytes[MEM_KV] +=
            size * s->n_layers * spec->n_seq * spec->length * (spec->latent + spec->rotary);
    }
    if (!spec->blocks) return;
    const int64_t blocks = spec->n_seq * stack_n_blocks(spec);
    bytes[MEM_KV] += size * s->n_layers * blocks * spec->n_kv * s->d_h;
    bytes[MEM_WORKSPACE] += (int64_t)sizeof(float) * blocks;
    bytes[MEM_STATE] += (int64_t)sizeof(int32_t) * spec->n_seq * (spec->blocks + 2);
}

void stack_bytes(const struct stack_spec *spec, const struct model_config *config, int64_t *bytes) {
    const struct model_shape *s = &config->shape;
    const int64_t q = stack_q_cols(spec, s), kv = stack_kv_cols(spec, s), d = s->d_model;
    const struct matrix_bytes embedding = ledger_matrix(config, spec->n_seq, d);
    add_caches(spec, config, bytes);
    for (int64_t l = 0; l < s->n_layers; l++) {
        const struct matrix_bytes one = layer_bytes(spec, config, l);
        bytes[MEM_WEIGHT] += one.payload;
        bytes[MEM_SCALE] += one.scales;
    }
    bytes[MEM_WEIGHT] += embedding.payload + d * (int64_t)sizeof(float);
    bytes[MEM_SCALE] += embedding.scales;
    bytes[MEM_ACTIVATION] +=
        spec->n_seq * (d * (int64_t)sizeof(float) +
                       dtype_bits(config->activation) / 8 * (2 * d + 2 * q + kv + s->n_q * s->d_h));
    bytes[MEM_STATE] += (int64_t)step_bytes((int32_t)spec->n_seq, (int32_t)spec->n_seq, 0);
}

double stack_fill_flops(const struct stack_spec *spec, const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const int64_t layers =
        spec->copied ? s->n_layers : (s->n_layers + spec->share - 1) / spec->share;
    return 2.0 * (double)(layers * spec->n_seq * (spec->length - 1)) * (double)s->d_model *
           (double)stack_kv_cols(spec, s);
}

int64_t stack_fill_bytes(const struct stack_spec *spec, const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const int64_t chunk = spec->n_seq < STACK_FILL_ROWS ? STACK_FILL_ROWS / spec->n_seq : 1;
    return dtype_bits(config->activation) / 8 * chunk * spec->n_seq *
           (s->d_model + stack_q_cols(spec, s) + stack_kv_cols(spec, s));
}
