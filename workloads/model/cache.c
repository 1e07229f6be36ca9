/* SPDX-License-Identifier: Apache-2.0 */
/* KV cache memory: one piece a sequence, a ring, or blocks from a pool. */
#include "workloads/model/cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"

static bool paged(const struct model_config *config) { return config->params.layout == 1; }

/* Slots of one unit, units in all. */
static int32_t unit_slots(const struct model_config *config, const struct cache_spec *spec) {
    if (paged(config)) return (int32_t)config->params.block;
    int64_t ring = config->params.window + spec->most_q - 1 + spec->slack;
    return config->params.window > 0 && ring < spec->capacity ? (int32_t)ring : spec->capacity;
}

static int32_t blocks_each(const struct model_config *config, const struct cache_spec *spec) {
    return (int32_t)blocks_for(spec->capacity, config->params.block);
}

static int64_t n_units(const struct model_config *config, const struct cache_spec *spec) {
    if (!paged(config)) return spec->n_seq;
    return spec->pool ? spec->pool : (int64_t)spec->n_seq * blocks_each(config, spec);
}

int32_t cache_slots(const struct model_config *config, const struct cache_spec *spec) {
    return (paged(config) ? blocks_each(config, spec) : 1) * unit_slots(config, spec);
}

void cache_bytes(const struct model_config *config, const struct cache_spec *spec, int64_t *bytes) {
    int64_t scale_bytes, per_token = model_kv_bytes_per_token(config, &scale_bytes);
    if (spec->one_layer) {
        per_token /= config->shape.n_layers;
        scale_bytes /= config->shape.n_layers;
    }
    int64_t slots = n_units(config, spec) *
                    unit_slots(config, spec); /* E10: batch and length enter as a product only */
    bytes[MEM_KV] += slots * per_token;
    bytes[MEM_SCALE] += slots * scale_bytes;
    if (paged(config))
        bytes[MEM_STATE] +=
            (int64_t)spec->n_seq * blocks_each(config, spec) * (int64_t)sizeof(int32_t);
}

int64_t cache_host_bytes(const struct model_config *config, const struct cache_spec *spec) {
    if (!paged(config)) return 0;
    return blocks_host_bytes(spec->n_seq, blocks_each(config, spec),
                             (int32_t)n_units(config, spec));
}

static int allocate(struct cache *cache, void **memory, int64_t bytes, enum memory_class class_of,
                    const char *what, int32_t layer, struct err *err) {
    char name[40];
    snprintf(name, sizeof name, "layer %d %s", (int)layer, what);
    *memory = device_alloc(cache->device, (size_t)bytes, class_of, name);
    return *memory ? 0
                   : err_set(err, ERR_MEMORY, "no memory for %s of the cache (%lld bytes)", name,
                             (long long)bytes);
}

static int create_layer(struct cache *cache, struct kv *kv, int32_t layer, struct err *err) {
    int64_t slots = (int64_t)cache->units * kv->n_kv * kv->block;
    int code = allocate(cache, &kv->k, slots * cache->token_bytes, MEM_KV, "K", layer, err);
    if (!code) code = allocate(cache, &kv->v, slots * cache->token_bytes, MEM_KV, "V", layer, err);
    if (code || !cache->token_scale_bytes) return code;
    void *scale = NULL;
    code = allocate(cache, &scale, slots * cache->token_scale_bytes, MEM_SCALE, "K scales", layer,
                    err);
    kv->k_scale = scale;
    if (code) return code;
    code = allocate(cache, &scale, slots * cache->token_scale_bytes, MEM_SCALE, "V scales", layer,
                    err);
    kv->v_scale = scale;
    return code;
}

static size_t table_bytes(const struct blocks *b) {
    return sizeof *b->table * (size_t)b->n_seq * (size_t)b->most;
}

static int create_table(struct cache *cache, struct kv *kv, int32_t each, struct err *err) {
    cache->blocks = blocks_create(cache->spec.n_seq, each, cache->units, kv->block);
    kv->table_stride = each;
    kv->table = device_alloc(cache->device, table_bytes(cache->blocks), MEM_STATE, "block table");
    if (!kv->table) return err_set(err, ERR_MEMORY, "no memory for the block table");
    return 0;
}

int cache_create(struct cache **out, struct device *device, const struct model_config *config,
                 const struct cache_spec *spec, struct err *err) {
    const struct model_shape *shape = &config->shape;
    *out = NULL;
    if (n_units(config, spec) > INT32_MAX)
        return err_set(err, ERR_MEMORY, "a cache of %lld blocks is beyond 2^31",
                       (long long)n_units(config, spec));
    struct cache *cache = must_alloc(sizeof *cache);
    cache->device = device;
    cache->spec = *spec;
    cache->layers = must_alloc(sizeof *cache->layers * (size_t)shape->n_layers);
    cache->n_layers = spec->one_layer ? 1 : (int32_t)shape->n_layers;
    cache->units = (int32_t)n_units(config, spec);
    struct kv kv = {.type = model_kv_type(&config->params),
                    .n_kv = (int32_t)shape->n_kv,
                    .d_h = (int32_t)shape->d_h,
                    .window = (int32_t)config->params.window,
                    .block = unit_slots(config, spec)};
    cache->token_bytes = kv.d_h * dtype_bits(kv.type) / 8;
    cache->token_scale_bytes = kv.type == DT_I8 ? (int64_t)sizeof(float) : 0;
    int code = paged(config) ? create_table(cache, &kv, blocks_each(config, spec), err) : 0;
    for (int32_t l = 0; l < (int32_t)shape->n_layers; l++) {
        cache->layers[l] = l < cache->n_layers ? kv : cache->layers[0];
        if (!code && l < cache->n_layers) code = create_layer(cache, &cache->layers[l], l, err);
    }
    if (code)
        cache_close(&cache);
    else
        *out = cache;
    return code;
}

