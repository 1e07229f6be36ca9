/* SPDX-License-Identifier: Apache-2.0 */
/* rope_append: what its kernels take, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_ROPE_APPEND_H
#define KERNELS_CUDA_ROPE_APPEND_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rope_append_args { /* strides in elements */
    const void *qkv;
    void *q, *k, *v;
    float *k_scale, *v_scale; /* NULL: the cache is not int8 */
    const float *turns;       /* (positions, d): d/2 cosines, then d/2 sines */
    const int32_t *pos, *seq; /* (n_row) */
    const int32_t *blocks;    /* block table, or NULL: sequence s has unit s */
    int64_t qkv_stride, q_stride;
    int32_t n_q, n_kv, d, block, table_stride;
    int32_t type, kv_type; /* enum dtype: of qkv and q; of the cache */
    int32_t pairs;         /* rotates (2i, 2i + 1), else (i, i + d/2) */
};

struct rope_append_shape {
    int32_t rows, n_q, n_kv, d;
    enum dtype type, kv_type; /* of qkv and q; of the cache */
    bool
        aligned; /* q, qkv and their rows, the cache and the table begin at multiples of 16 bytes */
};
extern const struct card rope_append_cards[];
void rope_append_plan(const struct gpu *, const struct rope_append_shape *, struct launch *);
/* Bytes of the table of cosines and sines. */
int64_t rope_append_table_bytes(int32_t positions, int32_t d);

#ifdef __cplusplus
}
#endif
#endif
