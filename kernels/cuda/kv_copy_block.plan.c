/* SPDX-License-Identifier: Apache-2.0 */
/* kv_copy_block: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/kv_copy_block.card.h"
#include "kernels/cuda/kv_copy_block.h"

const struct card kv_copy_block_cards[] = {KV_COPY_BLOCK_CARDS(CARD_ROW)};

void kv_copy_block_plan(const struct gpu *gpu, const struct kv_copy_block_shape *s,
                        struct launch *l) {
    const struct card *card = &kv_copy_block_cards[0];
    const int64_t of_block = (int64_t)card->threads * card->d;
    const int64_t values = (s->bytes + of_block - 1) / of_block;
    const int64_t scales = (s->slots + card->threads - 1) / card->threads;
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->bytes == 0) return;
    *l = (struct launch){
        .card = card,
        .grid = {(uint32_t)(values > scales ? values : scales), 2, 1}, /* K, V */
        .bytes = 4.0 * (double)s->bytes + 16.0 * (double)s->slots,
    };
}
