/* SPDX-License-Identifier: Apache-2.0 */
/* advance of the CUDA device. */
#include <stddef.h>

#include "kernels/cuda/advance.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"

bool cuda_advance_supports(const struct op_case *c, const char **kernel_or_reason) {
    (void)c;
    *kernel_or_reason = "a sequence a thread";
    return true;
}

int64_t cuda_advance_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

void cuda_advance(struct device *device, const struct step *from, struct step *to,
                  const struct sampler *sampler) {
    struct cuda *c = cuda_of(device);
    const struct advance_args args = {
        .next = from->next,
        .out_row = from->out_row,
        .seq = from->seq,
        .from_kv_len = from->kv_len,
        .q_begin = to->q_begin,
        .token = to->token,
        .pos = to->pos,
        .kv_len = to->kv_len,
        .alive = to->alive,
        .n_out = from->n_out,
        .end_id = sampler->end_id,
    };
    const struct advance_shape shape = {.n_out = from->n_out};
    struct launch l;
    advance_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, advance_launch(&l, c->stream, c->params.pdl, &args));
}
