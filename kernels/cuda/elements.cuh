/* SPDX-License-Identifier: Apache-2.0 */
/* The three types of activations as the kernels see them: eight values at a time (16 bytes, or 32
   of f32) or one, always computed with as floats. Names are those of the cards. */
#ifndef KERNELS_CUDA_ELEMENTS_CUH
#define KERNELS_CUDA_ELEMENTS_CUH
#include "kernels/cuda/ptx.cuh"
#include "kernels/dtype.h"

namespace element {
/* A type of 16 bits, from the conversions of its pairs. */
template <class Pair> struct sixteen {
    struct eight {
        uint4 bits;
    };
    static __device__ __forceinline__ eight load(const void *p, int64_t at) {
        return {load_16(static_cast<const uint16_t *>(p) + at)};
    }
    static __device__ __forceinline__ void floats(float (&x)[8], eight v) {
        const uint32_t pair[4] = {v.bits.x, v.bits.y, v.bits.z, v.bits.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = Pair::low(pair[i]);
            x[2 * i + 1] = Pair::high(pair[i]);
        }
    }
    static __device__ __forceinline__ void store(void *p, int64_t at, const float (&x)[8]) {
        store_16(static_cast<uint16_t *>(p) + at,
                 make_uint4(Pair::pack(x[0], x[1]), Pair::pack(x[2], x[3]), Pair::pack(x[4], x[5]),
                            Pair::pack(x[6], x[7])));
    }
    static __device__ __forceinline__ float get(const void *p, int64_t at) {
        return Pair::low(static_cast<const uint16_t *>(p)[at]);
    }
    static __device__ __forceinline__ void put(void *p, int64_t at, float x) {
        static_cast<uint16_t *>(p)[at] = uint16_t(Pair::pack(x, 0));
    }
};

struct bf16_pair {
    static __device__ __forceinline__ float low(uint32_t pair) { return low_bf16(pair); }
    static __device__ __forceinline__ float high(uint32_t pair) { return high_bf16(pair); }
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        return pack_bf16(low, high);
    }
};
struct f16_pair {
    static __device__ __forceinline__ float low(uint32_t pair) {
        return __half2float(__ushort_as_half(uint16_t(pair)));
    }
    static __device__ __forceinline__ float high(uint32_t pair) { return low(pair >> 16); }
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        return pack_f16(low, high);
    }
};
using bf16 = sixteen<bf16_pair>;
using f16 = sixteen<f16_pair>;

struct f32 {
    struct eight {
        uint4 low, high;
    };
    static __device__ __forceinline__ eight load(const void *p, int64_t at) {
        const float *from = static_cast<const float *>(p) + at;
        return {load_16(from), load_16(from + 4)};
    }
    static __device__ __forceinline__ void floats(float (&x)[8], eight v) {
        const uint32_t bits[8] = {v.low.x,  v.low.y,  v.low.z,  v.low.w,
                                  v.high.x, v.high.y, v.high.z, v.high.w};
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = __uint_as_float(bits[i]);
    }
    static __device__ __forceinline__ void store(void *p, int64_t at, const float (&x)[8]) {
        float *to = static_cast<float *>(p) + at;
        store_16(to, make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                                __float_as_uint(x[3])));
        store_16(to + 4, make_uint4(__float_as_uint(x[4]), __float_as_uint(x[5]),
                                    __float_as_uint(x[6]), __float_as_uint(x[7])));
    }
    static __device__ __forceinline__ float get(const void *p, int64_t at) {
        return static_cast<const float *>(p)[at];
    }
    static __device__ __forceinline__ void put(void *p, int64_t at, float x) {
        static_cast<float *>(p)[at] = x;
    }
};

/* A type known only when the kernel runs, for all threads alike. What differs is a few conversions:
   cheaper than a kernel for each where latency or memory bounds it. */
namespace any {
using eight = f32::eight; /* high: of f32 only */
static __device__ __forceinline__ eight load(const void *p, int32_t type, int64_t at) {
    if (type == DT_F32) return f32::load(p, at);
    return {load_16(static_cast<const uint16_t *>(p) + at), make_uint4(0, 0, 0, 0)};
}
static __device__ __forceinline__ void floats(float (&x)[8], int32_t type, eight v) {
    switch (type) {
    case DT_F32: f32::floats(x, v); break;
    case DT_F16: f16::floats(x, {v.low}); break;
    default: bf16::floats(x, {v.low});
    }
}
static __device__ __forceinline__ void store(void *p, int32_t type, int64_t at,
                                             const float (&x)[8]) {
    switch (type) {
    case DT_F32: f32::store(p, at, x); break;
    case DT_F16: f16::store(p, at, x); break;
    default: bf16::store(p, at, x);
    }
}
static __device__ __forceinline__ float get(const void *p, int32_t type, int64_t at) {
    switch (type) {
    case DT_F32: return f32::get(p, at);
    case DT_F16: return f16::get(p, at);
    default: return bf16::get(p, at);
    }
}
static __device__ __forceinline__ void put(void *p, int32_t type, int64_t at, float x) {
    switch (type) {
    case DT_F32: f32::put(p, at, x); break;
    case DT_F16: f16::put(p, at, x); break;
    default: bf16::put(p, at, x);
    }
}
} // namespace any
} // namespace element

#endif
