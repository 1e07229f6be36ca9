/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of attention blocks: what it allocates, how its caches are filled, one step. */
#include "workloads/common/stack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernels/lab.h"
#include "workloads/common/fill.h"
#include "workloads/common/slow.h"
#include "workloads/model/inputs.h"
#include "workloads/model/synth.h"

enum { WIDEST = 1024 }; /* heads that every device takes */

struct stack_layer {
    struct weight *q, *kv, *out; /* kv: NULL where another layer's K and V are used */
    struct kv kv_cache;
    struct latent_cache latent;
    struct latent_heads heads;
    struct block_means means;
};
struct stack {
    struct device *device;
    struct model_config config;
    struct stack_spec spec;
    uint64_t seed;
    void **pieces; /* (n_pieces) device memory to give back */
    int n_pieces;
    struct cache *all, *rings; /* full-length layers; local ones */
    struct stack_layer *layers;
    struct weight *embedding; /* (n_seq, d_model) the states of this step's tokens */
    float *gain;              /* (d_model) ones */
    float *room;              /* of latents: queries and outputs as wide as they */
    struct tensor residual, x, q, delta, mixed; /* (n_seq, ...) */
    struct tensor qkv;                          /* (n_seq, q and kv columns) */
    struct step step, chosen;                   /* chosen: over chosen blocks */
    void *step_memory, *step_host;
    struct block_choice choice;
    struct kv seen; /* the last layer's cache as attention got it */
    struct rope rope;
    float scale;
    int64_t allocated[2]; /* of caches: MEM_KV, MEM_SCALE */
};

/* ---- memory */

static void *piece(struct stack *s, int64_t bytes, enum memory_class class_of, const char *what,
                   struct err *err) {
    void *memory = device_alloc(s->device, (size_t)bytes, class_of, what);
    if (!memory) {
        err_set(err, ERR_MEMORY, "no memory for %s (%" PRId64 " bytes)", what, bytes);
        return NULL;
    }
    s->pieces = must_realloc(s->pieces, sizeof *s->pieces * (size_t)(s->n_pieces + 1));
    s->pieces[s->n_pieces++] = memory;
    return memory;
}

