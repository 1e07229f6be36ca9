/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few query rows per KV head (decode, short verification): bound by reading the cache
   once. A warp takes 16 keys at a time from global memory straight into operands of mma.

   Scores S (rows x keys) = Q K^T: Q is operand A; a lane's 16 bytes of a key are operand B, of k in
   an order that Q is loaded in too.

   Sums O^T (d x rows) = V^T P^T: the accumulator of S, in pairs, already is operand B = P^T, and a
   lane's values of two keys, in pairs, are operand A = V^T.

   So nothing passes through shuffles or shared memory but maxima, factors when one grows, and where
   each key lies, with its scales: all 128 places of a warp are looked up at once, before its loop,
   so that any block size costs the same. Four warps make a split of 512 keys; splits meet in
   attention_combine. */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_decode.card.h"
#include "kernels/cuda/table.cuh"

namespace attention {

constexpr int TILE = ATTENTION_TILE, WARPS = 4, KEYS_OF_WARP = ATTENTION_SPLIT / WARPS;

/* Places of a warp's keys in the cache, all at once; keys past the end stand for the last one. */
static __device__ __forceinline__ void find_places(int64_t *places, const attention_args &a,
                                                   const few_rows &r, int from) {
#pragma unroll
    for (int i = 0; i < KEYS_OF_WARP; i += 32) {
        const int at = i + int(threadIdx.x) % 32;
        places[at] = place(a, r.s, r.head, min(from + at, r.len - 1));
    }
}

/* One warp's share of a split. g and t: lane / 4 and lane % 4, as in the tables of mma. */
template <class T, int D, int ROWS, bool EXACT> struct decoder {
    static constexpr int NT = ROWS / 8;               // tiles of 8 query rows
    static constexpr int STEPS = D / 16;              // of k in S, of rows in O^T
    static constexpr int IN_16 = 16 / T::BYTES;       // values of 16 bytes
    static constexpr int PER_LOAD = IN_16 / 4;        // steps of S that 16 bytes of a key feed
    static constexpr int K_WORDS = D * T::BYTES / 16; // of a key, 4 lanes share it
    static constexpr int V_WORDS = D * T::BYTES / 32; // of a value, 8 lanes share it
    static constexpr int V_LOAD = V_WORDS < 4 ? V_WORDS : 4;
    static constexpr int V_DIMS = V_LOAD * 4 / T::BYTES; // consecutive ones of a lane
    static_assert(V_LOAD == 2 || V_LOAD == 4, "values are loaded by 8 or 16 bytes");
    /* Of sums in shared memory: floats of a row, and where a dim lies in it. The 4 rows and 8 runs
       of V_DIMS that lanes store to at once are so in 32 banks. */
    static constexpr int PITCH = D + V_DIMS / 8;
    static_assert(V_DIMS == 8 || V_DIMS == 16, "what the pitch and the places are made for");
    static __device__ __forceinline__ int column(int dim) {
        return dim ^ (dim / 32 % (V_DIMS / 4));
    }

    const attention_args &a;
    const int64_t *places; // of this warp's keys, which count from its first one
    float *scales;         // of the same keys, then of their values, where they have some
    const int g, t;
    int high[NT]; // last key that row g of the tile sees
    uint32_t q[NT][STEPS][2];
    uint32_t k[2][K_WORDS], v[4][V_WORDS];
    float m[NT], l[NT], o[NT][STEPS][4];

    __device__ __forceinline__ int d() const { return EXACT ? D : a.d; }

    __device__ __forceinline__ decoder(const attention_args &a, const few_rows &r, int first_row,
                                       int64_t *places, int from)
        : a(a), places(places), scales(reinterpret_cast<float *>(places + KEYS_OF_WARP)),
          g(int(threadIdx.x) % 32 / 4), t(int(threadIdx.x) % 4) {
#pragma unroll
        for (int i = 0; i < NT; i++) {
            const int row = first_row + 8 * i + g, step = row / a.group;
            high[i] = r.len - r.steps + step - from;
            m[i] = NOTHING;
            l[i] = 0;
#pragma unroll
            for (int n = 0; n < STEPS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) o[i][n][e] = 0;
            const int64_t at = int64_t(r.begin + step) * a.q_stride +
                               (int64_t(r.head) * a.group + (row - step * a.group)) * d();
            load_queries(q[i], static_cast<const uint16_t *>(a.q) + at, row < r.steps * a.group);
        }
    }

    __device__ __forceinline__ void load_queries(uint32_t (&row)[STEPS][2], const uint16_t *from,
                                                 bool is_row) const {
#pragma unroll
        for (int n = 0; n < STEPS; n++) {
            const int dim = n / PER_LOAD * 4 * IN_16 + t * IN_16 + n % PER_LOAD * 4;
            uint2 four = make_uint2(0, 0);
            if (is_row && (EXACT || dim < d())) four = *reinterpret_cast<const uint2 *>(from + dim);
            row[n][0] = T::BYTES == 2 ? four.x : __byte_perm(four.x, four.y, 0x5410);
            row[n][1] = T::BYTES == 2 ? four.y : __byte_perm(four.x, four.y, 0x7632);
        }
    }

    __device__ __forceinline__ void load_keys(int at) {
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const char *from =
                static_cast<const char *>(a.k) + places[at + 8 * n + g] * (d() * T::BYTES);
#pragma unroll
            for (int c = 0; c < K_WORDS / 4; c++) {
                const int dim = c * 4 * IN_16 + t * IN_16;
                uint4 x = make_uint4(0, 0, 0, 0);
                if (EXACT || dim < d()) x = load_once_16(from + dim * T::BYTES);
                k[n][4 * c] = x.x;
                k[n][4 * c + 1] = x.y;
                k[n][4 * c + 2] = x.z;
                k[n][4 * c + 3] = x.w;
            }
        }
    }

