/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one unit of the cache over another: K by the first row of blocks, V by the second, each
   with its scales. */
#include "kernels/cuda/kv_copy_block.h"

#include "kernels/cuda/kv_copy_block.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

template <int BYTES>
static __device__ __forceinline__ void copy_unit(const kv_copy_block_args &a, int64_t i) {
    char *values = blockIdx.y ? a.v : a.k;
    float *scales = blockIdx.y ? a.v_scale : a.k_scale;
    const int64_t at = i * BYTES;
    pdl_launch();
    pdl_wait();
    if (at < a.bytes) {
        if constexpr (BYTES == 16)
            store_16(values + a.to + at, load_16(values + a.from + at));
        else
            values[a.to + at] = values[a.from + at];
    }
    if (i < a.slots) scales[a.to_slot + i] = scales[a.from_slot + i];
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct kv_copy_block_args, a)) {                                          \
        copy_unit<d>(a, int64_t(blockIdx.x) * threads + threadIdx.x);                              \
    }
KV_COPY_BLOCK_CARDS(KERNEL)
KERNEL_TABLE(kv_copy_block, KV_COPY_BLOCK_CARDS)