static int tensors(struct stack *s, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const int64_t q = stack_q_cols(&s->spec, shape), kv = stack_kv_cols(&s->spec, shape);
    const struct {
        struct tensor *t;
        int64_t cols;
        const char *what;
    } all[] = {{&s->residual, shape->d_model, "residual"},
               {&s->x, shape->d_model, "normed"},
               {&s->delta, shape->d_model, "delta"},
               {&s->q, q, "queries"},
               {&s->qkv, q + kv, "qkv"},
               {&s->mixed, shape->n_q * shape->d_h, "attention out"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const enum dtype type = i ? s->config.activation : DT_F32;
        *all[i].t = (struct tensor){.type = type,
                                    .rows = (int32_t)s->spec.n_seq,
                                    .cols = (int32_t)all[i].cols,
                                    .stride = all[i].cols};
        all[i].t->data = piece(s, dtype_bits(type) / 8 * s->spec.n_seq * all[i].cols,
                               MEM_ACTIVATION, all[i].what, err);
        if (!all[i].t->data) return ERR_MEMORY;
    }
    return 0;
}

/* Columns from c on. */
static struct tensor columns(struct tensor t, int64_t c, int64_t n) {
    t.data = (char *)t.data + c * (dtype_bits(t.type) / 8);
    t.cols = (int32_t)n;
    return t;
}

static struct tensor rows(struct tensor t, int64_t first, int64_t n) {
    t.data = (char *)t.data + first * t.stride * (dtype_bits(t.type) / 8);
    t.rows = (int32_t)n;
    return t;
}

/* ---- weights */

/* A matrix whose heads come `repeats` times each, as if every query head had its own. */
struct repeated {
    struct synth_matrix matrix;
    int64_t d_h, repeats;
};

static void repeated_row(void *ctx, int64_t r, float *out) {
    struct repeated *m = ctx;
    synth_row(&m->matrix, r / (m->d_h * m->repeats) * m->d_h + r % m->d_h, out);
}

struct part {
    enum synth_kind kind;
    int64_t rows, repeats;
};

/* Stacks the parts that have rows. */
static int pack(struct stack *s, struct weight **weight, int64_t layer, const char *what,
                const struct part *parts, int n, int64_t cols, struct err *err) {
    const struct model_params *params = &s->config.params;
    const struct weight_format *format = model_weight_format(params);
    struct weight_spec specs[2];
    struct row_source sources[2];
    struct repeated matrices[2];
    char name[40];
    int used = 0;
    snprintf(name, sizeof name, "layer %d %s", (int)layer, what);
    for (int i = 0; i < n; i++) {
        if (!parts[i].rows) continue;
        matrices[used] = (struct repeated){
            synth_layer_matrix((uint64_t)params->seed, layer, parts[i].kind, cols),
            s->config.shape.d_h, parts[i].repeats};
        sources[used] = (struct row_source){.row = repeated_row, .ctx = &matrices[used]};
        specs[used++] = (struct weight_spec){.what = name,
                                             .rows = parts[i].rows,
                                             .cols = cols,
                                             .type = format->type,
                                             .scale = format->scale,
                                             .group = model_group(params),
                                             .input = model_input(params)};
    }
    return s->device->kind->pack(s->device, weight, specs, used, sources, err);
}

static int pack_layer(struct stack *s, int64_t l, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const struct stack_spec *spec = &s->spec;
    struct stack_layer *layer = &s->layers[l];
    const int64_t kv = spec->latent ? spec->latent : spec->n_kv * shape->d_h;
    const struct part q[] = {{SYNTH_Q, stack_q_cols(spec, shape), 1}},
                      out[] = {{SYNTH_O, shape->d_model, 1}},
                      both[] = {{SYNTH_K, kv, spec->latent ? 1 : spec->repeats},
                                {SYNTH_V, stack_kv_cols(spec, shape) - kv,
                                 spec->latent ? 1 : spec->repeats}};
    int code = pack(s, &layer->q, l, "q", q, 1, shape->d_model, err);
    if (!code && stack_owner(spec, l) == l)
        code = pack(s, &layer->kv, l, spec->latent ? "latent" : "k and v", both, 2, shape->d_model,
                    err);
    if (!code) code = pack(s, &layer->out, l, "o", out, 1, shape->n_q * shape->d_h, err);
    return code;
}

/* W_K and W_V of a latent, plain f32: what a lab op takes. */
static int make_heads(struct stack *s, int64_t l, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const int64_t rows_each = shape->n_q * shape->d_h, n = s->spec.latent;
    const int64_t bytes = 2 * rows_each * n * (int64_t)sizeof(float);
    float *memory = piece(s, bytes, MEM_WEIGHT, "latent heads", err);
    if (!memory) return ERR_MEMORY;
    float *host = must_alloc((size_t)bytes);
    const enum synth_kind kinds[] = {SYNTH_GATE, SYNTH_UP}; /* streams that nothing else takes */
    for (int i = 0; i < 2; i++) {
        struct synth_matrix matrix =
            synth_layer_matrix((uint64_t)s->config.params.seed, l, kinds[i], n);
        for (int64_t r = 0; r < rows_each; r++)
            synth_row(&matrix, r, host + (i * rows_each + r) * n);
    }
    s->device->kind->upload(s->device, memory, host, (size_t)bytes);
    free(host);
    s->layers[l].heads = (struct latent_heads){.n_q = (int32_t)shape->n_q,
                                               .d_h = (int32_t)shape->d_h,
                                               .k = memory,
                                               .v = memory + rows_each * n,
                                               .room = s->room};
    return 0;
}

static int make_weights(struct stack *s, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const size_t bytes = sizeof(float) * (size_t)shape->d_model;
    const struct part states[] = {{SYNTH_Q, s->spec.n_seq, 1}};
    int code = 0;
    if (s->spec.latent) {
        s->room = piece(s, stack_room_bytes(&s->spec, shape), MEM_WORKSPACE, "wide queries", err);
        if (!s->room) return ERR_MEMORY;
    }
    for (int64_t l = 0; !code && l < shape->n_layers; l++) {
        code = pack_layer(s, l, err);
        if (!code && s->spec.latent) code = make_heads(s, l, err);
    }
    /* Layer n_layers has no queries of its own: its stream is free. */
    if (!code)
        code = pack(s, &s->embedding, shape->n_layers, "states", states, 1, shape->d_model, err);
    if (code) return code;
    s->gain = piece(s, (int64_t)bytes, MEM_WEIGHT, "gains", err);
    if (!s->gain) return ERR_MEMORY;
    float *ones = must_alloc(bytes);
    for (int64_t i = 0; i < shape->d_model; i++) ones[i] = 1;
    s->device->kind->upload(s->device, s->gain, ones, bytes);
    free(ones);
    return 0;
}

/* ---- caches */

static int make_cache(struct stack *s, struct cache **cache, bool ring, struct err *err) {
    const struct model_config c = stack_cache_config(&s->spec, &s->config, ring);
    const struct cache_spec spec = stack_cache_spec(&s->spec);
    if (!c.shape.n_layers) return 0;
    int code = cache_create(cache, s->device, &c, &spec, err);
    for (int32_t i = 0; !code && i < spec.n_seq; i++)
        code = cache_reserve(*cache, i, 0, spec.capacity, err);
    if (!code) cache_publish(*cache);
    return code;
}

static int make_latent(struct stack *s, int64_t l, struct err *err) {
    const struct stack_spec *spec = &s->spec;
    struct latent_cache *c = &s->layers[l].latent;
    char name[40];
    *c = (struct latent_cache){.type = model_kv_type(&s->config.params),
                               .latent = (int32_t)spec->latent,
                               .rotary = (int32_t)spec->rotary,
                               .capacity = (int32_t)spec->length};
    snprintf(name, sizeof name, "layer %d latents", (int)l);
    c->rows = piece(
        s, dtype_bits(c->type) / 8 * spec->n_seq * spec->length * (spec->latent + spec->rotary),
        MEM_KV, name, err);
    return c->rows ? 0 : ERR_MEMORY;
}

/* Scores and choices are looked at by one layer after the other: one piece of each. */
static int make_means(struct stack *s, struct err *err) {
    const struct stack_spec *spec = &s->spec;
    const int64_t blocks = spec->n_seq * stack_n_blocks(spec), word = sizeof(int32_t);
    float *scores = piece(s, blocks * (int64_t)sizeof *scores, MEM_WORKSPACE, "block scores", err);
    int32_t *choice =
        scores ? piece(s, spec->n_seq * (spec->blocks + 2) * word, MEM_STATE, "choice", err) : NULL;
    if (!choice) return ERR_MEMORY;
    s->choice = (struct block_choice){.most = (int32_t)spec->blocks,
                                      .table = choice,
                                      .pos = choice + spec->n_seq * spec->blocks,
                                      .kv_len = choice + spec->n_seq * (spec->blocks + 1)};
    for (int64_t l = 0; l < s->config.shape.n_layers; l++) {
        struct block_means *m = &s->layers[l].means;
        char name[40];
        snprintf(name, sizeof name, "layer %d means", (int)l);
        *m = (struct block_means){.type = model_kv_type(&s->config.params),
                                  .most = (int32_t)stack_n_blocks(spec),
                                  .scores = scores};
        m->means = piece(s, dtype_bits(m->type) / 8 * blocks * spec->n_kv * s->config.shape.d_h,
                         MEM_KV, name, err);
        if (!m->means) return ERR_MEMORY;
    }
    return 0;
}

static int make_caches(struct stack *s, struct err *err) {
    static const enum memory_class classes[] = {MEM_KV, MEM_SCALE};
    const struct stack_spec *spec = &s->spec;
    const int64_t layers = s->config.shape.n_layers;
    const bool shared = spec->share > 1 && !spec->copied;
    int64_t before[2], n_all = 0, n_rings = 0;
    int code = 0;
    for (int i = 0; i < 2; i++) before[i] = tracker_live(s->device->tracker, classes[i]);
    for (int64_t l = 0; !code && spec->latent && l < layers; l++) code = make_latent(s, l, err);
    if (!code && !spec->latent) code = make_cache(s, &s->all, false, err);
    if (!code && spec->window && !spec->masked) code = make_cache(s, &s->rings, true, err);
    if (!code && spec->blocks) code = make_means(s, err);
    for (int64_t l = 0; !code && !spec->latent && l < layers; l++) {
        const bool local = stack_is_local(spec, layers, l);
        struct kv *kv = &s->layers[l].kv_cache;
        if (local && !spec->masked)
            *kv = s->rings->layers[n_rings++];
        else
            *kv = s->all->layers[shared ? l / spec->share : n_all++];
        if (local) kv->window = (int32_t)spec->window;
    }
    for (int i = 0; i < 2; i++)
        s->allocated[i] = tracker_live(s->device->tracker, classes[i]) - before[i];
    return code;
}

int64_t stack_allocated(const struct stack *s, enum memory_class class_of) {
    return s->allocated[class_of == MEM_SCALE];
}

/* ---- one step */

static void step_at(struct stack *s, int32_t p) {
    const int32_t n = (int32_t)s->spec.n_seq;
    struct step host;
    step_place(&host, s->step_host, n, n, 0);
    for (int32_t i = 0; i < n; i++) {
        host.token[i] = host.seq[i] = host.q_begin[i] = i;
        host.pos[i] = p;
        host.kv_len[i] = p + 1;
        host.alive[i] = 1;
    }
    host.q_begin[n] = n;
    s->step.most_q = 1;
    s->step.most_kv = p + 1;
    s->device->kind->upload(s->device, s->step_memory, s->step_host, step_bytes(n, n, 0));
}

static int make_step(struct stack *s, struct err *err) {
    const int32_t n = (int32_t)s->spec.n_seq;
    const size_t bytes = step_bytes(n, n, 0);
    const int64_t most = s->spec.blocks * s->spec.block;
    s->step_memory = piece(s, (int64_t)bytes, MEM_STATE, "step", err);
    if (!s->step_memory) return ERR_MEMORY;
    s->step_host = must_alloc(bytes);
    step_place(&s->step, s->step_memory, n, n, 0);
    step_at(s, (int32_t)s->spec.length - 1);
    s->chosen = s->step;
    s->chosen.pos = s->choice.pos;
    s->chosen.kv_len = s->choice.kv_len;
    s->chosen.most_kv = (int32_t)(most < s->spec.length ? most : s->spec.length);
    return 0;
}

/* Rows of qkv, whose K and V are there, into layer l's cache; the rotated queries into q. */
static void keep(struct stack *s, const struct stack_layer *layer, const struct tensor *qkv) {
    struct device *device = s->device;
    if (s->spec.latent)
        device->lab->latent->append(device, &s->q, &layer->latent, &layer->heads, qkv, &s->step,
                                    &s->rope);
    else
        device->ops->rope_append(device, &s->q, &layer->kv_cache, qkv, &s->step, &s->rope);
    if (s->spec.blocks)
        device->lab->latent->summarize(device, &layer->means, &layer->kv_cache, &s->step);
}

static void attend(struct stack *s, const struct stack_layer *layer) {
    struct device *device = s->device;
    if (s->spec.latent) {
        device->lab->latent->attention(device, &s->mixed, &s->q, &layer->latent, &layer->heads,
                                       &s->step, s->scale, s->spec.form);
        return;
    }
    s->seen = layer->kv_cache;
    if (s->spec.blocks) {
        device->lab->latent->choose(device, &s->choice, &layer->means, &s->q, &layer->kv_cache,
                                    &s->step);
        s->seen.table = s->choice.table;
        s->seen.table_stride = s->choice.most;
    }
    device->ops->attention(device, &s->mixed, &s->q, &s->seen,
                           s->spec.blocks ? &s->chosen : &s->step, s->scale);
}

/* A layer without K and V of its own finds its owner's still in qkv, and writes them again to where
   they are, or into its copy: one row. */
void stack_run(struct stack *s) {
    struct device *device = s->device;
    const struct ops *op = device->ops;
    const int64_t q_cols = s->q.cols, kv_cols = s->qkv.cols - q_cols;
    struct tensor q = columns(s->qkv, 0, q_cols), kv = columns(s->qkv, q_cols, kv_cols);
    op->embed(device, &s->residual, s->embedding, &s->step);
    for (int64_t l = 0; l < s->config.shape.n_layers; l++) {
        const struct stack_layer *layer = &s->layers[l];
        op->add_norm(device, &s->x, &s->residual, l ? &s->delta : NULL, s->gain,
                     (float)s->config.shape.eps);
        op->linear(device, &q, &s->x, layer->q, NULL, EPI_NONE);
        if (layer->kv) op->linear(device, &kv, &s->x, layer->kv, NULL, EPI_NONE);
        keep(s, layer, &s->qkv);
        attend(s, layer);
        op->linear(device, &s->delta, &s->mixed, layer->out, NULL, EPI_NONE);
    }
}

/* ---- what came before */

/* The state of sequence i at position p before layer l, the same in any batch: of unit size. */
static void fill_state(const struct stack *s, int64_t l, int64_t i, int64_t p, char *to) {
    const uint64_t key = random_key(random_key(s->seed, 1000 + (uint64_t)l), (uint64_t)i);
    const int64_t d = s->config.shape.d_model;
    for (int64_t c = 0; c < d; c++)
        dtype_store(to, s->config.activation, c, 1.7320508f * fill_value(key, p * d + c));
}

/* Positions first ... first + n - 1 of layer l: projected together, appended one after the other,
   as a ring wants it. */
static void fill_chunk(struct stack *s, int64_t l, int64_t first, int64_t n, struct tensor x,
                       struct tensor qkv, char *host) {
    const int64_t owner = stack_owner(&s->spec, l), n_seq = s->spec.n_seq;
    const int64_t row = s->config.shape.d_model * (dtype_bits(s->config.activation) / 8);
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < n_seq; i++)
            fill_state(s, owner, i, first + p, host + (p * n_seq + i) * row);
    s->device->kind->upload(s->device, x.data, host, (size_t)(n * n_seq * row));
    const struct tensor states = rows(x, 0, n * n_seq);
    struct tensor kv = columns(rows(qkv, 0, n * n_seq), s->q.cols, qkv.cols - s->q.cols);
    s->device->ops->linear(s->device, &kv, &states, s->layers[owner].kv, NULL, EPI_NONE);
    for (int64_t p = 0; p < n; p++) {
        const struct tensor one = rows(qkv, p * n_seq, n_seq);
        step_at(s, (int32_t)(first + p));
        keep(s, &s->layers[l], &one);
    }
}

