/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of synth: what makes synthetic weights where they lie. */
#ifndef KERNELS_CUDA_SYNTH_CARD_H
#define KERNELS_CUDA_SYNTH_CARD_H

#define SYNTH_CARDS(CARD)                                                                          \
    CARD(synth_floats, any, 1, 256, 4, 64, 0, 0, 0, 0, 0, 0, "emu, ptx")                           \
    CARD(synth_maxima, f32, 1, 256, 4, 64, 0, 0, 0, 0, 0, 0, "emu, ptx")                           \
    CARD(synth_spread, f32, 1, 256, 4, 64, 32, 1, 1024, 0, 0, 0, "emu, ptx")                       \
    CARD(synth_codes, any, 1, 256, 4, 64, 2048, 0, 0, 0, 0, 0, "emu, ptx")

#endif
