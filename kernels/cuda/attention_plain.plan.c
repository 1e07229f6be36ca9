/* SPDX-License-Identifier: Apache-2.0 */
/* attention, plain form: its card, and its launch. */
#include <stddef.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_plain.card.h"

const struct card attention_plain_cards[] = {ATTENTION_PLAIN_CARDS(CARD_ROW)};

void attention_plain_plan(const struct gpu *gpu, const struct attention_shape *s,
                          struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (attention_is_fast(s) || s->n_row == 0) return;
    const int32_t splits = attention_some_are_few(s) ? attention_splits(s) : 1;
    *l = (struct launch){
        .card = &attention_plain_cards[0],
        .grid = {(uint32_t)s->n_row, (uint32_t)s->n_q, (uint32_t)splits},
        /* the query, each warp's sums, its places and weights, its state */
        .shared_bytes = (uint32_t)(5 * s->d * 4 + 4 * 32 * (8 + 4) + 4 * 8),
        .bytes = attention_bytes(s, s->n_row) +
                 4.0 * (double)(attention_part_floats(s, false) + attention_part_floats(s, true)),
        .flops = attention_flops(s),
    };
}
