/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded contents for buffers. */
#include "workloads/common/fill.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/device.h"

enum { PIECE = 1 << 18 }; /* values */

static int64_t piece_of(int64_t n, int64_t at) { return n - at < PIECE ? n - at : PIECE; }

void fill_uniform(struct device *device, void *to, enum dtype type, int64_t n, uint64_t key) {
    const int64_t size = dtype_bits(type) / 8;
    char *piece = must_alloc(sizeof(float) * PIECE);
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = piece_of(n, at);
        for (int64_t i = 0; i < count; i++) {
            int32_t v = (int32_t)(random_at(key, (uint64_t)(at + i)) >> 40) - (1 << 23);
            if (type == DT_I8)
                piece[i] = (char)(v / (1 << 16)); /* -128 ... 127 */
            else
                dtype_store(piece, type, i, (float)v * 0x1p-23f);
        }
        device->kind->upload(device, (char *)to + at * size, piece, (size_t)(count * size));
    }
    free(piece);
}

void fill_constant(struct device *device, float *to, int64_t n, float value) {
    float *piece = must_alloc(sizeof *piece * PIECE);
    for (int64_t i = 0; i < piece_of(n, 0); i++) piece[i] = value;
    for (int64_t at = 0; at < n; at += PIECE)
        device->kind->upload(device, to + at, piece, sizeof *piece * (size_t)piece_of(n, at));
    free(piece);
}
