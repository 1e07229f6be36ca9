/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops on the KV cache: rotary positions and appending, attention, copying a block. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/ref/ref.h"
#include "kernels/rope.h"

/* Which (unit, head, slot) holds position p of sequence s: the index of its int8 scale, and of its
 * first value / d_h. */
static int64_t place(const struct kv *kv, int32_t s, int32_t head, int32_t p) {
    int64_t unit = kv->table ? kv->table[(int64_t)s * kv->table_stride + p / kv->block] : s;
    return (unit * kv->n_kv + head) * kv->block + p % kv->block;
}

static float cached(const struct kv *kv, const void *values, const float *scales, int64_t at,
                    int32_t i) {
    int64_t e = at * kv->d_h + i;
    return kv->type == DT_I8 ? (float)((const int8_t *)values)[e] * scales[at]
                             : dtype_load(values, kv->type, e);
}

static void append(const struct kv *kv, void *values, float *scales, int64_t at,
                   const float *head) {
    if (kv->type == DT_I8) {
        scales[at] = quant_kv(head, kv->d_h, (int8_t *)values + at * kv->d_h);
        return;
    }
    for (int32_t i = 0; i < kv->d_h; i++) dtype_store(values, kv->type, at * kv->d_h + i, head[i]);
}

void ref_rotate(float *head, int32_t d, int32_t p, const struct rope *rope) {
    for (int32_t i = 0; i < d / 2; i++) {
        float c, s;
        rope_cos_sin(rope, p * rope_turn(rope, i, d), &c, &s);
        int32_t a = rope->style == ROPE_HALVES ? i : 2 * i;
        int32_t b = rope->style == ROPE_HALVES ? i + d / 2 : 2 * i + 1;
        float x = head[a], y = head[b];
        head[a] = x * c - y * s;
        head[b] = x * s + y * c;
    }
}

void ref_rope_append(struct device *device, struct tensor *q, const struct kv *kv,
                     const struct tensor *qkv, const struct step *step, const struct rope *rope) {
    int32_t d = kv->d_h, n_q = q->cols / d;
    float head[REF_MOST_HEAD];
    if (!ref_expects(device, d <= REF_MOST_HEAD && qkv->cols == (n_q + 2 * kv->n_kv) * d,
                     "rope_append: q, the cache and qkv do not fit"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        int32_t p = step->pos[r], s = step->seq[r];
        for (int32_t h = 0; h < n_q + 2 * kv->n_kv; h++) {
            for (int32_t i = 0; i < d; i++)
                head[i] = dtype_load(qkv->data, qkv->type, r * qkv->stride + h * d + i);
            if (h < n_q + kv->n_kv) ref_rotate(head, d, p, rope);
            if (h >= n_q + kv->n_kv) {
                append(kv, kv->v, kv->v_scale, place(kv, s, h - n_q - kv->n_kv, p), head);
            } else if (h >= n_q) {
                append(kv, kv->k, kv->k_scale, place(kv, s, h - n_q, p), head);
            } else {
                for (int32_t i = 0; i < d; i++)
                    dtype_store(q->data, q->type, r * q->stride + h * d + i, head[i]);
            }
        }
    }
}

static double score(const float *q, const struct kv *kv, int64_t at) {
    double sum = 0;
    for (int32_t i = 0; i < kv->d_h; i++)
        sum += (double)q[i] * (double)cached(kv, kv->k, kv->k_scale, at, i);
    return sum;
}

double *ref_room(struct ref *ref, int64_t n) {
    if (n > ref->room) {
        ref->room = 2 * n;
        ref->scores = must_realloc(ref->scores, (size_t)ref->room * sizeof *ref->scores);
    }
    return ref->scores;
}

/* One query head over positions low ... p of sequence s: all scores first, then the weighted sum.
 */
static void attend(struct ref *ref, float *out, const float *q, const struct kv *kv, int32_t s,
                   int32_t head, int32_t low, int32_t p, float scale) {
    double most = -INFINITY, total = 0, sum[REF_MOST_HEAD] = {0};
    double *scores = ref_room(ref, (int64_t)p - low + 1);
    for (int32_t t = low; t <= p; t++) {
        scores[t - low] = score(q, kv, place(kv, s, head, t)) * (double)scale;
        most = fmax(most, scores[t - low]);
        ref->counts.attention += kv->d_h;
    }
    for (int32_t t = low; t <= p; t++) {
        int64_t at = place(kv, s, head, t);
        double e = exp(scores[t - low] - most);
        total += e;
        for (int32_t i = 0; i < kv->d_h; i++)
            sum[i] += e * (double)cached(kv, kv->v, kv->v_scale, at, i);
        ref->counts.attention += kv->d_h;
    }
    for (int32_t i = 0; i < kv->d_h; i++) out[i] = (float)(sum[i] / total);
}

void ref_attention(struct device *device, struct tensor *o, const struct tensor *q,
                   const struct kv *kv, const struct step *step, float scale) {
    int32_t d = kv->d_h, n_q = q->cols / d;
    float query[REF_MOST_HEAD], out[REF_MOST_HEAD];
    if (!ref_expects(device, d <= REF_MOST_HEAD && n_q % kv->n_kv == 0 && o->cols == q->cols,
                     "attention: q, o and the cache do not fit"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        int32_t p = step->pos[r];
        int32_t low = kv->window > 0 && p >= kv->window ? p - kv->window + 1 : 0;
        for (int32_t h = 0; h < n_q; h++) {
            for (int32_t i = 0; i < d; i++)
                query[i] = dtype_load(q->data, q->type, r * q->stride + h * d + i);
            attend((struct ref *)device, out, query, kv, step->seq[r], h / (n_q / kv->n_kv), low, p,
                   scale);
            for (int32_t i = 0; i < d; i++)
                dtype_store(o->data, o->type, r * o->stride + h * d + i, out[i]);
        }
    }
}

void ref_kv_copy_block(struct device *device, const struct kv *kv, int32_t from, int32_t to) {
    (void)device;
    size_t slots = (size_t)kv->n_kv * (size_t)kv->block;
    size_t bytes = slots * (size_t)kv->d_h * (size_t)dtype_bits(kv->type) / 8;
    memmove((char *)kv->k + bytes * (size_t)to, (char *)kv->k + bytes * (size_t)from, bytes);
    memmove((char *)kv->v + bytes * (size_t)to, (char *)kv->v + bytes * (size_t)from, bytes);
    if (kv->type != DT_I8) return;
    memmove(kv->k_scale + slots * (size_t)to, kv->k_scale + slots * (size_t)from, slots * 4);
    memmove(kv->v_scale + slots * (size_t)to, kv->v_scale + slots * (size_t)from, slots * 4);
}
