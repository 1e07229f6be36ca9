/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward and backward twice: naive, with the matrix of probabilities in memory, and by
   tiles, which keep one number a row and compute scores anew in the backward pass
   (FlashAttention-2: Dao 2023; online softmax: Milakov and Gimelshein 2018; seeds E55, E56).

   S = scale Q K^T, P = softmax of its rows, O = P V; L = m + ln l of a row with the largest score m
   and l = sum exp(S - m). Backward: dV = P^T dO, dP = dO V^T, D = rowsum(O * dO) = rowsum(P * dP),
   dS = P * (dP - D), dQ = scale dS K, dK = scale dS^T Q. */
#ifndef KERNELS_LAB_FLASH_H
#define KERNELS_LAB_FLASH_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops.h"

/* All operands, f32, in device memory. A tensor of queries has rows (n_seq queries), of keys (n_seq
   keys), of one sequence after the other, and columns (heads d_h), so that a row's head lies at
   row * stride + head * d_h: parts of a wider tensor (q of qkv) and single heads are operands too.
   None overlap. */
struct lab_attention {
    int32_t n_seq, queries, keys, heads, d_h;
    float scale; /* of scores: 1 / sqrt(d_h) */
    /* Query i of a sequence sees keys 0 ... i + keys - queries only (the last one sees all). One
     * that sees no key has O = 0, L = -inf and no part in any gradient. */
    bool causal;
    int32_t rows, columns; /* of a tile, from 1 on: queries and keys; larger than there are: all */
    const struct tensor *q, *k, *v;
    struct tensor *o;         /* written by forward; read by tiled_backward */
    const struct tensor *d_o; /* backward; as o */
    struct tensor *dq, *dk, *dv;
    float *p;    /* naive: (n_seq, heads, queries, keys), written by forward, read by backward */
    float *ds;   /* naive backward: likewise; dS afterwards */
    float *lse;  /* tiled: (n_seq, heads, queries) L, written by forward, read by backward */
    float *d;    /* tiled backward: (n_seq, heads, queries) D, written */
    float *room; /* as large as room_bytes says; what it holds does not matter */
};

struct lab_flash {
    /* Bytes of tiles that the four ops want in `room`: of all threads together; they do not grow
       with queries and keys, but for one row of scores of each thread. Needs no pointers. */
    int64_t (*room_bytes)(struct device *, const struct lab_attention *);
    void (*naive_forward)(struct device *, const struct lab_attention *);
    void (*naive_backward)(struct device *, const struct lab_attention *);
    void (*tiled_forward)(struct device *, const struct lab_attention *);
    void (*tiled_backward)(struct device *, const struct lab_attention *);
};

/* Keys that query i sees; 0 or less: none. */
static inline int32_t lab_keys_seen(const struct lab_attention *a, int32_t i) {
    return a->causal ? i + a->keys - a->queries + 1 : a->keys;
}

/* What does not fit together, or NULL; for the ops themselves. */
static inline const char *lab_attention_refused(const struct lab_attention *a, bool naive,
                                                bool backward) {
    const struct tensor *queries[] = {a->q, a->o, a->d_o, a->dq}, *keys[] = {a->k, a->v, a->dk,
                                                                             a->dv};
    /* Naive's backward pass has no use for O, forward none for gradients. */
    const bool wanted[2][4] = {{true, !naive || !backward, backward, backward},
                               {true, true, backward, backward}};
    if (a->n_seq < 1 || a->queries < 1 || a->keys < 1 || a->heads < 1 || a->d_h < 1 ||
        a->rows < 1 || a->columns < 1)
        return "flash: counts and tiles are at least 1";
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < 4; i++) {
            const struct tensor *t = side == 0 ? queries[i] : keys[i];
            if (!wanted[side][i]) continue;
            if (!t || t->type != DT_F32 || t->cols != (int64_t)a->heads * a->d_h ||
                t->rows != (int64_t)a->n_seq * (side == 0 ? a->queries : a->keys))
                return "flash: an operand is missing or has another shape or type";
        }
    const bool kept = naive ? a->p && (!backward || a->ds) : a->lse && (!backward || a->d);
    return kept ? NULL : "flash: no memory for what is kept";
}

/* How far results of two of these ops may lie apart, of the largest value of their matrix, where
   both compute in f32 and no score is beyond `most_score`. Where all terms cancel (gradients are
   zero where one key has all the weight), of a term over the keys: the largest |V| for O, |dO| for
   dV, |dO| |V| |K| for dQ, |dO| |V| |Q| for dK. With u = 2^-24 each exponential of the tiled
   backward pass has the relative error u (|L| + |S - L|) from rounding L and the difference, 2 u
   most_score at most beside its own few u; sums of n terms wander by about u sqrt(n) of their
   largest part sums, which exceed the sums by about sqrt(n) / 8 where terms cancel as random ones
   do, hence 16 u sqrt(n) for scores (d_h) and for values and gradients (queries, keys). */
static inline double lab_flash_tolerance(const struct lab_attention *a, double most_score) {
    const double most = fmax(fmax(a->queries, a->keys), a->d_h);
    return 0x1p-24 * (32 + 4 * most_score + 16 * sqrt(most));
}

#endif
