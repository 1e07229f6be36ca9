/* SPDX-License-Identifier: Apache-2.0 */
/* slab: its cards, and the launches of its tasks. */
#include <stddef.h>

#include "kernels/cuda/linear.h"
#include "kernels/cuda/slab.card.h"

const struct card slab_cards[] = {SLAB_CARDS(CARD_ROW)};

enum { WARPS = 8, TILE = 16, CHUNK = 32 };

static double moved(enum slab_task task, const struct slab_args *a) {
    const double n = (double)a->rows * a->cols;
    switch (task) {
    case SLAB_PAD: return 2 * n * dtype_bits((enum dtype)a->type) / 8;
    case SLAB_DEQUANTIZE: return n * (2 + dtype_bits((enum dtype)a->type) / 8.0);
    default: return n * 4 + (double)a->rows * a->out.cols * dtype_bits((enum dtype)a->out.type) / 8;
    }
}

/* dequantize: a warp takes a tile's 32 columns at a time, a block eight of them side by side; pad
   and finish: a block takes a row at a time. */
void slab_plan(const struct gpu *gpu, enum slab_task task, const struct slab_args *a,
               struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (a->rows < 1 || a->cols < 1) return;
    const uint32_t across = (uint32_t)((a->cols / CHUNK + WARPS - 1) / WARPS);
    *l = (struct launch){
        .card = &slab_cards[task], .grid = {(uint32_t)a->rows, 1, 1}, .bytes = moved(task, a)};
    if (task == SLAB_DEQUANTIZE) {
        l->grid[0] = (uint32_t)(a->rows / TILE);
        l->grid[1] = across;
    }
}
