/* SPDX-License-Identifier: Apache-2.0 */
/* One training step after the other, with every piece of memory on the device's account. */
#include "workloads/common/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "kernels/device.h"
#include "kernels/lab.h"
#include "kernels/lab_train.h"
#include "workloads/model/synth.h"

enum saved {        /* of a layer, for its backward pass */
             ENTRY, /* the residual stream before it */
             NORMED_1,
             INVERSE_1,
             QKV, /* rotated */
             SCORES,
             MIXED,
             MIDDLE, /* the residual stream after attention */
             NORMED_2,
             INVERSE_2,
             GATE_UP,
             HIDDEN,
             N_SAVED
};
static const char *const saved_names[N_SAVED] = {
    "entry",  "normed 1", "inverse 1", "q, k, v",     "softmax", "attention out",
    "middle", "normed 2", "inverse 2", "gate and up", "hidden"};

enum temporary { DX, DN, D_HIDDEN, D_GATE_UP, D_MIXED, D_QKV, PARTS, N_TEMPORARY };
static const char *const temporary_names[N_TEMPORARY] = {
    "residual gradient",  "normed gradient",  "hidden gradient", "gate and up gradient",
    "attention gradient", "q, k, v gradient", "gain gradients"};

enum head { LAST, NORMED, INVERSE, N_HEAD };

struct trainer {
    struct device *device;
    const struct lab_train *op;
    struct trainer_spec spec;
    int64_t rows, parameters, size[N_SAVED], temporary_size[N_TEMPORARY]; /* values */
    struct trainer_tensor *tensors;
    int n_tensors;
    struct layer_at { /* offsets into weights and gradients */
        int64_t norm_1, qkv, bias, o, norm_2, gate_up, down;
    } * at; /* (n_layers) */
    int64_t head_at, norm_at;
    float *initial; /* (parameters), on the host */
    float *w, *g, *m, *v;
    int32_t *token, *target; /* (rows) */
    float *loss;             /* (rows) nats */
    int64_t step;
    float *(*saved)[N_SAVED]; /* (n_layers); NULL: not there now */
    float *head[N_HEAD], *logits, *temporary[N_TEMPORARY];
    const char *missing; /* what there was no memory for */
    void (*on_phase)(void *, int);
    void *ctx;
    int64_t before, before_by_class[N_CLASSES]; /* live bytes when the step began */
    int64_t blocks;                             /* what layers hold now */
    struct trainer_given given;
};

/* ---- memory within a step ---- */

static void take(struct trainer *t, float **to, int64_t n, enum memory_class class,
                 const char *what) {
    const struct tracker *tracker = t->device->tracker;
    if (t->missing) return;
    *to = device_alloc(t->device, sizeof(float) * (size_t)n, class, what);
    if (!*to) t->missing = what;
    const int64_t now = tracker_live(tracker, -1) - t->before;
    if (now <= t->given.step_peak) return;
    t->given.step_peak = now;
    for (int c = 0; c < N_CLASSES; c++)
        t->given.at_peak[c] = tracker_live(tracker, c) - t->before_by_class[c];
}

static void give(struct trainer *t, float **p) {
    if (*p) device_free(t->device, *p);
    *p = NULL;
}

static int64_t saved_now(const struct trainer *t) {
    return tracker_live(t->device->tracker, MEM_ACTIVATION);
}

static void take_saved(struct trainer *t, int64_t l, enum saved i) {
    const int64_t before = saved_now(t);
    take(t, &t->saved[l][i], t->size[i], MEM_ACTIVATION, saved_names[i]);
    const int64_t bytes = saved_now(t) - before;
    t->blocks += bytes;
    if (i == ENTRY) t->given.entry = bytes;
    if (i == SCORES) t->given.attention = bytes;
}

static void give_saved(struct trainer *t, int64_t l, enum saved i) {
    const int64_t before = saved_now(t);
    give(t, &t->saved[l][i]);
    t->blocks -= before - saved_now(t);
}

/* All but the entry, which outlives the rest where there are checkpoints. */
static void take_layer(struct trainer *t, int64_t l) {
    for (int i = ENTRY + 1; i < N_SAVED; i++) take_saved(t, l, (enum saved)i);
}
static void give_layer(struct trainer *t, int64_t l) {
    for (int i = ENTRY + 1; i < N_SAVED; i++) give_saved(t, l, (enum saved)i);
}

