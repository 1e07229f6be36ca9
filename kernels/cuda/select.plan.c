/* SPDX-License-Identifier: Apache-2.0 */
/* select: its cards, and how a row's logits are cut. */
#include <stddef.h>

#include "kernels/cuda/select.card.h"
#include "kernels/cuda/select.h"

const struct card select_cards[] = {SELECT_CARDS(CARD_ROW)};

/* Four ids a thread at least, in whole vectors, and no more than SELECT_PIECES pieces. */
int32_t select_piece(int32_t vocab) {
    const int32_t least = 4 * select_cards[0].threads;
    const int32_t even = ((vocab + SELECT_PIECES - 1) / SELECT_PIECES + 3) / 4 * 4;
    return even > least ? even : least;
}

int64_t select_room_bytes(int32_t n_out) {
    return (int64_t)n_out * SELECT_PIECES * (int64_t)sizeof(struct select_best);
}

void select_plan(const struct gpu *gpu, const struct select_shape *s, struct launch l[2]) {
    (void)gpu;
    l[0] = l[1] = (struct launch){.card = NULL};
    if (s->n_out == 0 || s->vocab == 0) return;
    const int32_t piece = select_piece(s->vocab), pieces = (s->vocab + piece - 1) / piece;
    const double partial = (double)s->n_out * pieces * (double)sizeof(struct select_best);
    l[0] = (struct launch){
        .card = &select_cards[0],
        .grid = {(uint32_t)s->n_out, (uint32_t)pieces, 1}, /* the second ends at 65535 */
        .shared_bytes = (uint32_t)select_cards[0].smem,
        .bytes = 4.0 * s->n_out * s->vocab + partial,
        .flops = (double)s->n_out * s->vocab,
    };
    l[1] = (struct launch){
        .card = &select_cards[1],
        .grid = {(uint32_t)s->n_out, 1, 1},
        .shared_bytes = (uint32_t)select_cards[1].smem,
        .bytes = partial + 4.0 * s->n_out,
        .flops = (double)s->n_out * pieces,
    };
}
