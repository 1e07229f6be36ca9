/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that go over rows: embedding, norms, rotary positions, gathering; alone when there is
 * little to do. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/rope.h"

enum { WORTH_SHARING = 1 << 15 }; /* values: below, one thread is done before others have begun */

struct rows {
    struct cpu *cpu;
    const struct step *step;
    const struct cpu_weight *w;
    const struct tensor *in;
    struct tensor *out, *residual;
    const float *gain;
    const struct kv *kv;
    const struct rope *rope;
    float eps;
};

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Of one thread: a row of activations of another type and one of results, or heads and angles. */
int64_t cpu_rows_scratch(const struct step_bounds *b) {
    return larger(2 * (int64_t)b->d_model, 3 * (int64_t)b->d_h) + 32;
}

/* Values of a tensor's row from column c on as f32: where they lie, or in `room`. */
static const float *values_of(const struct rows *job, const struct tensor *t, int64_t r, int64_t c,
                              int64_t n, float *room) {
    const char *from = (const char *)cpu_row(t, r) + c * (dtype_bits(t->type) / 8);
    if (t->type == DT_F32) return (const float *)(const void *)from;
    job->cpu->kernels->widen[t->type](room, from, n);
    return room;
}

/* Where f32 results of such a row are made, and afterwards put into it. */
static float *results_of(const struct tensor *t, int64_t r, int64_t c, float *room) {
    return t->type == DT_F32 ? (float *)cpu_row(t, r) + c : room;
}

static void put_results(const struct rows *job, const struct tensor *t, int64_t r, int64_t c,
                        int64_t n, const float *room) {
    if (t->type == DT_F32) return;
    job->cpu->kernels->narrow[t->type]((char *)cpu_row(t, r) + c * (dtype_bits(t->type) / 8), room,
                                       n);
}

static void over_rows(struct rows *job, int64_t n, int64_t cols, pool_fn *fn) {
    const int64_t grain = 1 + 4096 / (cols + 1);
    pool_run(job->cpu->pool, n, grain, n * cols < WORTH_SHARING ? n : 1, fn, job);
}

static void embed_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct rows *job = ctx;
    float *room = cpu_scratch(job->cpu, thread);
    for (int64_t r = begin; r < end; r++) {
        float *x = results_of(job->out, r, 0, room);
        cpu_weight_row(job->cpu, job->w, job->step->token[r], x);
        put_results(job, job->out, r, 0, job->out->cols, x);
    }
}

/* Whether rows of other types than f32 have room to be computed in. */
static bool has_room(const struct cpu *cpu, const struct tensor *t) {
    return t == NULL || t->type == DT_F32 || 2 * (int64_t)t->cols <= cpu->scratch_floats;
}

void cpu_embed(struct device *device, struct tensor *x, const struct weight *weight,
               const struct step *step) {
    struct rows job = {
        .cpu = cpu_of(device), .step = step, .w = (const struct cpu_weight *)weight, .out = x};
    if (!cpu_expects(job.cpu, cpu_is_float(x->type), "embed: activations are floats") ||
        !cpu_expects(job.cpu, x->cols == weight->cols, "embed: x and the weight do not fit") ||
        !cpu_expects(job.cpu, has_room(job.cpu, x), "embed: rows wider than planned"))
        return;
    over_rows(&job, step->n_row, x->cols, embed_rows);
}

static void norm_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct rows *job = ctx;
    const int64_t n = job->residual->cols;
    float *room = cpu_scratch(job->cpu, thread), *second = room != NULL ? room + n : NULL;
    for (int64_t r = begin; r < end; r++) {
        const float *delta = job->in != NULL ? values_of(job, job->in, r, 0, n, room) : NULL;
        float *y = job->out != NULL ? results_of(job->out, r, 0, second) : NULL;
        job->cpu->kernels->add_norm(y, cpu_row(job->residual, r), delta, job->gain, job->eps, n);
        if (y != NULL) put_results(job, job->out, r, 0, n, y);
    }
}

