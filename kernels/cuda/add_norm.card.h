/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of add_norm. d: eights of a row that a thread keeps in registers; 0: any width and
   alignment, a value at a time. Shared: one partial sum a warp. */
#ifndef KERNELS_CUDA_ADD_NORM_CARD_H
#define KERNELS_CUDA_ADD_NORM_CARD_H

#define ADD_NORM_CARDS(CARD)                                                                       \
    CARD(add_norm_2k, any, 2, 128, 8, 64, 16, 6, 2048, 12, 0, 0, "emu, ptx")                       \
    CARD(add_norm_8k, any, 2, 512, 2, 64, 64, 6, 8192, 12, 0, 0, "emu, ptx")                       \
    CARD(add_norm_any, any, 0, 256, 4, 64, 32, 2, 1024, 0, 0, 0, "emu, ptx")

#endif
