/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX level's products of bf16 by bf16 in tiles, and its peak.

   A panel of bf16 is a row of B tiles as it lies there: 16 pairs of k by 16 rows of weights are
   1024 bytes. Every sum goes over k in steps of 32, the last filled with zeros, whatever the shape
   of the tiles: a row has the same bits in any batch. TDPBF16PS takes subnormal numbers for zero
   and makes none; NaN and infinity pass as in f32. */
#include "kernels/cpu/kernels.h"

#define MULTIPLY tile_multiply_bf16
#include "kernels/cpu/amx/blocks.inc"

_Static_assert((int)MOST_PANELS == (int)PAIR_PANELS, "what pairs may have");

void cpu_amx_product(const struct pairs *p) {
    const struct job job = {.c = (char *)p->c,
                            .x = (const char *)p->x,
                            .panels = p->panels,
                            .ldc = p->ldc * (int64_t)sizeof *p->c,
                            .ldx = p->ldx * (int64_t)sizeof *p->x,
                            .step = p->step,
                            .x_bytes = p->k * (int64_t)sizeof *p->x,
                            .lines = (p->k + 1) / 2,
                            .m = p->m,
                            .n_panels = p->n_panels};
    multiply_tiles(&job);
}

/* Sums begin elsewhere in each lane and grow too slowly to overflow. */
float cpu_amx_peak(int64_t flops) {
    enum { VALUES = SIDE * SIDE, HALVES = 2 * VALUES, PRODUCT = 2 * SIDE * HALVES };
    float c[4 * VALUES], sum = 0;
    uint16_t x[HALVES], panel[HALVES];
    for (int i = 0; i < HALVES; i++) {
        x[i] = bf16_from_f32(1 + (float)(i % 7) / 8);
        panel[i] = bf16_from_f32((1 + (float)(i % 5) / 4) * 0x1p-20f);
    }
    for (int i = 0; i < 4 * VALUES; i++) c[i] = (float)(i % VALUES);
    multiply_often((char *)c, x, panel, flops / PRODUCT);
    for (int i = 0; i < 4 * VALUES; i++) sum += c[i];
    return sum;
}