static void give_all(struct trainer *t) {
    for (int64_t l = 0; l < t->spec.shape.n_layers; l++) {
        give_layer(t, l);
        give_saved(t, l, ENTRY);
    }
    for (int i = 0; i < N_HEAD; i++) give(t, &t->head[i]);
    for (int i = 0; i < N_TEMPORARY; i++) give(t, &t->temporary[i]);
    give(t, &t->logits);
}

static void phase(const struct trainer *t, enum train_phase phase) {
    if (t->on_phase) t->on_phase(t->ctx, (int)phase);
}

/* ---- products ---- */

/* y (rows, out) = start + bias + x (rows, in) w^T, w (out, in). */
static void linear(struct trainer *t, float *y, const float *x, const float *w, const float *start,
                   const float *bias, int64_t out, int64_t in) {
    t->op->product(t->device, &(struct lab_product){.c = y,
                                                    .a = x,
                                                    .b = w,
                                                    .start = start,
                                                    .bias = bias,
                                                    .rows = t->rows,
                                                    .cols = out,
                                                    .depth = in,
                                                    .a_row = in,
                                                    .a_step = 1,
                                                    .b_row = 1,
                                                    .b_step = in});
}

/* dx (rows, in) = dy w and dw (out, in) = dy^T x, for the weight at an offset. */
static void linear_back(struct trainer *t, float *dx, const float *dy, const float *x, int64_t at,
                        int64_t out, int64_t in) {
    t->op->product(t->device, &(struct lab_product){.c = dx,
                                                    .a = dy,
                                                    .b = t->w + at,
                                                    .rows = t->rows,
                                                    .cols = in,
                                                    .depth = out,
                                                    .a_row = out,
                                                    .a_step = 1,
                                                    .b_row = in,
                                                    .b_step = 1});
    t->op->product(t->device, &(struct lab_product){.c = t->g + at,
                                                    .a = dy,
                                                    .b = x,
                                                    .rows = out,
                                                    .cols = in,
                                                    .depth = t->rows,
                                                    .a_row = 1,
                                                    .a_step = out,
                                                    .b_row = in,
                                                    .b_step = 1});
}

static void norm(struct trainer *t, float *y, float *inverse, const float *x, int64_t gain_at) {
    t->op->norm(t->device, &(struct lab_norm){.y = y,
                                              .inverse = inverse,
                                              .x = x,
                                              .gain = t->w + gain_at,
                                              .rows = t->rows,
                                              .cols = t->spec.shape.d_model,
                                              .eps = (float)t->spec.shape.eps});
}

/* From the gradient of what the norm gave, in DN, to that of the residual stream, in DX. */
static void norm_back(struct trainer *t, const float *x, const float *inverse, int64_t gain_at,
                      bool add) {
    t->op->norm_back(t->device, &(struct lab_norm_back){.dx = t->temporary[DX],
                                                        .dgain = t->g + gain_at,
                                                        .parts = t->temporary[PARTS],
                                                        .dy = t->temporary[DN],
                                                        .x = x,
                                                        .inverse = inverse,
                                                        .gain = t->w + gain_at,
                                                        .rows = t->rows,
                                                        .cols = t->spec.shape.d_model,
                                                        .start = add ? t->temporary[DX] : NULL});
}

/* ---- a layer ---- */

static void rotate(struct trainer *t, float *qkv, bool back) {
    const struct model_shape *s = &t->spec.shape;
    t->op->rope(t->device, &(struct lab_rope){.x = qkv,
                                              .rows = t->rows,
                                              .stride = (s->n_q + 2 * s->n_kv) * s->d_h,
                                              .tokens = t->spec.tokens,
                                              .heads = (int32_t)(s->n_q + s->n_kv),
                                              .d_h = (int32_t)s->d_h,
                                              .style = s->rope_style,
                                              .base = (float)s->rope_base,
                                              .back = back});
}

static float attention_scale(const struct trainer *t) {
    return (float)(1 / sqrt((double)t->spec.shape.d_h));
}

