/* SPDX-License-Identifier: Apache-2.0 */
/* Rotates queries and keys and appends keys and values to the cache. A few lanes per head: each has
   both halves of its pairs, so nothing is exchanged but the largest magnitude of an int8 head. */
#include "kernels/cuda/rope_append.h"

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rope_append.card.h"
#include "kernels/cuda/table.cuh"

/* Which (unit, head, slot) takes position p of sequence s. */
static __device__ __forceinline__ int64_t place(const rope_append_args &a, int32_t s, int32_t head,
                                                int32_t p) {
    const int64_t unit = a.blocks ? a.blocks[int64_t(s) * a.table_stride + p / a.block] : s;
    return (unit * a.n_kv + head) * a.block + p % a.block;
}

/* Rounded after each operation, as the reference does it: codes of int8 heads then are the same. */
static __device__ __forceinline__ void turn(float &x, float &y, float cosine, float sine) {
    const float old = x;
    x = __fsub_rn(__fmul_rn(old, cosine), __fmul_rn(y, sine));
    y = __fadd_rn(__fmul_rn(old, sine), __fmul_rn(y, cosine));
}

/* quant_kv's rules: absmax/127 or 1; the nearest code, ties to even, NaN is 0. */
static __device__ __forceinline__ float scale_of(float most) {
    const float scale = most / 127.0f;
    return most > 0 && scale > 0 ? scale : 1;
}
static __device__ __forceinline__ uint32_t code_of(float x, float scale) {
    const float v = x / scale;
    const float c = v > 127.0f ? 127.0f : v < -128.0f ? -128.0f : v == v ? v : 0;
    return uint32_t(int(rintf(c))) & 255;
}
static __device__ __forceinline__ void grow(float &most, float x) {
    if (fabsf(x) > most) most = fabsf(x); /* never for NaN */
}

static __device__ __forceinline__ void store_codes(void *to, int64_t at, const float (&x)[8],
                                                   float scale) {
    uint32_t word[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++) word[i / 4] |= code_of(x[i], scale) << (8 * (i % 4));
    *reinterpret_cast<uint2 *>(static_cast<int8_t *>(to) + at) = make_uint2(word[0], word[1]);
}

static __device__ __forceinline__ void store_cached(void *to, int64_t at, const float (&x)[8],
                                                    int32_t type, float scale) {
    if (type == DT_I8)
        store_codes(to, at, x, scale);
    else
        element::any::store(to, type, at, x);
}
static __device__ __forceinline__ void put_cached(void *to, int64_t at, float x, int32_t type,
                                                  float scale) {
    if (type == DT_I8)
        static_cast<uint8_t *>(to)[at] = uint8_t(code_of(x, scale));
    else
        element::any::put(to, type, at, x);
}

/* d / 16 lanes a head; a lane has pairs 8 lane ... 8 lane + 7. */
template <int THREADS>
static __device__ __forceinline__ void append_eights(const rope_append_args &a) {
    namespace any = element::any;
    const int lanes = a.d / 16, lane = int(threadIdx.x) & (lanes - 1);
    const int heads = a.n_q + 2 * a.n_kv, wanted = int(blockIdx.y * THREADS + threadIdx.x) / lanes;
    const int head = wanted < heads ? wanted : heads - 1; /* lanes without a head go along */
    const int first = a.pairs ? 16 * lane : 8 * lane, second = first + (a.pairs ? 8 : a.d / 2);
    const int64_t row = blockIdx.x, in = row * a.qkv_stride + int64_t(head) * a.d;
    float x[8], y[8], most = 0, scale = 1;
    pdl_launch();
    pdl_wait();
    const any::eight low = any::load(a.qkv, a.type, in + first),
                     high = any::load(a.qkv, a.type, in + second);
    const int32_t p = a.pos[row], s = a.seq[row];
    any::floats(x, a.type, low);
    any::floats(y, a.type, high);
    if (head < a.n_q + a.n_kv) {
        const int64_t turns = int64_t(p) * a.d + 8 * lane;
        float cosine[8], sine[8];
        element::f32::floats(cosine, element::f32::load(a.turns, turns));
        element::f32::floats(sine, element::f32::load(a.turns, turns + a.d / 2));
        if (a.pairs) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                turn(x[2 * i], x[2 * i + 1], cosine[i], sine[i]);
                turn(y[2 * i], y[2 * i + 1], cosine[i + 4], sine[i + 4]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) turn(x[i], y[i], cosine[i], sine[i]);
        }
    }
    if (a.kv_type == DT_I8) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            grow(most, x[i]);
            grow(most, y[i]);
        }
        for (int o = lanes / 2; o > 0; o /= 2) grow(most, __shfl_xor_sync(0xffffffffu, most, o));
        scale = scale_of(most);
    }
    if (wanted >= heads) return;
    if (head < a.n_q) {
        const int64_t out = row * a.q_stride + int64_t(head) * a.d;
        any::store(a.q, a.type, out + first, x);
        any::store(a.q, a.type, out + second, y);
        return;
    }
    const bool key = head < a.n_q + a.n_kv;
    const int64_t at = place(a, s, head - a.n_q - (key ? 0 : a.n_kv), p);
    void *cache = key ? a.k : a.v;
    store_cached(cache, at * a.d + first, x, a.kv_type, scale);
    store_cached(cache, at * a.d + second, y, a.kv_type, scale);
    if (a.kv_type == DT_I8 && lane == 0) (key ? a.k_scale : a.v_scale)[at] = scale;
}

