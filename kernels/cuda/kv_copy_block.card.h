/* SPDX-License-Identifier: Apache-2.0 */
/* The card of kv_copy_block. d: bytes that a thread moves, at once or one by one. */
#ifndef KERNELS_CUDA_KV_COPY_BLOCK_CARD_H
#define KERNELS_CUDA_KV_COPY_BLOCK_CARD_H

#define KV_COPY_BLOCK_CARDS(CARD)                                                                  \
    CARD(kv_copy_block, bytes, 16, 256, 6, 40, 0, 1, 4096, 1, 0, 0, "emu, ptx")

#endif
