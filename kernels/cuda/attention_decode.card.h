/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of attention's decode form. type: of the cache; q has it too, or bf16 where it is int8. d:
   head size. _wide: 16 query rows and any head up to d, a multiple of 16; the others take 8 rows of
   heads of exactly d (256: up to d). Stages: the next tile's keys and this tile's values of 4
   warps.
 */
#ifndef KERNELS_CUDA_ATTENTION_DECODE_CARD_H
#define KERNELS_CUDA_ATTENTION_DECODE_CARD_H

#define ATTENTION_DECODE_EXACT_CARDS(CARD)                                                         \
    CARD(attention_decode_bf16_64, bf16, 64, 128, 4, 128, 8576, 2, 8192, 8, 12, 0, "emu, ptx")     \
    CARD(attention_decode_bf16_128, bf16, 128, 128, 3, 168, 16768, 2, 16384, 16, 24, 0,            \
         "emu, ptx")                                                                               \
    CARD(attention_decode_f16_64, f16, 64, 128, 4, 128, 8576, 2, 8192, 8, 12, 0, "emu, ptx")       \
    CARD(attention_decode_f16_128, f16, 128, 128, 3, 168, 16768, 2, 16384, 16, 24, 0, "emu, ptx")  \
    CARD(attention_decode_int8_64, int8, 64, 128, 5, 102, 8576, 2, 4096, 2, 12, 0, "emu, ptx")     \
    CARD(attention_decode_int8_128, int8, 128, 128, 3, 168, 16896, 2, 8192, 8, 24, 0, "emu, ptx")
#define ATTENTION_DECODE_WIDE_CARDS(CARD)                                                          \
    CARD(attention_decode_bf16_wide, bf16, 128, 128, 2, 255, 33536, 2, 16384, 16, 32, 0,           \
         "emu, ptx")                                                                               \
    CARD(attention_decode_f16_wide, f16, 128, 128, 2, 255, 33536, 2, 16384, 16, 32, 0, "emu, ptx") \
    CARD(attention_decode_int8_wide, int8, 128, 128, 3, 168, 33792, 2, 8192, 8, 32, 0, "emu, ptx")
#define ATTENTION_DECODE_LARGE_CARDS(CARD)                                                         \
    CARD(attention_decode_bf16_256, bf16, 256, 128, 2, 255, 33152, 1, 32768, 32, 48, 2,            \
         "emu, ptx")                                                                               \
    CARD(attention_decode_f16_256, f16, 256, 128, 2, 255, 33152, 1, 32768, 32, 48, 2, "emu, ptx")
#define ATTENTION_COMBINE_CARDS(CARD)                                                              \
    CARD(attention_combine, f32, 256, 256, 4, 64, 16512, 4, 4096, 1, 0, 0, "emu, ptx")

#define ATTENTION_DECODE_CARDS(CARD)                                                               \
    ATTENTION_DECODE_EXACT_CARDS(CARD)                                                             \
    ATTENTION_DECODE_WIDE_CARDS(CARD)                                                              \
    ATTENTION_DECODE_LARGE_CARDS(CARD)                                                             \
    ATTENTION_COMBINE_CARDS(CARD)

#endif
