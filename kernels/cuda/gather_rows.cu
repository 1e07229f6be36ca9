/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the rows that a step names: blocks of a row side by side. */
#include "kernels/cuda/gather_rows.h"

#include "kernels/cuda/gather_rows.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

template <int THREADS> static __device__ __forceinline__ void gather(const gather_rows_args &a) {
    const int64_t begin = int64_t(blockIdx.y) * THREADS * 16;
    pdl_launch();
    pdl_wait();
    const char *from = static_cast<const char *>(a.x) + int64_t(a.out_row[blockIdx.x]) * a.x_stride;
    char *to = static_cast<char *>(a.y) + int64_t(blockIdx.x) * a.y_stride;
    if (a.aligned) {
        const int64_t at = begin + threadIdx.x * 16;
        if (at < a.row_bytes) store_16(to + at, load_16(from + at));
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        const int64_t at = begin + (i * THREADS + threadIdx.x) * 2;
        if (at < a.row_bytes)
            *reinterpret_cast<uint16_t *>(to + at) = *reinterpret_cast<const uint16_t *>(from + at);
    }
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct gather_rows_args, a)) {                                            \
        static_assert(d == 16, "a thread moves so many bytes");                                    \
        gather<threads>(a);                                                                        \
    }
GATHER_ROWS_CARDS(KERNEL)
KERNEL_TABLE(gather_rows, GATHER_ROWS_CARDS)
