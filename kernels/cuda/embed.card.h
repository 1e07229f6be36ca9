/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of embed: one kernel, any weight. */
#ifndef KERNELS_CUDA_EMBED_CARD_H
#define KERNELS_CUDA_EMBED_CARD_H

#define EMBED_CARDS(CARD) CARD(embed_rows, any, 1, 256, 4, 64, 0, 1, 1024, 0, 0, 0, "emu, ptx")

#endif