    /* Scales of all keys, before the loop: in it their addresses cost more than the codes'. A key's
       already has the factor of its score. */
    __device__ __forceinline__ void find_scales() {
#pragma unroll
        for (int i = 0; i < KEYS_OF_WARP; i += 32) {
            const int at = i + 4 * g + t;
            scales[at] = a.k_scale[places[at]] * a.scale_log2;
            scales[KEYS_OF_WARP + at] = a.v_scale[places[at]];
        }
        __syncwarp();
    }
    /* Of the four keys whose scores a lane has, or with KEYS_OF_WARP more of their values. */
    __device__ __forceinline__ void own_scales(float (&x)[4], int at) const {
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            const float2 two = *reinterpret_cast<const float2 *>(scales + at + own_key(j));
            x[j] = two.x;
            x[j + 1] = two.y;
        }
    }

    /* The four keys whose scores a lane has. */
    __device__ __forceinline__ int own_key(int j) const { return 2 * t + j % 2 + 8 * (j / 2); }

    __device__ __forceinline__ void load_values(int at) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int64_t slot = places[at + own_key(j)];
            const char *from = static_cast<const char *>(a.v) + slot * (d() * T::BYTES);
#pragma unroll
            for (int c = 0; c < V_WORDS / V_LOAD; c++) {
                const int dim = c * 8 * V_DIMS + g * V_DIMS;
                const bool is_dim = EXACT || dim < d();
                if (V_LOAD == 2) {
                    uint2 x = make_uint2(0, 0);
                    if (is_dim) x = *reinterpret_cast<const uint2 *>(from + dim * T::BYTES);
                    v[j][2 * c] = x.x;
                    v[j][2 * c + 1] = x.y;
                } else {
                    uint4 x = make_uint4(0, 0, 0, 0);
                    if (is_dim) x = load_once_16(from + dim * T::BYTES);
                    v[j][4 * c] = x.x;
                    v[j][4 * c + 1] = x.y;
                    v[j][4 * c + 2] = x.z;
                    v[j][4 * c + 3] = x.w;
                }
            }
        }
    }

    /* x[i][j]: of row g of tile i with key own_key(j). */
    __device__ __forceinline__ void scores(float (&x)[NT][4], int at) const {
        float s[2][4] = {}, k_scale[4] = {a.scale_log2, a.scale_log2, a.scale_log2, a.scale_log2};
        if constexpr (T::SCALED) own_scales(k_scale, at);
#pragma unroll
        for (int n = 0; n < 2; n++) {
#pragma unroll
            for (int i = 0; i < STEPS; i++) {
                uint32_t b0, b1;
                if constexpr (T::BYTES == 2) {
                    b0 = k[n][2 * i];
                    b1 = k[n][2 * i + 1];
                } else {
                    b0 = T::pair(k[n][i]);
                    b1 = T::pair(k[n][i] >> 8);
                }
                T::mma(s[n], q[0][i][0], NT > 1 ? q[NT - 1][i][0] : 0, q[0][i][1],
                       NT > 1 ? q[NT - 1][i][1] : 0, b0, b1);
            }
        }
#pragma unroll
        for (int i = 0; i < NT; i++) {
            const bool edge = at + TILE - 1 > high[i] || (a.window > 0 && at <= high[i] - a.window);
#pragma unroll
            for (int j = 0; j < 4; j++) x[i][j] = s[j / 2][2 * i + j % 2] * k_scale[j];
            if (edge) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const int key = at + own_key(j);
                    if (key > high[i] || (a.window > 0 && key <= high[i] - a.window))
                        x[i][j] = -INFINITY;
                }
            }
        }
    }

    /* Brings sums to a new maximum; the sums of row r lie with other lanes than its maximum. */
    __device__ __forceinline__ void raise(const float (&most)[NT]) {
#pragma unroll
        for (int i = 0; i < NT; i++) {
            const float by = exp2_fast(m[i] - most[i]);
            m[i] = most[i];
            l[i] *= by;
            const float even = __shfl_sync(ALL, by, 8 * t), odd = __shfl_sync(ALL, by, 8 * t + 4);
#pragma unroll
            for (int n = 0; n < STEPS; n++) {
                o[i][n][0] *= even;
                o[i][n][1] *= odd;
                o[i][n][2] *= even;
                o[i][n][3] *= odd;
            }
        }
    }

    /* Weights of this tile's keys, as operand B: p[i] are keys 0 ... 7 and 8 ... 15. */
    __device__ __forceinline__ void weights(uint32_t (&p)[NT][2], float (&x)[NT][4], int at) {
        float most[NT], v_scale[4];
        bool grew = false;
#pragma unroll
        for (int i = 0; i < NT; i++) {
            most[i] = fmaxf(fmaxf(x[i][0], x[i][1]), fmaxf(x[i][2], x[i][3]));
            most[i] = fmaxf(most[i], __shfl_xor_sync(ALL, most[i], 1));
            most[i] = fmaxf(m[i], fmaxf(most[i], __shfl_xor_sync(ALL, most[i], 2)));
            grew |= most[i] > m[i];
        }
        if (__any_sync(ALL, grew)) raise(most);
        if constexpr (T::SCALED) own_scales(v_scale, KEYS_OF_WARP + at);
#pragma unroll
        for (int i = 0; i < NT; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                x[i][j] = exp2_fast(x[i][j] - m[i]);
                l[i] += x[i][j];
                if (T::SCALED) x[i][j] *= v_scale[j];
            }
            p[i][0] = T::pack(x[i][0], x[i][1]);
            p[i][1] = T::pack(x[i][2], x[i][3]);
        }
    }

    __device__ __forceinline__ void add_values(const uint32_t (&p)[NT][2], int n, uint32_t a0,
                                               uint32_t a1, uint32_t a2, uint32_t a3) {
#pragma unroll
        for (int i = 0; i < NT; i++) T::mma(o[i][n], a0, a1, a2, a3, p[i][0], p[i][1]);
    }
    /* Row g of step n is dim dim_of(n), row g + 8 the next. */
    __device__ __forceinline__ int dim_of(int n) const {
        return n / (V_DIMS / 2) * 8 * V_DIMS + g * V_DIMS + n % (V_DIMS / 2) * 2;
    }
    __device__ __forceinline__ void add_values(const uint32_t (&p)[NT][2]) {
#pragma unroll
        for (int w = 0; w < V_WORDS; w++) {
            const uint32_t low = __byte_perm(v[0][w], v[1][w], 0x5410);
            const uint32_t high_half = __byte_perm(v[0][w], v[1][w], 0x7632);
            const uint32_t low_8 = __byte_perm(v[2][w], v[3][w], 0x5410);
            const uint32_t high_8 = __byte_perm(v[2][w], v[3][w], 0x7632);
            if constexpr (T::BYTES == 2) {
                add_values(p, w, low, high_half, low_8, high_8);
            } else {
                add_values(p, 2 * w, T::pair(low), T::pair(low >> 8), T::pair(low_8),
                           T::pair(low_8 >> 8));
                add_values(p, 2 * w + 1, T::pair(high_half), T::pair(high_half >> 8),
                           T::pair(high_8), T::pair(high_8 >> 8));
            }
        }
    }

    /* Large heads leave no registers for values while keys are used, nor for the next keys. */
    __device__ __forceinline__ void run(int keys) {
        constexpr bool AHEAD = D <= 128;
        if (AHEAD && keys > 0) load_keys(0);
        if constexpr (T::SCALED) find_scales();
        for (int at = 0; at < keys; at += TILE) {
            float x[NT][4];
            uint32_t p[NT][2];
            if (AHEAD)
                load_values(at);
            else
                load_keys(at);
            scores(x, at);
            if (!AHEAD)
                load_values(at);
            else if (at + TILE < keys)
                load_keys(at + TILE);
            weights(p, x, at);
            add_values(p);
        }
    }

    /* To shared memory: sums (ROWS, PITCH), states (ROWS, 2). */
    __device__ __forceinline__ void leave(float *sums, float *states) {
#pragma unroll
        for (int i = 0; i < NT; i++) {
            l[i] += __shfl_xor_sync(ALL, l[i], 1);
            l[i] += __shfl_xor_sync(ALL, l[i], 2);
            if (t == 0) {
                states[2 * (8 * i + g)] = m[i];
                states[2 * (8 * i + g) + 1] = l[i];
            }
            float *even = sums + (8 * i + 2 * t) * PITCH, *odd = even + PITCH;
#pragma unroll
            for (int n = 0; n < STEPS; n++) {
                const int dim = column(dim_of(n)), next = column(dim_of(n) + 1);
                even[dim] = o[i][n][0];
                odd[dim] = o[i][n][1];
                even[next] = o[i][n][2];
                odd[next] = o[i][n][3];
            }
        }
    }
};