/* out: the next residual stream; NULL: nobody needs it. */
static void layer_forward(struct trainer *t, int64_t l, float *out) {
    const struct model_shape *s = &t->spec.shape;
    const struct layer_at *at = &t->at[l];
    float **x = t->saved[l];
    const int64_t d = s->d_model, q = s->n_q * s->d_h, qkv = q + 2 * s->n_kv * s->d_h;
    norm(t, x[NORMED_1], x[INVERSE_1], x[ENTRY], at->norm_1);
    linear(t, x[QKV], x[NORMED_1], t->w + at->qkv, NULL, s->qkv_bias ? t->w + at->bias : NULL, qkv,
           d);
    rotate(t, x[QKV], false);
    t->op->attend(t->device, &(struct lab_attend){.o = x[MIXED],
                                                  .p = x[SCORES],
                                                  .qkv = x[QKV],
                                                  .sequences = t->spec.batch,
                                                  .tokens = t->spec.tokens,
                                                  .n_q = (int32_t)s->n_q,
                                                  .n_kv = (int32_t)s->n_kv,
                                                  .d_h = (int32_t)s->d_h,
                                                  .scale = attention_scale(t)});
    linear(t, x[MIDDLE], x[MIXED], t->w + at->o, x[ENTRY], NULL, d, q);
    norm(t, x[NORMED_2], x[INVERSE_2], x[MIDDLE], at->norm_2);
    linear(t, x[GATE_UP], x[NORMED_2], t->w + at->gate_up, NULL, NULL, 2 * s->d_ff, d);
    t->op->swiglu(t->device, x[HIDDEN], x[GATE_UP], t->rows, s->d_ff);
    if (out) linear(t, out, x[HIDDEN], t->w + at->down, x[MIDDLE], NULL, d, s->d_ff);
}

/* DX: the gradient of the layer's output, then of its entry. */
static void layer_backward(struct trainer *t, int64_t l) {
    const struct model_shape *s = &t->spec.shape;
    const struct layer_at *at = &t->at[l];
    float **x = t->saved[l], **y = t->temporary;
    const int64_t d = s->d_model, q = s->n_q * s->d_h, qkv = q + 2 * s->n_kv * s->d_h;
    linear_back(t, y[D_HIDDEN], y[DX], x[HIDDEN], at->down, d, s->d_ff);
    t->op->swiglu_back(t->device, y[D_GATE_UP], y[D_HIDDEN], x[GATE_UP], t->rows, s->d_ff);
    linear_back(t, y[DN], y[D_GATE_UP], x[NORMED_2], at->gate_up, 2 * s->d_ff, d);
    norm_back(t, x[MIDDLE], x[INVERSE_2], at->norm_2, true);
    linear_back(t, y[D_MIXED], y[DX], x[MIXED], at->o, d, q);
    t->op->attend_back(t->device, &(struct lab_attend_back){.dqkv = y[D_QKV],
                                                            .d_o = y[D_MIXED],
                                                            .o = x[MIXED],
                                                            .p = x[SCORES],
                                                            .qkv = x[QKV],
                                                            .sequences = t->spec.batch,
                                                            .tokens = t->spec.tokens,
                                                            .n_q = (int32_t)s->n_q,
                                                            .n_kv = (int32_t)s->n_kv,
                                                            .d_h = (int32_t)s->d_h,
                                                            .scale = attention_scale(t)});
    rotate(t, y[D_QKV], true);
    if (s->qkv_bias)
        t->op->map(t->device, MAP_COL_SUM, t->g + at->bias, y[D_QKV], NULL, t->rows, qkv, 0);
    linear_back(t, y[DN], y[D_QKV], x[NORMED_1], at->qkv, qkv, d);
    norm_back(t, x[ENTRY], x[INVERSE_1], at->norm_1, true);
}

/* ---- a step ---- */

static void forward(struct trainer *t) {
    const int64_t n = t->spec.shape.n_layers, d = t->spec.shape.d_model, k = t->spec.segment;
    take_saved(t, 0, ENTRY);
    if (t->missing) return;
    t->op->embed(t->device, t->saved[0][ENTRY], t->w, t->token, t->rows, d);
    for (int64_t l = 0; l < n; l++) {
        take_layer(t, l);
        if (l + 1 < n)
            take_saved(t, l + 1, ENTRY);
        else
            take(t, &t->head[LAST], t->rows * d, MEM_ACTIVATION, "blocks out");
        if (t->missing) return;
        layer_forward(t, l, l + 1 < n ? t->saved[l + 1][ENTRY] : t->head[LAST]);
        if (k) give_layer(t, l);
        if (k && l % k) give_saved(t, l, ENTRY);
    }
    t->given.kept = t->blocks;
    take(t, &t->head[NORMED], t->rows * d, MEM_ACTIVATION, "normed");
    take(t, &t->head[INVERSE], t->rows, MEM_ACTIVATION, "inverse");
    take(t, &t->logits, t->rows * t->spec.shape.vocab, MEM_LOGITS, "logits");
    if (t->missing) return;
    norm(t, t->head[NORMED], t->head[INVERSE], t->head[LAST], t->norm_at);
    linear(t, t->logits, t->head[NORMED], t->w + t->head_at, NULL, NULL, t->spec.shape.vocab, d);
}

