/* SPDX-License-Identifier: Apache-2.0 */
/* Whether products of bf16 by bf16, and of codes, are right on this machine: a level that could not
   be tried on every machine must show it before it is used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/cpu/code_kernels.h"
#include "kernels/cpu/kernels.h"

enum {
    ROWS = 49,  /* of tiles of 32, and a rest of more than 16 */
    PANELS = 3, /* two together, and one */
    COLS = 579, /* several blocks, an incomplete tile, and half a pair */
    PAIRS = (COLS + 1) / 2,
    COUNT = PANELS * PANEL,
};

struct sample {
    float x[ROWS][COLS], w[COUNT][COLS], c[ROWS][COUNT];
    uint16_t stored_x[ROWS][COLS], panels[PANELS][PAIRS][PANEL][2];
};

/* -7 ... 7: sums of whole numbers are exact in any order. */
static float whole(int i) { return (float)random_below(7, (uint64_t)i, 15) - 7; }

static void fill(struct sample *s) {
    for (int m = 0; m < ROWS; m++)
        for (int k = 0; k < COLS; k++) s->x[m][k] = whole(m * COLS + k);
    s->x[5][16] = INFINITY;
    s->x[18][0] = -INFINITY;
    s->x[48][COLS - 1] = NAN;
    for (int m = 0; m < ROWS; m++)
        for (int k = 0; k < COLS; k++) s->stored_x[m][k] = bf16_from_f32(s->x[m][k]);
    for (int n = 0; n < COUNT; n++)
        for (int k = 0; k < COLS; k++) {
            s->w[n][k] = whole((ROWS + n) * COLS + k);
            s->panels[n / PANEL][k / 2][n % PANEL][k % 2] = bf16_from_f32(s->w[n][k]);
        }
}

static bool right(const struct sample *s, int rows) {
    for (int m = 0; m < rows; m++)
        for (int n = 0; n < COUNT; n++) {
            float sum = 0;
            for (int k = 0; k < COLS; k++) sum += s->x[m][k] * s->w[n][k];
            if (isnan(sum) ? !isnan(s->c[m][n]) : s->c[m][n] != sum) return false;
        }
    return true;
}

bool cpu_pairs_right(void (*product)(const struct pairs *)) {
    static const int rows[] = {1, 16, ROWS}; /* each shape of tiles */
    struct sample *s = must_alloc(sizeof *s);
    bool ok = true;
    fill(s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(s->c, 0xff, sizeof s->c);
        product(&(struct pairs){.c = s->c[0],
                                .x = s->stored_x[0],
                                .panels = s->panels,
                                .ldc = COUNT,
                                .ldx = COLS,
                                .k = COLS,
                                .step = sizeof s->panels[0],
                                .m = rows[i],
                                .n_panels = PANELS});
        ok = ok && right(s, rows[i]);
    }
    free(s);
    return ok;
}

enum { WORDS = 293, CUT = 37 }; /* steps, and a rest; the first piece of them */

struct code_sample {
    int8_t x[ROWS][WORDS][WORD_INT8];
    char panels[PANELS][WORDS][PANEL][WORD_INT8];
    int32_t c[ROWS][COUNT];
};

static int code(int i) { return (int)random_below(9, (uint64_t)i, 255) - 127; }

static bool codes_right(const struct code_sample *s, int flip, int rows) {
    for (int m = 0; m < rows; m++)
        for (int n = 0; n < COUNT; n++) {
            int32_t sum = 0;
            for (int i = 0; i < WORDS; i++)
                for (int b = 0; b < WORD_INT8; b++)
                    sum += s->x[m][i][b] *
                           (int8_t)(s->panels[n / PANEL][i][n % PANEL][b] ^ (char)flip);
            if (s->c[m][n] != sum) return false;
        }
    return true;
}

bool cpu_codes_right(const struct cpu_code_kernels *kernels) {
    struct code_sample *s = must_alloc(sizeof *s);
    bool ok = kernels->bias[DT_I8] == 0 && kernels->word_bytes[DT_I8] == WORD_INT8;
    for (int i = 0; i < ROWS * WORDS * WORD_INT8; i++) ((int8_t *)s->x)[i] = (int8_t)code(i);
    for (int i = 0; i < COUNT * WORDS * WORD_INT8; i++)
        ((char *)s->panels)[i] = (char)(code(~i) ^ kernels->flip);
    for (int rows = 1; rows <= kernels->rows && rows <= ROWS; rows = rows == 1 ? 16 : rows + 16) {
        struct code_tile t = {.c = s->c,
                              .x = (const char *)s->x,
                              .panels = (const char *)s->panels,
                              .ldc = COUNT,
                              .ldx = sizeof s->x[0],
                              .step = sizeof s->panels[0],
                              .words = CUT,
                              .m = rows,
                              .n_panels = PANELS,
                              .ahead = (const char *)s->panels};
        memset(s->c, 0xff, sizeof s->c);
        kernels->tile[DT_I8](&t);
        t.x += CUT * WORD_INT8;
        t.panels += CUT * PANEL * WORD_INT8;
        t.words = WORDS - CUT;
        t.add = 1;
        kernels->tile[DT_I8](&t);
        ok = ok && codes_right(s, kernels->flip, rows);
    }
    free(s);
    return ok;
}
