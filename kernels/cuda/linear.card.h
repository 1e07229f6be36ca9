/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of linear: weights times up to 8 d rows, streamed. stages: 16-byte loads of a thread under
   way. Shared: a partial sum of 16 rows x 8 d tokens a warp; before it NF4's table of pairs. No
   tile of 4 where that of 8 is bound by memory too. */
#ifndef KERNELS_CUDA_LINEAR_CARD_H
#define KERNELS_CUDA_LINEAR_CARD_H

#define LINEAR_CARDS(CARD)                                                                         \
    CARD(linear_bf16_1, bf16, 1, 256, 2, 128, 4096, 8, 4096, 16, 8, 0, "emu, ptx")                 \
    CARD(linear_bf16_2, bf16, 2, 256, 2, 128, 8192, 8, 4096, 16, 16, 0, "emu, ptx")                \
    CARD(linear_bf16_8, bf16, 8, 256, 2, 128, 32768, 8, 4096, 16, 64, 0, "emu, ptx")               \
    CARD(linear_f16_1, f16, 1, 256, 2, 128, 4096, 8, 4096, 16, 8, 0, "emu, ptx")                   \
    CARD(linear_f16_8, f16, 8, 256, 2, 128, 32768, 8, 4096, 16, 64, 0, "emu, ptx")                 \
    CARD(linear_int8_1, int8, 1, 256, 2, 128, 4096, 8, 4096, 48, 48, 0, "emu, ptx")                \
    CARD(linear_int8_2, int8, 2, 256, 2, 128, 8192, 8, 4096, 48, 96, 0, "emu, ptx")                \
    CARD(linear_int8_8, int8, 8, 256, 1, 255, 32768, 12, 4096, 72, 576, 0, "emu, ptx")             \
    CARD(linear_int4_1, int4, 1, 256, 2, 128, 4096, 8, 4096, 48, 96, 0, "emu, ptx")                \
    CARD(linear_int4_2, int4, 2, 256, 2, 128, 8192, 8, 4096, 48, 192, 0, "emu, ptx")               \
    CARD(linear_int4_4, int4, 4, 256, 1, 255, 16384, 10, 4096, 60, 480, 0, "emu, ptx")             \
    CARD(linear_int4_8, int4, 8, 256, 1, 255, 32768, 10, 4096, 60, 960, 0, "emu, ptx")             \
    CARD(linear_nf4_1, nf4, 1, 256, 2, 128, 36864, 8, 4096, 48, 96, 0, "emu, ptx")                 \
    CARD(linear_nf4_2, nf4, 2, 256, 2, 128, 40960, 8, 4096, 48, 192, 0, "emu, ptx")                \
    CARD(linear_nf4_4, nf4, 4, 256, 1, 255, 49152, 10, 4096, 60, 480, 0, "emu, ptx")               \
    CARD(linear_nf4_8, nf4, 8, 256, 1, 255, 65536, 10, 4096, 60, 960, 0, "emu, ptx")               \
    CARD(linear_f32_1, f32, 1, 256, 2, 128, 0, 4, 4096, 4, 0, 0, "emu, ptx")

#endif
