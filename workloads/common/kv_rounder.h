/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds what the forward pass appends to a cache before attention reads it: schemes that no cache
   type has, keys and values apart (seeds E42), on a model's own keys and values. */
#ifndef WORKLOADS_COMMON_KV_ROUNDER_H
#define WORKLOADS_COMMON_KV_ROUNDER_H
#include "workloads/common/codes.h"
#include "workloads/model/transformer.h"

struct kv_rounder {
    /* the caller's: of a token's values (BY_ROW: `run` neighbouring channels have one scale), or of
       a channel over the tokens of one chunk (BY_COLUMN: `run` neighbouring tokens) */
    struct code_spec spec;
    bool keys, values;

    struct session *session;
    int32_t begin, rows, layer; /* of the present step */
    float *was, *rounded;       /* (most_rows, d_h) */
    struct code_sums sums;
};
/* Of a session with one sequence and a contiguous f32 cache, and until the session is closed. */
void kv_rounder_attach(struct kv_rounder *, struct session *);
/* Before each step: positions begin ... begin + rows - 1 are appended. */
void kv_rounder_step(struct kv_rounder *, int32_t begin, int32_t rows);
void kv_rounder_close(struct kv_rounder *);

#endif
