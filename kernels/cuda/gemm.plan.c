/* SPDX-License-Identifier: Apache-2.0 */
/* gemm: its cards, and which of them a shape takes. */
#include <stddef.h>

#include "kernels/cuda/gemm.card.h"
#include "kernels/cuda/linear.h"

const struct card gemm_cards[] = {GEMM_CARDS(CARD_ROW)};

static int64_t tiles(int32_t n) { return ((int64_t)n + GEMM_TILE - 1) / GEMM_TILE; }

void gemm_plan(const struct gpu *gpu, const struct gemm_shape *s, struct launch *l) {
    (void)gpu;
    *l = (struct launch){.card = NULL};
    if (s->m < 1 || s->rows < 1) return;
    const double m = s->m, rows = s->rows, cols = s->cols;
    *l = (struct launch){
        .card = &gemm_cards[s->type == DT_F16],
        .grid = {(uint32_t)(tiles(s->m) * tiles(s->rows)), 1, 1},
        .bytes = (m + rows) * cols * 2 + m * rows * dtype_bits(s->y_type) / 8 / (s->swiglu ? 2 : 1),
        .flops = 2 * m * rows * cols,
    };
    l->shared_bytes = (uint32_t)l->card->smem;
}
