/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded synthetic weights: integers times a power-of-two-like unit, so that every device, ISA
   level and thread count makes the same bits; a bell-shaped core with a trained-like outlier tail
   (seed E34). The one definition, for hosts and GPUs.

   Row r of a matrix has the key k = random_at(matrix key, r). Columns 2j and 2j + 1 come from
   random_at(k, j): each is the sum of four bytes less 510, of standard deviation sqrt(4 (2^16 - 1)
   / 12) = 147.8 units. Then, in a matrix with a tail, each block of 128 columns takes h =
   random_at(k, 2^40 + block); if h >> 32 < 176218030 (once in 3,120 weights), column h & 127 of the
   block becomes (452 + ((h >> 10 & 1023) * 452 >> 10)) << z units, z = 0, 0, 1, 2 for h >> 7 & 3,
   negative if h >> 9 & 1: 3.06 to 24.5 deviations, of which one weight in 6,300 lies beyond 6 and
   the largest of millions near 24. */
#ifndef BASE_SYNTHETIC_H
#define BASE_SYNTHETIC_H
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

struct synth_matrix {
    uint64_t key;
    int64_t cols;
    float unit; /* at most 8 significant bits: products with 13-bit integers are exact in f32 */
    bool tail;
};

enum { SYNTH_BLOCK = 128 }; /* columns that have at most one outlier */

EVERYWHERE uint64_t synth_row_key(uint64_t matrix_key, int64_t r) {
    return random_at(matrix_key, (uint64_t)r);
}

struct synth_pair { /* in units */
    int32_t even, odd;
};
/* Columns 2j and 2j + 1 without the tail. */
EVERYWHERE struct synth_pair synth_pair_at(uint64_t row_key, int64_t j) {
    const uint64_t bytes = 0x00ff00ff00ff00ffu, h = random_at(row_key, (uint64_t)j);
    uint64_t sums = (h & bytes) + (h >> 8 & bytes); /* four sums of two bytes */
    sums += sums >> 16; /* the low half of each 32 bits: a sum of four */
    const struct synth_pair pair = {(int32_t)(sums & 0xffff) - 510,
                                    (int32_t)(sums >> 32 & 0xffff) - 510};
    return pair;
}

/* The outlier of a block of columns in units, and its column within the block; 0: there is none. */
EVERYWHERE int32_t synth_outlier(uint64_t row_key, int64_t block, int32_t *col) {
    const uint64_t h = random_at(row_key, ((uint64_t)1 << 40) + (uint64_t)block);
    const int32_t z = (int32_t)(h >> 7 & 3);
    const int32_t v = (452 + (int32_t)((h >> 10 & 1023) * 452 >> 10)) << (z > 0 ? z - 1 : 0);
    *col = (int32_t)(h & (SYNTH_BLOCK - 1));
    if (h >> 32 >= 176218030u) return 0;
    return h >> 9 & 1 ? -v : v;
}

#endif
