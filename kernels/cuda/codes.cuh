/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized weights value by value, exactly as kernels/quant.h defines them: for embed, and for
   weights that are made bf16 before a product of many rows. */
#ifndef KERNELS_CUDA_CODES_CUH
#define KERNELS_CUDA_CODES_CUH
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/frag.cuh"
#include "kernels/dtype.h"

/* Of column `col` of a row of data. group_shift and group: one of them, the other 0; both 0: one
   f32 scale per row. */
static __device__ __forceinline__ float scale_of(const void *scales, int64_t row, int col,
                                                 int groups, int group) {
    if (group == 0) return static_cast<const float *>(scales)[row];
    return element::f16::get(scales, row * groups + min(col / group, groups - 1));
}

static __device__ __forceinline__ float code_value(int type, unsigned bits) {
    if (type == DT_I8) return float(int(bits << 24) >> 24);
    if (type == DT_I4) return float(int(bits) - INT4_BIAS);
    return __uint_as_float(nf4_level_bits(int(bits)));
}

/* The stored bits of one code. */
static __device__ __forceinline__ unsigned code_bits(const void *codes, int type, int64_t row,
                                                     int col, int padded_cols) {
    const unsigned char *bytes = static_cast<const unsigned char *>(codes);
    if (type == DT_I8) return bytes[int8_place(row, col, padded_cols)];
    const int64_t place =
        type == DT_I4 ? int4_place(row, col, padded_cols) : nf4_place(row, col, padded_cols);
    return bytes[place / 2] >> (place % 2 * 4) & 15;
}

#endif
