/* SPDX-License-Identifier: Apache-2.0 */
/* Card of attention's plain form: any types, any head. f32 decodes with it, keys split as the
   decode form splits them: tensor cores would round f32 to TF32. */
#ifndef KERNELS_CUDA_ATTENTION_PLAIN_CARD_H
#define KERNELS_CUDA_ATTENTION_PLAIN_CARD_H

#define ATTENTION_PLAIN_CARDS(CARD)                                                                \
    CARD(attention_plain, any, 0, 128, 4, 128, 22048, 1, 512, 0, 0, 0, "emu, ptx")

#endif
