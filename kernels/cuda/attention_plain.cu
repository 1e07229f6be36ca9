/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of any types and any head size, in f32: a block for each (row, query head), whose warps
   take 32 keys at a time, a key a lane for the scores and a dim a lane for the values. Of a
   sequence with few rows a block takes one split of 512 keys, as the decode form does: a step at
   long context then fills the machine, and attention_combine adds up. */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_plain.card.h"
#include "kernels/cuda/table.cuh"

namespace attention {

static __device__ __forceinline__ float get(const void *p, int32_t type, int64_t at) {
    return type == DT_I8 ? static_cast<const int8_t *>(p)[at] : element::any::get(p, type, at);
}

static __device__ __forceinline__ float over_lanes_most(float x) {
    for (int o = 16; o > 0; o /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, o));
    return x;
}
static __device__ __forceinline__ float over_lanes_sum(float x) {
    for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(ALL, x, o);
    return x;
}

static __device__ __forceinline__ float score(const float *query, const attention_plain_args &args,
                                              int64_t place) {
    const int32_t d = args.parts.of.d;
    float sum = 0;
    for (int i = 0; i < d; i++) sum += query[i] * get(args.parts.of.k, args.kv_type, place * d + i);
    return args.parts.of.k_scale ? sum * args.parts.of.k_scale[place] : sum;
}

struct shared { // of one warp, but the query
    float *query, *sums;
    int64_t *places;
    float *weights;
};

/* Adds 32 keys from `first`; m, l: largest score and this lane's sum of weights so far. */
static __device__ __forceinline__ void add_tile(const attention_plain_args &args,
                                                const struct shared &here, int32_t s, int32_t head,
                                                int32_t first, int32_t last, float &m, float &l) {
    const attention_args &a = args.parts.of;
    const int lane = threadIdx.x % 32, n = min(32, last - first + 1);
    const int64_t own = place(a, s, head, first + min(lane, n - 1));
    const float x = lane < n ? score(here.query, args, own) : NOTHING;
    const float most = fmaxf(m, over_lanes_most(x));
    const float by = exp2_fast((m - most) * a.scale_log2);
    const float weight = lane < n ? exp2_fast((x - most) * a.scale_log2) : 0;
    m = most;
    l = l * by + weight;
    here.places[lane] = own;
    here.weights[lane] = a.v_scale ? weight * a.v_scale[own] : weight;
    __syncwarp();
    for (int i = lane; i < a.d; i += 32) {
        float sum = 0;
        for (int key = 0; key < n; key++)
            sum += here.weights[key] * get(a.v, args.kv_type, here.places[key] * a.d + i);
        here.sums[i] = here.sums[i] * by + sum;
    }
    __syncwarp();
}

template <int THREADS>
static __device__ __forceinline__ void plain(const attention_plain_args &args) {
    constexpr int WARPS = THREADS / 32;
    const attention_args &a = args.parts.of;
    pdl_launch();
    pdl_wait();
    const int64_t row = blockIdx.x;
    const int32_t q_head = int(blockIdx.y), head = q_head / a.group;
    const int32_t s = args.seq[row], last = args.pos[row];
    const int32_t low = a.window > 0 ? max(0, last - a.window + 1) : 0;
    const few_rows r(a, s, head);
    const bool is_split = args.parts.splits > 1 && r.is_here(a) && r.splits > 1;
    const int split = int(blockIdx.z);
    if (split >= (is_split ? r.splits : 1)) return;
    const int32_t begin = is_split ? max(low, r.first + split * ATTENTION_SPLIT) : low;
    const int32_t end = is_split ? min(last, r.first + (split + 1) * ATTENTION_SPLIT - 1) : last;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;

    int64_t *places = dynamic_shared<int64_t>();
    float *weights = reinterpret_cast<float *>(places + WARPS * 32);
    float *states = weights + WARPS * 32, *query = states + WARPS * 2, *sums = query + a.d;
    const struct shared here = {query, sums + warp * a.d, places + warp * 32, weights + warp * 32};
    for (int i = int(threadIdx.x); i < a.d; i += THREADS)
        query[i] = get(a.q, args.q_type, row * a.q_stride + int64_t(q_head) * a.d + i);
    for (int i = lane; i < a.d; i += 32) here.sums[i] = 0;
    __syncthreads();

    float m = NOTHING, l = 0;
    for (int32_t first = begin + 32 * warp; first <= end; first += THREADS)
        add_tile(args, here, s, head, first, end, m, l);
    l = over_lanes_sum(l);
    if (lane == 0) {
        states[2 * warp] = m;
        states[2 * warp + 1] = l;
    }
    __syncthreads();

    float most = NOTHING, total = 0, by[WARPS];
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, states[2 * w]);
    for (int w = 0; w < WARPS; w++) {
        by[w] = exp2_fast((states[2 * w] - most) * a.scale_log2);
        total += by[w] * states[2 * w + 1];
    }
    const int64_t to = part(args.parts, s, int(row) - r.begin, q_head, split);
    if (is_split && threadIdx.x == 0) { /* in powers of two, as the combine kernel wants them */
        args.parts.states[2 * to] = most * a.scale_log2;
        args.parts.states[2 * to + 1] = total;
    }
    for (int i = int(threadIdx.x); i < a.d; i += THREADS) {
        float sum = 0;
        for (int w = 0; w < WARPS; w++) sum += by[w] * sums[w * a.d + i];
        if (is_split) {
            args.parts.sums[to * a.d + i] = sum;
            continue;
        }
        element::any::put(a.o, a.o_type, row * a.o_stride + int64_t(q_head) * a.d + i, sum / total);
    }
}

} // namespace attention

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct attention_plain_args, a)) {                                        \
        attention::plain<threads>(a);                                                              \
    }
ATTENTION_PLAIN_CARDS(KERNEL)
KERNEL_TABLE(attention_plain, ATTENTION_PLAIN_CARDS)
