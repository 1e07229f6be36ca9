/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows: what its kernels take, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_GATHER_ROWS_H
#define KERNELS_CUDA_GATHER_ROWS_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gather_rows_args {
    void *y;
    const void *x;
    const int32_t *out_row;
    int64_t y_stride, x_stride, row_bytes; /* all in bytes */
    int32_t aligned;                       /* rows and their length are multiples of 16 bytes */
};

struct gather_rows_shape {
    int32_t rows;
    int64_t row_bytes;
};
extern const struct card gather_rows_cards[];
void gather_rows_plan(const struct gpu *, const struct gather_rows_shape *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
