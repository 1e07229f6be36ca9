/* SPDX-License-Identifier: Apache-2.0 */
/* Around the matrix products, in workspace: rows of x that kernels cannot read as they lie, codes
   that become bf16 for products of many rows, and ends of products that came out as f32. */
#include "kernels/cuda/codes.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_out.cuh"
#include "kernels/cuda/slab.card.h"
#include "kernels/cuda/table.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

template <class Bits> static __device__ __forceinline__ void pad_row(const slab_args &a) {
    const int64_t row = blockIdx.x;
    const Bits *from = static_cast<const Bits *>(a.from) + row * a.from_stride;
    Bits *to = static_cast<Bits *>(a.to) + row * a.cols;
    for (int c = int(threadIdx.x); c < a.cols; c += THREADS)
        to[c] = c < a.from_cols ? from[c] : Bits(0);
}
static __device__ __forceinline__ void pad(const slab_args &a) {
    pdl_wait();
    if (a.type == DT_F32)
        pad_row<uint32_t>(a);
    else
        pad_row<uint16_t>(a);
    pdl_launch();
}

/* A warp's 16 x 32: a lane has rows g and g + 8, columns 8t ... 8t + 7, as it has them for mma. */
static __device__ __forceinline__ void dequantize(const slab_args &a) {
    const int lane = int(threadIdx.x) % 32;
    const int chunk = int(blockIdx.y) * WARPS + int(threadIdx.x) / 32, col = chunk * CHUNK_COLS;
    pdl_wait(); /* the slab may still be read */
    if (col >= a.cols) return;
    const int64_t row = int64_t(blockIdx.x) * FRAG_ROWS + lane / 4;
    const int bits = a.type == DT_I8 ? 8 : 4;
    const unsigned char *tile = static_cast<const unsigned char *>(a.from) +
                                int64_t(blockIdx.x) * (FRAG_ROWS * bits / 8) * a.cols;
    const int fragment = bits == 8 ? chunk : chunk / 2;
    const uint4 loaded = load_stream_16(tile + fragment * FRAG_BYTES + lane * 16);
    const uint32_t word[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
    const int group = a.group_shift ? 1 << a.group_shift : 0;
#pragma unroll
    for (int high = 0; high < 2; high++) {
        const float scale = scale_of(a.scales, row + 8 * high, col + lane % 4 * 8, a.groups, group);
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) { /* column 8t + i: where frag.cuh has it in the lane's words */
            const int in_row = 8 * high;
            uint32_t code;
            if (a.type == DT_I8) {
                const int byte = frag_int8_byte(in_row, i);
                code = word[byte / 4] >> (byte % 4 * 8) & 255;
            } else {
                const int nibble =
                    a.type == DT_I4 ? frag_int4_nibble(in_row, i) : frag_nf4_nibble(in_row, i);
                const int at = nibble / 8; /* the second chunk of a fragment is two words on */
                code = (chunk % 2 ? word[at + 2] : word[at]) >> (nibble % 8 * 4) & 15;
            }
            v[i] = code_value(a.type, code) * scale;
        }
        element::bf16::store(a.to, (row + 8 * high) * a.cols + col + lane % 4 * 8, v);
    }
    pdl_launch();
}

static __device__ __forceinline__ void finish(const slab_args &a) {
    const int row = int(blockIdx.x);
    const float *from = static_cast<const float *>(a.from) + row * a.from_stride;
    pdl_wait();
    for (int c = int(threadIdx.x); c < a.cols; c += THREADS) {
        if (a.up) { /* gates, then ups */
            if (c < a.out.cols) put(a.out, row, c, silu(from[c]) * from[c + a.up]);
            continue;
        }
        const int column = linear_column(a.out, c);
        if (column < 0) continue;
        if (!a.out.swiglu)
            put(a.out, row, column, with_bias(a.out, column, from[c]));
        else if (c % 16 < 8)
            put(a.out, row, column, silu(from[c]) * from[c + 8]);
    }
    pdl_launch();
}

#define BODY_slab_pad        pad
#define BODY_slab_dequantize dequantize
#define BODY_slab_finish     finish
#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct slab_args, a)) {                                                   \
        static_assert(threads == THREADS, "the card says what the code does");                     \
        BODY_##name(a);                                                                            \
    }
SLAB_CARDS(KERNEL)
KERNEL_TABLE(slab, SLAB_CARDS)
