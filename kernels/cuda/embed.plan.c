/* SPDX-License-Identifier: Apache-2.0 */
/* embed: its card and its launch. */
#include <stddef.h>

#include "kernels/cuda/embed.card.h"
#include "kernels/cuda/embed.h"

const struct card embed_cards[] = {EMBED_CARDS(CARD_ROW)};

enum { SCALE_FLOAT = 4, SCALE_HALF = 2 };

void embed_plan(const struct gpu *gpu, const struct embed_args *a, int32_t rows, struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (rows < 1 || a->d < 1) return;
    const double values = (double)rows * a->d;
    *l = (struct launch){
        .card = &embed_cards[0],
        .grid = {(uint32_t)rows, 1, 1},
        .bytes = values * (dtype_bits((enum dtype)a->weight) / 8.0 +
                           dtype_bits((enum dtype)a->type) / 8.0) +
                 (double)rows * (4 + a->groups * (a->group ? SCALE_HALF : SCALE_FLOAT)),
    };
}
