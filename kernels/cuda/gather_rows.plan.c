/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/gather_rows.card.h"
#include "kernels/cuda/gather_rows.h"

const struct card gather_rows_cards[] = {GATHER_ROWS_CARDS(CARD_ROW)};

void gather_rows_plan(const struct gpu *gpu, const struct gather_rows_shape *s, struct launch *l) {
    const struct card *card = &gather_rows_cards[0];
    const int64_t of_block = (int64_t)card->threads * card->d;
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->rows == 0 || s->row_bytes == 0) return;
    *l = (struct launch){
        .card = card,
        .grid = {(uint32_t)s->rows, (uint32_t)((s->row_bytes + of_block - 1) / of_block), 1},
        .bytes = 2.0 * s->rows * (double)s->row_bytes,
    };
}
