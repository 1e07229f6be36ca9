/* SPDX-License-Identifier: Apache-2.0 */
/* What attention's forms share: places in the cache, splits of keys, and cache types as operands of
   mma. */
#ifndef KERNELS_CUDA_ATTENTION_CUH
#define KERNELS_CUDA_ATTENTION_CUH
#include "kernels/cuda/attention.h"
#include "kernels/cuda/elements.cuh"

namespace attention {

constexpr unsigned ALL = 0xffffffffu; // lanes of a warp
/* Below every score, and finite: a difference to it is no NaN. */
constexpr float NOTHING = -1e30f;

/* Which (unit, head, slot) holds position p of sequence s: the index of its scale, and of its first
   value / d. */
static __device__ __forceinline__ int64_t place(const attention_args &a, int32_t s, int32_t head,
                                                int32_t p) {
    if (!a.table && a.window == 0) return (int64_t(s) * a.n_kv + head) * a.block + p;
    const int32_t block = p / a.block, slot = p - block * a.block;
    const int64_t unit = a.table ? a.table[int64_t(s) * a.table_stride + block] : s;
    return (unit * a.n_kv + head) * a.block + slot;
}

/* ---- keys of few rows, split among blocks ---- */

/* A sequence as one KV head sees it: its query rows r, of row r / group of the step and head
   r % group. */
struct few_rows {
    int32_t s, head;
    int32_t begin, steps, len; // first row in the step, rows, keys
    int32_t first;             // key that any row sees, rounded down to a tile
    int32_t splits;

    __device__ __forceinline__ few_rows(const attention_args &a, int32_t s, int32_t head)
        : s(s), head(head) {
        begin = a.q_begin[s];
        steps = a.q_begin[s + 1] - begin;
        len = a.kv_len[s];
        const int32_t low = a.window > 0 ? max(0, len - steps - a.window + 1) : 0;
        first = low / ATTENTION_TILE * ATTENTION_TILE;
        splits = (len - first + ATTENTION_SPLIT - 1) / ATTENTION_SPLIT;
    }
    __device__ __forceinline__ bool is_here(const attention_args &a) const {
        return steps > 0 && steps <= a.few;
    }
};

/* Which entry of the workspace is for (sequence, row, query head, split). */
static __device__ __forceinline__ int64_t part(const attention_decode_args &a, int32_t s,
                                               int32_t step, int32_t q_head, int32_t split) {
    const int32_t n_q = a.of.n_kv * a.of.group;
    return ((int64_t(s) * a.most_rows + step) * n_q + q_head) * a.splits + split;
}

/* ---- cache types: BYTES of a value, and pairs of them as operands ---- */

struct bf16 {
    static constexpr int BYTES = 2;
    static constexpr bool SCALED = false;
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        return pack_bf16(low, high);
    }
    static __device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                               uint32_t a3, uint32_t b0, uint32_t b1) {
        mma_bf16(c, a0, a1, a2, a3, b0, b1);
    }
};

struct f16 {
    static constexpr int BYTES = 2;
    static constexpr bool SCALED = false;
    static __device__ __forceinline__ uint32_t pack(float low, float high) {
        return pack_f16(low, high);
    }
    static __device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                               uint32_t a3, uint32_t b0, uint32_t b1) {
        mma_f16(c, a0, a1, a2, a3, b0, b1);
    }
};

/* Codes are exact in bf16; scales go to the scores and weights, never to the codes. */
struct int8 : bf16 {
    static constexpr int BYTES = 1;
    static constexpr bool SCALED = true;
    /* Bytes 0 and 2 of a word as a pair. In bf16, 0x4300 with the low 7 bits of a code is 128 +
       them, and with its sign bit alone it is 128, or 256 where the sign is set. */
    static __device__ __forceinline__ uint32_t pair(uint32_t bytes) {
        const uint32_t low = logic3<0xea>(bytes, 0x007f007fu, 0x43004300u);
        const uint32_t sign = logic3<0xea>(bytes, 0x00800080u, 0x43004300u);
        __nv_bfloat162 x, y;
        memcpy(&x, &low, sizeof x);
        memcpy(&y, &sign, sizeof y);
        x = __hsub2(x, y);
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        return u;
    }
};

} // namespace attention

#endif
