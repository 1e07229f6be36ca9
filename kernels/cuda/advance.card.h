/* SPDX-License-Identifier: Apache-2.0 */
/* The card of advance: a sequence a thread. */
#ifndef KERNELS_CUDA_ADVANCE_CARD_H
#define KERNELS_CUDA_ADVANCE_CARD_H

#define ADVANCE_CARDS(CARD) CARD(advance_rows, i32, 1, 128, 8, 32, 0, 1, 512, 0, 0, 0, "emu, ptx")

#endif
