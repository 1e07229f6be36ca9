/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded contents for buffers. */
#include "workloads/common/fill.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/device.h"
#include "workloads/model/cache.h"

static void repeat(struct device *device, char *to, const void *piece, int64_t bytes,
                   int64_t period) {
    for (int64_t at = 0; at < bytes; at += period)
        device->kind->upload(device, to + at, piece,
                             (size_t)(bytes - at < period ? bytes - at : period));
}

static void fill_values(struct device *device, void *to, enum dtype type, int64_t n, uint64_t key,
                        int64_t period) {
    const int64_t size = dtype_bits(type) / 8, count = n < period ? n : period;
    char *piece = must_alloc((size_t)(size * count));
    for (int64_t i = 0; i < count; i++) dtype_store(piece, type, i, fill_value(key, i));
    repeat(device, to, piece, n * size, period * size);
    free(piece);
}

void fill_uniform(struct device *device, void *to, enum dtype type, int64_t n, uint64_t key) {
    fill_values(device, to, type, n, key, FILL_PERIOD);
}

/* Slots of d_h values with a scale each. */
static void fill_slots(struct device *device, void *to, float *to_scales, int64_t slots,
                       int32_t d_h, uint64_t key) {
    const int64_t period = fill_cache_period(d_h) / d_h, n = slots < period ? slots : period;
    const int64_t scale_size = (int64_t)sizeof(float);
    int8_t *codes = must_alloc((size_t)(n * d_h));
    float *scales = must_alloc(sizeof *scales * (size_t)n),
          *row = must_alloc(sizeof *row * (size_t)d_h);
    for (int64_t i = 0; i < n; i++) {
        for (int32_t c = 0; c < d_h; c++) row[c] = fill_value(key, i * d_h + c);
        scales[i] = quant_kv(row, d_h, codes + i * d_h);
    }
    repeat(device, to, codes, slots * d_h, period * d_h);
    repeat(device, (char *)to_scales, scales, slots * scale_size, period * scale_size);
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
            fill_values(device, kv->k, kv->type, slots * kv->d_h, fill_key_k(seed),
                        fill_cache_period(kv->d_h));
            fill_values(device, kv->v, kv->type, slots * kv->d_h, fill_key_v(seed),
                        fill_cache_period(kv->d_h));
        }
    }
}
