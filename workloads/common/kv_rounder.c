/* SPDX-License-Identifier: Apache-2.0 */
/* Between the op that appends to the cache and the one that reads it. */
#include "workloads/common/kv_rounder.h"

#include <stdlib.h>

#include "base/arena.h"

/* One head's appended keys or values: side by side, since the cache is contiguous. */
static void round_head(struct kv_rounder *r, void *memory, int32_t head) {
    const struct cache *cache = r->session->cache;
    struct device *device = cache->device;
    const int32_t d_h = cache->layers[r->layer].d_h;
    float *at = (float *)memory + cache_place(cache, 0, head, r->begin) * d_h;
    const size_t bytes = sizeof *at * (size_t)r->rows * (size_t)d_h;
    device->kind->download(device, r->was, at, bytes);
    code_round(&r->spec, &(struct code_array){r->was, r->rows, d_h}, r->rounded, &r->sums);
    device->kind->upload(device, at, r->rounded, bytes);
}

static void on_part(void *ctx, enum step_part part) {
    struct kv_rounder *r = ctx;
    if (part != PART_ATTENTION) return;
    const struct kv *kv = &r->session->cache->layers[r->layer];
    for (int32_t h = 0; h < kv->n_kv; h++) {
        if (r->keys) round_head(r, kv->k, h);
        if (r->values) round_head(r, kv->v, h);
    }
    r->layer++;
}

void kv_rounder_attach(struct kv_rounder *r, struct session *session) {
    const size_t values = (size_t)session->spec.most_rows * (size_t)session->config.shape.d_h;
    kv_rounder_close(r);
    r->session = session;
    r->was = must_alloc(sizeof *r->was * values);
    r->rounded = must_alloc(sizeof *r->rounded * values);
    session->on_part = on_part;
    session->part_ctx = r;
}

void kv_rounder_step(struct kv_rounder *r, int32_t begin, int32_t rows) {
    r->begin = begin;
    r->rows = rows;
    r->layer = 0;
}

void kv_rounder_close(struct kv_rounder *r) {
    free(r->was);
    free(r->rounded);
    r->was = r->rounded = NULL;
}
