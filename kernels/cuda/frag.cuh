/* SPDX-License-Identifier: Apache-2.0 */
/* Where each code of a quantized weight lies, and which columns a register of mma.sync holds: maps
   for host and device, read by packing (C), kernels and tests, and proven where they stand.

   A tile is 16 rows. mma.sync m16n8k16 takes the weight as operand A and the tokens as B. Its two
   operands may number k as they like, as long as both do it alike; so lane (g, t) = (lane / 4,
   lane % 4) takes columns 8t ... 8t + 7 of a chunk of 32, which are 16 bytes of a row-major row of
   floats, and spends them on two mmas: in mma s, register i of A is row g + 8 (i & 1), columns
   8t + 4s + 2 (i >> 1) and the next; B is token g, the same columns.

   Quantized codes lie so that one 16-byte load gives a lane all its codes of a fragment of 512
   bytes: 16 x 32 of int8, 16 x 64 (two chunks) of int4 and NF4; fragments of a tile in order of
   columns. Within a word: int8  bytes 0, 2: a pair of row g; bytes 1, 3: of row g + 8 int4  nibbles
   e, e + 4 (shift by 4e and mask): the pair of register e nf4   byte i: the pair of register i, so
   that it indexes a table of pairs */
#ifndef KERNELS_CUDA_FRAG_CUH
#define KERNELS_CUDA_FRAG_CUH
#include <stdint.h>

#ifdef __CUDACC__
#define FRAG_MAP constexpr __host__ __device__
#elif defined(__cplusplus)
#define FRAG_MAP constexpr
#else
#define FRAG_MAP static inline
#endif

enum {
    FRAG_BYTES = 512,
    FRAG_ROWS = 16,
    CHUNK_COLS = 32, /* columns that two mmas take */
    INT8_COLS = 32,  /* of a fragment */
    INT4_COLS = 64
};

/* ---- registers of mma.sync ---- */

FRAG_MAP int frag_a_row(int lane, int i) { return lane / 4 + 8 * (i & 1); }
FRAG_MAP int frag_a_col(int lane, int s, int i) { return 8 * (lane % 4) + 4 * s + 2 * (i >> 1); }
FRAG_MAP int frag_b_col(int lane, int s, int i) { return 8 * (lane % 4) + 4 * s + 2 * i; }
/* C: c[i] is row g + 8 (i >> 1) of the tile, token 2t + (i & 1). */
FRAG_MAP int frag_c_row(int lane, int i) { return lane / 4 + 8 * (i >> 1); }
FRAG_MAP int frag_c_token(int lane, int i) { return 2 * (lane % 4) + (i & 1); }

/* ---- codes in a fragment ---- */

FRAG_MAP int frag_lane(int row, int col) { return (row & 7) * 4 + (col % CHUNK_COLS) / 8; }
FRAG_MAP int frag_int8_byte(int row, int col) {
    return frag_lane(row, col) * 16 + (col % 8) / 2 * 4 + (row >> 3) + 2 * (col & 1);
}
/* Nibbles count from the low half of a lane's first byte. */
FRAG_MAP int frag_int4_nibble(int row, int col) {
    return frag_lane(row, col) * 32 + (col / CHUNK_COLS * 2 + (col % 8) / 4) * 8 +
           (col % 4) / 2 * 2 + (row >> 3) + 4 * (col & 1);
}
FRAG_MAP int frag_nf4_nibble(int row, int col) {
    return frag_lane(row, col) * 32 + (col / CHUNK_COLS * 2 + (col % 8) / 4) * 8 +
           ((col % 4) / 2 * 2 + (row >> 3)) * 2 + (col & 1);
}

/* ---- codes in a whole weight, in bytes or nibbles from its beginning ---- */

FRAG_MAP int64_t int8_place(int64_t row, int64_t col, int64_t padded_cols) {
    return row / FRAG_ROWS * FRAG_ROWS * padded_cols + col / INT8_COLS * FRAG_BYTES +
           frag_int8_byte((int)(row % FRAG_ROWS), (int)(col % INT8_COLS));
}
FRAG_MAP int64_t int4_place(int64_t row, int64_t col, int64_t padded_cols) {
    return row / FRAG_ROWS * FRAG_ROWS * padded_cols + col / INT4_COLS * 2 * FRAG_BYTES +
           frag_int4_nibble((int)(row % FRAG_ROWS), (int)(col % INT4_COLS));
}
FRAG_MAP int64_t nf4_place(int64_t row, int64_t col, int64_t padded_cols) {
    return row / FRAG_ROWS * FRAG_ROWS * padded_cols + col / INT4_COLS * 2 * FRAG_BYTES +
           frag_nf4_nibble((int)(row % FRAG_ROWS), (int)(col % INT4_COLS));
}

/* What is stored: int8 as it is; int4 plus 8, so that 128 + it is one `or` into bf16's 128.0. */
enum { INT4_BIAS = 8, NF4_ZERO = 7 /* the code whose level is 0 */ };