void cpu_add_norm(struct device *device, struct tensor *y, struct tensor *residual,
                  const struct tensor *delta, const float *gain, float eps) {
    struct rows job = {.cpu = cpu_of(device),
                       .in = delta,
                       .out = y,
                       .residual = residual,
                       .gain = gain,
                       .eps = eps};
    if (!cpu_expects(job.cpu,
                     residual->type == DT_F32 && (y == NULL || cpu_is_float(y->type)) &&
                         (delta == NULL || cpu_is_float(delta->type)),
                     "add_norm: activations are floats, the residual stream f32") ||
        !cpu_expects(job.cpu, has_room(job.cpu, y) && has_room(job.cpu, delta),
                     "add_norm: rows wider than planned"))
        return;
    over_rows(&job, residual->rows, residual->cols, norm_rows);
}

/* ---- rotary positions ---- */

void cpu_angles(float *cosine, float *sine, int32_t p, int32_t half, const struct rope *rope) {
    for (int32_t i = 0; i < half; i++)
        rope_cos_sin(rope, p * rope_turn(rope, i, 2 * half), cosine + i, sine + i);
}

static void fill_angles(void *ctx, int64_t begin, int64_t end, int thread) {
    struct rope_table *t = ctx;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int32_t p = t->filled + (int32_t)i;
        cpu_angles(t->cosine + (int64_t)p * t->half, t->sine + (int64_t)p * t->half, p, t->half,
                   t->rope);
    }
}

/* Makes the table hold the step's positions; it grows by doubling, so this is soon never needed
 * again. */
static void prepare_angles(struct cpu *cpu, int32_t half, const struct rope *rope, int32_t most) {
    struct rope_table *t = &cpu->rope;
    if (t->half != half)
        return; /* other heads than planned: angles are computed as they are needed */
    const uint64_t key = rope_key(rope, 2 * half);
    if (t->key != key) {
        t->key = key;
        t->filled = 0;
    }
    if (most > t->capacity) most = t->capacity;
    if (most <= t->filled) return;
    int32_t to = most < 512 ? 512 : 2 * most;
    if (to > t->capacity) to = t->capacity;
    t->rope = rope;
    pool_run(cpu->pool, to - t->filled, 32, 16, fill_angles, t);
    t->filled = to;
}

static void rotate(const struct rows *job, float *out, const float *in, const float *cosine,
                   const float *sine) {
    const int32_t half = job->kv->d_h / 2;
    if (job->rope->style == ROPE_HALVES) {
        job->cpu->kernels->rope_halves(out, in, cosine, sine, half);
    } else {
        for (int32_t i = 0; i < half; i++) {
            const float a = in[2 * i], b = in[2 * i + 1];
            out[2 * i] = a * cosine[i] - b * sine[i];
            out[2 * i + 1] = a * sine[i] + b * cosine[i];
        }
    }
}

static void append(const struct rows *job, void *values, float *scales, int64_t place,
                   const float *head) {
    const struct kv *kv = job->kv;
    if (kv->type == DT_I8)
        scales[place] = quant_kv(head, kv->d_h, (int8_t *)values + place * kv->d_h);
    else
        job->cpu->kernels->narrow[kv->type](
            (char *)values + place * kv->d_h * (dtype_bits(kv->type) / 8), head, kv->d_h);
}

