/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as CUDA graphs: the first of a kind runs as it is, the second is recorded, from then on one
   call replays it. What differs between them lies in device memory; grids follow the bucket of the
   length. */
#include "base/range.h"
#include "kernels/cuda/engine.h"

static bool same(const struct cuda_engine *e, const struct graph *g, const struct step_id *id,
                 int32_t bucket) {
    return g->plan == e->plan && g->id.owner == id->owner && g->id.n_row == id->n_row &&
           g->id.kind == id->kind && g->bucket == bucket;
}

static void drop(struct cuda_engine *e, int i) {
    if (e->graphs[i].exec) cudaGraphExecDestroy(e->graphs[i].exec);
    e->graphs[i] = e->graphs[--e->n_graphs];
}

static int least_used(const struct cuda_engine *e) {
    int least = 0;
    for (int i = 1; i < e->n_graphs; i++)
        if (e->graphs[i].used < e->graphs[least].used) least = i;
    return least;
}

static struct graph *find(struct cuda_engine *e, const struct step_id *id, int32_t bucket) {
    for (int i = 0; i < e->n_graphs; i++)
        if (same(e, &e->graphs[i], id, bucket)) return &e->graphs[i];
    return NULL;
}

bool cuda_replay(struct device *device, const struct step_id *id) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = engine_of(c);
    if (!c->params.graph || !e->plan || c->failed.code) return false;
    const int32_t bucket = cuda_bucket(c, id->most_kv);
    struct graph *g = find(e, id, bucket);
    if (!g) {
        if (e->n_graphs == MOST_GRAPHS) drop(e, least_used(e));
        e->graphs[e->n_graphs++] =
            (struct graph){.plan = e->plan, .id = *id, .bucket = bucket, .used = e->uses++};
        return false;
    }
    g->used = e->uses++;
    if (g->exec) {
        c->launches += g->launches;
        range_push(RANGE_STEP, "decode", id->n_row); /* what its ops would have opened */
        cuda_did(c, cudaGraphLaunch(g->exec, c->stream), "cudaGraphLaunch");
        range_pop();
        return true;
    }
    if (cuda_did(c, cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal),
                 "cudaStreamBeginCapture")) {
        e->recording = g;
        e->launches_before = c->launches;
        c->recording = true;
    }
    return false;
}

void cuda_recorded(struct device *device) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = engine_of(c);
    struct graph *g = e->recording;
    if (!g) return;
    cudaGraph_t graph = NULL;
    c->recording = false;
    e->recording = NULL;
    g->launches = c->launches - e->launches_before;
    if (cuda_did(c, cudaStreamEndCapture(c->stream, &graph), "cudaStreamEndCapture") &&
        cuda_did(c, cudaGraphInstantiate(&g->exec, graph, 0), "cudaGraphInstantiate"))
        cuda_did(c, cudaGraphLaunch(g->exec, c->stream), "cudaGraphLaunch");
    if (graph) cudaGraphDestroy(graph);
    if (c->failed.code) drop(e, (int)(g - e->graphs)); /* perhaps half a step */
}

void cuda_forget(struct device *device, const void *owner) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = engine_of(c);
    for (int i = e->n_graphs - 1; i >= 0; i--)
        if (!owner || e->graphs[i].id.owner == owner) drop(e, i);
}
