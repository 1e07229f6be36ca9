/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt for many rows, loaded when a plan asks for it: never linked, since its library is large
 * and often absent. */
#ifndef KERNELS_CUDA_LT_H
#define KERNELS_CUDA_LT_H
#include "kernels/cuda/cuda.h"

struct facts;

enum { GEMM_AUTO, GEMM_OWN, GEMM_CUBLASLT }; /* device.gemm */

/* Loads it where the device's bounds have more than 64 rows; where
 * device.gemm says `auto` its absence is no failure. */
int cuda_lt_open(struct cuda *, struct err *);
void cuda_lt_close(struct cuda *);
int64_t cuda_lt_room(struct cuda *); /* workspace bytes of a plan with the device's bounds */
/* device.gemm_library and, once some ran, device.gemm_algorithms. */
void cuda_lt_describe(struct cuda *, struct facts *);
/* Whether it is loaded, so that float weights times more than 64 rows may go to it. */
bool cuda_lt_available(struct cuda *);
/* y (M, N) = x (M, K) W^T: W row-major (padded_rows, padded_cols) of x's type; y of x's type or
   f32; N = y->cols. Bias is for the kernel after it: ours is f32, the library's has y's type.
   Interleaved parts (gate, up) come out as the weight has them: 8 columns
   of the one, 8 of the other. f32 is full f32. False: it has no algorithm for this; the own kernels
   have. */
bool cuda_lt_linear(struct cuda *, struct tensor *y, const struct tensor *x,
                    const struct cuda_weight *);

#endif
