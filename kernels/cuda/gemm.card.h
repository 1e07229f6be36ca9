/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of gemm: tiles of 128 x 128 of y, 32 columns of x and w a stage. */
#ifndef KERNELS_CUDA_GEMM_CARD_H
#define KERNELS_CUDA_GEMM_CARD_H

#define GEMM_CARDS(CARD)                                                                           \
    CARD(gemm_bf16, bf16, 128, 128, 2, 255, 65536, 4, 16384, 0, 64, 0, "emu, ptx")                 \
    CARD(gemm_f16, f16, 128, 128, 2, 255, 65536, 4, 16384, 0, 64, 0, "emu, ptx")

#endif
