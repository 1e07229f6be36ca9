/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of training: everything f32 and dense, rows of all sequences one after the other, so that row
   r is position r % tokens of sequence r / tokens. Only ref and cpu have them. What comes out is
   the same bits whatever the number of threads, so that what is computed a second time, as
   checkpointing does (seed E54), is the same. Buffers do not overlap unless said. */
#ifndef KERNELS_LAB_TRAIN_H
#define KERNELS_LAB_TRAIN_H
#include <stdbool.h>
#include <stdint.h>

struct device;

/* c (rows, cols) = start + bias + a (rows, depth) b (depth, cols). Element (i, p) of a lies at
   a[i a_row + p a_step], (p, j) of b at b[p b_row + j b_step]: by its strides this is x W^T of a
   linear layer, dy W, the gradient of its input, or dy^T x, the gradient of its weight. */
struct lab_product {
    float *c;
    const float *a, *b;
    const float *start; /* (rows, cols), may be c; NULL: 0 */
    const float *bias;  /* (cols); NULL: 0 */
    int64_t rows, cols, depth, a_row, a_step, b_row, b_step;
};

/* RMSNorm: y = x inverse gain, inverse = 1 / sqrt(mean of x^2 + eps) of each row. */
struct lab_norm {
    float *y, *inverse; /* (rows, cols), (rows) */
    float *sum;         /* (rows, cols) x + delta, which then stands for x; NULL without delta */
    const float *x, *delta, *gain; /* (rows, cols), (rows, cols) or NULL, (cols) */
    int64_t rows, cols;
    float eps;
};
/* dx = start + inverse dy gain - x inverse^3 / cols (sum of dy gain x over the row); dgain = sum of dy x
   inverse over all rows. */
enum { LAB_PARTS = 16 };
struct lab_norm_back {
    float *dx, *dgain;                     /* (rows, cols), (cols) */
    float *parts;                          /* (LAB_PARTS, cols): room, its contents are lost */
    const float *dy, *x, *inverse, *gain;
    const float *start; /* (rows, cols), may be dx: what dx is added to; NULL: 0 */
    int64_t rows, cols;
};

/* Rotary positions in place, of the first heads d_h values of each row of `stride`; back: by the
   opposite angles, which is the gradient. Angles as in ops.h: pos base^(-2 i / d_h). */
struct lab_rope {
    float *x;
    int64_t rows, stride, tokens;
    int32_t heads, d_h;
    int style; /* enum rope_style */
    float base;
    bool back;
};

/* Causal attention with all its scores in memory. Rows of qkv are queries, keys and values of
   (n_q + 2 n_kv) heads; rows of o the n_q heads. */
struct lab_attend {
    float *o; /* (rows, n_q d_h) */
    float *p; /* (sequences, n_q, tokens, tokens) softmax, 0 above the diagonal */
    const float *qkv;
    int64_t sequences, tokens;
    int32_t n_q, n_kv, d_h;
    float scale;
};
/* With dp = dO v: ds = p (dp - sum of p dp over the row); dq = scale ds k; dk = scale ds^T q;
   dv = p^T dO, both summed over the query heads of a group. */
struct lab_attend_back {
    float *dqkv;                 /* as qkv; all of it is replaced */
    const float *d_o, *o, *p, *qkv;
    int64_t sequences, tokens;
    int32_t n_q, n_kv, d_h;
    float scale;
};

/* w -= rate (decay w + m' / (sqrt(v') + eps)) with m' = m / (1 - beta1^step), v' = v / (1 -
   beta2^step): AdamW (Loshchilov and Hutter, 2019, algorithm 2). step counts from 1. */
struct lab_adamw {
    float *w, *m, *v; /* (n) */
    const float *g;
    int64_t n, step;
    float rate, beta1, beta2, eps, decay;
};

/* One node of a graph without fusion (seed E53). y, a and b are (rows, cols) unless said. */
enum lab_map {
    MAP_ADD,          /* a + b */
    MAP_MULTIPLY,     /* a b */
    MAP_SCALE_ROWS,   /* a b, b (rows) */
    MAP_SCALE_COLS,   /* a b, b (cols) */
    MAP_SQUARE,       /* a a */
    MAP_SQUARE_BACK,  /* 2 a b */
    MAP_SIGMOID,      /* 1 / (1 + e^-a) */
    MAP_SIGMOID_BACK, /* b a (1 - a), a the sigmoid */
    MAP_RSQRT,        /* 1 / sqrt(a + constant) */
    MAP_RSQRT_BACK,   /* -b a^3 / 2, a the reciprocal root */
    MAP_SPREAD,       /* a constant; a (rows) */
    MAP_ROW_MEAN,     /* y (rows) mean of each row of a */
    MAP_ROW_SUM,      /* y (rows) */
    MAP_COL_SUM,      /* y (cols) sum of all rows of a */
    N_LAB_MAPS
};

struct lab_train {
    void (*product)(struct device *, const struct lab_product *);
    void (*norm)(struct device *, const struct lab_norm *);
    void (*norm_back)(struct device *, const struct lab_norm_back *);
    void (*rope)(struct device *, const struct lab_rope *);
    void (*attend)(struct device *, const struct lab_attend *);
    void (*attend_back)(struct device *, const struct lab_attend_back *);
    /* y (rows, cols) = gate / (1 + e^-gate) up; rows of gate_up are the gates, then the ups. */
    void (*swiglu)(struct device *, float *y, const float *gate_up, int64_t rows, int64_t cols);
    void (*swiglu_back)(struct device *, float *d_gate_up, const float *dy, const float *gate_up,
                        int64_t rows, int64_t cols);
    /* loss (rows) = ln(sum of e^logit) - the target's logit; logits (rows, cols) become their
       gradient, (softmax - one hot) scale. */
    void (*cross_entropy)(struct device *, float *loss, float *logits, const int32_t *target,
                          int64_t rows, int64_t cols, float scale);
    /* x (rows, cols) = rows of the table (ids, cols); the table's gradient grows by dx. */
    void (*embed)(struct device *, float *x, const float *table, const int32_t *token, int64_t rows,
                  int64_t cols);
    void (*embed_back)(struct device *, float *d_table, const float *dx, const int32_t *token,
                       int64_t rows, int64_t cols);
    void (*adamw)(struct device *, const struct lab_adamw *);
    void (*map)(struct device *, enum lab_map, float *y, const float *a, const float *b,
                int64_t rows, int64_t cols, float constant);
};

#endif
