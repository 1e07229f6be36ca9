/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache of a session: its memory in every layout, the block table, and its content on the
 * way in and out. */
#ifndef WORKLOADS_MODEL_CACHE_H
#define WORKLOADS_MODEL_CACHE_H
#include "workloads/model/blocks.h"
#include "workloads/model/model.h"

struct cache_spec {
    int32_t n_seq, capacity; /* sequences; tokens of each at most */
    int32_t most_q; /* rows of one sequence in a step, at most: a ring needs window + most_q - 1
                       slots */
    int32_t slack;  /* ring: slots beyond, so that lengths may be set back by as much */
    int32_t pool;   /* paged: blocks of all sequences together; 0: as many as all can fill */
    bool one_layer; /* all layers share one layer's memory: for recompute, which keeps nothing */
};
struct cache {
    struct device *device;
    struct cache_spec spec;
    struct kv *layers;                      /* (n_layers) as the ops take them */
    int32_t n_layers;                       /* with memory of their own */
    int32_t units;                          /* of the pool: blocks, or pieces of one sequence */
    struct blocks *blocks;                  /* paged, else NULL */
    bool stale;                             /* the device's table is older than the host's */
    int64_t token_bytes, token_scale_bytes; /* of one head and one of K, V, in one layer */
};

/* Adds what cache_create allocates to bytes (N_CLASSES): exactly, and by class. */
void cache_bytes(const struct model_config *, const struct cache_spec *, int64_t *bytes);
int64_t cache_host_bytes(const struct model_config *,
                         const struct cache_spec *); /* of the block table */
/* Slots that one sequence's tokens can take: capacity, whole blocks of it, or the ring. */
int32_t cache_slots(const struct model_config *, const struct cache_spec *);
int cache_create(struct cache **, struct device *, const struct model_config *,
                 const struct cache_spec *, struct err *);
void cache_close(struct cache **);

/* Makes room for positions begin ... len - 1 of a sequence, which will be written (paged: takes
 * blocks, and copies those that it shares). ERR_MEMORY: the pool is empty. */
int cache_reserve(struct cache *, int32_t seq, int32_t begin, int32_t len, struct err *err);
/* Paged: `to` reads the first len tokens of `from` in its blocks, until one of them writes there.
 */
void cache_share(struct cache *, int32_t from, int32_t to, int32_t len);
void cache_trim(struct cache *, int32_t seq, int32_t len); /* gives back blocks beyond len tokens */
void cache_publish(struct cache *);                        /* the device's table, if it is stale */

/* Where position p of a sequence lies, for one head: index of its int8 scale, and of its first
 * value / d_h. */
int64_t cache_place(const struct cache *, int32_t seq, int32_t head, int32_t p);

/* K and V of positions that a row at position len can see, layer by layer, the same bytes for every
 * layout. */
size_t cache_saved_bytes(const struct cache *, int32_t len);
void cache_save(struct cache *, int32_t seq, int32_t len, void *to);
int cache_load(struct cache *, int32_t seq, int32_t len, const void *from,
               struct err *); /* reserves first */

#endif
