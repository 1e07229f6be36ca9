/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a product: where a weight's row belongs in y, bias, SwiGLU, and rounding to y's type.
 */
#ifndef KERNELS_CUDA_LINEAR_OUT_CUH
#define KERNELS_CUDA_LINEAR_OUT_CUH
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/linear.h"

/* The column of y of a row of data, or -1 for padding. Interleaved: tile j of 16 rows holds rows
   8j ... 8j + 7 of part 0, then of part 1; with SwiGLU both end in column 8j + i. */
static __device__ __forceinline__ int linear_column(const linear_out &out, int row) {
    if (out.half == 0) return row < out.cols ? row : -1;
    const int in_part = row / 16 * 8 + row % 8;
    if (in_part >= out.half) return -1;
    return out.swiglu || row % 16 < 8 ? in_part : in_part + out.half;
}

static __device__ __forceinline__ float silu(float z) { return z / (1.0f + expf(-z)); }

static __device__ __forceinline__ float with_bias(const linear_out &out, int column, float v) {
    return out.bias ? v + out.bias[column] : v;
}

static __device__ __forceinline__ void put(const linear_out &out, int row, int column, float v) {
    element::any::put(out.y, out.type, int64_t(row) * out.stride + column, v);
}

/* Columns `column` and the next; only where out.pairs, and column is even. */
static __device__ __forceinline__ void put_pair(const linear_out &out, int row, int column,
                                                float low, float high) {
    const int64_t at = int64_t(row) * out.stride + column;
    switch (out.type) {
    case DT_BF16: store_4(static_cast<uint16_t *>(out.y) + at, pack_bf16(low, high)); break;
    case DT_F16: store_4(static_cast<uint16_t *>(out.y) + at, pack_f16(low, high)); break;
    default:
        store_8(static_cast<float *>(out.y) + at,
                make_uint2(__float_as_uint(low), __float_as_uint(high)));
    }
}

#endif
