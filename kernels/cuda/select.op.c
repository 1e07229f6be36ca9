/* SPDX-License-Identifier: Apache-2.0 */
/* select of the CUDA device: two launches. */
#include <stddef.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/select.h"

bool cuda_select_supports(const struct op_case *c, const char **kernel_or_reason) {
    (void)c; /* logits are f32 whatever the activations are */
    *kernel_or_reason = "up to 64 blocks a row, then one";
    return true;
}

int64_t cuda_select_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu;
    return select_room_bytes(bounds->n_out);
}

void cuda_select(struct device *device, struct step *step, const struct tensor *logits,
                 const struct sampler *sampler) {
    struct cuda *c = cuda_of(device);
    const struct select_shape shape = {.n_out = step->n_out, .vocab = logits->cols};
    if (!cuda_expects(c, logits->type == DT_F32, "select: logits are f32") ||
        !cuda_expects(c, select_room_bytes(shape.n_out) <= c->room[OP_SELECT].bytes,
                      "select: more outputs than planned"))
        return;
    struct select_args args = {
        .logits = logits->data,
        .out_row = step->out_row,
        .seq = step->seq,
        .pos = step->pos,
        .rng = step->rng,
        .best = c->room[OP_SELECT].data,
        .next = step->next,
        .stride = logits->stride,
        .vocab = shape.vocab,
        .piece = select_piece(shape.vocab),
        .vectors = (uintptr_t)logits->data % 16 == 0 && logits->stride % 4 == 0,
        .temperature = sampler->temperature > 0 ? f32_bits(sampler->temperature) : 0,
    };
    args.pieces = (shape.vocab + args.piece - 1) / args.piece;
    struct launch l[2];
    select_plan(&c->gpu, &shape, l);
    for (int i = 0; i < 2 && l[i].card; i++)
        cuda_launched(c, &l[i], select_launch(&l[i], c->stream, c->params.pdl, &args));
}
