/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that load and launch kernels: apart from their plans, which need no CUDA header.
   load: every instantiation; launch: the kernel of the launch's card with one argument struct. */
#ifndef KERNELS_CUDA_LAUNCHES_H
#define KERNELS_CUDA_LAUNCHES_H
#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "kernels/cuda/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif
#define CUDA_LAUNCH(name)                                                                          \
    struct name##_args;                                                                            \
    cudaError_t name##_launch(const struct launch *, cudaStream_t, bool pdl,                       \
                              const struct name##_args *);                                         \
    cudaError_t name##_load(void);
CUDA_LAUNCH(embed)
CUDA_LAUNCH(add_norm)
CUDA_LAUNCH(linear) /* its load, in linear.op.c, is that of the next two too */
CUDA_LAUNCH(gemm)
CUDA_LAUNCH(slab)
CUDA_LAUNCH(rope_append)
CUDA_LAUNCH(attention_decode)
CUDA_LAUNCH(attention_prefill)
CUDA_LAUNCH(attention_plain)
CUDA_LAUNCH(gather_rows)
CUDA_LAUNCH(select)
CUDA_LAUNCH(advance)
CUDA_LAUNCH(kv_copy_block)
CUDA_LAUNCH(ceilings)
CUDA_LAUNCH(synth)
#undef CUDA_LAUNCH
cudaError_t linear_own_load(void); /* of linear.cu alone */
cudaError_t attention_load(void);  /* of its three forms */
#ifdef __cplusplus
}
#endif
#endif
