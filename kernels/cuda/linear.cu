/* SPDX-License-Identifier: Apache-2.0 */
/* Weights times few rows: each weight is read from memory once, straight into the registers of
   mma.sync (frag.cuh), tokens in tiles of 8. The eight warps of a block share the columns of a tile
   of 16 rows, a unit each in turn, and their sums meet in shared memory in one order: a row of y
   has the same bits for every m up to 64. */
#include "kernels/cuda/linear.h"

#include "kernels/cuda/frag.cuh"
#include "kernels/cuda/linear.card.h"
#include "kernels/cuda/linear_out.cuh"
#include "kernels/cuda/table.cuh"

enum { WARPS = 8, TOKENS = 8, PAIRS_BYTES = 256 * 32 * 4 };

/* ---- weights by the cards' names ----------------------------------------------------------------
   UNIT columns are LOADS loads of 16 bytes of a lane, which begin UNIT_BYTES behind those of the
   unit before. operand: the A of the two mmas of a chunk, 4 registers each. */

struct rows_of_halves { /* row-major: loads of rows g and g + 8 in turn */
    static constexpr int UNIT = 64, UNIT_BYTES = 128, LOADS = 4;
    static constexpr bool SCALED = false;
    static FRAG_MAP int first_col(int) { return 0; }
    static FRAG_MAP int last_chunk(int j) { return j / 2; }
    static __device__ __forceinline__ const unsigned char *begin(const linear_args &a, int tile,
                                                                 int lane) {
        const int64_t row = int64_t(tile) * FRAG_ROWS + lane / 4;
        return static_cast<const unsigned char *>(a.w) + row * a.cols * 2 + lane % 4 * 16;
    }
    static __device__ __forceinline__ uint4 load(const unsigned char *unit, const linear_args &a,
                                                 int j) {
        return load_stream_16(unit + j / 2 * (2 * CHUNK_COLS) + (j % 2 ? int64_t(16) * a.cols : 0));
    }
    static __device__ __forceinline__ void operand(uint32_t (&w)[8], const uint4 (&loaded)[LOADS],
                                                   int chunk, const unsigned char *) {
        const uint4 low = loaded[2 * chunk], high = loaded[2 * chunk + 1];
        w[0] = low.x, w[1] = high.x, w[2] = low.y, w[3] = high.y;
        w[4] = low.z, w[5] = high.z, w[6] = low.w, w[7] = high.w;
    }
};

template <int BITS> struct fragments { /* in the order of frag.cuh */
    static constexpr int UNIT = 128, LOADS = BITS / 2, UNIT_BYTES = LOADS * FRAG_BYTES;
    static constexpr bool SCALED = true;
    static FRAG_MAP int first_col(int j) { return UNIT / LOADS * j; }
    static FRAG_MAP int last_chunk(int j) { return (j + 1) * 4 / LOADS - 1; }
    static __device__ __forceinline__ const unsigned char *begin(const linear_args &a, int tile,
                                                                 int lane) {
        return static_cast<const unsigned char *>(a.w) +
               int64_t(tile) * (FRAG_ROWS * BITS / 8) * a.cols + lane * 16;
    }
    static __device__ __forceinline__ uint4 load(const unsigned char *unit, const linear_args &,
                                                 int j) {
        return load_stream_16(unit + j * FRAG_BYTES);
    }
};

static __device__ __forceinline__ uint32_t word_of(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
static __device__ __forceinline__ uint32_t minus_bf16(uint32_t a, uint32_t b) {
    __nv_bfloat162 x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = __hsub2(x, y);
    memcpy(&a, &x, sizeof a);
    return a;
}

namespace weight {
struct bf16 : rows_of_halves {
    static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t *w, uint32_t b0,
                                               uint32_t b1) {
        mma_bf16(c, w[0], w[1], w[2], w[3], b0, b1);
    }
};
struct f16 : rows_of_halves {
    static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t *w, uint32_t b0,
                                               uint32_t b1) {
        mma_f16(c, w[0], w[1], w[2], w[3], b0, b1);
    }
};

/* 128 | the low seven bits is 128 more than they say, in bf16 exactly; with the sign bit 256 are
   too many. */
struct int8 : fragments<8> {
    static __device__ __forceinline__ uint32_t pair(uint32_t bytes) { /* bytes 0 and 2 */
        return minus_bf16(logic3<0xEA>(bytes, 0x007f007fu, 0x43004300u),
                          logic3<0xEA>(bytes, 0x00800080u, 0x43004300u));
    }
    static __device__ __forceinline__ void operand(uint32_t (&w)[8], const uint4 (&loaded)[LOADS],
                                                   int chunk, const unsigned char *) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t word = word_of(loaded[chunk], i);
            w[2 * i] = pair(word);
            w[2 * i + 1] = pair(word >> 8);
        }
    }
    static constexpr auto mma = bf16::mma;
};

