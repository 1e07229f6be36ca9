/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass, written once for all devices; and the memory of a session. */
#include "workloads/model/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/range.h"
#include "workloads/model/inputs.h"
#include "workloads/model/rope.h"

/* ---- one step ----------------------------------------------------------------------------------
 */

static struct tensor rows_of(struct tensor t, int32_t rows) {
    t.rows = rows;
    return t;
}

/* Names of layer parts, while somebody listens. */
static void enter(bool named, const char *part, int32_t layer) {
    if (named) range_push(RANGE_LAYER, part, layer);
}
static void leave(bool named) {
    if (named) range_pop();
}
static void on(const struct session *s, enum step_part part) {
    if (s->on_part) s->on_part(s->part_ctx, part);
}

void session_forward(struct session *s, const struct step *step) {
    const struct model *model = s->model;
    struct device *device = model->device;
    const struct ops *op = device->ops;
    const float eps = (float)s->config.shape.eps;
    const float scale = (float)(1.0 / sqrt((double)s->config.shape.d_h));
    const int32_t n = step->n_row;
    struct tensor residual = rows_of(s->residual, n), x = rows_of(s->x, n),
                  qkv = rows_of(s->qkv, n), q = rows_of(s->q, n);
    struct tensor mixed = rows_of(s->mixed, n), delta = rows_of(s->delta, n),
                  hidden = rows_of(s->hidden, n);
    /* Who is told of parts has ranges of his own, which end where the next part begins. */
    const bool whole = !s->on_part, named = whole && range_active();

    if (whole) range_push(RANGE_STEP, step->most_q > 1 ? "prefill" : "decode", n);
    enter(named, "embed", 0);
    on(s, PART_EMBED);
    op->embed(device, &residual, model->embedding, step);
    leave(named);
    for (int32_t l = 0; l < (int32_t)s->config.shape.n_layers; l++) {
        const struct layer *layer = &model->layers[l];
        const struct kv *kv = &s->cache->layers[l];
        enter(named, "attention", l);
        on(s, PART_NORM);
        op->add_norm(device, &x, &residual, l ? &delta : NULL, layer->norm_1, eps);
        on(s, PART_QKV);
        op->linear(device, &qkv, &x, layer->qkv, layer->bias, EPI_NONE);
        on(s, PART_ROPE);
        op->rope_append(device, &q, kv, &qkv, step, &s->rope);
        on(s, PART_ATTENTION);
        op->attention(device, &mixed, &q, kv, step, scale);
        on(s, PART_OUT);
        op->linear(device, &delta, &mixed, layer->o, NULL, EPI_NONE);
        leave(named);
        enter(named, "mlp", l);
        on(s, PART_NORM);
        op->add_norm(device, &x, &residual, &delta, layer->norm_2, eps);
        on(s, PART_MLP);
        op->linear(device, &hidden, &x, layer->gate_up, NULL, EPI_SWIGLU);
        op->linear(device, &delta, &hidden, layer->down, NULL, EPI_NONE);
        leave(named);
    }
    if (step->n_out) { /* the head only where somebody asks */
        struct tensor last = rows_of(s->last, step->n_out), x_last = rows_of(s->x, step->n_out);
        struct tensor logits = session_logits(s, step);
        enter(named, "head", 0);
        on(s, PART_HEAD);
        op->add_norm(device, NULL, &residual, &delta, model->norm_last, eps);
        op->gather_rows(device, &last, &residual, step);
        op->add_norm(device, &x_last, &last, NULL, model->norm_last, eps);
        op->linear(device, &logits, &x_last, model->head, NULL, EPI_NONE);
        leave(named);
    }
    if (whole) range_pop();
}

void session_select_row(struct session *s, struct step *view, int32_t o) {
    struct tensor logits = session_logits(s, view);
    const bool named = !s->on_part && range_active();
    logits.data = (float *)logits.data + o * logits.stride;
    enter(named, "select", 0);
    on(s, PART_SELECT);
    s->model->device->ops->select(s->model->device, view, &logits, &s->sampler);
    leave(named);
}

void session_select(struct session *s, struct step *step) { session_select_row(s, step, 0); }

struct step step_out(const struct step *step, int32_t o) {
    struct step view = *step;
    view.n_out = 1;
    view.out_row += o;
    view.next += o;
    return view;
}

void session_advance(struct session *s, const struct step *from) {
    s->model->device->ops->advance(s->model->device, from, &s->decode, &s->sampler);
}

struct tensor session_logits(const struct session *s, const struct step *step) {
    return rows_of(s->logits, step->n_out);
}

void session_next(struct session *s, const struct step *step, int32_t *next) {
    s->model->device->kind->download(s->model->device, next, step->next,
                                     sizeof *next * (size_t)step->n_out);
}

