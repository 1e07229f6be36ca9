/* SPDX-License-Identifier: Apache-2.0 */
/* Card of attention's plain form: any types, any head. */
#ifndef KERNELS_CUDA_ATTENTION_PLAIN_CARD_H
#define KERNELS_CUDA_ATTENTION_PLAIN_CARD_H

#define ATTENTION_PLAIN_CARDS(CARD)                                                                \
    CARD(attention_plain, any, 0, 128, 4, 128, 22048, 1, 512, 0, 0, 0, "emu, ptx")

#endif
