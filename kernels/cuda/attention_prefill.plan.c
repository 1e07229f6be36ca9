/* SPDX-License-Identifier: Apache-2.0 */
/* attention, prefill form: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_prefill.card.h"

const struct card attention_prefill_cards[] = {ATTENTION_PREFILL_CARDS(CARD_ROW)};

/* In the order of the cards. */
enum { BF16_64, BF16_128, F16_64, F16_128, INT8_64, INT8_128, BF16_256, F16_256 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Most tiles of queries, whatever the sequences: each that is prefill's begins one more than its
   rows fill. */
static int64_t tiles(const struct attention_shape *s, int32_t rows) {
    const int64_t few = attention_few(s->n_q, s->n_kv);
    const int64_t sequences = least(s->n_seq, s->n_row / (few + 1));
    const int64_t of_longest = (s->most_q + rows - 1) / rows;
    return least(sequences + (s->n_row - sequences) / rows, s->n_seq * of_longest);
}

void attention_prefill_plan(const struct gpu *gpu, const struct attention_shape *s,
                            struct launch *l) {
    (void)gpu;
    const int type = s->kv_type == DT_I8 ? 2 : s->kv_type == DT_F16 ? 1 : 0;
    const bool large = s->d > 128;
    *l = (struct launch){.card = NULL};
    if (!attention_is_fast(s) || s->most_q <= attention_few(s->n_q, s->n_kv)) return;
    *l = (struct launch){
        .card = &attention_prefill_cards[large ? BF16_256 + type : 2 * type + (s->d > 64 ? 1 : 0)],
        .grid = {(uint32_t)tiles(s, large ? 64 : 128), (uint32_t)s->n_q, 1},
        .bytes = attention_bytes(s, s->n_row),
        .flops = attention_flops(s),
    };
    l->shared_bytes = (uint32_t)l->card->smem;
    if (l->grid[0] == 0) l->card = NULL;
}
