/* SPDX-License-Identifier: Apache-2.0 */
/* The next token: the largest logit, or the largest of logit/temperature plus Gumbel noise; of
   equals the lowest id, in whatever order they are compared. */
#include <math.h>

#include "kernels/cuda/select.h"

#include "base/random.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/select.card.h"
#include "kernels/cuda/table.cuh"

static const int32_t NOBODY = 0x7fffffff; /* loses against every id of its value */

struct candidate {
    double value;
    int32_t id;
};

static __device__ __forceinline__ void meet(candidate &mine, double value, int32_t id) {
    if (value > mine.value || (value == mine.value && id < mine.id)) mine = {value, id};
}

/* The best of the block, in thread 0. */
template <int THREADS> static __device__ __forceinline__ candidate best_of_block(candidate mine) {
    select_best *warp = dynamic_shared<select_best>();
#pragma unroll
    for (int o = 16; o > 0; o /= 2) {
        const double value = __shfl_xor_sync(0xffffffffu, mine.value, o);
        const int32_t id = __shfl_xor_sync(0xffffffffu, mine.id, o);
        meet(mine, value, id);
    }
    if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = {mine.value, mine.id, 0};
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < THREADS / 32; w++) meet(mine, warp[w].value, warp[w].id);
    return mine;
}

template <bool SAMPLE> struct noise {
    double temperature;
    uint64_t key, counter;

    __device__ __forceinline__ noise(const select_args &a, int o) {
        if (!SAMPLE) return;
        const int32_t row = a.out_row[o];
        temperature = double(__uint_as_float(a.temperature));
        key = a.rng ? a.rng[a.seq[row]] : 0;
        counter = uint64_t(a.pos[row]) << 32;
    }
    __device__ __forceinline__ double worth(float logit, int32_t id) const {
        if (!SAMPLE) return double(logit);
        const double u = random_unit(key, counter + uint64_t(id));
        return double(logit) / temperature - log(-log(u + 0x1p-54));
    }
};

/* One piece of a row. A thread sees rising ids and keeps the first of equals; NaN is never larger.
 */
template <bool SAMPLE, int THREADS>
static __device__ __forceinline__ void best_of_piece(const select_args &a) {
    const int o = blockIdx.x, begin = int(blockIdx.y) * a.piece;
    const int end = a.vocab - begin < a.piece ? a.vocab : begin + a.piece;
    const float *logits = a.logits + o * a.stride;
    candidate mine = {-INFINITY, NOBODY};
    pdl_launch();
    pdl_wait();
    const noise<SAMPLE> noise(a, o);
    int id = begin + (a.vectors ? 4 : 1) * int(threadIdx.x);
    if (a.vectors) {
        for (; id + 3 < end; id += 4 * THREADS) {
            const uint4 v = load_16(logits + id);
            const uint32_t bits[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const double value = noise.worth(__uint_as_float(bits[i]), id + i);
                if (value > mine.value) mine = {value, id + i};
            }
        }
    }
    /* Without vectors all of the piece; else what the last one would have read past the row. */
    for (const int step = a.vectors ? 1 : THREADS; id < end; id += step) {
        const double value = noise.worth(logits[id], id);
        if (value > mine.value) mine = {value, id};
    }
    mine = best_of_block<THREADS>(mine);
    if (threadIdx.x == 0) a.best[int64_t(o) * a.pieces + blockIdx.y] = {mine.value, mine.id, 0};
}

template <int THREADS> static __device__ __forceinline__ void best_of_row(const select_args &a) {
    const int o = blockIdx.x, piece = threadIdx.x;
    candidate mine = {-INFINITY, NOBODY};
    pdl_launch();
    pdl_wait();
    if (piece < a.pieces) {
        const select_best best = a.best[int64_t(o) * a.pieces + piece];
        mine = {best.value, best.id};
    }
    mine = best_of_block<THREADS>(mine);
    if (threadIdx.x == 0) a.next[o] = mine.id == NOBODY ? 0 : mine.id;
}

template <int KIND, int THREADS>
static __device__ __forceinline__ void select_step(const select_args &a) {
    if constexpr (KIND == 2)
        best_of_row<THREADS>(a);
    else
        best_of_piece<KIND == 1, THREADS>(a);
}

enum { select_greedy_kind, select_sample_kind, select_best_kind };
#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct select_args, a)) {                                                 \
        select_step<name##_kind, threads>(a);                                                      \
    }
SELECT_CARDS(KERNEL)
KERNEL_TABLE(select, SELECT_CARDS)
