/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes in AMX's tiles: a panel of int8 is a row of B tiles as it lies there, four
   columns of 16 rows of weights a line; both sides have signs. Of int4 those of another set. */
#include "kernels/cpu/code_kernels.h"
#include "kernels/cpu/kernels.h"

#define MULTIPLY tile_multiply_i8
#include "kernels/cpu/amx/blocks.inc"

/* The set that does the rest, and that widens scales. */
#ifndef OTHER_CODES
#define OTHER_CODES  cpu_codes_vnni
#define OTHER_FLOATS cpu_kernels_avx512
#endif

enum { CODE_ROWS = 2 * SIDE, SUM_COLS = MOST_PANELS * SIDE };

static void multiply_words(const struct code_tile *t, int64_t at, int64_t words, void *c,
                           int64_t ldc) {
    const struct job job = {.c = c,
                            .x = t->x + at * WORD_INT8,
                            .panels = t->panels + at * LINE,
                            .ldc = ldc * (int64_t)sizeof(int32_t),
                            .ldx = t->ldx,
                            .step = t->step,
                            .x_bytes = words * WORD_INT8,
                            .lines = words,
                            .m = t->m,
                            .n_panels = t->n_panels};
    multiply_tiles(&job);
}

/* c = [c +] sum, or c += sum * scale. */
static void join_sums(const struct code_tile *t, int32_t sums[CODE_ROWS][SUM_COLS],
                      const float *scales) {
    for (int r = 0; r < t->m; r++)
        for (int i = 0; i < t->n_panels * SIDE; i++) {
            if (scales == NULL)
                ((int32_t *)t->c)[r * t->ldc + i] += sums[r][i];
            else
                ((float *)t->c)[r * t->ldc + i] += (float)sums[r][i] * scales[i];
        }
}

static void tile_i8(const struct code_tile *t) {
    int32_t sums[CODE_ROWS][SUM_COLS];
    if (t->scales == NULL && !t->add) {
        multiply_words(t, 0, t->words, t->c, t->ldc);
        return;
    }
    if (t->scales == NULL) {
        multiply_words(t, 0, t->words, sums, SUM_COLS);
        join_sums(t, sums, NULL);
        return;
    }
    for (int r = 0; r < t->m && !t->add; r++)
        memset((float *)t->c + r * t->ldc, 0, (size_t)t->n_panels * LINE);
    for (int64_t at = 0, group = 0; at < t->words; at += t->group, group++) {
        const int64_t left = t->words - at;
        float scales[SUM_COLS];
        for (int p = 0; p < t->n_panels; p++)
            OTHER_FLOATS.widen[DT_F16](scales + p * SIDE,
                                       t->scales + p * t->scales_step + group * SIDE, SIDE);
        multiply_words(t, at, left < t->group ? left : t->group, sums, SUM_COLS);
        join_sums(t, sums, scales);
    }
}

static void tile_i4(const struct code_tile *t) {
    for (int r = 0, n; r < t->m; r += n) {
        struct code_tile some = *t;
        n = t->m - r < OTHER_CODES.rows ? t->m - r : OTHER_CODES.rows;
        some.m = n;
        some.x += r * t->ldx;
        some.c = (int32_t *)t->c + r * t->ldc;
        if (t->start != NULL) some.start += r * t->start_step;
        OTHER_CODES.tile[DT_I4](&some);
    }
}

static void arrange_i8(void *words, const int8_t *codes, int64_t n) {
    memcpy(words, codes, (size_t)n);
    memset((char *)words + n, 0, (size_t)(-n & (WORD_INT8 - 1)));
}

static void arrange_i4(void *words, const int8_t *codes, int64_t n) {
    OTHER_CODES.arrange[DT_I4](words, codes, n);
}

static void finish(void *c, const float *by, float scale, int64_t n) {
    OTHER_CODES.finish(c, by, scale, n);
}

static uint32_t peak(int64_t flops) {
    enum { VALUES = SIDE * SIDE, PRODUCT = 2 * VALUES * LINE };
    int32_t c[4 * VALUES];
    int8_t x[TILE_BYTES], panel[TILE_BYTES];
    uint32_t sum = 0;
    for (int i = 0; i < TILE_BYTES; i++) {
        x[i] = (int8_t)(i % 7 - 3);
        panel[i] = (int8_t)(i % 11 - 5);
    }
    for (int i = 0; i < 4 * VALUES; i++) c[i] = i;
    multiply_often((char *)c, x, panel, flops / PRODUCT);
    for (int i = 0; i < 4 * VALUES; i++) sum ^= (uint32_t)c[i];
    return sum;
}

const struct cpu_code_kernels cpu_codes_amx = {
    .name = "amx",
    .rows = CODE_ROWS,
    .bias = {[DT_I4] = 8},
    .word_bytes = {[DT_I8] = WORD_INT8, [DT_I4] = WORD_INT4},
    .arrange = {[DT_I8] = arrange_i8, [DT_I4] = arrange_i4},
    .tile = {[DT_I8] = tile_i8, [DT_I4] = tile_i4},
    .finish = finish,
    .peak = peak,
};
