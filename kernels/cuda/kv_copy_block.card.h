/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of kv_copy_block: by 16 bytes, and any unit by 1. d: bytes that a thread moves at a time.
 */
#ifndef KERNELS_CUDA_KV_COPY_BLOCK_CARD_H
#define KERNELS_CUDA_KV_COPY_BLOCK_CARD_H

#define KV_COPY_BLOCK_CARDS(CARD)                                                                  \
    CARD(kv_copy_block_16, bytes, 16, 256, 6, 40, 0, 1, 4096, 1, 0, 0, "emu, ptx")                 \
    CARD(kv_copy_block_1, bytes, 1, 256, 6, 40, 0, 1, 256, 0, 0, 0, "emu, ptx")

#endif
