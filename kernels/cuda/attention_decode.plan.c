/* SPDX-License-Identifier: Apache-2.0 */
/* attention, decode form: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_decode.card.h"

const struct card attention_decode_cards[] = {ATTENTION_DECODE_CARDS(CARD_ROW)};

/* In the order of the cards. */
enum { BF16_64, BF16_128, F16_64, F16_128, INT8_64, INT8_128, BF16_WIDE, F16_WIDE, INT8_WIDE };
enum { BF16_256 = INT8_WIDE + 1, F16_256, COMBINE };

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* Query rows of a KV head, at most, of the sequences that are decode's. */
static int32_t rows_of(const struct attention_shape *s) {
    return least(s->most_q, attention_few(s->n_q, s->n_kv)) * (s->n_q / s->n_kv);
}

static const struct card *card_of(const struct attention_shape *s) {
    const int type = s->kv_type == DT_I8 ? 2 : s->kv_type == DT_F16 ? 1 : 0;
    const bool exact = s->d == 64 || s->d == 128;
    if (s->d > 128) return &attention_decode_cards[BF16_256 + type];
    if (exact && rows_of(s) <= 8)
        return &attention_decode_cards[BF16_64 + 2 * type + (s->d == 128 ? 1 : 0)];
    return &attention_decode_cards[BF16_WIDE + type];
}

int32_t attention_passes(const struct attention_shape *s) {
    const struct card *card = card_of(s);
    const bool wide =
        card >= &attention_decode_cards[BF16_WIDE] && card <= &attention_decode_cards[INT8_WIDE];
    const int32_t rows = wide ? 16 : 8;
    return (rows_of(s) + rows - 1) / rows;
}

void attention_decode_plan(const struct gpu *gpu, const struct attention_shape *s,
                           struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (!attention_is_fast(s) || !attention_some_are_few(s)) return;
    const int32_t splits = attention_splits(s);
    const double parts =
        4.0 * (double)(attention_part_floats(s, false) + attention_part_floats(s, true));
    *l = (struct launch){
        .card = card_of(s),
        .grid = {(uint32_t)splits, (uint32_t)(s->n_kv * attention_passes(s)), (uint32_t)s->n_seq},
        .bytes = attention_bytes(s, s->n_row) + parts,
        .flops = attention_flops(s),
    };
    l->shared_bytes = (uint32_t)l->card->smem;
}

void attention_combine_plan(const struct gpu *gpu, const struct attention_shape *s,
                            struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (!attention_some_are_few(s) || attention_splits(s) <= 1) return;
    const int32_t rows = least(s->most_q, attention_few(s->n_q, s->n_kv));
    const double floats =
        (double)(attention_part_floats(s, false) + attention_part_floats(s, true));
    *l = (struct launch){
        .card = &attention_decode_cards[COMBINE],
        .grid = {(uint32_t)s->n_q, (uint32_t)rows, (uint32_t)s->n_seq},
        .bytes = 4 * floats + (double)s->n_row * s->n_q * s->d * dtype_bits(s->o_type) / 8,
        .flops = 2 * floats,
    };
    l->shared_bytes = (uint32_t)l->card->smem;
}
