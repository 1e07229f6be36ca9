/* SPDX-License-Identifier: Apache-2.0 */
/* advance: its card and launch. */
#include <stddef.h>

#include "kernels/cuda/advance.card.h"
#include "kernels/cuda/advance.h"

const struct card advance_cards[] = {ADVANCE_CARDS(CARD_ROW)};

void advance_plan(const struct gpu *gpu, const struct advance_shape *s, struct launch *l) {
    const int32_t threads = advance_cards[0].threads;
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->n_out == 0) return;
    *l = (struct launch){
        .card = &advance_cards[0],
        .grid = {(uint32_t)((s->n_out + threads - 1) / threads), 1, 1},
        .bytes = 40.0 * s->n_out, /* six words read, four written */
    };
}