void cache_close(struct cache **out) {
    struct cache *cache = *out;
    if (!cache) return;
    for (int32_t l = 0; l < cache->n_layers; l++) {
        struct kv *kv = &cache->layers[l];
        device_free(cache->device, kv->k);
        device_free(cache->device, kv->v);
        device_free(cache->device, kv->k_scale);
        device_free(cache->device, kv->v_scale);
    }
    device_free(cache->device, cache->layers[0].table);
    free(cache->layers);
    blocks_close(&cache->blocks);
    free(cache);
    *out = NULL;
}

static void copy_block(void *ctx, int32_t from, int32_t to) {
    struct cache *cache = ctx;
    for (int32_t l = 0; l < cache->n_layers; l++)
        cache->device->ops->kv_copy_block(cache->device, &cache->layers[l], from, to);
}

int cache_reserve(struct cache *cache, int32_t seq, int32_t begin, int32_t len, struct err *err) {
    struct blocks *b = cache->blocks;
    if (len > cache->spec.capacity)
        return err_set(err, ERR_MEMORY, "sequence %d needs %d tokens of cache; it has %d", (int)seq,
                       (int)len, (int)cache->spec.capacity);
    if (!b) return 0;
    const int32_t held = b->held[seq];
    const int64_t copies = b->copies;
    const bool room = blocks_write(b, seq, begin, len, copy_block, cache);
    cache->stale = cache->stale || b->held[seq] != held || b->copies != copies;
    return room ? 0 : err_set(err, ERR_MEMORY, "no free block of %d left", (int)cache->units);
}

void cache_share(struct cache *cache, int32_t from, int32_t to, int32_t len) {
    if (!cache->blocks) return;
    blocks_share(cache->blocks, from, to, len);
    cache->stale = true;
}

void cache_trim(struct cache *cache, int32_t seq, int32_t len) {
    if (cache->blocks) blocks_trim(cache->blocks, seq, len);
}

void cache_publish(struct cache *cache) {
    if (!cache->stale) return;
    cache->device->kind->upload(cache->device, cache->layers[0].table, cache->blocks->table,
                                table_bytes(cache->blocks));
    cache->stale = false;
}

int64_t cache_place(const struct cache *cache, int32_t seq, int32_t head, int32_t p) {
    const struct kv *kv = &cache->layers[0];
    const struct blocks *b = cache->blocks;
    const int64_t unit = b ? b->table[(int64_t)seq * b->most + p / kv->block] : seq;
    return (unit * kv->n_kv + head) * kv->block + p % kv->block;
}

/* A row at position len attends to window - 1 positions before it; a ring holds one more, which is
 * saved too. */
static int32_t first_seen(const struct cache *cache, int32_t len) {
    int32_t window = cache->layers[0].window;
    return window > 0 && len > window ? len - window : 0;
}

size_t cache_saved_bytes(const struct cache *cache, int32_t len) {
    int64_t tokens = len - first_seen(cache, len);
    return (size_t)(tokens * 2 * cache->n_layers * cache->layers[0].n_kv *
                    (cache->token_bytes + cache->token_scale_bytes));
}

struct transfer { /* which way, and where on the host */
    struct device *device;
    char *host;
    bool save;
};

static void move(struct transfer *transfer, void *at, size_t bytes) {
    if (transfer->save)
        transfer->device->kind->download(transfer->device, transfer->host, at, bytes);
    else
        transfer->device->kind->upload(transfer->device, at, transfer->host, bytes);
    transfer->host += bytes;
}

/* One of K, V and their scales, one head: position by position, in runs of neighbouring slots. */
static void move_head(const struct cache *cache, const struct kv *kv, int32_t seq, int32_t head,
                      int32_t len, void *memory, int64_t token_bytes, struct transfer *transfer) {
    int32_t n = 0;
    for (int32_t p = first_seen(cache, len); p < len; p += n) {
        int32_t slot = p % kv->block;
        n = kv->block - slot < len - p ? kv->block - slot : len - p;
        move(transfer, (char *)memory + cache_place(cache, seq, head, p) * token_bytes,
             (size_t)(n * token_bytes));
    }
}

static void move_sequence(struct cache *cache, int32_t seq, int32_t len,
                          struct transfer *transfer) {
    for (int32_t l = 0; l < cache->n_layers; l++) {
        struct kv *kv = &cache->layers[l];
        for (int32_t h = 0; h < kv->n_kv; h++) {
            move_head(cache, kv, seq, h, len, kv->k, cache->token_bytes, transfer);
            move_head(cache, kv, seq, h, len, kv->v, cache->token_bytes, transfer);
            if (!kv->k_scale) continue;
            move_head(cache, kv, seq, h, len, kv->k_scale, cache->token_scale_bytes, transfer);
            move_head(cache, kv, seq, h, len, kv->v_scale, cache->token_scale_bytes, transfer);
        }
    }
}

void cache_save(struct cache *cache, int32_t seq, int32_t len, void *to) {
    struct transfer transfer = {.device = cache->device, .host = to, .save = true};
    move_sequence(cache, seq, len, &transfer);
}

int cache_load(struct cache *cache, int32_t seq, int32_t len, const void *from, struct err *err) {
    struct transfer transfer = {.device = cache->device, .host = (char *)from, .save = false};
    int code = cache_reserve(cache, seq, 0, len, err);
    if (!code) move_sequence(cache, seq, len, &transfer);
    return code;
}