static void rope_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct rows *job = ctx;
    const struct kv *kv = job->kv;
    const struct rope_table *table = &job->cpu->rope;
    const int32_t d = kv->d_h, half = d / 2, n_q = job->out->cols / d;
    float *head = cpu_scratch(job->cpu, thread), *turned = head + d, *own = turned + d;
    for (int64_t r = begin; r < end; r++) {
        const int32_t p = job->step->pos[r], s = job->step->seq[r];
        const float *cosine = own, *sine = own + half;
        if (table->half == half && p < table->filled) {
            cosine = table->cosine + (int64_t)p * half;
            sine = table->sine + (int64_t)p * half;
        } else {
            cpu_angles(own, own + half, p, half, job->rope);
        }
        for (int32_t h = 0; h < n_q; h++) {
            float *q = results_of(job->out, r, h * d, turned);
            rotate(job, q, values_of(job, job->in, r, h * d, d, head), cosine, sine);
            put_results(job, job->out, r, h * d, d, q);
        }
        for (int32_t h = 0; h < kv->n_kv; h++) {
            const int64_t place = cpu_kv_place(kv, s, h, p), k = (int64_t)(n_q + h) * d,
                          v = k + (int64_t)kv->n_kv * d;
            rotate(job, turned, values_of(job, job->in, r, k, d, head), cosine, sine);
            append(job, kv->k, kv->k_scale, place, turned);
            append(job, kv->v, kv->v_scale, place, values_of(job, job->in, r, v, d, head));
        }
    }
}

void cpu_rope_append(struct device *device, struct tensor *q, const struct kv *kv,
                     const struct tensor *qkv, const struct step *step, const struct rope *rope) {
    struct rows job = {
        .cpu = cpu_of(device), .step = step, .in = qkv, .out = q, .kv = kv, .rope = rope};
    const struct step_bounds now = {.d_h = kv->d_h};
    if (!cpu_expects(job.cpu, cpu_is_float(q->type) && cpu_is_float(qkv->type),
                     "rope_append: activations are floats") ||
        !cpu_expects(job.cpu, qkv->cols == q->cols + 2 * kv->n_kv * kv->d_h && kv->d_h % 2 == 0,
                     "rope_append: q, the cache and qkv do not fit") ||
        !cpu_expects(job.cpu, cpu_rows_scratch(&now) <= job.cpu->scratch_floats,
                     "rope_append: heads larger than planned"))
        return;
    prepare_angles(job.cpu, kv->d_h / 2, rope, step->most_kv);
    over_rows(&job, step->n_row, qkv->cols, rope_rows);
}

void cpu_gather_rows(struct device *device, struct tensor *y, const struct tensor *x,
                     const struct step *step) {
    if (!cpu_expects(cpu_of(device), cpu_is_float(x->type) && y->type == x->type,
                     "gather_rows: x and y are floats of one type"))
        return;
    const size_t bytes = (size_t)x->cols * (size_t)dtype_bits(x->type) / 8;
    for (int32_t o = 0; o < step->n_out; o++)
        memcpy(cpu_row(y, o), cpu_row(x, step->out_row[o]), bytes);
}

void cpu_advance(struct device *device, const struct step *from, struct step *to,
                 const struct sampler *sampler) {
    (void)device;
    for (int32_t o = 0; o < from->n_out; o++) {
        const int32_t s = from->seq[from->out_row[o]], row = to->q_begin[s];
        const int32_t length =
            from->kv_len[s]; /* read before it is raised: the two steps may be one */
        to->token[row] = from->next[o];
        to->pos[row] = length;
        to->kv_len[s] = length + 1;
        to->alive[s] &= from->next[o] != sampler->end_id;
    }
}

void cpu_kv_copy_block(struct device *device, const struct kv *kv, int32_t from, int32_t to) {
    (void)device;
    if (from == to) return;
    const size_t slots = (size_t)kv->n_kv * (size_t)kv->block;
    const size_t bytes = slots * (size_t)kv->d_h * (size_t)dtype_bits(kv->type) / 8;
    memcpy((char *)kv->k + bytes * (size_t)to, (char *)kv->k + bytes * (size_t)from, bytes);
    memcpy((char *)kv->v + bytes * (size_t)to, (char *)kv->v + bytes * (size_t)from, bytes);
    if (kv->type != DT_I8) return;
    memcpy(kv->k_scale + slots * (size_t)to, kv->k_scale + slots * (size_t)from,
           slots * sizeof(float));
    memcpy(kv->v_scale + slots * (size_t)to, kv->v_scale + slots * (size_t)from,
           slots * sizeof(float));
}