/* Each warp's share of the split, left in shared memory. false: there is nothing to do. */
template <class T, int D, int ROWS, bool EXACT>
static __device__ __forceinline__ bool keep_sums(const attention_decode_args &args, int split,
                                                 int first_row, float *sums, float *states) {
    const attention_args &a = args.of;
    const few_rows r(a, int(blockIdx.z), int(blockIdx.y) / args.passes);
    if (!r.is_here(a) || split >= r.splits || first_row >= r.steps * a.group) return false;
    const int warp = int(threadIdx.x) / 32;
    using warps = decoder<T, D, ROWS, EXACT>;
    float *own = sums + warp * ROWS * warps::PITCH;
    const int from = r.first + split * ATTENTION_SPLIT + warp * KEYS_OF_WARP;
    /* Until its sums lie there, a warp keeps the places and scales of its keys there. */
    static_assert(ROWS * warps::PITCH * 4 >= KEYS_OF_WARP * (T::SCALED ? 16 : 8) && ROWS % 4 == 0,
                  "they fit, at multiples of 16 bytes");
    int64_t *places = reinterpret_cast<int64_t *>(own);
    find_places(places, a, r, from);
    __syncwarp();
    warps of_warp(a, r, first_row, places, from);
    of_warp.run(min(KEYS_OF_WARP, r.len - from));
    __syncwarp();
    of_warp.leave(own, states + warp * ROWS * 2);
    return true;
}