static int fill(struct stack *s, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const int64_t n_seq = s->spec.n_seq, before = s->spec.length - 1;
    const int64_t chunk = n_seq < STACK_FILL_ROWS ? STACK_FILL_ROWS / n_seq : 1;
    struct tensor x = {0}, qkv = {0};
    int code = tensor_create(&x, s->device, s->config.activation, chunk * n_seq, shape->d_model,
                             "states", err);
    if (!code)
        code = tensor_create(&qkv, s->device, s->config.activation, chunk * n_seq, s->qkv.cols,
                             "states' qkv", err);
    char *host = code ? NULL
                      : must_alloc((size_t)(chunk * n_seq * shape->d_model *
                                            (dtype_bits(s->config.activation) / 8)));
    for (int64_t first = 0; !code && first < before; first += chunk)
        for (int64_t l = 0; l < shape->n_layers; l++)
            if (s->spec.copied || stack_owner(&s->spec, l) == l)
                fill_chunk(s, l, first, before - first < chunk ? before - first : chunk, x, qkv,
                           host);
    free(host);
    if (!code) {
        step_at(s, (int32_t)before);
        code = s->device->kind->sync(s->device, err);
    }
    device_free(s->device, x.data);
    device_free(s->device, qkv.data);
    return code;
}

/* ---- the whole */

