/* SPDX-License-Identifier: Apache-2.0 */
/* The card of gather_rows. d: bytes that a thread moves, at once or by 2. */
#ifndef KERNELS_CUDA_GATHER_ROWS_CARD_H
#define KERNELS_CUDA_GATHER_ROWS_CARD_H

#define GATHER_ROWS_CARDS(CARD)                                                                    \
    CARD(gather_rows, bytes, 16, 256, 6, 40, 0, 1, 4096, 1, 0, 0, "emu, ptx")

#endif
