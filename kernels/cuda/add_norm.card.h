/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of add_norm. d: eights of a row that a thread keeps in registers; 0: any width and
   alignment, a value at a time. Shared: one partial sum a warp. */
#ifndef KERNELS_CUDA_ADD_NORM_CARD_H
#define KERNELS_CUDA_ADD_NORM_CARD_H

#define ADD_NORM_CARDS(CARD)                                                                       \
    CARD(add_norm_bf16_2k, bf16, 2, 128, 8, 64, 16, 6, 2048, 10, 0, 0, "emu, ptx")                 \
    CARD(add_norm_bf16_8k, bf16, 2, 512, 2, 64, 64, 6, 8192, 10, 0, 0, "emu, ptx")                 \
    CARD(add_norm_bf16_any, bf16, 0, 256, 4, 64, 32, 2, 1024, 0, 0, 0, "emu, ptx")                 \
    CARD(add_norm_f16_2k, f16, 2, 128, 8, 64, 16, 6, 2048, 10, 0, 0, "emu, ptx")                   \
    CARD(add_norm_f16_8k, f16, 2, 512, 2, 64, 64, 6, 8192, 10, 0, 0, "emu, ptx")                   \
    CARD(add_norm_f16_any, f16, 0, 256, 4, 64, 32, 2, 1024, 0, 0, 0, "emu, ptx")                   \
    CARD(add_norm_f32_2k, f32, 2, 128, 8, 64, 16, 8, 2048, 12, 0, 0, "emu, ptx")                   \
    CARD(add_norm_f32_8k, f32, 2, 512, 2, 64, 64, 8, 8192, 12, 0, 0, "emu, ptx")                   \
    CARD(add_norm_f32_any, f32, 0, 256, 4, 64, 32, 2, 1024, 0, 0, 0, "emu, ptx")

#endif
