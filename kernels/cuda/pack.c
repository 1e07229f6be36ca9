/* SPDX-License-Identifier: Apache-2.0 */
/* Packs 16 rows of a weight, a tile, into the order in which kernels read it. */
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/frag.cuh"

int64_t cuda_pack_tile_bytes(const struct cuda_weight *w) {
    return TILE_ROWS * w->padded_cols * dtype_bits(w->head.type) / 8;
}

static void pack_floats(const struct cuda_weight *w, const float *rows, void *out) {
    for (int64_t r = 0; r < TILE_ROWS; r++)
        for (int64_t c = 0; c < w->padded_cols; c++)
            dtype_store(out, w->head.type, r * w->padded_cols + c,
                        c < w->head.cols ? rows[r * w->padded_cols + c] : 0);
}

static void put_nibble(unsigned char *out, int64_t place, unsigned nibble) {
    out[place / 2] = (unsigned char)(out[place / 2] | nibble << (place % 2 * 4));
}

static void pack_codes(const struct cuda_weight *w, const int8_t *rows, unsigned char *out) {
    const int64_t cols = w->padded_cols;
    memset(out, 0, (size_t)cuda_pack_tile_bytes(w));
    for (int64_t r = 0; r < TILE_ROWS; r++) {
        for (int64_t c = 0; c < cols; c++) {
            const bool padding = c >= w->head.cols;
            const int code = padding ? 0 : rows[r * cols + c];
            if (w->head.type == DT_I8)
                out[int8_place(r, c, cols)] = (unsigned char)code;
            else if (w->head.type == DT_I4)
                put_nibble(out, int4_place(r, c, cols), (unsigned)(code + INT4_BIAS));
            else
                put_nibble(out, nf4_place(r, c, cols), padding ? NF4_ZERO : (unsigned)code);
        }
    }
}

void cuda_pack_tile(const struct cuda_weight *w, const void *rows16, void *out) {
    if (w->head.type == DT_F32 || w->head.type == DT_F16 || w->head.type == DT_BF16)
        pack_floats(w, rows16, out);
    else
        pack_codes(w, rows16, out);
}
