/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over other histories than all K and V: a latent that every head rebuilds its own from
 * (E17), and the blocks of a paged cache that a row finds most like its queries (E18). */
#ifndef KERNELS_LAB_LATENT_H
#define KERNELS_LAB_LATENT_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/ops.h"

enum {
    LATENT_MOST = 2048
}; /* values of latent + rotary, and of d_h + rotary: they lie on a stack */

/* MLA (DeepSeek-V2, arXiv 2405.04434, section 2.1): of a token in a layer, c and the key that
 * carries its position, k_R; for all heads. */
struct latent_cache {
    enum dtype type; /* f32, f16, bf16 */
    int32_t latent, rotary;
    int32_t capacity; /* tokens of a sequence */
    void *rows;       /* (n_seq, capacity, latent + rotary): c, then k_R */
};
/* What heads rebuild: K = W_K c and V = W_V c. Device memory. */
struct latent_heads {
    int32_t n_q, d_h;
    const float *k, *v; /* W_K, W_V: (n_q, d_h, latent) each */
    float *room;        /* (2, n_row, n_q, latent + rotary) for a device that wants it; or NULL */
};
enum latent_form {
    LATENT_ABSORBED, /* q W_K once a head and row, then c itself is key and value, then W_V */
    LATENT_REBUILT,  /* K and V of every token and head, then attention as always */
};

/* For each block of a paged cache the mean of its keys, which stands for them when blocks are
 * chosen (as in MoBA, arXiv 2502.13189, section 2.2). */
struct block_means {
    enum dtype type; /* f32, f16, bf16 */
    int32_t most;    /* blocks of a sequence */
    void *means;     /* (n_seq, most, n_kv, d_h) */
    float *scores;   /* (n_seq, most) of the last choice */
};
/* The blocks that each sequence of a decode step attends to: a cache and a step of fewer tokens,
 * for `attention`. */
struct block_choice {
    int32_t most;    /* k: blocks of a sequence; the newest is always among them */
    int32_t *table;  /* (n_seq, most) ascending in position, of the units of the cache */
    int32_t *pos;    /* (n_row) of the row among the chosen tokens: it is the last of them */
    int32_t *kv_len; /* (n_seq) chosen tokens */
};

/* Stream-ordered, as the ops of ops.h; sums in f32 (ref: f64), one order whatever the number of
 * threads. */
struct lab_latent {
    /* x (n_row, n_q (d_h + rotary) + latent + rotary): queries into q (n_row, n_q (d_h + rotary)),
       the last `rotary` values of each head rotated by the row's position; c into the cache as it
       is, k_R rotated (angles as rope_append, d_h being `rotary`; rotary is even and may be 0). */
    void (*append)(struct device *, struct tensor *q, const struct latent_cache *,
                   const struct latent_heads *, const struct tensor *x, const struct step *,
                   const struct rope *);
    /* o (n_row, n_q d_h) = softmax((q_C K + q_R k_R) scale) V over positions 0 ... p, q as append
       leaves it. Both forms are the same sums in another order. */
    void (*attention)(struct device *, struct tensor *o, const struct tensor *q,
                      const struct latent_cache *, const struct latent_heads *, const struct step *,
                      float scale, enum latent_form);
    /* Each row's block: the mean of the keys from the block's first position to the row's. Rows of
       one sequence in one block: the last one stays. kv: f32, f16, bf16, with a table. */
    void (*summarize)(struct device *, const struct block_means *, const struct kv *,
                      const struct step *);
    /* Scores of all blocks but the newest: the sum over query heads of q times the mean of their
       KV head; NaN is the lowest. The k - 1 highest (of equal ones the earliest) and the newest
       block are chosen. A decode step: at most one row of each sequence. */
    void (*choose)(struct device *, const struct block_choice *, const struct block_means *,
                   const struct tensor *q, const struct kv *, const struct step *);
};

/* Where value 0 of position p of sequence s lies. */
static inline int64_t latent_row(const struct latent_cache *c, int32_t s, int32_t p) {
    return ((int64_t)s * c->capacity + p) * (c->latent + c->rotary);
}

/* Whether queries (append and attention), heads and the cache belong together. */
static inline bool latent_fits(const struct tensor *q, const struct latent_cache *c,
                               const struct latent_heads *heads) {
    return c->latent > 0 && c->rotary >= 0 && c->rotary % 2 == 0 && heads->n_q > 0 &&
           heads->d_h > 0 && c->latent + c->rotary <= LATENT_MOST &&
           heads->d_h + c->rotary <= LATENT_MOST &&
           q->cols == heads->n_q * (heads->d_h + c->rotary);
}

/* The second half of `choose`, for row r of the step, whose sequence's scores are there. Scores of
   what is chosen become -infinity, which no other score is. */
static inline void block_take(const struct block_choice *choice, const struct block_means *m,
                              const struct kv *kv, const struct step *step, int64_t r) {
    const int32_t s = step->seq[r], p = step->pos[r], newest = p / kv->block;
    const int32_t wanted = newest < choice->most ? newest : choice->most - 1;
    const int32_t *units = kv->table + (int64_t)s * kv->table_stride;
    int32_t *table = choice->table + (int64_t)s * choice->most, n = 0;
    float *scores = m->scores + (int64_t)s * m->most;
    for (int32_t taken = 0; taken < wanted; taken++) {
        int32_t best = -1;
        for (int32_t b = 0; b < newest; b++)
            if (scores[b] > -INFINITY && (best < 0 || scores[b] > scores[best])) best = b;
        scores[best] = -INFINITY;
    }
    for (int32_t b = 0; b < newest; b++)
        if (scores[b] == -INFINITY) table[n++] = units[b];
    table[n] = units[newest];
    choice->pos[r] = n * kv->block + p % kv->block;
    choice->kv_len[s] = choice->pos[r] + 1;
}

#endif
