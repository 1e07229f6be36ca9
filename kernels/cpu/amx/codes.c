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

enum {
    CODE_ROWS = 288,        /* of the rows of x as many as there are: panels come from far */
    SCALED_ROWS = 2 * SIDE, /* whose sums are scaled together */
    SUM_COLS = MOST_PANELS * SIDE,
    UNPACK_ROWS = SIDE, /* for more rows than this, int4 is made int8 first */
    UNPACK_WORDS = 128, /* at once */
};

/* So many words from t->x and t->panels on, as they are. */
static void multiply_words(const struct code_tile *t, int64_t words, int32_t *c, int64_t ldc,
                           bool add) {
    const struct job job = {.c = (char *)c,
                            .x = t->x,
                            .panels = t->panels,
                            .ldc = ldc * (int64_t)sizeof(int32_t),
                            .ldx = t->ldx,
                            .step = t->step,
                            .x_bytes = words * WORD_INT8,
                            .lines = words,
                            .m = t->m,
                            .n_panels = t->n_panels,
                            .add = add};
    multiply_tiles(&job);
}

/* c += sum * scale of one group, SCALED_ROWS of rows at a time. */
static void add_group(const struct code_tile *t, int64_t words, const uint16_t *from) {
    float scales[SUM_COLS];
    int32_t sums[SCALED_ROWS][SUM_COLS];
    for (int p = 0; p < t->n_panels; p++)
        OTHER_FLOATS.widen[DT_F16](scales + p * SIDE, from + p * t->scales_step, SIDE);
    for (int r = 0; r < t->m; r += SCALED_ROWS) {
        struct code_tile some = *t;
        some.m = t->m - r < SCALED_ROWS ? t->m - r : SCALED_ROWS;
        some.x += r * t->ldx;
        multiply_words(&some, words, sums[0], SUM_COLS, false);
        for (int i = 0; i < some.m; i++) {
            float *c = (float *)t->c + (r + i) * t->ldc;
            for (int j = 0; j < t->n_panels * SIDE; j++) c[j] += (float)sums[i][j] * scales[j];
        }
    }
}

static void clear(const struct code_tile *t) {
    for (int r = 0; r < t->m; r++)
        memset((float *)t->c + r * t->ldc, 0, (size_t)t->n_panels * LINE);
}

static void tile_i8(const struct code_tile *t) {
    if (t->scales == NULL) {
        multiply_words(t, t->words, t->c, t->ldc, t->add);
        return;
    }
    if (!t->add) clear(t);
    struct code_tile some = *t;
    for (int64_t at = 0; at < t->words; at += t->group) {
        const int64_t left = t->words - at, words = left < t->group ? left : t->group;
        add_group(&some, words, t->scales + at / t->group * SIDE);
        some.x += words * WORD_INT8;
        some.panels += words * LINE;
    }
}

/* Words of int4 as twice as many of int8, eight codes at once: 0 ... 15 in each byte, less 8. */
static void unpack(char *out, const char *words, int64_t n) {
    const uint64_t mask = 0x0f0f0f0f0f0f0f0fu, up = 0x7878787878787878u, sign = 0x8080808080808080u;
    for (int64_t i = 0; i < n; i++, words += LINE, out += 2 * LINE)
        for (int b = 0; b < LINE; b += 8) {
            uint64_t v, half[2];
            memcpy(&v, words + b, sizeof v);
            half[0] = ((v & mask) + up) ^ sign;
            half[1] = ((v >> 4 & mask) + up) ^ sign;
            memcpy(out + b, &half[0], sizeof v);
            memcpy(out + LINE + b, &half[1], sizeof v);
        }
}

/* By the other set, as many rows at once as it takes. */
static void few_rows_i4(const struct code_tile *t) {
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

static void tile_i4(const struct code_tile *t) {
    char panels[MOST_PANELS][2 * UNPACK_WORDS * LINE];
    const int64_t most = t->scales != NULL ? t->group : UNPACK_WORDS;
    if (t->m <= UNPACK_ROWS || most > UNPACK_WORDS) {
        few_rows_i4(t);
        return;
    }
    if (t->scales != NULL && !t->add) clear(t);
    struct code_tile some = *t;
    some.panels = panels[0];
    some.step = sizeof panels[0];
    for (int64_t at = 0; at < t->words; at += most) {
        const int64_t left = t->words - at, words = left < most ? left : most;
        for (int p = 0; p < t->n_panels; p++)
            unpack(panels[p], t->panels + p * t->step + at * LINE, words);
        if (t->scales != NULL)
            add_group(&some, 2 * words, t->scales + at / t->group * SIDE);
        else
            multiply_words(&some, 2 * words, t->c, t->ldc, t->add || at > 0);
        some.x += words * WORD_INT4;
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
    .panels = MOST_PANELS - 1,
    .bias = {[DT_I4] = 8},
    .word_bytes = {[DT_I8] = WORD_INT8, [DT_I4] = WORD_INT4},
    .arrange = {[DT_I8] = arrange_i8, [DT_I4] = arrange_i4},
    .tile = {[DT_I8] = tile_i8, [DT_I4] = tile_i4},
    .finish = finish,
    .peak = peak,
};
