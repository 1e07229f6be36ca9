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

/* The best of the block, in every thread. */
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
    for (int w = 0; w < THREADS / 32; w++) meet(mine, warp[w].value, warp[w].id);
    return mine;
}

/* What a logit is worth where one is sampled. */
struct noise {
    double temperature, inverse;
    uint64_t key, counter;

    __device__ __forceinline__ noise(const select_args &a, int o) {
        const int32_t row = a.out_row[o];
        temperature = double(__uint_as_float(a.temperature));
        inverse = 1 / temperature;
        key = a.rng ? a.rng[a.seq[row]] : 0;
        counter = uint64_t(a.pos[row]) << 32;
    }
    __device__ __forceinline__ double uniform(int32_t id) const {
        return random_unit(key, counter + uint64_t(id)) + 0x1p-54;
    }
    __device__ __forceinline__ double worth(float logit, int32_t id) const {
        return double(logit) / temperature - log(-log(uniform(id)));
    }
    /* Whether it surely is worth less than `best`, without a logarithm. With t = best -
       logit/temperature it is worth as much only if -log(u) <= exp(-t); but -log(u) >= 1 - u, and
       exp(t) >= (1 + t/64)^64 for t > 0. The margin is far beyond every rounding as long as |best|
       < 1e12. */
    __device__ __forceinline__ bool loses(float logit, int32_t id, double best) const {
        const double t = best - double(logit) * inverse;
        double power = 1 + t / 64;
#pragma unroll
        for (int i = 0; i < 6; i++) power *= power;
        return t > 0 && (1 - uniform(id)) * power > 1 + 1e-3;
    }
};

/* Calls use(logit, id) for a thread's ids of the block's piece, rising. */
template <int THREADS, class Use>
static __device__ __forceinline__ void over_piece(const select_args &a, Use use) {
    const int begin = int(blockIdx.y) * a.piece;
    const int end = a.vocab - begin < a.piece ? a.vocab : begin + a.piece;
    const float *logits = a.logits + blockIdx.x * a.stride;
    int id = begin + (a.vectors ? 4 : 1) * int(threadIdx.x);
    if (a.vectors) {
        for (; id + 3 < end; id += 4 * THREADS) {
            const uint4 v = load_16(logits + id);
            const uint32_t bits[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; i++) use(__uint_as_float(bits[i]), id + i);
        }
    }
    /* Without vectors all of the piece; else what the last one would have read past the row. */
    for (const int step = a.vectors ? 1 : THREADS; id < end; id += step) use(logits[id], id);
}

/* One piece of a row. A thread keeps the first of equal logits; NaN is never larger. */
template <int THREADS> static __device__ __forceinline__ void best_of_piece(const select_args &a) {
    candidate mine = {-INFINITY, NOBODY};
    pdl_launch();
    pdl_wait();
    over_piece<THREADS>(a, [&](float logit, int32_t id) {
        if (double(logit) > mine.value) mine = {double(logit), id};
    });
    if (a.temperature) {
        /* What each thread's largest logit is worth, then only what may be worth as much as the
           best of those: of 76 times that a warp would take two logarithms for 2,376 ids about 12
           are left. */
        const noise noise(a, int(blockIdx.x));
        if (mine.id != NOBODY) mine.value = noise.worth(float(mine.value), mine.id);
        double best = best_of_block<THREADS>(mine).value;
        if (!(fabs(best) < 1e12)) best = -INFINITY; /* nothing surely loses */
        __syncthreads();
        over_piece<THREADS>(a, [&](float logit, int32_t id) {
            if (logit > -INFINITY && !noise.loses(logit, id, best)) /* -inf is not even an equal */
                meet(mine, noise.worth(logit, id), id);
        });
    }
    mine = best_of_block<THREADS>(mine);
    if (threadIdx.x == 0)
        a.best[int64_t(blockIdx.x) * a.pieces + blockIdx.y] = {mine.value, mine.id, 0};
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

template <bool PIECES, int THREADS>
static __device__ __forceinline__ void select_step(const select_args &a) {
    if constexpr (PIECES)
        best_of_piece<THREADS>(a);
    else
        best_of_row<THREADS>(a);
}

enum { select_pieces_first = true, select_best_first = false };
#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct select_args, a)) {                                                 \
        select_step<name##_first, threads>(a);                                                     \
    }
SELECT_CARDS(KERNEL)
KERNEL_TABLE(select, SELECT_CARDS)