static int supported(struct stack *s, struct err *err) {
    if ((s->spec.latent || s->spec.blocks) && !(s->device->lab && s->device->lab->latent))
        return err_set(err, ERR_UNSUPPORTED,
                       "%s keeps no latents and chooses no blocks: --device cpu or ref",
                       s->device->kind->name);
    int code = 0;
    for (int ring = 0; !code && ring < 2; ring++) {
        const struct model_config c = stack_cache_config(&s->spec, &s->config, ring);
        if (!s->spec.latent && c.shape.n_layers) code = model_supported(s->device, &c, err);
    }
    return code;
}

int stack_plan(struct stack *s, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    const int64_t n_seq = s->spec.n_seq, q = stack_q_cols(&s->spec, shape);
    const int64_t chunk = n_seq < STACK_FILL_ROWS ? STACK_FILL_ROWS / n_seq : 1;
    const int64_t mixed = shape->n_q * shape->d_h, latent = s->spec.latent + s->spec.rotary;
    const bool wide = latent > shape->d_h && latent <= WIDEST;
    const struct step_bounds bounds = {.n_seq = (int32_t)n_seq,
                                       .n_row = (int32_t)(chunk * n_seq),
                                       .n_out = 1,
                                       .most_q = 1,
                                       .most_kv = (int32_t)s->spec.length,
                                       .n_q = (int32_t)shape->n_q,
                                       .n_kv = s->spec.latent ? 1 : (int32_t)s->spec.n_kv,
                                       .d_h = (int32_t)(wide ? latent : shape->d_h),
                                       .d_model = (int32_t)shape->d_model,
                                       .d_ff = (int32_t)(q > mixed ? q : mixed),
                                       .vocab = (int32_t)n_seq,
                                       .activation = s->config.activation};
    return s->device->kind->plan(s->device, &bounds, err);
}

