/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of the ops that measure the machine's limits. d: 16-byte loads of a thread in flight, or
   chains of sums that do not wait for each other. 1536 threads an SM: what every architecture has.
 */
#ifndef KERNELS_CUDA_CEILINGS_CARD_H
#define KERNELS_CUDA_CEILINGS_CARD_H

#define CEILINGS_CARDS(CARD)                                                                       \
    CARD(ceiling_copy, bytes, 4, 256, 6, 40, 0, 4, 4096, 4, 0, 0, "emu, ptx")                      \
    CARD(ceiling_read, bytes, 4, 256, 6, 40, 32, 4, 4096, 4, 0, 0, "emu, ptx")                     \
    CARD(ceiling_triad, f32, 2, 256, 6, 40, 0, 4, 4096, 4, 0, 0, "emu, ptx")                       \
    CARD(ceiling_fma_f32, f32, 8, 256, 6, 40, 0, 0, 0, 0, 0, 0, "emu, ptx")                        \
    CARD(ceiling_fma_f16, f16, 8, 256, 2, 128, 0, 0, 0, 0, 8, 0, "emu, ptx")                       \
    CARD(ceiling_fma_bf16, bf16, 8, 256, 2, 128, 0, 0, 0, 0, 8, 0, "emu, ptx")

#endif