/* 128 | nibble, less 136. */
struct int4 : fragments<4> {
    static __device__ __forceinline__ void operand(uint32_t (&w)[8], const uint4 (&loaded)[LOADS],
                                                   int chunk, const unsigned char *) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t word = word_of(loaded[chunk / 2], chunk % 2 * 2 + i / 4);
            w[i] = minus_bf16(logic3<0xEA>(word >> (4 * (i % 4)), 0x000f000fu, 0x43004300u),
                              0x43084308u);
        }
    }
    static constexpr auto mma = bf16::mma;
};

/* A byte picks two levels, rounded to bf16, from the lane's own bank of shared memory. */
struct nf4 : fragments<4> {
    static __device__ __forceinline__ void operand(uint32_t (&w)[8], const uint4 (&loaded)[LOADS],
                                                   int chunk, const unsigned char *pairs) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t word = word_of(loaded[chunk / 2], chunk % 2 * 2 + i / 4);
            const uint32_t at = (i % 4 == 0 ? word << 7 : word >> (8 * (i % 4) - 7)) & 0x7f80u;
            w[i] = *reinterpret_cast<const uint32_t *>(pairs + at);
        }
    }
    static constexpr auto mma = bf16::mma;
};
} // namespace weight

/* Entry (pair, bank) for each bank: thread p makes pair p, then its warp spreads 32 pairs. */
static __device__ __forceinline__ void make_pairs(uint32_t *table) {
    const int p = int(threadIdx.x), lane = p % 32;
    const uint32_t mine =
        pack_bf16(__uint_as_float(nf4_level_bits(p % 16)), __uint_as_float(nf4_level_bits(p / 16)));
#pragma unroll
    for (int i = 0; i < 32; i++)
        table[(p - lane + i) * 32 + lane] = __shfl_sync(0xffffffffu, mine, i);
    __syncthreads();
}

/* ---- the product ---------------------------------------------------------------------------- */

/* sum += part scaled by rows, and part begins anew. */
template <int TILES>
static __device__ __forceinline__ void add_scaled(float (&sum)[TILES][4], float (&part)[TILES][4],
                                                  float low, float high) {
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum[n][i] += part[n][i] * (i < 2 ? low : high);
            part[n][i] = 0;
        }
}

static __device__ __forceinline__ float half_value(uint16_t bits) {
    __half h;
    memcpy(&h, &bits, sizeof h);
    return __half2float(h);
}

/* What the loop over columns does about scales: nothing (floats, and one scale per row, which the
   sum takes at the end); groups of 128, a unit, loaded as early as the unit; smaller groups, loaded
   when they are used. */
enum scales { AT_THE_END, PER_UNIT, PER_GROUP };

/* The warp's share of a tile: units warp, warp + 8, ... */
template <class W, int TILES, int LOADS_AHEAD, scales SCALES>
static __device__ __forceinline__ void stream(float (&sum)[TILES][4], const linear_args &a,
                                              int tile, const unsigned char *pairs) {
    constexpr int DEPTH = LOADS_AHEAD / W::LOADS, CHUNKS = W::UNIT / CHUNK_COLS;
    constexpr int AT_ONCE = TILES < 4 ? TILES : 4; /* tiles of x: all 8 would spill */
    constexpr int ROUND = WARPS * DEPTH; /* units from this one to the next in its place */
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int64_t row = int64_t(tile) * FRAG_ROWS + lane / 4;
    const unsigned char *w = W::begin(a, tile, lane) + warp * W::UNIT_BYTES;
    const uint16_t *scale = static_cast<const uint16_t *>(a.scales) + row * a.groups, *x[TILES];
    const int high = 8 * a.groups;
    if (SCALES == PER_UNIT) scale += warp;
#pragma unroll
    for (int n = 0; n < TILES; n++) { /* rows behind the last stand for nothing: it is read again */
        const int64_t token = min(n * TOKENS + lane / 4, a.m - 1);
        x[n] =
            static_cast<const uint16_t *>(a.x) + token * a.x_stride + lane % 4 * 8 + warp * W::UNIT;
    }
    int left = a.cols - warp * W::UNIT; /* columns from the unit at hand to the end */
    uint4 ahead[DEPTH][W::LOADS];
    uint16_t low_scale[DEPTH], high_scale[DEPTH];
    float part[TILES][4] = {};
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        const int first = WARPS * d * W::UNIT;
#pragma unroll
        for (int j = 0; j < W::LOADS; j++) /* the last unit of codes may be half a one */
            if (left > first + W::first_col(j))
                ahead[d][j] = W::load(w + WARPS * d * W::UNIT_BYTES, a, j);
        if (SCALES == PER_UNIT && left > first) {
            low_scale[d] = scale[WARPS * d];
            high_scale[d] = scale[WARPS * d + high];
        }
    }
    pdl_wait();
    const auto refill =
        [&](int d, int chunk) { /* what this chunk was the last to use */
                                const int next = (WARPS * d + ROUND) * W::UNIT;
#pragma unroll
                                for (int j = 0; j < W::LOADS; j++)
                                    if (W::last_chunk(j) == chunk && left > next + W::first_col(j))
                                        ahead[d][j] =
                                            W::load(w + (WARPS * d + ROUND) * W::UNIT_BYTES, a, j);
        };
    for (int begin = warp * W::UNIT; left > 0; begin += ROUND * W::UNIT) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int first = WARPS * d * W::UNIT, next = first + ROUND * W::UNIT;
            if (left <= first) break;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                const int col = first + c * CHUNK_COLS;
                if (W::SCALED && left <= col) break;
                uint32_t operand[8];
                W::operand(operand, ahead[d], c, pairs);
                /* The registers of floats are operands themselves: in use until the mmas. */
                if (W::SCALED) refill(d, c);