static void backward_head(struct trainer *t) {
    for (int i = 0; i < N_TEMPORARY; i++)
        take(t, &t->temporary[i], t->temporary_size[i], MEM_WORKSPACE, temporary_names[i]);
    if (t->missing) return;
    t->op->cross_entropy(t->device, t->loss, t->logits, t->target, t->rows, t->spec.shape.vocab,
                         1 / (float)t->rows);
    linear_back(t, t->temporary[DN], t->logits, t->head[NORMED], t->head_at, t->spec.shape.vocab,
                t->spec.shape.d_model);
    norm_back(t, t->head[LAST], t->head[INVERSE], t->norm_at, false);
    give(t, &t->logits);
    for (int i = 0; i < N_HEAD; i++) give(t, &t->head[i]);
}

static void recompute(struct trainer *t, int64_t begin, int64_t end) {
    phase(t, TRAIN_RECOMPUTE);
    for (int64_t l = begin; l < end && !t->missing; l++) {
        take_layer(t, l);
        if (l + 1 < end) take_saved(t, l + 1, ENTRY);
        if (!t->missing) layer_forward(t, l, l + 1 < end ? t->saved[l + 1][ENTRY] : NULL);
    }
    phase(t, TRAIN_BACKWARD);
}

static void backward(struct trainer *t) {
    const int64_t n = t->spec.shape.n_layers;
    const int64_t k = t->spec.segment && t->spec.segment < n ? t->spec.segment : n;
    for (int64_t begin = (n - 1) / k * k; begin >= 0; begin -= k) {
        const int64_t end = begin + k < n ? begin + k : n;
        if (t->spec.segment) recompute(t, begin, end);
        if (t->missing) return;
        for (int64_t l = end - 1; l >= begin; l--) {
            layer_backward(t, l);
            give_layer(t, l);
            give_saved(t, l, ENTRY);
        }
    }
    if (!t->spec.shape.tied) /* the head's gradient lies elsewhere */
        memset(t->g, 0, sizeof *t->g * (size_t)t->tensors[0].rows * (size_t)t->tensors[0].cols);
    t->op->embed_back(t->device, t->g, t->temporary[DX], t->token, t->rows, t->spec.shape.d_model);
}

static void optimize(struct trainer *t) {
    t->step++;
    for (int i = 0; i < t->n_tensors; i++) {
        const struct trainer_tensor *x = &t->tensors[i];
        t->op->adamw(t->device, &(struct lab_adamw){.w = t->w + x->offset,
                                                    .m = t->m + x->offset,
                                                    .v = t->v + x->offset,
                                                    .g = t->g + x->offset,
                                                    .n = x->rows * x->cols,
                                                    .step = t->step,
                                                    .rate = t->spec.rate,
                                                    .beta1 = t->spec.beta1,
                                                    .beta2 = t->spec.beta2,
                                                    .eps = t->spec.eps,
                                                    .decay = x->decays ? t->spec.decay : 0});
    }
}

static int finish(struct trainer *t, struct err *err) {
    const char *missing = t->missing;
    give_all(t);
    t->missing = NULL;
    if (missing) return err_set(err, ERR_MEMORY, "no memory for %s of a training step", missing);
    return t->device->kind->sync(t->device, err);
}

static void start(struct trainer *t) {
    t->before = tracker_live(t->device->tracker, -1);
    for (int c = 0; c < N_CLASSES; c++) t->before_by_class[c] = tracker_live(t->device->tracker, c);
    t->blocks = t->given.step_peak = 0;
}

int trainer_step(struct trainer *t, void (*on_phase)(void *ctx, int phase), void *ctx,
                 struct err *err) {
    t->on_phase = on_phase;
    t->ctx = ctx;
    start(t);
    phase(t, TRAIN_FORWARD);
    forward(t);
    if (!t->missing) phase(t, TRAIN_BACKWARD);
    if (!t->missing) backward_head(t);
    if (!t->missing) backward(t);
    if (!t->missing) phase(t, TRAIN_OPTIMIZER);
    if (!t->missing) optimize(t);
    return finish(t, err);
}

int trainer_logits(struct trainer *t, float *out, struct err *err) {
    t->on_phase = NULL;
    start(t);
    forward(t);
    if (!t->missing) memcpy(out, t->logits, sizeof *out * (size_t)(t->rows * t->spec.shape.vocab));
    return finish(t, err);
}

