/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the CUDA device: what its three groups of kernels take, and how shapes become
   launches. linear: up to 64 rows, weights streamed once from memory; gemm: more rows; slab: fills
   and empties workspace around both. */
#ifndef KERNELS_CUDA_LINEAR_H
#define KERNELS_CUDA_LINEAR_H
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FEW_ROWS = 64 }; /* of x, up to which weights are streamed */

/* Where products go. A row of the weight, as data has them, is a column of y, or with SwiGLU half
   of one: see linear_out.cuh. */
struct linear_out {
    void *y;
    const float *bias;  /* (cols), or NULL */
    int64_t stride;     /* elements, of y */
    int32_t type, cols; /* of y */
    int32_t half;       /* rows of a part where two are interleaved by 8 rows, else 0 */
    int32_t swiglu;     /* of interleaved parts, within the kernel */
    int32_t pairs;      /* two neighbours of y may be written at once */
};

/* ---- linear ---- */

struct linear_args {
    const void *w, *scales, *x;
    struct linear_out out;
    int64_t x_stride;    /* elements; rows begin at multiples of 16 bytes */
    int32_t m;           /* rows of x */
    int32_t cols;        /* padded: x has zeros from K to here */
    int32_t tiles;       /* of 16 rows of w */
    int32_t groups;      /* scales of a row */
    int32_t group_shift; /* columns of a group = 2^shift; 0: one f32 scale per row */
};

struct linear_shape {
    enum dtype weight;
    int32_t m, tiles, cols, groups, group_shift;
    enum dtype y_type;
    int32_t y_cols;
    bool swiglu;
};
extern const struct card linear_cards[];
void linear_plan(const struct gpu *, const struct linear_shape *, struct launch *);

/* ---- gemm ---- */

struct gemm_args {
    const void *x, *w; /* (m, cols) and (rows, cols) of the same type */
    struct linear_out out;
    int64_t x_stride;  /* elements; rows begin at multiples of 16 bytes */
    int32_t m, cols;   /* cols as above; rows of w lie as far apart */
    int32_t rows;      /* of w here */
    int32_t first_row; /* of the whole weight's rows, where w is a slab of it */
    int32_t m_tiles, n_tiles;
};

enum { GEMM_TILE = 128 };
struct gemm_shape {
    enum dtype type;
    int32_t m, rows, cols;
    enum dtype y_type;
    bool swiglu;
};
extern const struct card gemm_cards[];
void gemm_plan(const struct gpu *, const struct gemm_shape *, struct launch *);

/* ---- slab ---- */

struct slab_args {
    const void *from, *scales;
    void *to; /* (rows, cols) */
    struct linear_out out;
    int64_t from_stride; /* elements */
    int32_t rows, cols;
    int32_t type;      /* of the elements, or of the codes */
    int32_t from_cols; /* pad: columns that there are */
    int32_t groups, group_shift;
    int32_t up; /* finish with SwiGLU: from a gate's column to its up's, where they are not
                   interleaved */
};

/* pad: x (rows, from_cols) into rows of cols, zeros behind; elements of 2 or 4 bytes.
   dequantize: tiles of codes into row-major bf16; rows a multiple of 16.
   finish: f32 (rows, cols), columns as the weight's rows lie, into y. */
enum slab_task { SLAB_PAD, SLAB_DEQUANTIZE, SLAB_FINISH };
extern const struct card slab_cards[]; /* one a task, in this order */
void slab_plan(const struct gpu *, enum slab_task, const struct slab_args *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