/* Pair i of the head at `in`, rotated if it is one of a query or key. */
static __device__ __forceinline__ void pair_of(const rope_append_args &a, int64_t in, int head,
                                               int32_t p, int i, int j0, int j1, float &x,
                                               float &y) {
    x = element::any::get(a.qkv, a.type, in + j0);
    y = element::any::get(a.qkv, a.type, in + j1);
    if (head >= a.n_q + a.n_kv) return;
    const float *turns = a.turns + int64_t(p) * a.d;
    turn(x, y, turns[i], turns[a.d / 2 + i]);
}

/* A warp a head, a pair a lane at a time. */
template <int THREADS>
static __device__ __forceinline__ void append_any(const rope_append_args &a) {
    const int lane = threadIdx.x % 32, half = a.d / 2;
    const int heads = a.n_q + 2 * a.n_kv, head = int(blockIdx.y * THREADS + threadIdx.x) / 32;
    const int64_t row = blockIdx.x, in = row * a.qkv_stride + int64_t(head) * a.d;
    float most = 0, scale = 1;
    pdl_launch();
    pdl_wait();
    if (head >= heads) return;
    const int32_t p = a.pos[row], s = a.seq[row];
    const bool query = head < a.n_q, key = !query && head < a.n_q + a.n_kv;
    if (!query && a.kv_type == DT_I8) {
        for (int i = lane; i < half; i += 32) {
            float x, y;
            pair_of(a, in, head, p, i, a.pairs ? 2 * i : i, a.pairs ? 2 * i + 1 : i + half, x, y);
            grow(most, x);
            grow(most, y);
        }
        for (int o = 16; o > 0; o /= 2) grow(most, __shfl_xor_sync(0xffffffffu, most, o));
        scale = scale_of(most);
    }
    const int64_t at = query ? 0 : place(a, s, head - a.n_q - (key ? 0 : a.n_kv), p);
    const int64_t out = query ? row * a.q_stride + int64_t(head) * a.d : at * a.d;
    void *cache = key ? a.k : a.v;
    for (int i = lane; i < half; i += 32) {
        const int j0 = a.pairs ? 2 * i : i, j1 = a.pairs ? 2 * i + 1 : i + half;
        float x, y;
        pair_of(a, in, head, p, i, j0, j1, x, y);
        if (query) {
            element::any::put(a.q, a.type, out + j0, x);
            element::any::put(a.q, a.type, out + j1, y);
        } else {
            put_cached(cache, out + j0, x, a.kv_type, scale);
            put_cached(cache, out + j1, y, a.kv_type, scale);
        }
    }
    if (!query && a.kv_type == DT_I8 && lane == 0) (key ? a.k_scale : a.v_scale)[at] = scale;
}

template <int D, int THREADS>
static __device__ __forceinline__ void rope_append(const rope_append_args &a) {
    if constexpr (D > 0)
        append_eights<THREADS>(a);
    else
        append_any<THREADS>(a);
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct rope_append_args, a)) {                                            \
        rope_append<d, threads>(a);                                                                \
    }
ROPE_APPEND_CARDS(KERNEL)
KERNEL_TABLE(rope_append, ROPE_APPEND_CARDS)
