/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the rows that a step names: blocks of a row side by side. */
#include "kernels/cuda/gather_rows.h"

#include "kernels/cuda/gather_rows.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

template <int BYTES, int THREADS>
static __device__ __forceinline__ void gather(const gather_rows_args &a) {
    const int64_t at = (int64_t(blockIdx.y) * THREADS + threadIdx.x) * BYTES;
    pdl_launch();
    pdl_wait();
    if (at >= a.row_bytes) return;
    const char *from =
        static_cast<const char *>(a.x) + int64_t(a.out_row[blockIdx.x]) * a.x_stride + at;
    char *to = static_cast<char *>(a.y) + int64_t(blockIdx.x) * a.y_stride + at;
    if constexpr (BYTES == 16)
        store_16(to, load_16(from));
    else
        *reinterpret_cast<uint16_t *>(to) = *reinterpret_cast<const uint16_t *>(from);
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct gather_rows_args, a)) {                                            \
        gather<d, threads>(a);                                                                     \
    }
GATHER_ROWS_CARDS(KERNEL)
KERNEL_TABLE(gather_rows, GATHER_ROWS_CARDS)
