/* SPDX-License-Identifier: Apache-2.0 */
/* linear: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/linear.card.h"
#include "kernels/cuda/linear.h"

const struct card linear_cards[] = {LINEAR_CARDS(CARD_ROW)};

#define ONE(...) +1
enum { CARDS = 0 LINEAR_CARDS(ONE), TOKENS = 8, TILE = 16, SCALE_FLOAT = 4, SCALE_HALF = 2 };

/* The first card of the type that takes m rows; f32 takes 8 at a time, as often as needed. */
static const struct card *card_for(enum dtype weight, int32_t m) {
    const struct card *last = NULL;
    for (int i = 0; i < CARDS; i++) {
        const struct card *card = &linear_cards[i];
        int type = 0;
        while (dtype_names[type] && strcmp(dtype_names[type], card->type) != 0) type++;
        if (type != (int)weight) continue;
        last = card;
        if (m <= TOKENS * card->d) return card;
    }
    return weight == DT_F32 ? last : NULL;
}

/* As many blocks as there are tiles; NF4, which builds a table first, as many as run at once, and
   as few as do their tiles in as many rounds. */
static uint32_t blocks(const struct gpu *gpu, const struct card *card,
                       const struct linear_shape *s) {
    if (s->weight != DT_NF4) return (uint32_t)s->tiles;
    const int32_t resident = card->min_blocks * gpu->sm_count;
    const int32_t rounds = (s->tiles + resident - 1) / resident;
    return (uint32_t)((s->tiles + rounds - 1) / rounds);
}

void linear_plan(const struct gpu *gpu, const struct linear_shape *s, struct launch *l) {
    const struct card *card = s->m > 0 && s->tiles > 0 ? card_for(s->weight, s->m) : NULL;
    *l = (struct launch){.card = NULL};
    if (!card) return;
    const double rows = (double)s->tiles * TILE, m = s->m;
    const int32_t x_bytes = s->weight == DT_F32 ? 4 : 2;
    *l = (struct launch){
        .card = card,
        .grid = {blocks(gpu, card, s),
                 s->weight == DT_F32 ? (uint32_t)((s->m + TOKENS - 1) / TOKENS) : 1, 1},
        .shared_bytes = (uint32_t)card->smem,
        .bytes = rows * s->cols * dtype_bits(s->weight) / 8 +
                 rows * s->groups * (s->group_shift ? SCALE_HALF : SCALE_FLOAT) +
                 m * s->cols * x_bytes + m * s->y_cols * dtype_bits(s->y_type) / 8,
        .flops = 2 * m * rows * s->cols + (s->swiglu ? 4 * m * s->y_cols : 0),
    };
}
