/* SPDX-License-Identifier: Apache-2.0 */
/* A row of x per block, from the same bytes that products read. */
#include "kernels/cuda/embed.h"

#include "kernels/cuda/codes.cuh"
#include "kernels/cuda/embed.card.h"
#include "kernels/cuda/table.cuh"

enum { THREADS = 256 };

static __device__ __forceinline__ float weight_value(const embed_args &a, int64_t row, int col) {
    const int64_t at = row * a.padded_cols + col;
    switch (a.weight) {
    case DT_F32: return element::f32::get(a.w, at);
    case DT_F16: return element::f16::get(a.w, at);
    case DT_BF16: return element::bf16::get(a.w, at);
    default:
        return code_value(a.weight, code_bits(a.w, a.weight, row, col, a.padded_cols)) *
               scale_of(a.scales, row, col, a.groups, a.group);
    }
}

/* Where a row lies: see linear_column, whose inverse this is. */
static __device__ __forceinline__ int64_t data_row(const embed_args &a, int row) {
    if (a.half == 0) return row;
    const int in_part = row < a.half ? row : row - a.half;
    return in_part / 8 * 16 + in_part % 8 + (row < a.half ? 0 : 8);
}

static __device__ __forceinline__ void embed(const embed_args &a) {
    const int64_t r = blockIdx.x;
    pdl_wait();
    const int token = a.token[r];
    const bool known = token >= 0 && token < a.vocab; /* what is unknown shall be seen: NaN */
    const int64_t row = known ? data_row(a, token) : 0;
    for (int c = int(threadIdx.x); c < a.d; c += THREADS) {
        const float v = known ? weight_value(a, row, c) : __uint_as_float(0x7fc00000u);
        const int64_t at = r * a.x_stride + c;
        switch (a.type) {
        case DT_BF16: element::bf16::put(a.x, at, v); break;
        case DT_F16: element::f16::put(a.x, at, v); break;
        default: element::f32::put(a.x, at, v);
        }
    }
    pdl_launch();
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct embed_args, a)) {                                                  \
        static_assert(threads == THREADS, "the card says what the code does");                     \
        embed(a);                                                                                  \
    }
EMBED_CARDS(KERNEL)
KERNEL_TABLE(embed, EMBED_CARDS)