int session_run(struct session *s, struct inputs *inputs, int32_t i, struct err *err) {
    const struct step *step = inputs_step(inputs, i);
    const int32_t *kv_len = inputs_kv_len(inputs, i);
    for (int32_t seq = 0; seq < step->n_seq; seq++) {
        int code = cache_reserve(s->cache, seq, s->len[seq], kv_len[seq], err);
        if (code) return code;
    }
    cache_publish(s->cache);
    session_forward(s, step);
    memcpy(s->len, kv_len, sizeof *s->len * (size_t)step->n_seq);
    return 0;
}

/* Room for one more token of each sequence that decodes; lengths move. */
static int grow(struct session *s, struct err *err) {
    struct step *step = &s->decode;
    step->most_kv = 0;
    for (int32_t seq = 0; seq < step->n_seq; seq++) {
        if (!s->in_decode[seq]) continue;
        int code = cache_reserve(s->cache, seq, s->len[seq], s->len[seq] + 1, err);
        if (code) return code;
        s->len[seq]++;
        if (s->len[seq] > step->most_kv) step->most_kv = s->len[seq];
    }
    cache_publish(s->cache);
    return 0;
}

int session_decode(struct session *s, struct err *err) {
    int code = grow(s, err);
    if (!code) session_forward(s, &s->decode);
    return code;
}

int session_step(struct session *s, struct err *err) {
    struct device *device = s->model->device;
    struct step *step = &s->decode;
    int code = grow(s, err);
    if (code) return code;
    /* The sampler is part of what was recorded. */
    const struct step_id id = {
        .owner = s, .n_row = step->n_row, .most_kv = step->most_kv, .kind = s->sampler.end_id};
    if (device->kind->replay && device->kind->replay(device, &id)) return 0;
    session_forward(s, step);
    session_select(s, step);
    session_advance(s, step);
    if (device->kind->recorded) device->kind->recorded(device);
    return 0;
}

/* ---- a session ---------------------------------------------------------------------------------
 */

struct buffer { /* of a session: its tensor and width; rows are most_rows or most_out */
    size_t tensor;
    int64_t cols;
    bool out, exact; /* exact: f32 whatever the type of activations */
    enum memory_class class_of;
    const char *name;
};
enum { N_BUFFERS = 9 };

static void buffers_of(const struct model_shape *shape, struct buffer *b) {
    int64_t d = shape->d_model, q = shape->n_q * shape->d_h, kv = shape->n_kv * shape->d_h;
#define BUFFER(field, ...) (struct buffer){offsetof(struct session, field), __VA_ARGS__}
    b[0] = BUFFER(residual, d, false, true, MEM_ACTIVATION, "residual");
    b[1] = BUFFER(x, d, false, false, MEM_ACTIVATION, "normed");
    b[2] = BUFFER(qkv, q + 2 * kv, false, false, MEM_ACTIVATION, "qkv");
    b[3] = BUFFER(q, q, false, false, MEM_ACTIVATION, "queries");
    b[4] = BUFFER(mixed, q, false, false, MEM_ACTIVATION, "attention out");
    b[5] = BUFFER(delta, d, false, false, MEM_ACTIVATION, "delta");
    b[6] = BUFFER(hidden, shape->d_ff, false, false, MEM_ACTIVATION, "hidden");
    b[7] = BUFFER(last, d, true, true, MEM_ACTIVATION, "last rows");
    b[8] = BUFFER(logits, shape->vocab, true, true, MEM_LOGITS, "logits");
#undef BUFFER
}

static enum dtype type_of(const struct model_config *config, const struct buffer *b) {
    return b->exact ? DT_F32 : config->activation;
}

void session_bytes(const struct model_config *config, const struct session_spec *spec,
                   int64_t *bytes) {
    struct buffer buffers[N_BUFFERS];
    buffers_of(&config->shape, buffers);
    for (int i = 0; i < N_BUFFERS; i++)
        bytes[buffers[i].class_of] += dtype_bits(type_of(config, &buffers[i])) / 8 *
                                      buffers[i].cols *
                                      (buffers[i].out ? spec->most_out : spec->most_rows);
    bytes[MEM_STATE] += inputs_bytes(spec->cache.n_seq, 1, spec->cache.n_seq, spec->cache.n_seq);
    cache_bytes(config, &spec->cache, bytes);
}

static int create_buffers(struct session *s, struct err *err) {
    struct buffer buffers[N_BUFFERS];
    buffers_of(&s->config.shape, buffers);
    for (int i = 0; i < N_BUFFERS; i++) {
        const struct buffer *b = &buffers[i];
        struct tensor *t = (struct tensor *)(void *)((char *)s + b->tensor);
        *t = (struct tensor){.type = type_of(&s->config, b),
                             .rows = b->out ? s->spec.most_out : s->spec.most_rows,
                             .cols = (int32_t)b->cols,
                             .stride = b->cols};
        size_t bytes = (size_t)dtype_bits(t->type) / 8 * (size_t)t->rows * (size_t)b->cols;
        t->data = device_alloc(s->model->device, bytes, b->class_of, b->name);
        if (!t->data)
            return err_set(err, ERR_MEMORY, "no memory for %s (%zu bytes)", b->name, bytes);
    }
    return 0;
}

