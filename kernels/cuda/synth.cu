/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic weights, made where they lie: values by base/synthetic.h, scales and codes by
   kernels/quant_code.h, places by frag.cuh, as packing on the host has them. A block works on 16
   rows and 128 columns at a time, a thread on eight columns of one of them. */
#include "kernels/cuda/synth.h"

#include "base/synthetic.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/frag.cuh"
#include "kernels/cuda/synth.card.h"
#include "kernels/cuda/table.cuh"
#include "kernels/quant_code.h"

enum { THREADS = 256, STRIP = 128, PIECE = 8, LANES = STRIP / PIECE };
static_assert(THREADS == FRAG_ROWS * LANES, "a block is a tile's strip");
static_assert(int(SYNTH_BLOCK) == int(STRIP) && STRIP % INT4_COLS == 0, "strips are whole blocks");

/* ---- values ---- */

struct source { /* of a row of data */
    uint64_t key;
    float unit;
    bool tail;
    int part; /* -1: padding */
};

static __device__ __forceinline__ source source_of(const synth_args &a, int at) {
    int row = a.interleaved ? at / 16 * 8 + at % 8 : at;
    source s = {0, 0, false, -1};
#pragma unroll
    for (int i = 0; i < SYNTH_PARTS; i++) {
        const bool here = !a.interleaved || at / 8 % 2 == i;
        if (here && row >= 0 && row < a.part[i].rows)
            s = {synth_row_key(a.part[i].key, row), a.part[i].unit, a.part[i].tail != 0, i};
        if (!a.interleaved) row -= a.part[i].rows;
    }
    return s;
}

/* Columns col ... col + 7, col a multiple of 8; 0 where there is padding. */
static __device__ __forceinline__ void make(const synth_args &a, const source &s, int col,
                                            float (&v)[PIECE]) {
#pragma unroll
    for (int i = 0; i < PIECE; i += 2) {
        const synth_pair pair = synth_pair_at(s.key, (col + i) / 2);
        v[i] = float(pair.even) * s.unit;
        v[i + 1] = float(pair.odd) * s.unit;
    }
    int32_t at = 0, outlier = s.tail ? synth_outlier(s.key, col / SYNTH_BLOCK, &at) : 0;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        if (outlier != 0 && at == col % SYNTH_BLOCK + i) v[i] = float(outlier) * s.unit;
        if (s.part < 0 || col + i >= a.real_cols) v[i] = 0;
    }
}

static __device__ __forceinline__ float largest(const float (&v)[PIECE]) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < PIECE; i++) most = fmaxf(most, fabsf(v[i]));
    return most;
}

/* Over `lanes` neighbours, a power of two. */
static __device__ __forceinline__ float largest_of(float most, int lanes) {
    for (int by = lanes / 2; by > 0; by /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, by));
    return most;
}

static __device__ __forceinline__ int row_here() {
    return int(blockIdx.x) * FRAG_ROWS + int(threadIdx.x) / LANES;
}
static __device__ __forceinline__ int piece_here() { return int(threadIdx.x) % LANES * PIECE; }

/* ---- floats ---- */

static __device__ __forceinline__ void floats(const synth_args &a) {
    const int row = row_here(), col = int(blockIdx.y) * STRIP + piece_here();
    if (col >= a.cols) return;
    float v[PIECE];
    make(a, source_of(a, row), col, v);
    element::any::store(a.data, a.type, int64_t(row) * a.cols + col, v);
}

/* ---- scales of rows and parts ---- */

static __device__ __forceinline__ void maxima(const synth_args &a) {
    const int row = row_here();
    const source s = source_of(a, row);
    float most = 0;
    for (int col = piece_here(); col < a.cols; col += STRIP) {
        float v[PIECE];
        make(a, s, col, v);
        most = fmaxf(most, largest(v));
    }
    most = largest_of(most, LANES);
    if (piece_here() == 0 && s.part >= 0)
        static_cast<float *>(a.scales)[row] =
            a.whole ? most : quant_scale(most, quant_top(dtype(a.type)), false);
}