#pragma unroll
                for (int some = 0; some < TILES; some += AT_ONCE) {
                    uint4 b[AT_ONCE];
#pragma unroll
                    for (int n = 0; n < AT_ONCE; n++) b[n] = load_16(x[some + n] + col);
#pragma unroll
                    for (int n = 0; n < AT_ONCE; n++) {
                        float(&to)[4] = W::SCALED ? part[some + n] : sum[some + n];
                        W::mma(to, operand, b[n].x, b[n].y);
                        W::mma(to, operand + 4, b[n].z, b[n].w);
                    }
                }
                if (!W::SCALED) refill(d, c);
                if (SCALES == PER_GROUP) {
                    const int at = begin + col, end = at + CHUNK_COLS;
                    if (end % (1 << a.group_shift) == 0 || end == a.cols) {
                        const int group = min(at >> a.group_shift, a.groups - 1);
                        add_scaled<TILES>(sum, part, half_value(scale[group]),
                                          half_value(scale[group + high]));
                    }
                }
            }
            if (SCALES == PER_UNIT) {
                add_scaled<TILES>(sum, part, half_value(low_scale[d]), half_value(high_scale[d]));
                if (left > next) {
                    low_scale[d] = scale[WARPS * d + ROUND];
                    high_scale[d] = scale[WARPS * d + ROUND + high];
                }
            }
        }
        left -= ROUND * W::UNIT;
        w += ROUND * W::UNIT_BYTES;
        if (SCALES == PER_UNIT) scale += ROUND;
#pragma unroll
        for (int n = 0; n < TILES; n++) x[n] += ROUND * W::UNIT;
    }
    if (W::SCALED && SCALES == AT_THE_END) {
        const float *of_row = static_cast<const float *>(a.scales) + row;
        add_scaled<TILES>(sum, part, of_row[0], of_row[8]);
    }
}

template <class W, int TILES, int LOADS_AHEAD>
static __device__ __forceinline__ void stream(float (&sum)[TILES][4], const linear_args &a,
                                              int tile, const unsigned char *pairs) {
    if constexpr (W::SCALED) {
        if (a.group_shift == 7) return stream<W, TILES, LOADS_AHEAD, PER_UNIT>(sum, a, tile, pairs);
        if (a.group_shift != 0)
            return stream<W, TILES, LOADS_AHEAD, PER_GROUP>(sum, a, tile, pairs);
    }
    stream<W, TILES, LOADS_AHEAD, AT_THE_END>(sum, a, tile, pairs);
}

/* v: rows g, g + 8 of the tile, tokens 2t and the next of a tile of them. */
static __device__ __forceinline__ void finish(const linear_args &a, int tile, int first_token,
                                              int lane, const float (&v)[4]) {
    const int low = linear_column(a.out, tile * FRAG_ROWS + frag_c_row(lane, 0));
    const int high = linear_column(a.out, tile * FRAG_ROWS + frag_c_row(lane, 2));
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int token = first_token + frag_c_token(lane, i);
        if (token >= a.m) continue;
        if (a.out.swiglu) {
            if (low >= 0) put(a.out, token, low, silu(v[i]) * v[2 + i]);
            continue;
        }
        if (low >= 0) put(a.out, token, low, with_bias(a.out, low, v[i]));
        if (high >= 0) put(a.out, token, high, with_bias(a.out, high, v[2 + i]));
    }
}

