/* SPDX-License-Identifier: Apache-2.0 */
/* What a device computes: coarse ops over packed rows of all sequences. An op exists only if
 * kernels/ref/ has it plainly. */
#ifndef KERNELS_OPS_H
#define KERNELS_OPS_H
#include <stdint.h>

#include "kernels/dtype.h"

struct device;
struct weight;

struct tensor { /* row-major; element (r, c) at data[r * stride + c] */
    void *data;
    enum dtype type; /* activations: f32 (all devices); f16 and bf16 where supported. Logits: f32 */
    int32_t rows, cols;
    int64_t stride; /* elements */
};

/* One forward step over rows of all sequences packed: decode is one row each; prefill and mixed
   steps are not. Counts are host-known bounds; the arrays live in device memory at fixed addresses.
 */
struct step {
    int32_t n_seq, n_row, n_out;
    int32_t most_q, most_kv; /* most rows of one sequence in this step; most kv_len */
    int32_t *token;          /* (n_row) */
    int32_t *pos;            /* (n_row) position in its sequence */
    int32_t *seq;            /* (n_row) 0 ... n_seq-1 */
    int32_t *q_begin;        /* (n_seq + 1) rows of sequence s are q_begin[s] ... q_begin[s+1]-1,
                                consecutive positions */
    int32_t *kv_len;  /* (n_seq) tokens resident once this step's rows are appended: last pos + 1 */
    int32_t *out_row; /* (n_out) rows whose logits are wanted */
    int32_t *next;    /* (n_out) sampled ids, written by select */
    int32_t *alive;   /* (n_seq) 1 until the end token was sampled */
    uint64_t *rng; /* (n_seq) key of the sequence's sampling stream; the counter is the position */
};

/* K and V of one layer. A unit is a block of `block` slots: element (unit u, head h, slot o, i)
 * lies at ((u * n_kv + h) * block + o) * d_h + i of k and of v; its int8 scale at (u * n_kv + h) *
 * block + o.
 *
 * Contiguous: table NULL, one unit a sequence, block = capacity: slot of position p is p.
 *
 * Window (window > 0, table NULL): ring of `block` >= window + most_q - 1 slots, slot p % block; a
 * row at position p attends to positions p-window+1 ... p only.
 *
 * Paged: unit of position p of sequence s is table[s * table_stride + p / block], slot p % block; a
 * window may be set too and then only masks. */
struct kv {
    enum dtype type; /* f32, f16, bf16, int8 */
    int32_t n_kv, d_h, window, block;
    void *k, *v;
    float *k_scale, *v_scale; /* int8 only, else NULL */
    int32_t *table;           /* device memory, or NULL */
    int32_t table_stride;     /* blocks per sequence in the table */
};

enum epilogue { EPI_NONE, EPI_SWIGLU };
enum rope_style { ROPE_HALVES, ROPE_PAIRS }; /* rotates (i, i + d/2), or (2i, 2i + 1) */
struct rope {                                /* what an angle is: kernels/rope.h */
    float base;
    enum rope_style style;
    const float
        *factor;   /* host memory, (d_h / 2): pair i turns so many times slower; NULL: 1 each */
    float magnify; /* cosine and sine are multiplied by it; 0: 1 */
};
struct sampler {
    float temperature; /* 0: greedy (largest logit, ties to the lowest id); > 0: Gumbel-max over
                          logits/temperature with u = random_unit(rng[s], pos * 2^32 + id), g =
                          -log(-log(u + 2^-54)) in double */
    int32_t end_id;    /* -1: none */
};

enum op {
    OP_EMBED,
    OP_ADD_NORM,
    OP_LINEAR,
    OP_ROPE_APPEND,
    OP_ATTENTION,
    OP_GATHER_ROWS,
    OP_SELECT,
    OP_ADVANCE,
    OP_KV_COPY_BLOCK,
    OP_COPY,
    OP_READ,
    OP_TRIAD,
    OP_FMA_PEAK,
    N_OPS
};
extern const char *const op_names[N_OPS + 1];

