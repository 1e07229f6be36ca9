/* SPDX-License-Identifier: Apache-2.0 */
/* add_norm: what its kernels take, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_ADD_NORM_H
#define KERNELS_CUDA_ADD_NORM_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct add_norm_args { /* strides in elements */
    float *residual;
    const void *delta; /* NULL: nothing to add */
    void *y;           /* NULL: add only */
    const float *gain;
    int64_t residual_stride, delta_stride, y_stride;
    int32_t d;
    int32_t type; /* enum dtype, of delta and y */
    uint32_t eps; /* the bits of a float */
};

struct add_norm_shape {
    int32_t rows, d;
    enum dtype type; /* of delta and y */
    bool delta, y;
    bool aligned; /* every row of every tensor begins at a multiple of 16 bytes */
};
extern const struct card add_norm_cards[];
void add_norm_plan(const struct gpu *, const struct add_norm_shape *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
