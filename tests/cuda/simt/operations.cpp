// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp or block do together: shuffles, votes, sums, ldmatrix and mma.
#include "tests/cuda/simt/ptx_host.h"

namespace simt {

template <class T> static T &argument(void **args, int lane) {
    return *static_cast<T *>(args[lane]);
}

void shuffle_operation(void **args, unsigned mask) {
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        struct shuffle &s = argument<struct shuffle>(args, l);
        if (s.from >= 0 && !(mask >> s.from & 1)) // undefined on the device
            s.out = UINT64_MAX;
        else
            s.out = s.from < 0 ? s.in : argument<struct shuffle>(args, s.from).in;
    }
}

void vote_operation(void **args, unsigned mask) {
    unsigned yes = 0;
    for (int l = 0; l < WARP; l++)
        if (mask >> l & 1 && argument<struct vote>(args, l).in) yes |= 1u << l;
    for (int l = 0; l < WARP; l++)
        if (mask >> l & 1) argument<struct vote>(args, l).out = yes;
}

void reduce_operation(void **args, unsigned mask) {
    const int first = __builtin_ctz(mask);
    int64_t r = argument<struct reduce>(args, first).in;
    for (int l = first + 1; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        const struct reduce &a = argument<struct reduce>(args, l);
        r = a.kind == 0 ? r + a.in : a.kind == 1 ? std::min(r, a.in) : std::max(r, a.in);
    }
    for (int l = 0; l < WARP; l++)
        if (mask >> l & 1) argument<struct reduce>(args, l).out = r;
}

void block_vote_operation(void **args, unsigned n_threads) {
    int yes = 0;
    for (int l = 0; l < int(n_threads); l++) yes += argument<struct block_vote>(args, l).in;
    for (int l = 0; l < int(n_threads); l++) argument<struct block_vote>(args, l).yes = yes;
}

/* Lanes 8i ... 8i + 7 name the rows of matrix i. Shared memory serves 128 bytes a cycle, from 32
   banks of 4 bytes: 8 rows of 16 bytes take one cycle if no two lie in the same 4 banks at
   different addresses. */
static void count_cycles(void **args, int matrix) {
    uint64_t seen[8][8];
    int n[8] = {0}, worst = 1;
    for (int j = 0; j < 8; j++) {
        const uint64_t chunk = uintptr_t(argument<struct ldmatrix>(args, 8 * matrix + j).row) / 16;
        const int group = int(chunk & 7);
        bool again = false;
        for (int k = 0; k < n[group]; k++) again |= seen[group][k] == chunk;
        if (!again) seen[group][n[group]++] = chunk;
        worst = std::max(worst, n[group]);
    }
    counters.ldmatrix_ideal++;
    counters.ldmatrix_actual += uint64_t(worst);
}
static void ldmatrix_any(void **args, unsigned mask, bool transposed) {
    if (mask != ~0u) fail(here(), "ldmatrix needs all lanes of a warp");
    for (int i = 0; i < 4; i++) {
        count_cycles(args, i);
        uint16_t m[8][8];
        for (int row = 0; row < 8; row++)
            memcpy(m[row], argument<struct ldmatrix>(args, 8 * i + row).row, 16);
        for (int l = 0; l < WARP; l++) {
            const int g = l / 4, t = 2 * (l % 4);
            const uint32_t low = transposed ? m[t][g] : m[g][t];
            const uint32_t high = transposed ? m[t + 1][g] : m[g][t + 1];
            argument<struct ldmatrix>(args, l).r[i] = low | high << 16;
        }
    }
}
void ldmatrix_operation(void **args, unsigned mask) { ldmatrix_any(args, mask, false); }
void ldmatrix_trans_operation(void **args, unsigned mask) { ldmatrix_any(args, mask, true); }

static float from_bf16(uint32_t pair, int half) {
    return __uint_as_float(half ? pair & 0xffff0000u : pair << 16);
}
static float from_f16(uint32_t pair, int half) { // exact, subnormals included
    const uint32_t h = pair >> (16 * half) & 0xffff, sign = (h & 0x8000) << 16;
    if ((h & 0x7c00) == 0x7c00) return __uint_as_float(sign | 0x7f800000u | (h & 0x3ff) << 13);
    return __uint_as_float(sign | __float_as_uint(__uint_as_float((h & 0x7fff) << 13) * 0x1p112f));
}

/* Element i of a lane's fragment of A (i 0 ... 7), in the words of the PTX ISA: groupID = lane >>
   2, threadID = lane % 4; row = groupID for i in {0, 1, 4, 5}, else groupID + 8; column = threadID
   * 2 + (i & 1), + 8 for i >= 4. Of B (i 0 ... 3): row = threadID * 2 + (i & 1), + 8 for i >= 2;
   column = groupID. Of C: row = groupID for i < 2, else groupID + 8; column = threadID * 2 + (i &
   1). */
template <float (*element)(uint32_t, int)> static void mma_any(void **args, unsigned mask) {
    if (mask != ~0u) fail(here(), "mma.sync needs all lanes of a warp");
    float a[16][16], b[16][8], c[16][8];
    for (int l = 0; l < WARP; l++) {
        const struct mma &m = argument<struct mma>(args, l);
        const int group = l >> 2, thread = l % 4;
        for (int i = 0; i < 8; i++) {
            const int row = (i & 2) == 0 ? group : group + 8;
            const int column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
            a[row][column] = element(m.a[i / 2], i & 1);
        }
        for (int i = 0; i < 4; i++)
            b[thread * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = element(m.b[i / 2], i & 1);
        for (int i = 0; i < 4; i++) c[group + (i < 2 ? 0 : 8)][thread * 2 + (i & 1)] = m.c[i];
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 8; column++) c[row][column] += a[row][k] * b[k][column];
    for (int l = 0; l < WARP; l++) {
        struct mma &m = argument<struct mma>(args, l);
        for (int i = 0; i < 4; i++) m.c[i] = c[(l >> 2) + (i < 2 ? 0 : 8)][(l % 4) * 2 + (i & 1)];
    }
}
void mma_bf16_operation(void **args, unsigned mask) { mma_any<from_bf16>(args, mask); }
void mma_f16_operation(void **args, unsigned mask) { mma_any<from_f16>(args, mask); }

} // namespace simt
