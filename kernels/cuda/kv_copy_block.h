/* SPDX-License-Identifier: Apache-2.0 */
/* kv_copy_block: what its kernels take, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_KV_COPY_BLOCK_H
#define KERNELS_CUDA_KV_COPY_BLOCK_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kv_copy_block_args {
    char *k, *v;
    float *k_scale, *v_scale;
    int64_t from, to, bytes;           /* of a unit of k and of v */
    int64_t from_slot, to_slot, slots; /* of its scales; none: 0 slots */
    int32_t aligned;                   /* units of k and v begin at multiples of 16 bytes */
};

struct kv_copy_block_shape {
    int64_t bytes, slots; /* of a unit; slots 0: no scales */
};
extern const struct card kv_copy_block_cards[];
void kv_copy_block_plan(const struct gpu *, const struct kv_copy_block_shape *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
