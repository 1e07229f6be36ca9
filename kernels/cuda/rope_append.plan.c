/* SPDX-License-Identifier: Apache-2.0 */
/* rope_append: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/rope_append.card.h"
#include "kernels/cuda/rope_append.h"

const struct card rope_append_cards[] = {ROPE_APPEND_CARDS(CARD_ROW)};

int64_t rope_append_table_bytes(int32_t positions, int32_t d) {
    return (int64_t)positions * d * (int64_t)sizeof(float);
}

/* Lanes that share a head: 16 values each. */
static bool shared_evenly(int32_t d) {
    const int32_t lanes = d / 16;
    return d % 16 == 0 && lanes >= 1 && lanes <= 32 && (lanes & (lanes - 1)) == 0;
}

void rope_append_plan(const struct gpu *gpu, const struct rope_append_shape *s, struct launch *l) {
    const bool fast = s->aligned && shared_evenly(s->d);
    const struct card *card = &rope_append_cards[fast ? 0 : 1];
    const int32_t heads = s->n_q + 2 * s->n_kv, lanes = fast ? s->d / 16 : 32;
    const int32_t of_block = card->threads / lanes; /* heads */
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->rows == 0 || heads == 0 || s->d == 0) return;
    const double turned = (double)s->rows * (s->n_q + s->n_kv) * s->d;
    const double kept = 2.0 * s->rows * s->n_kv, size = dtype_bits(s->type) / 8;
    *l = (struct launch){
        .card = card,
        .grid = {(uint32_t)s->rows, (uint32_t)((heads + of_block - 1) / of_block), 1},
        /* qkv in, q out, the cache's rows with their scales, a row of the table a token */
        .bytes = (double)s->rows * s->d * ((heads + s->n_q) * size + 4) +
                 kept * (s->d * dtype_bits(s->kv_type) / 8 + (s->kv_type == DT_I8 ? 4 : 0)),
        .flops = 3 * turned,
    };
}
