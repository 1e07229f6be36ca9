/* SPDX-License-Identifier: Apache-2.0 */
/* A row per block: the residual stays in registers between the sum of its squares and the norm, and
   every sum has one order, whatever the batch. */
#include "kernels/cuda/add_norm.h"

#include "kernels/cuda/add_norm.card.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/table.cuh"

/* The sum over the block, in every thread: a tree in each warp, then the warps in order. */
template <int THREADS> static __device__ __forceinline__ float sum_of_block(float x) {
    float *part = dynamic_shared<float>();
#pragma unroll
    for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(0xffffffffu, x, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) sum += part[w];
    return sum;
}

static __device__ __forceinline__ float inverse_norm(const add_norm_args &a, float squares) {
    return 1.0f / sqrtf(squares / float(a.d) + __uint_as_float(a.eps));
}

template <int EIGHTS, int THREADS>
static __device__ __forceinline__ void add_norm_row(const add_norm_args &a) {
    using namespace element;
    const int64_t row = blockIdx.x;
    float *residual = a.residual + row * a.residual_stride;
    f32::eight gain[EIGHTS], old[EIGHTS];
    any::eight delta[EIGHTS];
    float h[EIGHTS][8], squares = 0;
    pdl_launch();
#pragma unroll
    for (int u = 0; u < EIGHTS; u++) {
        const int at = 8 * (int(threadIdx.x) + u * THREADS);
        if (a.y && at < a.d) gain[u] = f32::load(a.gain, at);
    }
    pdl_wait();
#pragma unroll
    for (int u = 0; u < EIGHTS; u++) {
        const int at = 8 * (int(threadIdx.x) + u * THREADS);
        if (at < a.d) {
            old[u] = f32::load(residual, at);
            if (a.delta) delta[u] = any::load(a.delta, a.type, row * a.delta_stride + at);
        }
    }
#pragma unroll
    for (int u = 0; u < EIGHTS; u++) {
        const int at = 8 * (int(threadIdx.x) + u * THREADS);
        if (at >= a.d) continue;
        f32::floats(h[u], old[u]);
        if (a.delta) {
            float more[8];
            any::floats(more, a.type, delta[u]);
#pragma unroll
            for (int i = 0; i < 8; i++) h[u][i] += more[i];
            f32::store(residual, at, h[u]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) squares += h[u][i] * h[u][i];
    }
    if (!a.y) return;
    const float scale = inverse_norm(a, sum_of_block<THREADS>(squares));
#pragma unroll
    for (int u = 0; u < EIGHTS; u++) {
        const int at = 8 * (int(threadIdx.x) + u * THREADS);
        if (at >= a.d) continue;
        float g[8], y[8];
        f32::floats(g, gain[u]);
#pragma unroll
        for (int i = 0; i < 8; i++) y[i] = h[u][i] * scale * g[i];
        any::store(a.y, a.type, row * a.y_stride + at, y);
    }
}

template <int THREADS> static __device__ __forceinline__ void add_norm_any(const add_norm_args &a) {
    using namespace element;
    const int64_t row = blockIdx.x;
    float *residual = a.residual + row * a.residual_stride, squares = 0;
    pdl_launch();
    pdl_wait();
    for (int c = threadIdx.x; c < a.d; c += THREADS) {
        float h = residual[c];
        if (a.delta) residual[c] = h += any::get(a.delta, a.type, row * a.delta_stride + c);
        squares += h * h;
    }
    if (!a.y) return;
    const float scale = inverse_norm(a, sum_of_block<THREADS>(squares));
    for (int c = threadIdx.x; c < a.d; c += THREADS) /* this thread's own sums of above */
        any::put(a.y, a.type, row * a.y_stride + c, residual[c] * scale * a.gain[c]);
}

template <int EIGHTS, int THREADS>
static __device__ __forceinline__ void add_norm(const add_norm_args &a) {
    if constexpr (EIGHTS > 0)
        add_norm_row<EIGHTS, THREADS>(a);
    else
        add_norm_any<THREADS>(a);
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct add_norm_args, a)) {                                               \
        add_norm<d, threads>(a);                                                                   \
    }
ADD_NORM_CARDS(KERNEL)
KERNEL_TABLE(add_norm, ADD_NORM_CARDS)
