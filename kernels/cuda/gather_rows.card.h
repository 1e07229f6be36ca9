/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of gather_rows: by 16 bytes, and for any alignment by 2. d: bytes that a thread moves at a
   time. */
#ifndef KERNELS_CUDA_GATHER_ROWS_CARD_H
#define KERNELS_CUDA_GATHER_ROWS_CARD_H

#define GATHER_ROWS_CARDS(CARD)                                                                    \
    CARD(gather_rows_16, bytes, 16, 256, 6, 40, 0, 1, 4096, 1, 0, 0, "emu, ptx")                   \
    CARD(gather_rows_2, bytes, 2, 256, 6, 40, 0, 1, 512, 0, 0, 0, "emu, ptx")

#endif
