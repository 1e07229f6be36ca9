/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of attention's prefill form. type: of the cache; q has it too, or bf16 where it is int8. d:
   heads up to it, multiples of 16. A stage is a tile of keys or of values. */
#ifndef KERNELS_CUDA_ATTENTION_PREFILL_CARD_H
#define KERNELS_CUDA_ATTENTION_PREFILL_CARD_H

/* 128 queries x 64 keys */
#define ATTENTION_PREFILL_TALL_CARDS(CARD)                                                         \
    CARD(attention_prefill_bf16_64, bf16, 64, 128, 2, 255, 32768, 1, 8192, 0, 128, 0, "emu, ptx")  \
    CARD(attention_prefill_bf16_128, bf16, 128, 128, 2, 255, 65536, 1, 16384, 0, 256, 3,           \
         "emu, ptx")                                                                               \
    CARD(attention_prefill_f16_64, f16, 64, 128, 2, 255, 32768, 1, 8192, 0, 128, 0, "emu, ptx")    \
    CARD(attention_prefill_f16_128, f16, 128, 128, 2, 255, 65536, 1, 16384, 0, 256, 3, "emu, ptx") \
    CARD(attention_prefill_int8_64, int8, 64, 128, 2, 255, 33280, 1, 4096, 0, 128, 0, "emu, ptx")  \
    CARD(attention_prefill_int8_128, int8, 128, 128, 2, 255, 66048, 1, 8192, 0, 256, 3, "emu, ptx")
/* 64 queries x 32 keys */
#define ATTENTION_PREFILL_LARGE_CARDS(CARD)                                                        \
    CARD(attention_prefill_bf16_256, bf16, 256, 128, 2, 255, 65536, 1, 16384, 0, 128, 0,           \
         "emu, ptx")                                                                               \
    CARD(attention_prefill_f16_256, f16, 256, 128, 2, 255, 65536, 1, 16384, 0, 128, 0, "emu, ptx")

#define ATTENTION_PREFILL_CARDS(CARD)                                                              \
    ATTENTION_PREFILL_TALL_CARDS(CARD)                                                             \
    ATTENTION_PREFILL_LARGE_CARDS(CARD)

#endif
