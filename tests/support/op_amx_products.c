/* SPDX-License-Identifier: Apache-2.0 */
/* Level amx of the cpu device once more, over tile registers in memory: the same source. */
#define TILES_HEADER    "tests/support/tile_registers.h"
#define cpu_amx_product memory_amx_product
#define cpu_amx_peak    memory_amx_peak
#include "kernels/cpu/amx/kernels.c" /* NOLINT: under other names */
#undef cpu_amx_product
#undef cpu_amx_peak
#include "tests/support/op_amx.h"

float memory_amx_one(float c, const uint16_t *x, const uint16_t *w) {
    configure(1, 1, true);
    uint16_t panel[SIDE][SIDE][2] = {{{0}}};
    float out[SIDE] = {c};
    for (int k = 0; k < 2 * SIDE; k++) panel[k / 2][0][k % 2] = w[k];
    tile_load(F0, out, LINE);
    tile_load(FA, x, LINE);
    tile_load(FB0, panel, LINE);
    tile_multiply_bf16(F0, FA, FB0);
    tile_store(F0, out, LINE);
    tiles_release();
    return out[0];
}
