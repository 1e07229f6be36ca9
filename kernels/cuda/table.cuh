/* SPDX-License-Identifier: Apache-2.0 */
/* From an op's cards to its kernels: KERNEL_TABLE after them makes NAME_launch and NAME_load. */
#ifndef KERNELS_CUDA_TABLE_CUH
#define KERNELS_CUDA_TABLE_CUH
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launches.h"

#define KERNEL_OF(name, ...) name,
/* The rows of CARDS and of NAME_cards are the same, in the same order. */
#define KERNEL_LAUNCH(op, CARDS)                                                                   \
    static void (*const op##_kernels[])(struct op##_args) = {CARDS(KERNEL_OF)};                    \
    cudaError_t op##_launch(const struct launch *l, cudaStream_t stream, bool pdl,                 \
                            const struct op##_args *args) {                                        \
        return launch_kernel(op##_kernels[l->card - op##_cards], *l, {stream, pdl}, *args);        \
    }
#define KERNEL_LOAD(load, op)                                                                      \
    cudaError_t load(void) {                                                                       \
        for (size_t i = 0; i < sizeof op##_kernels / sizeof *op##_kernels; i++) {                  \
            const cudaError_t e = load_kernel(op##_kernels[i], op##_cards[i]);                     \
            if (e != cudaSuccess) return e;                                                        \
        }                                                                                          \
        return cudaSuccess;                                                                        \
    }
#define KERNEL_TABLE(op, CARDS) KERNEL_LAUNCH(op, CARDS) KERNEL_LOAD(op##_load, op)

#endif