/* ---- opening ---- */

static void synthetic_rows(struct synth_matrix matrix, float *to, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) synth_row(&matrix, r, to + r * matrix.cols);
}

static void synthetic_layer(struct trainer *t, int64_t l) {
    const struct model_shape *s = &t->spec.shape;
    const uint64_t seed = t->spec.seed;
    const int64_t d = s->d_model, q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    float *w = t->initial;
    const struct layer_at *at = &t->at[l];
    synth_gains(seed, synth_stream(l, SYNTH_NORM_1), d, w + at->norm_1);
    synth_gains(seed, synth_stream(l, SYNTH_NORM_2), d, w + at->norm_2);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_Q, d), w + at->qkv, q);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_K, d), w + at->qkv + q * d, kv);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_V, d), w + at->qkv + (q + kv) * d, kv);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_O, q), w + at->o, d);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_GATE, d), w + at->gate_up, s->d_ff);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_UP, d), w + at->gate_up + s->d_ff * d,
                   s->d_ff);
    synthetic_rows(synth_layer_matrix(seed, l, SYNTH_DOWN, s->d_ff), w + at->down, d);
    if (!s->qkv_bias) return;
    synth_biases(seed, synth_stream(l, SYNTH_BIAS_Q), q, w + at->bias);
    synth_biases(seed, synth_stream(l, SYNTH_BIAS_K), kv, w + at->bias + q);
    synth_biases(seed, synth_stream(l, SYNTH_BIAS_V), kv, w + at->bias + q + kv);
}

/* Where everything lies, and what it is at first. */
static void lay_out(struct trainer *t) {
    const struct model_shape *s = &t->spec.shape;
    const uint64_t seed = t->spec.seed;
    t->tensors = must_alloc(sizeof *t->tensors * (size_t)(TRAINER_LAYER_TENSORS * s->n_layers + 3));
    t->n_tensors = trainer_tensors(s, t->tensors);
    const struct trainer_tensor *last = &t->tensors[t->n_tensors - 1], *x = t->tensors;
    t->parameters = last->offset + last->rows * last->cols;
    t->norm_at = last->offset;
    t->head_at = s->tied ? 0 : t->tensors[1].offset;
    t->at = must_alloc(sizeof *t->at * (size_t)s->n_layers);
    x += s->tied ? 1 : 2;
    for (int64_t l = 0; l < s->n_layers; l++) {
        struct layer_at *at = &t->at[l];
        at->norm_1 = (x++)->offset;
        at->qkv = (x++)->offset;
        if (s->qkv_bias) at->bias = (x++)->offset;
        at->o = (x++)->offset;
        at->norm_2 = (x++)->offset;
        at->gate_up = (x++)->offset;
        at->down = (x++)->offset;
    }
    t->initial = must_alloc(sizeof *t->initial * (size_t)t->parameters);
    synthetic_rows(synth_token_matrix(seed, SYNTH_EMBEDDING, s->d_model), t->initial, s->vocab);
    if (!s->tied)
        synthetic_rows(synth_token_matrix(seed, SYNTH_HEAD, s->d_model), t->initial + t->head_at,
                       s->vocab);
    for (int64_t l = 0; l < s->n_layers; l++) synthetic_layer(t, l);
    synth_gains(seed, SYNTH_NORM_LAST, s->d_model, t->initial + t->norm_at);
}

static void measure(struct trainer *t) {
    const struct model_shape *s = &t->spec.shape;
    const int64_t m = t->rows, d = s->d_model, f = s->d_ff, q = s->n_q * s->d_h;
    const int64_t qkv = q + 2 * s->n_kv * s->d_h;
    const int64_t saved[N_SAVED] = {[ENTRY] = m * d,
                                    [NORMED_1] = m * d,
                                    [INVERSE_1] = m,
                                    [QKV] = m * qkv,
                                    [SCORES] =
                                        t->spec.batch * s->n_q * t->spec.tokens * t->spec.tokens,
                                    [MIXED] = m * q,
                                    [MIDDLE] = m * d,
                                    [NORMED_2] = m * d,
                                    [INVERSE_2] = m,
                                    [GATE_UP] = 2 * m * f,
                                    [HIDDEN] = m * f};
    const int64_t temporary[N_TEMPORARY] = {
        [DX] = m * d,      [DN] = m * d,      [D_HIDDEN] = m * f,     [D_GATE_UP] = 2 * m * f,
        [D_MIXED] = m * q, [D_QKV] = m * qkv, [PARTS] = LAB_PARTS * d};
    memcpy(t->size, saved, sizeof saved);
    memcpy(t->temporary_size, temporary, sizeof temporary);
}

