/* SPDX-License-Identifier: Apache-2.0 */
/* select: what its kernels take, and how a shape becomes two launches. */
#ifndef KERNELS_CUDA_SELECT_H
#define KERNELS_CUDA_SELECT_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SELECT_PIECES = 64 }; /* of a row, at most */

struct select_best { /* of a piece; id INT32_MAX: no logit is a number above -infinity */
    double value;
    int32_t id, unused;
};
struct select_args {
    const float *logits;
    const int32_t *out_row, *seq, *pos;
    const uint64_t *rng;      /* NULL: keys are 0 */
    struct select_best *best; /* (n_out, pieces) */
    int32_t *next;
    int64_t stride;
    int32_t vocab, piece, pieces; /* ids of a row and of a piece; pieces of a row */
    int32_t vectors;              /* rows begin at multiples of 16 bytes */
    uint32_t temperature;         /* the bits of a float; 0: greedy */
};

struct select_shape {
    int32_t n_out, vocab;
};
extern const struct card select_cards[];
int32_t select_piece(int32_t vocab); /* ids of a piece */
int64_t select_room_bytes(int32_t n_out);
void select_plan(const struct gpu *, const struct select_shape *, struct launch l[2]);

#ifdef __cplusplus
}
#endif
#endif