template <class W, int TILES, int LOADS_AHEAD>
static __device__ __forceinline__ void linear(const linear_args &a) {
    constexpr bool TABLE = std::is_same<W, weight::nf4>::value;
    unsigned char *shared = dynamic_shared<unsigned char>();
    float4 *sums = reinterpret_cast<float4 *>(shared + (TABLE ? PAIRS_BYTES : 0));
    const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
    if constexpr (TABLE) make_pairs(reinterpret_cast<uint32_t *>(shared));
    for (int tile = int(blockIdx.x); tile < a.tiles; tile += int(gridDim.x)) {
        float sum[TILES][4] = {};
        stream<W, TILES, LOADS_AHEAD>(sum, a, tile, shared + 4 * lane);
        pdl_launch();
#pragma unroll
        for (int n = 0; n < TILES; n++)
            sums[(warp * TILES + n) * 32 + lane] =
                make_float4(sum[n][0], sum[n][1], sum[n][2], sum[n][3]);
        __syncthreads();
        if (thread < TILES * 32) {
            float v[4] = {};
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                const float4 s = sums[w * TILES * 32 + thread];
                v[0] += s.x, v[1] += s.y, v[2] += s.z, v[3] += s.w;
            }
            finish(a, tile, thread / 32 * TOKENS, lane, v);
        }
        if (tile + int(gridDim.x) < a.tiles) __syncthreads(); /* before sums are written again */
    }
}

/* ---- f32, with plain multiply-adds ------------------------------------------------------------
   A warp takes rows w and w + 8 of a tile and 8 tokens; its lanes share the columns. */

static __device__ __forceinline__ float dot(float sum, uint4 a, uint4 b) {
    sum += __uint_as_float(a.x) * __uint_as_float(b.x);
    sum += __uint_as_float(a.y) * __uint_as_float(b.y);
    sum += __uint_as_float(a.z) * __uint_as_float(b.z);
    return sum + __uint_as_float(a.w) * __uint_as_float(b.w);
}

static __device__ __forceinline__ void linear_f32(const linear_args &a) {
    constexpr int STEP = 4 * 32, AHEAD = 2;
    const int lane = int(threadIdx.x) % 32, tile = int(blockIdx.x);
    const int first = int(blockIdx.y) * TOKENS, row = tile * FRAG_ROWS + int(threadIdx.x) / 32;
    const float *low = static_cast<const float *>(a.w) + int64_t(row) * a.cols;
    const float *high = low + 8 * int64_t(a.cols), *x = static_cast<const float *>(a.x);
    float sum[2][TOKENS] = {};
    pdl_wait();
    for (int begin = 4 * lane; begin < a.cols; begin += AHEAD * STEP) {
        uint4 w[AHEAD][2];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int col = begin + i * STEP;
            w[i][0] = w[i][1] = make_uint4(0, 0, 0, 0);
            if (col >= a.cols) continue;
            w[i][0] = load_stream_16(low + col);
            w[i][1] = load_stream_16(high + col);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int col = begin + i * STEP;
            if (col >= a.cols) continue;
#pragma unroll
            for (int n = 0; n < TOKENS; n++) {
                const uint4 v = load_16(x + min(first + n, a.m - 1) * a.x_stride + col);
                sum[0][n] = dot(sum[0][n], w[i][0], v);
                sum[1][n] = dot(sum[1][n], w[i][1], v);
            }
        }
    }
    pdl_launch();
    const int column[2] = {linear_column(a.out, row), linear_column(a.out, row + 8)};
#pragma unroll
    for (int n = 0; n < TOKENS; n++) {
        float v[2] = {sum[0][n], sum[1][n]};
#pragma unroll
        for (int by = 16; by > 0; by /= 2) {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], by);
            v[1] += __shfl_xor_sync(0xffffffffu, v[1], by);
        }
        if (lane != n || first + n >= a.m) continue;
        if (a.out.swiglu) {
            if (column[0] >= 0) put(a.out, first + n, column[0], silu(v[0]) * v[1]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (column[i] >= 0) put(a.out, first + n, column[i], with_bias(a.out, column[i], v[i]));
    }
}

/* ---- kernels by the cards ---------------------------------------------------------------------
 */

#define BODY_bf16(d, ahead) linear<weight::bf16, d, ahead>(a)
#define BODY_f16(d, ahead)  linear<weight::f16, d, ahead>(a)
#define BODY_int8(d, ahead) linear<weight::int8, d, ahead>(a)
#define BODY_int4(d, ahead) linear<weight::int4, d, ahead>(a)
#define BODY_nf4(d, ahead)  linear<weight::nf4, d, ahead>(a)
#define BODY_f32(d, ahead)  linear_f32(a)
#define KERNEL(name, type, d, threads, min_blocks, regs_max, smem, stages, ...)                    \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct linear_args, a)) {                                                 \
        static_assert(threads == 32 * WARPS, "a block is eight warps");                            \
        BODY_##type(d, stages);                                                                    \
    }
LINEAR_CARDS(KERNEL)
KERNEL_LAUNCH(linear, LINEAR_CARDS)
KERNEL_LOAD(linear_own_load, linear)
