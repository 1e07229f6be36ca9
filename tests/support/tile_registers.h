/* SPDX-License-Identifier: Apache-2.0 */
/* The tile registers of AMX in memory, in place of kernels/cpu/amx/tiles.inc: after Intel's
   Software Developer's Manual, volume 2 (LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDPBF16PS,
   TDPBSSD). What the manual makes a fault ends the program. */
#ifndef TESTS_SUPPORT_TILE_REGISTERS_H
#define TESTS_SUPPORT_TILE_REGISTERS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dtype.h"

struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_config) == 64, "as LDTILECFG reads it");

static _Thread_local struct {
    struct tile_config config;
    unsigned char data[8][16][64];
} tiles;

static inline void tiles_fault(bool is, const char *what) {
    if (!is) return;
    fprintf(stderr, "tile registers: %s\n", what);
    abort();
}

static inline void tiles_configure(const struct tile_config *c) {
    memset(&tiles, 0, sizeof tiles);
    tiles_fault(c->palette != 1 || c->start_row != 0, "only palette 1 from row 0 on is known here");
    for (int i = 0; i < 14; i++) tiles_fault(c->reserved[i] != 0, "a reserved byte is set");
    for (int i = 0; i < 16; i++) {
        tiles_fault(c->row_bytes[i] > (i < 8 ? 64 : 0), "rows are too wide");
        tiles_fault(c->rows[i] > (i < 8 ? 16 : 0), "too many rows");
        tiles_fault((c->rows[i] == 0) != (c->row_bytes[i] == 0) && c->row_bytes[i] == 0,
                    "rows without bytes");
    }
    tiles.config = *c;
}

static inline void tiles_release(void) { memset(&tiles, 0, sizeof tiles); }

static inline int tiles_rows(int t) {
    tiles_fault(tiles.config.palette == 0, "used before they are configured");
    tiles_fault(tiles.config.rows[t] == 0 || tiles.config.row_bytes[t] == 0, "a tile of no size");
    return tiles.config.rows[t];
}

static inline void tile_load(int t, const void *from, int64_t stride) {
    const int rows = tiles_rows(t);
    memset(tiles.data[t], 0, sizeof tiles.data[t]);
    for (int r = 0; r < rows; r++)
        memcpy(tiles.data[t][r], (const char *)from + r * stride, tiles.config.row_bytes[t]);
}

static inline void tile_store(int t, void *to, int64_t stride) {
    const int rows = tiles_rows(t);
    for (int r = 0; r < rows; r++)
        memcpy((char *)to + r * stride, tiles.data[t][r], tiles.config.row_bytes[t]);
}

static inline void touch_line(const char *line) { (void)*(const volatile char *)line; }

static inline void tile_zero(int t) {
    tiles_rows(t);
    memset(tiles.data[t], 0, sizeof tiles.data[t]);
}

/* What c, a and b must be to each other. */
static inline void tiles_fit(int c, int a, int b) {
    const struct tile_config *k = &tiles.config;
    tiles_fault(c == a || c == b || a == b, "one register twice");
    tiles_fault(tiles_rows(c) != tiles_rows(a), "c and a have other rows");
    tiles_fault(k->row_bytes[c] != k->row_bytes[b], "c and b have other columns");
    tiles_fault(k->row_bytes[a] / 4 != tiles_rows(b), "a has other columns than b has rows");
    tiles_fault(k->row_bytes[a] % 4 != 0 || k->row_bytes[b] % 4 != 0, "no whole words");
}

static inline float tiles_f32(const void *from) {
    float v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* Subnormal numbers are zero, with their sign. */
static inline float tiles_flush(float v) {
    return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v;
}

static inline float tiles_half(const unsigned char *pair, int half) {
    uint16_t bits;
    memcpy(&bits, pair + 2 * half, sizeof bits);
    return tiles_flush(bf16_to_f32(bits));
}

/* Even and odd columns in sums of their own, by fused products in order; the two sums are added,
   and that to c. */
static inline void tile_multiply_bf16(int c, int a, int b) {
    tiles_fit(c, a, b);
    for (int m = 0; m < tiles.config.rows[c]; m++)
        for (int n = 0; n < tiles.config.row_bytes[c] / 4; n++) {
            float even = 0, odd = 0;
            for (int k = 0; k < tiles.config.row_bytes[a] / 4; k++) {
                const unsigned char *x = tiles.data[a][m] + 4 * k, *w = tiles.data[b][k] + 4 * n;
                even = tiles_flush(fmaf(tiles_half(x, 0), tiles_half(w, 0), even));
                odd = tiles_flush(fmaf(tiles_half(x, 1), tiles_half(w, 1), odd));
            }
            unsigned char *to = tiles.data[c][m] + 4 * n;
            const float sum = tiles_flush(tiles_flush(even + odd) + tiles_flush(tiles_f32(to)));
            memcpy(to, &sum, sizeof sum);
        }
}

/* Products of four columns are added to c, whose 32 bits wrap. */
static inline void tile_multiply_i8(int c, int a, int b) {
    tiles_fit(c, a, b);
    for (int m = 0; m < tiles.config.rows[c]; m++)
        for (int n = 0; n < tiles.config.row_bytes[c] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, tiles.data[c][m] + 4 * n, sizeof sum);
            for (int k = 0; k < tiles.config.row_bytes[a]; k++)
                sum += (uint32_t)((int8_t)tiles.data[a][m][k] *
                                  (int8_t)tiles.data[b][k / 4][4 * n + k % 4]);
            memcpy(tiles.data[c][m] + 4 * n, &sum, sizeof sum);
        }
}

#endif
