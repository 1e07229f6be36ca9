/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do at most: bytes moved by 16 with several loads of each thread in flight,
   and multiply-adds that stay in registers. */
#include "kernels/cuda/ceilings.h"

#include "kernels/cuda/ceilings.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

/* A page is 16 bytes of each of 256 threads; a block takes D pages at a time, one grid apart, so
   that all blocks together sweep memory from its beginning to its end. */
template <int D> struct sweep {
    int64_t page, pages;
    __device__ __forceinline__ explicit sweep(int64_t n) : page(blockIdx.x), pages(n) {}
    __device__ __forceinline__ bool more() const { return page < pages; }
    __device__ __forceinline__ bool has(int k) const { return page + k * gridDim.x < pages; }
    __device__ __forceinline__ int64_t at(int k) const { /* byte of this thread */
        return (page + k * int64_t(gridDim.x)) * CEILING_PAGE + threadIdx.x * 16;
    }
    __device__ __forceinline__ void next() { page += D * int64_t(gridDim.x); }
};

template <int D, int THREADS>
static __device__ __forceinline__ void ceiling_copy_(const ceilings_args &a) {
    static_assert(THREADS * 16 == CEILING_PAGE, "a page is 16 bytes of each thread");
    const char *from = static_cast<const char *>(a.from);
    char *to = static_cast<char *>(a.to);
    for (sweep<D> s(a.n); s.more(); s.next()) {
        uint4 v[D];
#pragma unroll
        for (int k = 0; k < D; k++)
            if (s.has(k)) v[k] = load_16(from + s.at(k));
#pragma unroll
        for (int k = 0; k < D; k++)
            if (s.has(k)) store_16(to + s.at(k), v[k]);
    }
}

/* Every word reaches a sum that may be stored: block 0's always is; the others' if it is one value
   of 2^32, which the compiler does not know. */
template <int D, int THREADS>
static __device__ __forceinline__ void ceiling_read_(const ceilings_args &a) {
    static_assert(THREADS * 16 == CEILING_PAGE, "a page is 16 bytes of each thread");
    const char *from = static_cast<const char *>(a.from);
    uint32_t sum = threadIdx.x;
    for (sweep<D> s(a.n); s.more(); s.next()) {
        uint4 v[D];
#pragma unroll
        for (int k = 0; k < D; k++)
            v[k] = s.has(k) ? load_16(from + s.at(k)) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < D; k++) sum += (v[k].x ^ v[k].y) + (v[k].z ^ v[k].w);
    }
    uint32_t *part = dynamic_shared<uint32_t>();
    sum *= 0x9e3779b1u; /* so that threads' sums do not cancel each other */
#pragma unroll
    for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o) * 3;
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < THREADS / 32; w++) sum = sum * 3 + part[w];
    if (blockIdx.x == 0 || sum == a.summand)
        *a.sink = float(sum >> 8); /* a finite whole number, whatever the bytes were */
}

template <int D, int THREADS>
static __device__ __forceinline__ void ceiling_triad_(const ceilings_args &a) {
    static_assert(THREADS * 16 == CEILING_PAGE, "a page is 16 bytes of each thread");
    const char *b = static_cast<const char *>(a.from), *c = static_cast<const char *>(a.more);
    char *to = static_cast<char *>(a.to);
    const float factor = __uint_as_float(a.factor);
    for (sweep<D> s(a.n); s.more(); s.next()) {
        uint4 v[D], w[D];
#pragma unroll
        for (int k = 0; k < D; k++) {
            if (!s.has(k)) continue;
            v[k] = load_16(b + s.at(k));
            w[k] = load_16(c + s.at(k));
        }
#pragma unroll
        for (int k = 0; k < D; k++) {
            if (!s.has(k)) continue;
            const auto one = [factor](uint32_t x, uint32_t y) {
                return __float_as_uint(__uint_as_float(x) + factor * __uint_as_float(y));
            };
            store_16(to + s.at(k), make_uint4(one(v[k].x, w[k].x), one(v[k].y, w[k].y),
                                              one(v[k].z, w[k].z), one(v[k].w, w[k].w)));
        }
    }
}