template <class T, int D, int ROWS, bool EXACT>
static __device__ __forceinline__ void decode(const attention_decode_args &args) {
    const attention_args &a = args.of;
    pdl_launch();
    pdl_wait();
    const int split = int(blockIdx.x), first_row = int(blockIdx.y) % args.passes * ROWS;
    using warps = decoder<T, D, ROWS, EXACT>;
    constexpr int PITCH = warps::PITCH;
    float *sums = dynamic_shared<float>(), *states = sums + WARPS * ROWS * PITCH;
    if (!keep_sums<T, D, ROWS, EXACT>(args, split, first_row, sums, states)) return;
    /* Made again (from the L1 cache): in the loop its registers are needed. */
    const few_rows r(a, int(blockIdx.z), int(blockIdx.y) / args.passes);
    const int rows = min(ROWS, r.steps * a.group - first_row);
    __syncthreads();

    const int d = EXACT ? D : a.d;
    for (int i = int(threadIdx.x); i < rows * D; i += 32 * WARPS) {
        const int row = i / D, dim = i % D;
        if (dim >= d) continue;
        float most = NOTHING, sum = 0, total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) most = fmaxf(most, states[(w * ROWS + row) * 2]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float by = exp2_fast(states[(w * ROWS + row) * 2] - most);
            total += by * states[(w * ROWS + row) * 2 + 1];
            sum += by * sums[(w * ROWS + row) * PITCH + warps::column(dim)];
        }
        const int step = (first_row + row) / a.group;
        const int q_head = r.head * a.group + (first_row + row) % a.group;
        if (r.splits == 1) {
            element::any::put(a.o, a.o_type,
                              int64_t(r.begin + step) * a.o_stride + int64_t(q_head) * d + dim,
                              sum / total);
            continue;
        }
        const int64_t to = part(args, r.s, step, q_head, split);
        args.sums[to * d + dim] = sum;
        if (dim == 0) {
            args.states[2 * to] = most;
            args.states[2 * to + 1] = total;
        }
    }
}