static int create_decode(struct session *s, struct err *err) {
    int32_t n = s->spec.cache.n_seq;
    size_t bytes = step_bytes(n, n, n);
    s->decode_memory = device_alloc(s->model->device, bytes, MEM_STATE, "decode step");
    if (!s->decode_memory)
        return err_set(err, ERR_MEMORY, "no memory for the decode step (%zu bytes)", bytes);
    s->decode_host = must_alloc(bytes);
    step_place(&s->decode, s->decode_memory, n, n, n);
    s->decode.most_q = 1;
    session_start(s, NULL);
    return 0;
}

int session_plan(struct session *s, struct err *err) {
    const struct model_shape *shape = &s->config.shape;
    struct step_bounds bounds = {.n_seq = s->spec.cache.n_seq,
                                 .n_row = s->spec.most_rows,
                                 .n_out = s->spec.most_out,
                                 .most_q = s->spec.cache.most_q,
                                 .most_kv = s->spec.cache.capacity,
                                 .n_q = (int32_t)shape->n_q,
                                 .n_kv = (int32_t)shape->n_kv,
                                 .d_h = (int32_t)shape->d_h,
                                 .d_model = (int32_t)shape->d_model,
                                 .d_ff = (int32_t)shape->d_ff,
                                 .vocab = (int32_t)shape->vocab,
                                 .activation = s->config.activation};
    return s->model->device->kind->plan(s->model->device, &bounds, err);
}

int session_create(struct session **out, struct model *model, const struct model_config *config,
                   const struct session_spec *spec, struct err *err) {
    *out = NULL;
    int code = model_supported(model->device, config, err);
    if (code) return code;
    struct session *s = must_alloc(sizeof *s);
    s->model = model;
    s->config = *config;
    s->spec = *spec;
    s->sampler = (struct sampler){.temperature = 0, .end_id = -1};
    s->rope_factor = must_alloc(sizeof *s->rope_factor * (size_t)config->shape.d_h / 2);
    s->rope = rope_of(&config->shape, model->rope_factor, s->rope_factor);
    s->len = must_alloc(sizeof *s->len * (size_t)spec->cache.n_seq);
    s->ids = must_alloc(sizeof *s->ids * (size_t)spec->cache.n_seq);
    code = cache_create(&s->cache, model->device, config, &spec->cache, err);
    if (!code) code = create_buffers(s, err);
    if (!code) code = create_decode(s, err);
    if (!code) code = session_plan(s, err);
    if (code)
        session_close(&s);
    else
        *out = s;
    return code;
}

void session_close(struct session **out) {
    struct session *s = *out;
    if (!s) return;
    if (s->model->device->kind->forget) s->model->device->kind->forget(s->model->device, s);
    struct buffer buffers[N_BUFFERS];
    buffers_of(&s->config.shape, buffers);
    for (int i = 0; i < N_BUFFERS; i++) {
        const struct tensor *t =
            (const struct tensor *)(const void *)((const char *)s + buffers[i].tensor);
        device_free(s->model->device, t->data);
    }
    device_free(s->model->device, s->decode_memory);
    cache_close(&s->cache);
    free(s->decode_host);
    free(s->rope_factor);
    free(s->len);
    free(s->ids);
    free(s);
    *out = NULL;
}

void session_set_length(struct session *s, int32_t seq, int32_t len) {
    s->len[seq] = len;
    cache_trim(s->cache, seq, len);
}

void session_share(struct session *s, int32_t from, int32_t to) {
    cache_share(s->cache, from, to, s->len[from]);
    s->len[to] = s->len[from];
}

/* Row i of the decode step is sequence seqs[i], or i where seqs is NULL. */
static void set_decode(struct session *s, int32_t n, const int32_t *seqs, const int32_t *tokens) {
    const int32_t n_seq = s->spec.cache.n_seq;
    struct step host;
    int32_t row = 0;
    step_place(&host, s->decode_host, n_seq, n_seq, n_seq);
    for (int32_t q = 0; q < n_seq; q++) {
        const bool in = row < n && (seqs ? seqs[row] : row) == q;
        host.q_begin[q] = row;
        host.kv_len[q] = s->len[q] + in;
        host.alive[q] = in;
        if (!in) continue;
        host.token[row] = tokens ? tokens[row] : 0;
        host.pos[row] = s->len[q];
        host.seq[row] = q;
        host.out_row[row] = row;
        host.next[row] = 0;
        row++;
    }
    host.q_begin[n_seq] = row;
    s->in_decode = host.alive;
    s->decode.n_row = s->decode.n_out = row;
    s->model->device->kind->upload(s->model->device, s->decode_memory, s->decode_host,
                                   step_bytes(n_seq, n_seq, n_seq));
}

void session_start(struct session *s, const int32_t *tokens) {
    set_decode(s, s->spec.cache.n_seq, NULL, tokens);
}

void session_narrow(struct session *s, int32_t n, const int32_t *seqs, const int32_t *tokens) {
    set_decode(s, n, seqs, tokens);
}
