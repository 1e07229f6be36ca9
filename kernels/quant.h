/* SPDX-License-Identifier: Apache-2.0 */
/* The one definition of our quantized values (seeds E32, E35, E36): every device packs exactly
 * these codes and scales. */
#ifndef KERNELS_QUANT_H
#define KERNELS_QUANT_H
#include "kernels/dtype.h"

struct synth_matrix;

/* A weight matrix (rows, cols), row-major as the maths sees it: y[m][r] = sum over c of x[m][c] *
 * w[r][c]. */
struct weight_spec {
    const char *what; /* "layer 3 q": names the allocation and errors */
    int64_t rows, cols;
    enum dtype type;
    enum scale scale;
    int group;        /* SCALE_GROUP: consecutive columns per scale; the last group of a row may be
                         shorter. 0 otherwise */
    enum dtype input; /* what inner products take of x: DT_F32, its values as they are, or DT_I8,
                         its codes (quant_input): for int8 and int4 weights only */
};
/* Gives row r (cols floats) of the matrix; may be called in any order, from several threads, more
 * than once. */
struct row_source {
    void (*row)(void *ctx, int64_t r, float *out);
    void *ctx;
    const struct synth_matrix *recipe; /* what `row` computes, for devices that make such rows
                                          themselves; NULL: only `row` knows */
    /* The same row as it is stored, cols f16 or bf16 (`stored`), for devices that widen them faster
       than `row` does; NULL: it is not stored so. */
    void (*halves)(void *ctx, int64_t r, uint16_t *out);
    enum dtype stored;
};

int64_t quant_groups(
    const struct weight_spec *); /* scales per row: ceil(cols/group), 1 for row, 0 else */
int64_t quant_payload_bytes(
    const struct weight_spec *); /* codes only; 4-bit rows are padded to a whole byte */
/* Scales: tensor and row f32 (4 bytes), group f16 (2 bytes: seeds E35's 4.125 bits); 0 for
 * unquantized types. */
int64_t quant_scale_bytes(const struct weight_spec *);

/* Largest |w| of the whole matrix (needed first for SCALE_TENSOR). */
float quant_absmax(const struct weight_spec *, const struct row_source *);
/* One row: codes (cols, one int8 each: -128..127, -8..7, or NF4's 0..15) and scales (quant_groups
   floats, already rounded to the stored type; room for at least one: SCALE_TENSOR gives the
   matrix's own). scale = absmax/qmax, qmax = 127 or 7 (NF4: absmax), 1 for an all-zero group; code
   = clamp(rint(w/scale)). A group scale among f16's subnormals is the next one up where the nearest
   would clip a weight by more than scale/2. NF4: the nearest level of w/scale, ties to the lower
   code. NaN becomes 0. tensor_absmax is read for SCALE_TENSOR only. */
void quant_row(const struct weight_spec *, const float *w, float tensor_absmax, int8_t *codes,
               float *scales);
/* What the code means: code * scale, or nf4_levels[code] * scale. */
float quant_value(const struct weight_spec *, int8_t code, float scale);
/* The value that a device must compute with for each weight of the row: rounded or quantized and
 * dequantized. */
void quant_roundtrip(const struct weight_spec *, float *w, float tensor_absmax);

/* KV cache int8: one scale per (token, head) of d_h values; scale = absmax/127 in f32, 1 if all
 * zero. */
float quant_kv(const float *x, int d_h, int8_t *codes);

/* A row of x for a weight whose input is int8: one scale, absmax/127 in f32, 1 if all zero; codes
   rint(x/scale) within -127..127. A NaN or an infinity makes the scale NaN and every code 0, so
   that all products with the row are NaN. */
float quant_input(const float *x, int64_t n, int8_t *codes);
/* Inner products of codes are exact in int32 up to this many columns: 127 * 128 * 2^17 < 2^31. */
enum { QUANT_INPUT_COLS = 1 << 17 };
/* Why inner products of such weights take no such input, or NULL. */
const char *quant_input_refused(enum dtype weight, enum dtype input, int64_t cols);

#endif
