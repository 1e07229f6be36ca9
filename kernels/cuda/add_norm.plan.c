/* SPDX-License-Identifier: Apache-2.0 */
/* add_norm: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/add_norm.card.h"
#include "kernels/cuda/add_norm.h"

const struct card add_norm_cards[] = {ADD_NORM_CARDS(CARD_ROW)};

void add_norm_plan(const struct gpu *gpu, const struct add_norm_shape *s, struct launch *l) {
    const struct card *card = add_norm_cards; /* narrow, wide, any */
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->rows == 0 || s->d == 0) return;
    for (; card->d > 0; card++) /* the last takes what the others cannot */
        if (s->aligned && s->d % 8 == 0 && s->d <= 8 * card->d * card->threads) break;
    const double values = (double)s->rows * s->d, size = dtype_bits(s->type) / 8;
    *l = (struct launch){
        .card = card,
        .grid = {(uint32_t)s->rows, 1, 1},
        .shared_bytes = (uint32_t)card->smem,
        .bytes =
            values * (4 + (s->delta ? 4 + size : 0) + (s->y ? size : 0)) + (s->y ? 4.0 * s->d : 0),
        .flops = values * ((s->delta ? 1 : 0) + (s->y ? 4 : 0)),
    };
}