/* Stream-ordered, return nothing; the first failure sticks and sync reports it. Accumulation in f32
   (ref: f64); outputs are rounded to their tensor's type exactly where an op ends.
   Tensors never alias unless said. */
struct ops {
    /* x (n_row, d) = row token[r] of the weight (vocab, d), dequantized. */
    void (*embed)(struct device *, struct tensor *x, const struct weight *, const struct step *);
    /* delta != NULL: residual += delta. Then y = residual / sqrt(mean(residual^2) + eps) * gain
       (RMSNorm, Zhang & Sennrich 2019). residual is f32; y may be NULL (add only). All (n_row, d).
       gain (d), device memory; may be NULL where y is. */
    void (*add_norm)(struct device *, struct tensor *y, struct tensor *residual,
                     const struct tensor *delta, const float *gain, float eps);
    /* y (M, N) = x (M, K) * W^T (+ bias (N), or NULL), W (N, K). EPI_SWIGLU: W stacks gate (N rows)
       and up (N rows): y = silu(gate) * up, silu(z) = z / (1 + exp(-z)); bias must be NULL.
       Where the weight's input is int8, x is f32 and each of its rows is rounded to codes with one
       scale s (quant_input); codes are multiplied and added exactly, in int32, apart for each group
       of the weight's scales (else one group: all columns), and x * W^T is s * (sum over groups, in
       their order, of the group's scale * (float)its sum), each step rounded to f32: the same bits
       on every device. A row of x with a NaN or an infinity gives NaN everywhere. */
    void (*linear)(struct device *, struct tensor *y, const struct tensor *x, const struct weight *,
                   const float *bias, enum epilogue);
    /* qkv (n_row, (n_q + 2 n_kv) d_h): rotates q into q (n_row, n_q d_h) and k into the cache,
       copies v into the cache. Angle of pair i at position p: p * base^(-2i/d_h) (Su et al. 2021)
       / factor[i]; angle, cosine and sine in double, the last two times magnify, then rounded to
       f32. rope->factor is read before the call returns. */
    void (*rope_append)(struct device *, struct tensor *q, const struct kv *,
                        const struct tensor *qkv, const struct step *, const struct rope *);
    /* o (n_row, n_q d_h) = softmax(q k^T * scale) v over positions max(0, p-window+1) ... p; query
       head h uses KV head h / (n_q / n_kv). */
    void (*attention)(struct device *, struct tensor *o, const struct tensor *q, const struct kv *,
                      const struct step *, float scale);
    /* y (n_out, d) = rows out_row[] of x. */
    void (*gather_rows)(struct device *, struct tensor *y, const struct tensor *x,
                        const struct step *);
    /* step->next[o] from logits (n_out, vocab) f32. */
    void (*select)(struct device *, struct step *, const struct tensor *logits,
                   const struct sampler *);
    /* For each o of from: s = seq[out_row[o]]; in `to` (a decode step: one row a sequence, row
       q_begin[s]): token = next[o], pos = from->kv_len[s], kv_len[s] = from->kv_len[s] + 1,
       alive[s] &= next[o] != end_id. from == to is allowed. */
    void (*advance)(struct device *, const struct step *from, struct step *to,
                    const struct sampler *);
    /* Copies unit `from` to unit `to` (K, V and scales): copy-on-write. */
    void (*kv_copy_block)(struct device *, const struct kv *, int32_t from, int32_t to);
    /* Ceilings. Sizes are multiples of 4096 bytes, pointers 64-byte aligned. copy: 2 bytes moved a
     * byte. */
    void (*copy)(struct device *, void *to, const void *from, int64_t bytes);
    void (*read)(struct device *, const void *from, int64_t bytes,
                 float *sink); /* every byte is used */
    void (*triad)(struct device *, float *a, const float *b, const float *c, float s,
                  int64_t n); /* a = b + s c */
    /* Exactly `flops` (a multiple of 2^22) of independent multiply-adds in registers, spread over
     * all threads; int8: of codes, in int32, as products with int8 inputs do. */
    void (*fma_peak)(struct device *, enum dtype, int64_t flops);
};

#endif
