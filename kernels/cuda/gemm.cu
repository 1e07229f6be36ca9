/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T for many rows: tiles of 128 x 128 by four warps of 64 x 64, operands four stages ahead
   in shared memory. */
#include "kernels/cuda/frag.cuh"
#include "kernels/cuda/gemm.card.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_out.cuh"
#include "kernels/cuda/table.cuh"

enum {
    THREADS = 128,
    STAGES = 4,
    DEPTH = 32,                      /* columns of a stage */
    PIECES = DEPTH / 8,              /* of 16 bytes, of a row */
    HALF_STAGE = GEMM_TILE * PIECES, /* pieces of x's tile, then as many of w's */
    ACROSS = 16 /* tiles of m that are done before the next of n: see place() */
};

/* Blocks that run at once shall share rows of x and of w in the L2: they go through bands of 16
   tiles of m, all m of a band before the next n. */
FRAG_MAP void place(int block, int m_tiles, int n_tiles, int &m, int &n) {
    const int band = block / (ACROSS * n_tiles), first = band * ACROSS;
    const int height = m_tiles - first < ACROSS ? m_tiles - first : ACROSS;
    const int within = block - band * ACROSS * n_tiles;
    m = first + within % height;
    n = within / height;
}
static_assert(
    [] {
        for (int m_tiles = 1; m_tiles < 40; m_tiles += 6)
            for (int n_tiles = 1; n_tiles < 9; n_tiles += 2) {
                bool seen[40 * 9] = {};
                for (int i = 0; i < m_tiles * n_tiles; i++) {
                    int m = 0, n = 0;
                    place(i, m_tiles, n_tiles, m, n);
                    if (m < 0 || m >= m_tiles || n < 0 || n >= n_tiles || seen[m * 9 + n])
                        return false;
                    seen[m * 9 + n] = true;
                }
            }
        return true;
    }(),
    "each tile has one block");

namespace type {
struct bf16 {
    static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1) {
        mma_bf16(c, a[0], a[1], a[2], a[3], b0, b1);
    }
};
struct f16 {
    static __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1) {
        mma_f16(c, a[0], a[1], a[2], a[3], b0, b1);
    }
};
} // namespace type

/* A thread brings the pieces (row, piece) = (thread / 4 + 32 i, thread % 4) of both tiles. Rows
   behind the last stand for nothing: the last is read in their place. */
struct source {
    const uint16_t *tile; /* first row, the thread's piece */
    uint32_t row[4];      /* from there, elements */
};
static __device__ __forceinline__ source rows_of(const void *data, int64_t stride, int first,
                                                 int rows) {
    const int thread = int(threadIdx.x);
    source s = {static_cast<const uint16_t *>(data) + first * stride + thread % PIECES * 8, {}};
#pragma unroll
    for (int i = 0; i < 4; i++)
        s.row[i] = uint32_t(min(thread / PIECES + 32 * i, rows - 1 - first)) * uint32_t(stride);
    return s;
}
static __device__ __forceinline__ void fetch(uint4 *to, const source &s, int col) {
    const int thread = int(threadIdx.x);
#pragma unroll
    for (int i = 0; i < 4; i++)
        copy_async_16(to + gemm_piece(thread / PIECES + 32 * i, thread % PIECES),
                      s.tile + s.row[i] + col, true);
}

