/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of slab: what fills and empties workspace around the matrix products. */
#ifndef KERNELS_CUDA_SLAB_CARD_H
#define KERNELS_CUDA_SLAB_CARD_H

#define SLAB_CARDS(CARD)                                                                           \
    CARD(slab_pad, any, 1, 256, 4, 64, 0, 1, 1024, 0, 0, 0, "emu, ptx")                            \
    CARD(slab_dequantize, any, 1, 256, 4, 64, 0, 1, 4096, 1, 0, 0, "emu, ptx")                     \
    CARD(slab_finish, f32, 1, 256, 4, 64, 0, 1, 1024, 0, 0, 0, "emu, ptx")

#endif
