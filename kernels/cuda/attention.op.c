/* SPDX-License-Identifier: Apache-2.0 */
/* attention of the CUDA device: which forms a step takes. */
#include <stddef.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"

enum { MOST_SEQ = 65535 }; /* of decode's grid, whose third side they are */

static bool is_float(enum dtype type) {
    return type == DT_BF16 || type == DT_F16 || type == DT_F32;
}

bool cuda_attention_supports(const struct op_case *c, const char **kernel_or_reason) {
    const bool tensor_cores = (c->activation == DT_BF16 && (c->kv == DT_BF16 || c->kv == DT_I8)) ||
                              (c->activation == DT_F16 && c->kv == DT_F16);
    const char *refused = NULL;
    if (!is_float(c->activation)) refused = "activations are bf16, f16 or f32";
    if (!is_float(c->kv) && c->kv != DT_I8) refused = "the cache is f32, f16, bf16 or int8";
    *kernel_or_reason = refused ? refused
                        : tensor_cores
                            ? "split keys in decode, tiles in prefill; plain f32 for odd head sizes"
                            : "plain f32";
    return !refused;
}

cudaError_t attention_load(void) {
    cudaError_t e = attention_decode_load();
    if (e == cudaSuccess) e = attention_prefill_load();
    if (e == cudaSuccess) e = attention_plain_load();
    return e;
}

/* A cache shape whose sums need the most room within the bounds: full length, no window. The most
   rows times heads of a sequence are 16 per KV head, or one row's. */
int64_t cuda_attention_room(const struct gpu *gpu, const struct step_bounds *b) {
    (void)gpu;
    int32_t longest = 256;
    while (longest < b->most_kv && longest < 1 << 30) longest *= 2;
    const int64_t splits = (longest + ATTENTION_SPLIT - 1) / ATTENTION_SPLIT;
    const int64_t of_few = 16 * (int64_t)b->n_kv, of_q = (int64_t)b->most_q * b->n_q;
    int64_t rows = of_few > b->n_q ? of_few : b->n_q;
    if (rows > of_q) rows = of_q;
    return splits <= 1 ? 0 : b->n_seq * rows * splits * (b->d_h + 2) * (int64_t)sizeof(float);
}

static bool by_16_bytes(const void *p, int64_t stride, enum dtype type) {
    return (uintptr_t)p % 16 == 0 && stride * dtype_bits(type) / 8 % 16 == 0;
}

static struct attention_shape shape_of(const struct cuda *c, const struct tensor *o,
                                       const struct tensor *q, const struct kv *kv,
                                       const struct step *step) {
    return (struct attention_shape){
        .n_seq = step->n_seq,
        .n_row = step->n_row,
        .most_q = step->most_q,
        .most_kv = cuda_bucket(c, step->most_kv),
        .n_q = q->cols / kv->d_h,
        .n_kv = kv->n_kv,
        .d = kv->d_h,
        .window = kv->window,
        .q_type = q->type,
        .o_type = o->type,
        .kv_type = kv->type,
        .aligned = by_16_bytes(q->data, q->stride, q->type) &&
                   by_16_bytes(o->data, o->stride, o->type) &&
                   ((uintptr_t)kv->k | (uintptr_t)kv->v) % 16 == 0,
    };
}

static struct attention_args args_of(const struct attention_shape *s, const struct tensor *o,
                                     const struct tensor *q, const struct kv *kv,
                                     const struct step *step, float scale) {
    return (struct attention_args){
        .q = q->data,
        .o = o->data,
        .k = kv->k,
        .v = kv->v,
        .k_scale = kv->k_scale,
        .v_scale = kv->v_scale,
        .table = kv->table,
        .q_begin = step->q_begin,
        .kv_len = step->kv_len,
        .q_stride = q->stride,
        .o_stride = o->stride,
        .n_seq = s->n_seq,
        .n_kv = s->n_kv,
        .d = s->d,
        .window = s->window,
        .block = kv->block,
        .table_stride = kv->table_stride,
        .group = s->n_q / s->n_kv,
        .few = attention_few(s->n_q, s->n_kv),
        .o_type = (int32_t)o->type,
        .scale_log2 = scale * 1.44269504088896341f,
    };
}

/* What the forms that split keys take; false: the step is larger than planned. */
static bool parts_of(struct cuda *c, const struct attention_shape *s,
                     const struct attention_args *of, struct attention_decode_args *args) {
    const int64_t sums = attention_part_floats(s, false), states = attention_part_floats(s, true);
    const struct cuda_room *room = &c->room[OP_ATTENTION];
    *args = (struct attention_decode_args){
        .of = *of,
        .most_rows = s->most_q < of->few ? s->most_q : of->few,
        .splits = attention_splits(s),
        .passes = attention_passes(s),
    };
    if (!cuda_expects(c, (sums + states) * (int64_t)sizeof(float) <= room->bytes,
                      "attention: a step larger than planned"))
        return false;
    if (states > 0) {
        args->sums = room->data;
        args->states = args->sums + sums;
    }
    return true;
}

static void combine(struct cuda *c, const struct attention_shape *s,
                    const struct attention_decode_args *args) {
    struct launch l;
    attention_combine_plan(&c->gpu, s, &l);
    if (l.card) cuda_launched(c, &l, attention_decode_launch(&l, c->stream, c->params.pdl, args));
}

static void plain(struct cuda *c, const struct attention_shape *s, const struct attention_args *of,
                  const struct step *step) {
    struct attention_plain_args args = {
        .pos = step->pos,
        .seq = step->seq,
        .q_type = (int32_t)s->q_type,
        .kv_type = (int32_t)s->kv_type,
    };
    struct launch l;
    attention_plain_plan(&c->gpu, s, &l);
    if (!l.card || !parts_of(c, s, of, &args.parts)) return;
    cuda_launched(c, &l, attention_plain_launch(&l, c->stream, c->params.pdl, &args));
    combine(c, s, &args.parts);
}

static void prefill(struct cuda *c, const struct attention_shape *s,
                    const struct attention_args *of) {
    const struct attention_prefill_args args = {.of = *of};
    struct launch l;
    attention_prefill_plan(&c->gpu, s, &l);
    if (l.card) cuda_launched(c, &l, attention_prefill_launch(&l, c->stream, c->params.pdl, &args));
}

static void decode(struct cuda *c, const struct attention_shape *s,
                   const struct attention_args *of) {
    struct attention_decode_args args;
    struct launch l;
    attention_decode_plan(&c->gpu, s, &l);
    if (!l.card || !parts_of(c, s, of, &args)) return;
    cuda_launched(c, &l, attention_decode_launch(&l, c->stream, c->params.pdl, &args));
    combine(c, s, &args);
}

void cuda_attention(struct device *device, struct tensor *o, const struct tensor *q,
                    const struct kv *kv, const struct step *step, float scale) {
    struct cuda *c = cuda_of(device);
    const int32_t n_q = kv->d_h > 0 ? q->cols / kv->d_h : 0;
    if (!cuda_expects(c,
                      kv->d_h > 0 && kv->d_h <= 1024 && n_q % kv->n_kv == 0 && o->cols == q->cols,
                      "attention: q, o and the cache do not fit") ||
        !cuda_expects(c, step->n_seq <= MOST_SEQ, "attention: more than 65535 sequences"))
        return;
    const struct attention_shape shape = shape_of(c, o, q, kv, step);
    const struct attention_args args = args_of(&shape, o, q, kv, step, scale);
    prefill(c, &shape, &args); /* the longest work first */
    decode(c, &shape, &args);
    plain(c, &shape, &args, step);
}
