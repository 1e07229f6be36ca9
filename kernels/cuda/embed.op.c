/* SPDX-License-Identifier: Apache-2.0 */
/* embed of the CUDA device. */
#include "kernels/cuda/embed.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"

static bool is_float(enum dtype type) {
    return type == DT_F32 || type == DT_F16 || type == DT_BF16;
}

static const char *refusal(const struct op_case *c) {
    if (c->input != DT_F32) return "weights of products with int8 inputs are not packed here";
    if (!is_float(c->weight) && c->weight != DT_I8 && c->weight != DT_I4 && c->weight != DT_NF4)
        return "weights are f32, f16, bf16, int8, int4 or nf4";
    if (c->scale == SCALE_GROUP && c->group != 32 && c->group != 64 && c->group != 128)
        return "groups of weights are 32, 64 or 128";
    return is_float(c->activation) ? NULL : "activations are bf16, f16 or f32";
}

bool cuda_embed_supports(const struct op_case *c, const char **kernel_or_reason) {
    const char *refused = refusal(c);
    *kernel_or_reason = refused ? refused : "a row per block";
    return !refused;
}

int64_t cuda_embed_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

void cuda_embed(struct device *device, struct tensor *x, const struct weight *weight,
                const struct step *step) {
    struct cuda *c = cuda_of(device);
    const struct cuda_weight *w = (const struct cuda_weight *)weight;
    if (!cuda_expects(c, x->cols == weight->cols, "embed: x and the weight differ in width") ||
        !cuda_expects(c, is_float(x->type), "embed: x is f32, f16 or bf16"))
        return;
    const struct embed_args args = {
        .w = w->data,
        .scales = w->scales,
        .x = x->data,
        .token = step->token,
        .x_stride = x->stride,
        .vocab = (int32_t)weight->rows,
        .d = x->cols,
        .padded_cols = (int32_t)w->padded_cols,
        .weight = (int32_t)weight->type,
        .type = (int32_t)x->type,
        .groups = (int32_t)w->groups,
        .group = weight->scale == SCALE_GROUP ? weight->group : 0,
        .half = w->interleaved ? (int32_t)w->part_rows[0] : 0,
    };
    struct launch l;
    embed_plan(&c->gpu, &args, step->n_row, &l);
    if (l.card) cuda_launched(c, &l, embed_launch(&l, c->stream, c->params.pdl, &args));
}