/* One stage: the warp's 64 x 64 of the tile. */
template <class T>
static __device__ __forceinline__ void multiply(float (&sum)[4][8][4], const uint4 *x,
                                                const uint4 *w, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) { /* 16 columns each */
        uint32_t a[4][4], b[4][4];
        /* a0, a1: rows 0-7, 8-15; a2, a3: the same of the second piece. */
#pragma unroll
        for (int i = 0; i < 4; i++)
            ldmatrix_x4(a[i], x + gemm_piece(16 * i + lane % 16, 2 * half + lane / 16));
            /* Two tiles of 8 rows of w: b0 and b1 of the one, then of the other. */
#pragma unroll
        for (int j = 0; j < 4; j++)
            ldmatrix_x4(b[j],
                        w + gemm_piece(16 * j + lane / 16 * 8 + lane % 8, 2 * half + lane / 8 % 2));
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                T::mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

/* The tile of sums in shared memory, two columns together: where pair p of row r lies, so that the
   8 rows of an accumulator's pairs are in different banks, and so are gates, of which every other 4
   pairs of a row are. */
FRAG_MAP int pair_of_sums(int r, int p) {
    return r * (GEMM_TILE / 2) + (p ^ (r % 8 * 4) ^ (p / 16 % 2 * 4));
}

template <int N>
static __device__ __forceinline__ void keep(float2 *sums, const float (&sum)[4][N][4], int row,
                                            int pair, int lane) {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                sums[pair_of_sums(row + 16 * i + frag_c_row(lane, 2 * half),
                                  pair + 4 * j + lane % 4)] =
                    make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
}

/* Two neighbours of a row of y; data rows `row_of_w` (even) and the next. */
static __device__ __forceinline__ void finish(const linear_out &out, int m, int row_of_w,
                                              float2 v) {
    const int low = linear_column(out, row_of_w), high = linear_column(out, row_of_w + 1);
    if (low < 0) return;
    v.x = with_bias(out, low, v.x);
    if (high >= 0) v.y = with_bias(out, high, v.y);
    if (out.pairs && high >= 0) return put_pair(out, m, low, v.x, v.y);
    put(out, m, low, v.x);
    if (high >= 0) put(out, m, high, v.y);
}

/* From shared memory to y, a row at a time. With SwiGLU 8 columns are gates, the next 8 their ups.
 */
static __device__ __forceinline__ void finish_tile(const gemm_args &a, const float2 *sums, int m,
                                                   int n) {
    const int width = a.out.swiglu ? GEMM_TILE / 4 : GEMM_TILE / 2; /* pairs that a row gives */
#pragma unroll 1
    for (int i = int(threadIdx.x); i < GEMM_TILE * width; i += THREADS) {
        const int row = i / width, in_row = i % width;
        if (m + row >= a.m) return; /* nor is any later row of this thread there */
        const int pair = a.out.swiglu ? in_row / 4 * 8 + in_row % 4 : in_row;
        float2 v = sums[pair_of_sums(row, pair)];
        if (a.out.swiglu) {
            const float2 up = sums[pair_of_sums(row, pair + 4)];
            v = make_float2(silu(v.x) * up.x, silu(v.y) * up.y);
        }
        finish(a.out, m + row, a.first_row + n + 2 * pair, v);
    }
}

template <class T> static __device__ __forceinline__ void gemm(const gemm_args &a) {
    uint4 *shared = dynamic_shared<uint4>();
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    int m, n;
    place(int(blockIdx.x), a.m_tiles, a.n_tiles, m, n);
    m *= GEMM_TILE, n *= GEMM_TILE;
    const source x = rows_of(a.x, a.x_stride, m, a.m), w = rows_of(a.w, a.cols, n, a.rows);
    const int stages = a.cols / DEPTH;
    float sum[4][8][4] = {};
    pdl_wait();
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < stages) {
            fetch(shared + 2 * s * HALF_STAGE, x, s * DEPTH);
            fetch(shared + (2 * s + 1) * HALF_STAGE, w, s * DEPTH);
        }
        copy_async_commit();
    }
    for (int s = 0; s < stages; s++) {
        copy_async_wait<STAGES - 2>();
        __syncthreads(); /* stage s is there for all, and stage s - 1 is free again */
        const int next = s + STAGES - 1;
        if (next < stages) {
            uint4 *to = shared + 2 * (next % STAGES) * HALF_STAGE;
            fetch(to, x, next * DEPTH);
            fetch(to + HALF_STAGE, w, next * DEPTH);
        }
        copy_async_commit();
        const uint4 *stage = shared + 2 * (s % STAGES) * HALF_STAGE;
        multiply<T>(sum, stage + warp / 2 * 64 * PIECES,
                    stage + HALF_STAGE + warp % 2 * 64 * PIECES, lane);
    }
    pdl_launch();
    __syncthreads();
    float2 *sums = reinterpret_cast<float2 *>(shared);
    keep(sums, sum, warp / 2 * 64, warp % 2 * 32, lane);
    __syncthreads();
    finish_tile(a, sums, m, n);
}

#define KERNEL(name, element, d, threads, min_blocks, regs_max, smem, stages, ...)                 \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct gemm_args, a)) {                                                   \
        static_assert(threads == THREADS && stages == STAGES && d == GEMM_TILE &&                  \
                          smem == STAGES * 2 * HALF_STAGE * 16,                                    \
                      "the card says what the code does");                                         \
        gemm<type::element>(a);                                                                    \
    }
GEMM_CARDS(KERNEL)
KERNEL_TABLE(gemm, GEMM_CARDS)