/* The steps of this block: all of them together are exactly n. */
static __device__ __forceinline__ int64_t own_steps(const ceilings_args &a) {
    return a.n / gridDim.x + (blockIdx.x < a.n % gridDim.x ? 1 : 0);
}

/* D chains that converge, so that neither the compiler nor overflow ends them early. */
template <int D> static __device__ __forceinline__ void ceiling_fma_chains(const ceilings_args &a) {
    const float factor = __uint_as_float(a.factor), summand = __uint_as_float(a.summand);
    float x[D], sum = 0;
#pragma unroll
    for (int k = 0; k < D; k++) x[k] = float(int(threadIdx.x) + k);
    /* A scheduler issues one instruction a clock: what a loop counts with is lost to it. */
    constexpr int UNROLLED = 32;
    const int64_t steps = own_steps(a);
    for (int32_t i = int32_t(steps / UNROLLED); i > 0; i--)
#pragma unroll
        for (int j = 0; j < UNROLLED; j++)
#pragma unroll
            for (int k = 0; k < D; k++) x[k] = fmaf(x[k], factor, summand);
    for (int32_t i = int32_t(steps % UNROLLED); i > 0; i--)
#pragma unroll
        for (int k = 0; k < D; k++) x[k] = fmaf(x[k], factor, summand);
#pragma unroll
    for (int k = 0; k < D; k++) sum += x[k];
    if (sum == -1.0f) *a.sink = sum; /* never: but the compiler has to believe it */
}

/* D tiles of sums, multiplied by what looks like random numbers between 1 and 2 in size: power and
   so clocks depend on it. */
template <bool BF16, int D>
static __device__ __forceinline__ void ceiling_mma_chains(const ceilings_args &a) {
    const uint32_t one = BF16 ? 0x3f803f80u : 0x3c003c00u,
                   mantissa = BF16 ? 0x807f807fu : 0x83ff83ffu;
    float c[D][4] = {}, sum = 0;
    uint32_t x[6], bits = (blockIdx.x * blockDim.x + threadIdx.x) * 0x9e3779b1u + a.factor;
#pragma unroll
    for (int i = 0; i < 6; i++) {
        bits = bits * 0x0019660du + 0x3c6ef35fu;
        x[i] = one | ((bits ^ (bits >> 15)) & mantissa);
    }
    const int64_t steps = own_steps(a);
    int64_t i = 0;
    const auto step = [&]() {
#pragma unroll
        for (int k = 0; k < D; k++) {
            if constexpr (BF16)
                mma_bf16(c[k], x[0], x[1], x[2], x[3], x[4], x[5]);
            else
                mma_f16(c[k], x[0], x[1], x[2], x[3], x[4], x[5]);
        }
    };
    for (; i + 4 <= steps; i += 4) {
        step();
        step();
        step();
        step();
    }
    for (; i < steps; i++) step();
#pragma unroll
    for (int k = 0; k < D; k++) sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];
    if (__float_as_uint(sum) == a.summand) *a.sink = sum; /* a NaN of our own: never */
}

enum {
    ceiling_copy_kind,
    ceiling_read_kind,
    ceiling_triad_kind,
    ceiling_fma_f32_kind,
    ceiling_fma_f16_kind,
    ceiling_fma_bf16_kind,
};
template <int KIND, int D, int THREADS>
static __device__ __forceinline__ void ceiling(const ceilings_args &a) {
    pdl_launch();
    pdl_wait();
    if constexpr (KIND == ceiling_copy_kind) ceiling_copy_<D, THREADS>(a);
    if constexpr (KIND == ceiling_read_kind) ceiling_read_<D, THREADS>(a);
    if constexpr (KIND == ceiling_triad_kind) ceiling_triad_<D, THREADS>(a);
    if constexpr (KIND == ceiling_fma_f32_kind) ceiling_fma_chains<D>(a);
    if constexpr (KIND == ceiling_fma_f16_kind) ceiling_mma_chains<false, D>(a);
    if constexpr (KIND == ceiling_fma_bf16_kind) ceiling_mma_chains<true, D>(a);
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct ceilings_args, a)) {                                               \
        ceiling<name##_kind, d, threads>(a);                                                       \
    }
CEILINGS_CARDS(KERNEL)
KERNEL_TABLE(ceilings, CEILINGS_CARDS)
