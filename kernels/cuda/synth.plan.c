/* SPDX-License-Identifier: Apache-2.0 */
/* synth: its cards, and the launches of its tasks. */
#include <stddef.h>

#include "kernels/cuda/synth.card.h"
#include "kernels/cuda/synth.h"

const struct card synth_cards[] = {SYNTH_CARDS(CARD_ROW)};

enum { TILE = 16, STRIP = 128 };

static uint32_t n_parts(const struct synth_args *a) {
    uint32_t n = 0;
    while (n < SYNTH_PARTS && a->part[n].rows > 0) n++;
    return n;
}

/* floats and codes: a block makes 128 columns of a tile; maxima: all of a tile; spread: a part. */
void synth_plan(const struct gpu *gpu, enum synth_task task, const struct synth_args *a,
                struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (a->rows < TILE || a->cols < 1) return;
    const double rows = a->rows, scales = rows * (a->group ? 2 * a->groups : 4);
    *l = (struct launch){.card = &synth_cards[task], .grid = {(uint32_t)(a->rows / TILE), 1, 1}};
    switch (task) {
    case TASK_MAXIMA: l->bytes = scales; break;
    case TASK_SPREAD:
        l->grid[0] = n_parts(a);
        l->bytes = 2 * scales;
        break;
    default:
        l->grid[1] = (uint32_t)((a->cols + STRIP - 1) / STRIP);
        l->bytes = rows * a->cols * dtype_bits((enum dtype)a->type) / 8;
        if (task == TASK_CODES) l->bytes += scales;
    }
    l->shared_bytes = (uint32_t)l->card->smem;
}
