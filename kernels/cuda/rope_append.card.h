/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of rope_append. d: the largest head, a power of two times 16, of which a lane takes 16
   values; 0: any head and alignment, a pair at a time. */
#ifndef KERNELS_CUDA_ROPE_APPEND_CARD_H
#define KERNELS_CUDA_ROPE_APPEND_CARD_H

#define ROPE_APPEND_CARDS(CARD)                                                                    \
    CARD(rope_append_512, any, 512, 128, 6, 80, 0, 6, 2048, 8, 0, 0, "emu, ptx")                   \
    CARD(rope_append_any, any, 0, 128, 8, 64, 0, 2, 256, 0, 0, 0, "emu, ptx")

#endif