/* ---- splits of a row, added up ---- */

/* A few lanes per split, 4 dims each; a thread takes every n-th split and keeps its own maximum. */
template <int THREADS>
static __device__ __forceinline__ void combine(const attention_decode_args &args) {
    constexpr int MOST_GROUPS = 16, MOST_D = 256;
    const attention_args &a = args.of;
    pdl_launch();
    pdl_wait();
    const int q_head = int(blockIdx.x), step = int(blockIdx.y);
    const few_rows r(a, int(blockIdx.z), q_head / a.group);
    if (!r.is_here(a) || step >= r.steps || r.splits == 1) return;

    float *sums = dynamic_shared<float>(), *states = sums + MOST_GROUPS * MOST_D;
    const int lanes = a.d / 4, groups = min(MOST_GROUPS, THREADS / lanes);
    const int group = int(threadIdx.x) / lanes, dim = int(threadIdx.x) % lanes * 4;
    const int64_t from = part(args, r.s, step, q_head, 0);
    if (group < groups) {
        float m = NOTHING, l = 0, x = 0, y = 0, z = 0, w = 0;
#pragma unroll 4
        for (int split = group; split < r.splits; split += groups) {
            const float4 sum =
                *reinterpret_cast<const float4 *>(args.sums + (from + split) * a.d + dim);
            const float2 state =
                *reinterpret_cast<const float2 *>(args.states + 2 * (from + split));
            const float most = fmaxf(m, state.x);
            const float old = exp2_fast(m - most), by = exp2_fast(state.x - most);
            m = most;
            l = l * old + by * state.y;
            x = x * old + by * sum.x;
            y = y * old + by * sum.y;
            z = z * old + by * sum.z;
            w = w * old + by * sum.w;
        }
        *reinterpret_cast<float4 *>(sums + group * a.d + dim) = make_float4(x, y, z, w);
        if (dim == 0) {
            states[2 * group] = m;
            states[2 * group + 1] = l;
        }
    }
    __syncthreads();
    const int i = int(threadIdx.x);
    if (i >= a.d) return;
    float most = NOTHING, sum = 0, total = 0;
    for (int n = 0; n < groups; n++) most = fmaxf(most, states[2 * n]);
    for (int n = 0; n < groups; n++) {
        const float by = exp2_fast(states[2 * n] - most);
        total += by * states[2 * n + 1];
        sum += by * sums[n * a.d + i];
    }
    element::any::put(a.o, a.o_type,
                      int64_t(r.begin + step) * a.o_stride + int64_t(q_head) * a.d + i,
                      sum / total);
}

} // namespace attention

#define KERNEL(name, threads, min_blocks, body)                                                    \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct attention_decode_args, a)) {                                       \
        attention::body(a);                                                                        \
    }
#define COMMA ,
#define EXACT(name, type, d, threads, min_blocks, ...)                                             \
    KERNEL(name, threads, min_blocks, decode<attention::type COMMA d COMMA 8 COMMA true>)
#define WIDE(name, type, d, threads, min_blocks, ...)                                              \
    KERNEL(name, threads, min_blocks, decode<attention::type COMMA d COMMA 16 COMMA false>)
#define LARGE(name, type, d, threads, min_blocks, ...)                                             \
    KERNEL(name, threads, min_blocks, decode<attention::type COMMA d COMMA 8 COMMA false>)
#define COMBINE(name, type, d, threads, min_blocks, ...)                                           \
    KERNEL(name, threads, min_blocks, combine<threads>)
ATTENTION_DECODE_EXACT_CARDS(EXACT)
ATTENTION_DECODE_WIDE_CARDS(WIDE)
ATTENTION_DECODE_LARGE_CARDS(LARGE)
ATTENTION_COMBINE_CARDS(COMBINE)
KERNEL_TABLE(attention_decode, ATTENTION_DECODE_CARDS)
