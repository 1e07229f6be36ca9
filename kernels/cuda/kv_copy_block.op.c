/* SPDX-License-Identifier: Apache-2.0 */
/* kv_copy_block of the CUDA device. */
#include <stddef.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/kv_copy_block.h"
#include "kernels/cuda/launches.h"

bool cuda_kv_copy_block_supports(const struct op_case *c, const char **kernel_or_reason) {
    (void)c;
    *kernel_or_reason = "16 bytes a thread";
    return true;
}

int64_t cuda_kv_copy_block_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

void cuda_kv_copy_block(struct device *device, const struct kv *kv, int32_t from, int32_t to) {
    struct cuda *c = cuda_of(device);
    const int64_t slots = (int64_t)kv->n_kv * kv->block;
    const int64_t bytes = slots * kv->d_h * dtype_bits(kv->type) / 8;
    const struct kv_copy_block_shape shape = {.bytes = from == to ? 0 : bytes,
                                              .slots = kv->type == DT_I8 ? slots : 0};
    const struct kv_copy_block_args args = {
        .k = kv->k,
        .v = kv->v,
        .k_scale = kv->k_scale,
        .v_scale = kv->v_scale,
        .from = from * bytes,
        .to = to * bytes,
        .bytes = bytes,
        .from_slot = from * slots,
        .to_slot = to * slots,
        .slots = shape.slots,
        .aligned = (((uintptr_t)kv->k | (uintptr_t)kv->v | (uintptr_t)(uint64_t)bytes) & 15) == 0,
    };
    struct launch l;
    kv_copy_block_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, kv_copy_block_launch(&l, c->stream, c->params.pdl, &args));
}
