/* SPDX-License-Identifier: Apache-2.0 */
/* copy, read, triad, fma_peak: their cards, and grids that fill the machine. */
#include <stddef.h>

#include "kernels/cuda/ceilings.card.h"
#include "kernels/cuda/ceilings.h"

const struct card ceilings_cards[] = {CEILINGS_CARDS(CARD_ROW)};

enum { LEAST_STEPS = 16 }; /* of a block of fma_peak: fewer are not worth a block */

/* Flops of one step of a block: an f32 multiply-add of each thread and chain, or an m16n8k16 of
   each warp and chain. */
static int64_t step_flops(enum dtype type) {
    const struct card *card = &ceilings_cards[CEILING_FMA + (int)type];
    return type == DT_F32 ? (int64_t)card->threads * card->d * 2
                          : (int64_t)(card->threads / 32) * card->d * 4096;
}

int64_t ceilings_steps(enum dtype type, int64_t flops) { return flops / step_flops(type); }

/* As many blocks as are resident at once, so that none waits for another, if there is work. */
void ceilings_plan(const struct gpu *gpu, enum ceiling which, enum dtype type, int64_t amount,
                   struct launch *l) {
    static const double moved[] = {[CEILING_COPY] = 2, [CEILING_READ] = 1, [CEILING_TRIAD] = 3};
    const bool fma = which == CEILING_FMA;
    const struct card *card = &ceilings_cards[(int)which + (fma ? (int)type : 0)];
    const int64_t resident = (int64_t)gpu->sm_count * card->min_blocks;
    const int64_t work = fma ? (ceilings_steps(type, amount) + LEAST_STEPS - 1) / LEAST_STEPS
                             : amount / CEILING_PAGE;
    *l = (struct launch){.card = NULL};
    if (work == 0) return;
    *l = (struct launch){
        .card = card,
        .grid = {(uint32_t)(work < resident ? work : resident), 1, 1},
        .shared_bytes = (uint32_t)card->smem,
        .bytes = fma ? 0 : moved[which] * (double)amount,
        .flops = fma                      ? (double)amount
                 : which == CEILING_TRIAD ? (double)amount / 2 /* two a float */
                                          : 0,
    };
}
