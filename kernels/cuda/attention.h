/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's three forms: what their kernels take, and how a shape becomes launches. decode: few
   query rows per KV head, on tensor cores, keys split among blocks; prefill: many rows of a
   sequence, on tensor cores; plain: any type and size, keys of few rows split too. A step may need
   decode and prefill both: each takes the sequences that are its own. */
#ifndef KERNELS_CUDA_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_H
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of one split of decode: fixed, so that a sequence's bits do not depend on what else runs. */
enum { ATTENTION_SPLIT = 512, ATTENTION_TILE = 16 };

struct attention_args { /* of every form; strides in elements */
    const void *q;
    void *o;
    const void *k, *v;
    const float *k_scale, *v_scale; /* int8 only */
    const int32_t *table;           /* blocks, or NULL: sequence s has unit s */
    const int32_t *q_begin, *kv_len;
    int64_t q_stride, o_stride;
    int32_t n_seq, n_kv, d, window, block, table_stride;
    int32_t group;    /* query heads of a KV head */
    int32_t few;      /* most rows of a sequence that is decode's; the others are prefill's */
    int32_t o_type;   /* enum dtype */
    float scale_log2; /* of scores, times log2(e): softmax in powers of two */
};

struct attention_decode_args { /* also of attention_combine, which adds up the splits of both */
    struct attention_args of;
    float *sums;   /* (n_seq, most_rows, query heads, splits, d): of values, weighted */
    float *states; /* the same without d, (largest score, sum of weights) each */
    int32_t most_rows, splits;
    int32_t passes; /* blocks that share a KV head's rows */
};
struct attention_prefill_args {
    struct attention_args of;
};
struct attention_plain_args {
    struct attention_decode_args parts; /* passes: unused */
    const int32_t *pos, *seq;           /* (rows) */
    int32_t q_type, kv_type;
};

struct attention_shape {
    int32_t n_seq, n_row, most_q;
    int32_t most_kv; /* that grids are made for */
    int32_t n_q, n_kv, d, window;
    enum dtype q_type, o_type, kv_type;
    bool aligned; /* q, o, k, v and the rows of q and o begin at multiples of 16 bytes */
};
/* Whether the tensor-core forms take it; else all rows are plain's. */
bool attention_is_fast(const struct attention_shape *);
/* Most rows of one sequence that are decode's: 16 query rows per KV head, at least one row. */
int32_t attention_few(int32_t n_q, int32_t n_kv);
/* Keys that any of so many last rows of a sequence see. */
int32_t attention_seen(const struct attention_shape *, int32_t rows);
/* Whether a sequence may have as few rows as are decode's: not where all have the most. */
bool attention_some_are_few(const struct attention_shape *);
/* Most of one sequence; 1 where heads are such that their sums cannot be added by fours. */
int32_t attention_splits(const struct attention_shape *);
int32_t attention_passes(
    const struct attention_shape *); /* of decode, over the rows of a KV head */
/* Floats of decode's partial sums, or of their states; 0 where one split is enough. */
int64_t attention_part_floats(const struct attention_shape *, bool states);
/* What must be moved where `rows` rows are read and written, and computed. */
double attention_bytes(const struct attention_shape *, int32_t rows);
double attention_flops(const struct attention_shape *);

extern const struct card attention_decode_cards[], attention_prefill_cards[],
    attention_plain_cards[];
/* launch.card NULL: nothing to do. */
void attention_decode_plan(const struct gpu *, const struct attention_shape *, struct launch *);
void attention_combine_plan(const struct gpu *, const struct attention_shape *, struct launch *);
void attention_prefill_plan(const struct gpu *, const struct attention_shape *, struct launch *);
void attention_plain_plan(const struct gpu *, const struct attention_shape *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
