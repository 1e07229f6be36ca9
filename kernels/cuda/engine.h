/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the CUDA device's engine: memory, recorded steps, clocks. Ops see cuda.h only. */
#ifndef KERNELS_CUDA_ENGINE_H
#define KERNELS_CUDA_ENGINE_H
#include "kernels/cuda/cuda.h"

extern const struct ops cuda_ops;

enum {
    STAGES = 2, /* pinned pieces: one is filled while the other is on its way */
    STAGE_BYTES = 8 << 20,
    SMALL_BYTES = 1 << 16, /* downloads up to here take the way of pinned memory */
    MOST_GRAPHS = 64,
    MOST_PLANS = 4,
    ROOM_LT = N_OPS, /* cuBLASLt's room stands behind those of the ops */
};

struct stage {
    char *data; /* STAGE_BYTES, pinned */
    size_t used;
    cudaEvent_t sent; /* after the last copy out of it */
    bool waiting;     /* `sent` was recorded since it was filled from its beginning */
};

struct plan_set { /* the rooms of one plan; they stay while a recorded step uses them */
    struct step_bounds bounds;
    struct cuda_room room[N_OPS + 1];
    bool made;
};

struct graph { /* one recorded step */
    const struct plan_set *plan;
    struct step_id id;
    int32_t bucket;
    cudaGraphExec_t exec; /* NULL: seen once, not recorded yet */
    int64_t launches;     /* kernels in it */
    int64_t used;         /* the moment of its last use, in uses */
};

struct cuda_engine {
    char name[256];
    int driver, runtime; /* versions, as CUDA writes them: 13000 */
    int64_t memory_bytes;
    int clock_khz, memory_khz; /* most; 0: unknown */
    cudaMemPool_t pool;
    struct stage stage[STAGES];
    int filling;   /* the stage that takes what comes next */
    char *landing; /* SMALL_BYTES, pinned: what small downloads arrive in */
    bool loaded;   /* all kernels */
    struct plan_set plans[MOST_PLANS], *plan; /* plan: the one that holds, or NULL */
    int64_t waits;                            /* of the host for the device */
    int64_t launches_told, waits_told;        /* up to the last report */
    struct graph graphs[MOST_GRAPHS];
    int n_graphs;
    struct graph *recording;
    int64_t uses, launches_before;
    cudaEvent_t begin, end; /* device time of an execution */
    char *evicted;          /* 4 x L2: written and read to make caches cold; NULL until wanted */
    struct lt *lt;          /* lt.c; NULL: not loaded */
};

static inline struct cuda_engine *engine_of(struct cuda *c) { return c->engine; }
/* Remembers a failed call under what was tried; whether it went well. */
bool cuda_did(struct cuda *, cudaError_t, const char *what);

/* memory.c */
int cuda_memory_open(struct cuda *, struct err *);
void cuda_memory_close(struct cuda *);
void *cuda_alloc(struct device *, size_t bytes);
void cuda_free(struct device *, void *, size_t bytes);
void cuda_upload(struct device *, void *to, const void *from, size_t bytes);
void cuda_download(struct device *, void *to, const void *from, size_t bytes);
void cuda_evict(struct device *);
/* Pinned room for up to `bytes` (at most STAGE_BYTES), and its copy on the way once it is filled.
 */
void *cuda_stage(struct cuda *, size_t bytes);
void cuda_send(struct cuda *, void *to, const void *staged, size_t bytes);
bool cuda_wait(struct cuda *); /* until the stream is empty */

/* engine_pack.c */
int cuda_pack(struct device *, struct weight **, const struct weight_spec *parts, int n,
              const struct row_source *, struct err *);
void cuda_unpack(struct device *, struct weight **);

/* engine_synth.c */
bool cuda_synth_knows(int n, const struct row_source *); /* all parts by their recipes */
/* Makes the weight where it lies: data and scales, which are zeroed. */
int cuda_synth(struct cuda *, const struct cuda_weight *, const struct weight_spec *parts, int n,
               const struct row_source *, struct err *);

/* graph.c */
bool cuda_replay(struct device *, const struct step_id *);
void cuda_recorded(struct device *);
void cuda_forget(struct device *, const void *owner); /* NULL: all */

#endif
