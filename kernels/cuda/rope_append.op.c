/* SPDX-License-Identifier: Apache-2.0 */
/* rope_append of the CUDA device, and its table of cosines and sines: made on the host, where they
   are the reference's own bits. */
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/rope_append.h"
#include "kernels/rope.h"

enum { PIECE = 1024 }; /* positions that are uploaded at a time */

static bool is_float(enum dtype type) {
    return type == DT_BF16 || type == DT_F16 || type == DT_F32;
}

bool cuda_rope_append_supports(const struct op_case *c, const char **kernel_or_reason) {
    const char *refused = NULL;
    if (!is_float(c->activation)) refused = "activations are bf16, f16 or f32";
    if (!is_float(c->kv) && c->kv != DT_I8) refused = "the cache is f32, f16, bf16 or int8";
    *kernel_or_reason = refused ? refused : "a few lanes per head";
    return !refused;
}

int64_t cuda_rope_append_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu;
    return rope_append_table_bytes(bounds->most_kv, bounds->d_h);
}

static void turns_of(float *turns, int32_t p, int32_t d, const struct rope *rope,
                     const double *frequency) {
    for (int32_t i = 0; i < d / 2; i++)
        rope_cos_sin(rope, p * frequency[i], turns + i, turns + d / 2 + i);
}

/* All positions that were planned for, once: steps that are recorded later find them there. */
static bool fill_turns(struct cuda *c, const struct rope *rope, int32_t d) {
    struct cuda_room *room = &c->room[OP_ROPE_APPEND];
    const int32_t positions = c->bounds.most_kv;
    const uint64_t wanted = rope_key(rope, d);
    if (room->holds == wanted) return true;
    if (!cuda_expects(c, !c->recording, "rope_append: other angles while a step is recorded") ||
        !cuda_expects(c, rope_append_table_bytes(positions, d) <= room->bytes,
                      "rope_append: heads larger than planned"))
        return false;
    if (room->holds) c->base.kind->forget(&c->base, NULL); /* recorded steps read the old ones */
    float *piece = must_alloc((size_t)PIECE * (size_t)d * sizeof *piece);
    double *frequency = must_alloc((size_t)(d / 2) * sizeof *frequency);
    for (int32_t i = 0; i < d / 2; i++) frequency[i] = rope_turn(rope, i, d);
    for (int32_t first = 0; first < positions; first += PIECE) {
        const int32_t n = positions - first < PIECE ? positions - first : PIECE;
        for (int32_t p = 0; p < n; p++)
            turns_of(piece + (int64_t)p * d, first + p, d, rope, frequency);
        c->base.kind->upload(&c->base, (float *)room->data + (int64_t)first * d, piece,
                             (size_t)n * (size_t)d * sizeof *piece);
    }
    free(frequency);
    free(piece);
    room->holds = wanted;
    return true;
}

/* Whether every row begins at a multiple of 16 bytes. */
static bool aligned(const struct tensor *t) {
    return (((uintptr_t)t->data | (uintptr_t)(t->stride * (dtype_bits(t->type) / 8))) & 15) == 0;
}

void cuda_rope_append(struct device *device, struct tensor *q, const struct kv *kv,
                      const struct tensor *qkv, const struct step *step, const struct rope *rope) {
    struct cuda *c = cuda_of(device);
    const int32_t d = kv->d_h;
    const struct op_case ask = {.activation = qkv->type, .kv = kv->type};
    const char *said;
    if (!cuda_expects(c, cuda_rope_append_supports(&ask, &said),
                      "rope_append: bf16, f16 or f32, and a cache of those or int8") ||
        !cuda_expects(c, q->type == qkv->type, "rope_append: q and qkv differ in type") ||
        !cuda_expects(
            c, d > 0 && d % 2 == 0 && q->cols % d == 0 && qkv->cols == q->cols + 2 * kv->n_kv * d,
            "rope_append: q, the cache and qkv do not fit") ||
        !cuda_expects(c, step->most_kv <= c->bounds.most_kv,
                      "rope_append: positions beyond what was planned") ||
        !fill_turns(c, rope, d))
        return;
    const struct rope_append_shape shape = {
        .rows = step->n_row,
        .n_q = q->cols / d,
        .n_kv = kv->n_kv,
        .d = d,
        .type = qkv->type,
        .kv_type = kv->type,
        .aligned = aligned(q) && aligned(qkv) && (((uintptr_t)kv->k | (uintptr_t)kv->v) & 15) == 0};
    const struct rope_append_args args = {
        .qkv = qkv->data,
        .q = q->data,
        .k = kv->k,
        .v = kv->v,
        .k_scale = kv->k_scale,
        .v_scale = kv->v_scale,
        .turns = c->room[OP_ROPE_APPEND].data,
        .pos = step->pos,
        .seq = step->seq,
        .blocks = kv->table,
        .qkv_stride = qkv->stride,
        .q_stride = q->stride,
        .n_q = shape.n_q,
        .n_kv = shape.n_kv,
        .d = d,
        .block = kv->block,
        .table_stride = kv->table_stride,
        .type = (int32_t)qkv->type,
        .kv_type = (int32_t)kv->type,
        .pairs = rope->style == ROPE_PAIRS,
    };
    struct launch l;
    rope_append_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, rope_append_launch(&l, c->stream, c->params.pdl, &args));
}