static int room(struct trainer *t, void *to, int64_t n, enum memory_class class, const char *what,
                struct err *err) {
    void *p = device_alloc(t->device, sizeof(float) * (size_t)n, class, what);
    memcpy(to, &p, sizeof p);
    return p ? 0 : err_set(err, ERR_MEMORY, "no memory for %s (%lld values)", what, (long long)n);
}

static int make(struct trainer *t, struct err *err) {
    const struct tracker *tracker = t->device->tracker;
    const int64_t n = t->parameters, weights = tracker_live(tracker, MEM_WEIGHT);
    const int64_t gradients = tracker_live(tracker, MEM_OTHER);
    const int64_t states = tracker_live(tracker, MEM_STATE);
    int code = room(t, &t->w, n, MEM_WEIGHT, "weights", err);
    if (!code) code = room(t, &t->g, n, MEM_OTHER, "gradients", err);
    if (!code) code = room(t, &t->m, n, MEM_STATE, "AdamW's first moments", err);
    if (!code) code = room(t, &t->v, n, MEM_STATE, "AdamW's second moments", err);
    t->given.parameters = tracker_live(tracker, MEM_WEIGHT) - weights;
    t->given.gradients = tracker_live(tracker, MEM_OTHER) - gradients;
    t->given.optimizer = tracker_live(tracker, MEM_STATE) - states;
    if (!code) code = room(t, &t->token, t->rows, MEM_STATE, "tokens", err);
    if (!code) code = room(t, &t->target, t->rows, MEM_STATE, "next tokens", err);
    if (!code) code = room(t, &t->loss, t->rows, MEM_STATE, "losses", err);
    return code;
}

int trainer_open(struct trainer **out, struct device *device, const struct trainer_spec *spec,
                 const int32_t *tokens, struct err *err) {
    *out = NULL;
    if (!(device->kind->has & DEV_HOST_MEMORY) || !device->lab || !device->lab->train)
        return err_set(err, ERR_UNSUPPORTED, "%s does not train: --device cpu or ref",
                       device->kind->name);
    struct trainer *t = must_alloc(sizeof *t);
    t->device = device;
    t->op = device->lab->train;
    t->spec = *spec;
    t->rows = spec->batch * spec->tokens;
    t->saved = must_alloc(sizeof *t->saved * (size_t)spec->shape.n_layers);
    lay_out(t);
    measure(t);
    int code = make(t, err);
    if (code) {
        trainer_close(&t);
        return code;
    }
    for (int64_t s = 0; s < spec->batch; s++)
        for (int64_t i = 0; i < spec->tokens; i++) {
            t->token[s * spec->tokens + i] = tokens[s * (spec->tokens + 1) + i];
            t->target[s * spec->tokens + i] = tokens[s * (spec->tokens + 1) + i + 1];
        }
    trainer_restart(t);
    *out = t;
    return 0;
}

void trainer_close(struct trainer **out) {
    struct trainer *t = *out;
    if (!t) return;
    void *const made[] = {t->w, t->g, t->m, t->v, t->token, t->target, t->loss};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) device_free(t->device, made[i]);
    free(t->tensors);
    free(t->at);
    free(t->initial);
    free(t->saved);
    free(t);
    *out = NULL;
}

void trainer_restart(struct trainer *t) {
    const size_t bytes = sizeof *t->w * (size_t)t->parameters;
    memcpy(t->w, t->initial, bytes);
    memset(t->m, 0, bytes);
    memset(t->v, 0, bytes);
    t->step = 0;
}

void trainer_set_segment(struct trainer *t, int64_t segment) { t->spec.segment = segment; }
float *trainer_weights(struct trainer *t) { return t->w; }
const float *trainer_gradients(const struct trainer *t) { return t->g; }
struct trainer_given trainer_given(const struct trainer *t) {
    return t->given;
}

double trainer_loss(const struct trainer *t) {
    double sum = 0;
    for (int64_t r = 0; r < t->rows; r++) sum += (double)t->loss[r];
    return sum / (double)t->rows;
}

uint64_t trainer_hash(const struct trainer *t) {
    const float *const all[] = {t->w, t->g, t->m, t->v};
    uint64_t hash = hash_bytes(t->loss, sizeof *t->loss * (size_t)t->rows, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hash = hash_bytes(all[i], sizeof *all[i] * (size_t)t->parameters, hash);
    return hash;
}
