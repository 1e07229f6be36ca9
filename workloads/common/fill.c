/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded contents for buffers. */
#include "workloads/common/fill.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/device.h"
#include "workloads/model/cache.h"

enum { PIECE = 1 << 18 }; /* values */

static int64_t piece_of(int64_t n, int64_t at) { return n - at < PIECE ? n - at : PIECE; }

void fill_uniform(struct device *device, void *to, enum dtype type, int64_t n, uint64_t key) {
    const int64_t size = dtype_bits(type) / 8;
    char *piece = must_alloc(sizeof(float) * PIECE);
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = piece_of(n, at);
        for (int64_t i = 0; i < count; i++) {
            dtype_store(piece, type, i, fill_value(key, at + i));
        }
        device->kind->upload(device, (char *)to + at * size, piece, (size_t)(count * size));
    }
    free(piece);
}

/* Slots of d_h values with a scale each. */
static void fill_slots(struct device *device, int8_t *to, float *to_scales, int64_t slots,
                       int32_t d_h, uint64_t key) {
    const int64_t most = PIECE / d_h > 0 ? PIECE / d_h : 1;
    int8_t *codes = must_alloc((size_t)(most * d_h));
    float *scales = must_alloc(sizeof *scales * (size_t)most),
          *row = must_alloc(sizeof *row * (size_t)d_h);
    for (int64_t at = 0; at < slots; at += most) {
        const int64_t n = slots - at < most ? slots - at : most;
        for (int64_t i = 0; i < n; i++) {
            for (int32_t c = 0; c < d_h; c++) row[c] = fill_value(key, (at + i) * d_h + c);
            scales[i] = quant_kv(row, d_h, codes + i * d_h);
        }
        device->kind->upload(device, to + at * d_h, codes, (size_t)(n * d_h));
        device->kind->upload(device, to_scales + at, scales, sizeof *scales * (size_t)n);
    }
    free(codes);
    free(scales);
    free(row);
}

void fill_cache(struct cache *cache, uint64_t seed) {
    if (cache->device->kind->has & DEV_VIRTUAL_CLOCK) return; /* it computes nothing from it */
    for (int32_t l = 0; l < cache->n_layers; l++) {
        const struct kv *kv = &cache->layers[l];
        const int64_t slots = (int64_t)cache->units * kv->n_kv * kv->block;
        struct device *device = cache->device;
        if (kv->type == DT_I8) {
            fill_slots(device, kv->k, kv->k_scale, slots, kv->d_h, fill_key_k(seed));
            fill_slots(device, kv->v, kv->v_scale, slots, kv->d_h, fill_key_v(seed));
        } else {
            fill_uniform(device, kv->k, kv->type, slots * kv->d_h, fill_key_k(seed));
            fill_uniform(device, kv->v, kv->type, slots * kv->d_h, fill_key_v(seed));
        }
    }
}