/* A block has a part to itself, and touches the rows of no other. */
static __device__ __forceinline__ void spread(const synth_args &a) {
    const int part = int(blockIdx.x), thread = int(threadIdx.x);
    float *scales = static_cast<float *>(a.scales), *of_warp = dynamic_shared<float>();
    float most = 0;
    for (int row = thread; row < a.rows; row += THREADS)
        if (source_of(a, row).part == part) most = fmaxf(most, scales[row]);
    most = largest_of(most, 32);
    if (thread % 32 == 0) of_warp[thread / 32] = most;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) most = fmaxf(most, of_warp[w]);
    const float scale = quant_scale(most, quant_top(dtype(a.type)), false);
    for (int row = thread; row < a.rows; row += THREADS)
        if (source_of(a, row).part == part) scales[row] = scale;
}

/* ---- codes ---- */

/* The piece's scale, which a group's first lane keeps. */
static __device__ __forceinline__ float scale_here(const synth_args &a, const source &s, int row,
                                                   int col, const float (&v)[PIECE]) {
    if (a.group == 0) return s.part < 0 ? 1 : static_cast<const float *>(a.scales)[row];
    const float most = largest_of(largest(v), a.group / PIECE);
    const float scale = quant_scale(most, quant_top(dtype(a.type)), true);
    if (s.part >= 0 && col < a.real_cols && col % a.group == 0)
        static_cast<uint16_t *>(a.scales)[int64_t(row) * a.groups + col / a.group] =
            f16_from_f32(scale);
    return scale;
}

/* As stored: place in the strip, in bytes or nibbles, and bits. */
static __device__ __forceinline__ void put_code(unsigned char *strip, int type, int row, int col,
                                                float over_scale) {
    if (type == DT_I8)
        strip[int8_place(row, col, STRIP)] =
            static_cast<unsigned char>(quant_int(over_scale, quant_top(DT_I8)));
    else if (type == DT_I4)
        strip[int4_place(row, col, STRIP)] =
            static_cast<unsigned char>(quant_int(over_scale, quant_top(DT_I4)) + INT4_BIAS);
    else
        strip[nf4_place(row, col, STRIP)] = static_cast<unsigned char>(quant_nf4(over_scale));
}

/* Four stored bytes from the strip, where nibbles have a byte each. */
static __device__ __forceinline__ uint32_t word_of(const unsigned char *strip, int bits, int word) {
    uint32_t w = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (bits == 4) w |= uint32_t(strip[8 * word + i]) << (4 * i);
        if (bits == 8 && i < 4) w |= uint32_t(strip[4 * word + i]) << (8 * i);
    }
    return w;
}

static __device__ __forceinline__ void codes(const synth_args &a) {
    unsigned char *strip = dynamic_shared<unsigned char>();
    const int row = row_here(), first = int(blockIdx.y) * STRIP, col = first + piece_here();
    const source s = source_of(a, row);
    float v[PIECE];
    make(a, s, col, v);
    const float scale = scale_here(a, s, row, col, v);
#pragma unroll
    for (int i = 0; i < PIECE; i++)
        put_code(strip, a.type, row % FRAG_ROWS, piece_here() + i, __fdiv_rn(v[i], scale));
    __syncthreads();
    const int bits = a.type == DT_I8 ? 8 : 4, at = int(threadIdx.x) * 16;
    const int bytes = FRAG_ROWS * min(int(STRIP), a.cols - first) * bits / 8;
    if (at >= bytes) return;
    unsigned char *to = static_cast<unsigned char *>(a.data) +
                        (int64_t(blockIdx.x) * a.cols + first) * (FRAG_ROWS * bits / 8);
    store_16(to + at,
             make_uint4(word_of(strip, bits, at / 4), word_of(strip, bits, at / 4 + 1),
                        word_of(strip, bits, at / 4 + 2), word_of(strip, bits, at / 4 + 3)));
}

#define BODY_synth_floats floats
#define BODY_synth_maxima maxima
#define BODY_synth_spread spread
#define BODY_synth_codes  codes
#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct synth_args, a)) {                                                  \
        static_assert(threads == THREADS, "the card says what the code does");                     \
        pdl_wait(); /* the memory may be another kernel's until then */                            \
        BODY_##name(a);                                                                            \
    }
SYNTH_CARDS(KERNEL)
KERNEL_TABLE(synth, SYNTH_CARDS)