int stack_create(struct stack **out, struct device *device, const struct model_config *config,
                 const struct stack_spec *spec, uint64_t seed, struct err *err) {
    struct stack *s = must_alloc(sizeof *s);
    const double width = (double)(config->shape.d_h + (spec->latent ? spec->rotary : 0));
    *s = (struct stack){.device = device,
                        .config = *config,
                        .spec = *spec,
                        .seed = seed,
                        .rope = {.base = (float)config->shape.rope_base,
                                 .style = (enum rope_style)config->shape.rope_style},
                        .scale = (float)(1 / sqrt(width))};
    s->layers = must_alloc(sizeof *s->layers * (size_t)config->shape.n_layers);
    int code = supported(s, err);
    if (!code) code = make_weights(s, err);
    if (!code) code = make_caches(s, err);
    if (!code) code = tensors(s, err);
    if (!code) code = make_step(s, err);
    if (!code) code = stack_plan(s, err);
    if (!code) code = fill(s, err);
    *out = s;
    if (code) stack_close(out);
    return code;
}

void stack_close(struct stack **out) {
    struct stack *s = *out;
    if (!s) return;
    for (int64_t l = 0; l < s->config.shape.n_layers; l++) {
        s->device->kind->unpack(s->device, &s->layers[l].q);
        s->device->kind->unpack(s->device, &s->layers[l].kv);
        s->device->kind->unpack(s->device, &s->layers[l].out);
    }
    s->device->kind->unpack(s->device, &s->embedding);
    cache_close(&s->all);
    cache_close(&s->rings);
    for (int i = 0; i < s->n_pieces; i++) device_free(s->device, s->pieces[i]);
    free(s->pieces);
    free(s->layers);
    free(s->step_host);
    free(s);
    *out = NULL;
}

struct device *stack_device(const struct stack *s) {
    return s->device;
}
const struct model_config *stack_config(const struct stack *s) { return &s->config; }
const struct tensor *stack_queries(const struct stack *s) { return &s->q; }
const struct tensor *stack_mixed(const struct stack *s) { return &s->mixed; }
float stack_scale(const struct stack *s) { return s->scale; }

const struct kv *stack_seen(const struct stack *s, const struct step **step) {
    *step = s->spec.blocks ? &s->chosen : &s->step;
    return &s->seen;
}

static const struct stack_layer *last(const struct stack *s) {
    return &s->layers[s->config.shape.n_layers - 1];
}

void stack_latent(const struct stack *s, struct tensor *o, enum latent_form form) {
    s->device->lab->latent->attention(s->device, o, &s->q, &last(s)->latent, &last(s)->heads,
                                      &s->step, s->scale, form);
}

const struct latent_cache *stack_latent_cache(const struct stack *s) { return &last(s)->latent; }
const struct latent_heads *stack_latent_heads(const struct stack *s) { return &last(s)->heads; }