/* The bits of NF4's levels (f32), as kernels/dtype.c has them; selections, so that no table is
 * read. */
FRAG_MAP uint32_t nf4_level_bits(int code) {
    return code & 8 ? (code & 4 ? (code & 2 ? (code & 1 ? 0x3f800000u : 0x3f3913b1u)
                                            : (code & 1 ? 0x3f1007aau : 0x3ee1a4b7u))
                                : (code & 2 ? (code & 1 ? 0x3ead0338u : 0x3e7c04dcu)
                                            : (code & 1 ? 0x3e24cae1u : 0x3da2fb03u)))
                    : (code & 4 ? (code & 2 ? (code & 1 ? 0u : 0xbdba786bu)
                                            : (code & 1 ? 0xbe3d353fu : 0xbe91a24cu))
                                : (code & 2 ? (code & 1 ? 0xbeca32a0u : 0xbf066b30u)
                                            : (code & 1 ? 0xbf3239b3u : 0xbf800000u)));
}

/* ---- a row of 32 columns in the shared memory of gemm: 16-byte pieces, 4 a row ---- */

/* Where piece p of row r lies: any 8 rows in turn give ldmatrix 8 different groups of banks. */
FRAG_MAP int gemm_piece(int r, int p) { return 4 * r + (p ^ (r / 2 & 3)); }

#ifdef __cplusplus
namespace frag_proof {
struct seen {
    bool at[1024] = {};
};
template <class Place> constexpr bool bijection(Place place, int cols) {
    seen s;
    for (int row = 0; row < FRAG_ROWS; row++)
        for (int col = 0; col < cols; col++) {
            const int p = place(row, col);
            if (p < 0 || p >= FRAG_ROWS * cols || s.at[p]) return false;
            s.at[p] = true;
        }
    return true;
}
/* A's registers cover rows x columns of a chunk once, and B's take the same columns of k. */
constexpr bool registers() {
    seen s;
    for (int lane = 0; lane < 32; lane++)
        for (int mma = 0; mma < 2; mma++)
            for (int i = 0; i < 4; i++)
                for (int half = 0; half < 2; half++) {
                    const int p =
                        frag_a_row(lane, i) * CHUNK_COLS + frag_a_col(lane, mma, i) + half;
                    if (p < 0 || p >= 512 || s.at[p]) return false;
                    if (frag_b_col(lane, mma, i >> 1) != frag_a_col(lane, mma, i)) return false;
                    s.at[p] = true;
                }
    return true;
}
/* A code lies with the lane, and in the word and shift, from which the kernel makes register i. */
constexpr bool decodable() {
    for (int lane = 0; lane < 32; lane++)
        for (int mma = 0; mma < 2; mma++)
            for (int i = 0; i < 4; i++)
                for (int half = 0; half < 2; half++) {
                    const int row = frag_a_row(lane, i), col = frag_a_col(lane, mma, i) + half;
                    const int word8 = 2 * mma + (i >> 1);
                    if (frag_int8_byte(row, col) != lane * 16 + 4 * word8 + (i & 1) + 2 * half)
                        return false;
                    for (int chunk = 0; chunk < 2; chunk++) {
                        const int word = lane * 32 + (2 * chunk + mma) * 8;
                        const int c = col + CHUNK_COLS * chunk;
                        if (frag_int4_nibble(row, c) != word + i + 4 * half) return false;
                        if (frag_nf4_nibble(row, c) != word + 2 * i + half) return false;
                    }
                }
    return true;
}
/* 128 bytes are the 8 groups of banks that one phase of ldmatrix or of a 16-byte store may use. */
constexpr bool conflict_free() {
    for (int p = 0; p < 4; p++)
        for (int first = 0; first < 128; first += 8) {
            int groups = 0;
            for (int r = first; r < first + 8; r++) groups |= 1 << gemm_piece(r, p) % 8;
            if (groups != 255) return false;
        }
    for (int r = 0; r < 128; r += 2) { /* 8 lanes store the pieces of two rows */
        int groups = 0;
        for (int i = 0; i < 8; i++) groups |= 1 << gemm_piece(r + i / 4, i % 4) % 8;
        if (groups != 255) return false;
    }
    return true;
}
static_assert(bijection(frag_int8_byte, INT8_COLS), "int8: each code has a byte of its own");
static_assert(bijection(frag_int4_nibble, INT4_COLS), "int4: each code has a nibble of its own");
static_assert(bijection(frag_nf4_nibble, INT4_COLS), "NF4: each code has a nibble of its own");
static_assert(registers(), "A covers the chunk once, B has the same columns");
static_assert(decodable(), "codes lie where the kernels look for them");
static_assert(conflict_free(), "gemm's shared memory serves 8 rows at a time");
} // namespace frag_proof
#endif

#endif
