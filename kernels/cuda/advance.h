/* SPDX-License-Identifier: Apache-2.0 */
/* advance: what its kernel takes, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_ADVANCE_H
#define KERNELS_CUDA_ADVANCE_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct advance_args {
    const int32_t *next, *out_row, *seq, *from_kv_len; /* of the step that was run */
    const int32_t *q_begin;                            /* of the step to come, and all below */
    int32_t *token, *pos, *kv_len, *alive;
    int32_t n_out, end_id;
};

struct advance_shape {
    int32_t n_out;
};
extern const struct card advance_cards[];
void advance_plan(const struct gpu *, const struct advance_shape *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
