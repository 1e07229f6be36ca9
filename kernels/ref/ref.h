/* SPDX-License-Identifier: Apache-2.0 */
/* The reference device: one thread, plain loops, sums in f64, so that what every other device is
 * compared with does not err itself: a plain f32 sum of a thousand terms is worse than theirs. */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H
#include "base/err.h"
#include "kernels/device.h"

struct lab_flash;
struct lab_latent;
struct lab_train;

enum { REF_MOST_HEAD = 1024 }; /* largest d_h: one head fits on the stack */

struct ref {
    struct device base;
    struct err failed; /* the first failure since the last sync */
    struct op_counts counts;
    double *scores; /* (room) of one query head: each is computed once */
    int64_t room;
};

struct ref_weight {
    struct weight head;
    uint8_t *data; /* (rows, row_bytes): floats, or codes; 4-bit codes in pairs, the even column in
                      the low half */
    void *scales;  /* as stored: tensor (n_parts) f32, row (rows) f32, group (rows, groups) f16 */
    int64_t row_bytes, groups;
    int64_t *part_begin; /* (n_parts + 1) first row of each stacked part */
    int n_parts;
};

extern const struct ops ref_ops;
extern const struct lab_ops ref_lab;
extern const struct lab_train ref_lab_train; /* lab_train.c */
extern const struct lab_flash ref_lab_flash;
extern const struct lab_latent ref_lab_latent;
extern const struct device_kind device_ref;

/* Remembers the first failure for sync; returns whether `holds`. */
bool ref_expects(struct device *, bool holds, const char *sentence);
/* Dequantizes columns begin ... begin + n - 1 of a row. */
void ref_decode(const struct ref_weight *, int64_t row, int64_t begin, int64_t n, float *out);

/* Of quantized weights: the code at a place, and the scale that it has. */
int8_t ref_code(const struct ref_weight *, int64_t row, int64_t column);
float ref_scale(const struct ref_weight *, int64_t row, int64_t column);

/* cache.c: one head's values at a position; room for so many scores of one query head. */
void ref_rotate(float *head, int32_t d, int32_t p, const struct rope *);
double *ref_room(struct ref *, int64_t n);

void ref_embed(struct device *, struct tensor *x, const struct weight *, const struct step *);
void ref_add_norm(struct device *, struct tensor *y, struct tensor *residual,
                  const struct tensor *delta, const float *gain, float eps);
void ref_linear(struct device *, struct tensor *y, const struct tensor *x, const struct weight *,
                const float *bias, enum epilogue);
void ref_gather_rows(struct device *, struct tensor *y, const struct tensor *x,
                     const struct step *);
void ref_rope_append(struct device *, struct tensor *q, const struct kv *, const struct tensor *qkv,
                     const struct step *, const struct rope *);
void ref_attention(struct device *, struct tensor *o, const struct tensor *q, const struct kv *,
                   const struct step *, float scale);
void ref_kv_copy_block(struct device *, const struct kv *, int32_t from, int32_t to);
void ref_select(struct device *, struct step *, const struct tensor *logits,
                const struct sampler *);
void ref_advance(struct device *, const struct step *from, struct step *to, const struct sampler *);
void ref_copy(struct device *, void *to, const void *from, int64_t bytes);
void ref_read(struct device *, const void *from, int64_t bytes, float *sink);
void ref_triad(struct device *, float *a, const float *b, const float *c, float s, int64_t n);
void ref_fma_peak(struct device *, enum dtype, int64_t flops);

#endif
