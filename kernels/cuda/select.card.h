/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of select: the best of each piece of a row's logits, greedy or sampled, then the best of
   the pieces. d: most pieces of a row. Shared: the best of each warp. */
#ifndef KERNELS_CUDA_SELECT_CARD_H
#define KERNELS_CUDA_SELECT_CARD_H

#define SELECT_CARDS(CARD)                                                                         \
    CARD(select_pieces, f32, 64, 256, 4, 64, 128, 1, 4096, 1, 0, 0, "emu, ptx")                    \
    CARD(select_best, f64, 64, 64, 8, 64, 32, 1, 1024, 0, 0, 0, "emu, ptx")

#endif
