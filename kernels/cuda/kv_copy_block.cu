/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one unit of the cache over another: K by the first row of blocks, V by the second, each
   with its scales. */
#include "kernels/cuda/kv_copy_block.h"

#include "kernels/cuda/kv_copy_block.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

template <int THREADS>
static __device__ __forceinline__ void copy_unit(const kv_copy_block_args &a) {
    char *values = blockIdx.y ? a.v : a.k;
    float *scales = blockIdx.y ? a.v_scale : a.k_scale;
    const int64_t begin = int64_t(blockIdx.x) * THREADS, slot = begin + threadIdx.x;
    pdl_launch();
    pdl_wait();
    if (slot < a.slots) scales[a.to_slot + slot] = scales[a.from_slot + slot];
    if (a.aligned) {
        const int64_t at = slot * 16;
        if (at < a.bytes) store_16(values + a.to + at, load_16(values + a.from + at));
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 16; i++) {
        const int64_t at = begin * 16 + i * THREADS + threadIdx.x;
        if (at < a.bytes) values[a.to + at] = values[a.from + at];
    }
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct kv_copy_block_args, a)) {                                          \
        static_assert(d == 16, "a thread moves so many bytes");                                    \
        copy_unit<threads>(a);                                                                     \
    }
KV_COPY_BLOCK_CARDS(KERNEL)
KERNEL_TABLE(kv_copy_block, KV_COPY_BLOCK_CARDS)
