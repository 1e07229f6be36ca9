/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the CUDA device: a stream-ordered pool, copies through pinned stages, cold caches. */
#include <string.h>

#include "kernels/cuda/engine.h"

int cuda_memory_open(struct cuda *c, struct err *err) {
    struct cuda_engine *e = engine_of(c);
    uint64_t keep = UINT64_MAX; /* what was freed stays ours: the next allocation asks no driver */
    cudaError_t failed = cudaDeviceGetDefaultMemPool(&e->pool, (int)c->params.index);
    if (!failed) failed = cudaMemPoolSetAttribute(e->pool, cudaMemPoolAttrReleaseThreshold, &keep);
    for (int i = 0; !failed && i < STAGES; i++) {
        void *data = NULL;
        failed = cudaHostAlloc(&data, STAGE_BYTES, cudaHostAllocDefault);
        e->stage[i].data = data;
        if (!failed) failed = cudaEventCreateWithFlags(&e->stage[i].sent, cudaEventDisableTiming);
    }
    void *landing = NULL;
    if (!failed) failed = cudaHostAlloc(&landing, SMALL_BYTES, cudaHostAllocDefault);
    e->landing = landing;
    if (!failed) failed = cudaEventCreateWithFlags(&e->begin, cudaEventDefault);
    if (!failed) failed = cudaEventCreateWithFlags(&e->end, cudaEventDefault);
    if (!failed) return 0;
    return err_set(err, ERR_DEVICE, "cuda: no pool and pinned memory to begin with: %s",
                   cudaGetErrorName(failed));
}

void cuda_memory_close(struct cuda *c) {
    struct cuda_engine *e = engine_of(c);
    for (int i = 0; i < STAGES; i++) {
        if (e->stage[i].data) cudaFreeHost(e->stage[i].data);
        if (e->stage[i].sent) cudaEventDestroy(e->stage[i].sent);
    }
    if (e->evicted) cudaFreeAsync(e->evicted, c->stream);
    if (e->landing) cudaFreeHost(e->landing);
    if (e->begin) cudaEventDestroy(e->begin);
    if (e->end) cudaEventDestroy(e->end);
    if (e->pool) cudaMemPoolTrimTo(e->pool, 0);
}

void *cuda_alloc(struct device *device, size_t bytes) {
    struct cuda *c = cuda_of(device);
    void *p = NULL;
    if (!cuda_expects(c, !c->recording, "an allocation while a step is recorded")) return NULL;
    cudaError_t failed = cudaMallocAsync(&p, bytes, c->stream);
    if (failed == cudaErrorMemoryAllocation) { /* unless what was freed stands in its way */
        cudaGetLastError();
        cudaStreamSynchronize(c->stream);
        cudaMemPoolTrimTo(engine_of(c)->pool, 0);
        failed = cudaMallocAsync(&p, bytes, c->stream);
    }
    if (failed == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* said by NULL; what comes next shall not find it */
        return NULL;
    }
    if (!cuda_did(c, failed, "cudaMallocAsync")) return NULL;
    cuda_did(c, cudaMemsetAsync(p, 0, bytes, c->stream), "cudaMemsetAsync");
    return p;
}

void cuda_free(struct device *device, void *p, size_t bytes) {
    (void)bytes;
    struct cuda *c = cuda_of(device);
    cuda_did(c, cudaFreeAsync(p, c->stream), "cudaFreeAsync");
}

bool cuda_wait(struct cuda *c) {
    engine_of(c)->waits++;
    if (!cuda_expects(c, !c->recording, "a wait while a step is recorded")) return false;
    return cuda_did(c, cudaStreamSynchronize(c->stream), "cudaStreamSynchronize");
}

/* The other stage takes over when this one is full; it must have been sent by then. */
static struct stage *stage_with(struct cuda *c, size_t bytes) {
    struct cuda_engine *e = engine_of(c);
    struct stage *s = &e->stage[e->filling];
    if (s->used + bytes <= STAGE_BYTES) return s;
    cuda_did(c, cudaEventRecord(s->sent, c->stream), "cudaEventRecord");
    s->waiting = true;
    e->filling = (e->filling + 1) % STAGES;
    s = &e->stage[e->filling];
    if (s->waiting) {
        if (cudaEventQuery(s->sent) == cudaErrorNotReady) {
            e->waits++;
            cudaGetLastError(); /* the runtime keeps this answer as if it were a failure */
        }
        cuda_did(c, cudaEventSynchronize(s->sent), "cudaEventSynchronize");
        s->waiting = false;
    }
    s->used = 0;
    return s;
}

void *cuda_stage(struct cuda *c, size_t bytes) {
    struct stage *s = stage_with(c, bytes);
    void *at = s->data + s->used;
    s->used += (bytes + 255) / 256 * 256;
    if (s->used > STAGE_BYTES) s->used = STAGE_BYTES;
    return at;
}

void cuda_send(struct cuda *c, void *to, const void *staged, size_t bytes) {
    cuda_did(c, cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, c->stream),
             "cudaMemcpyAsync");
}

void cuda_upload(struct device *device, void *to, const void *from, size_t bytes) {
    struct cuda *c = cuda_of(device);
    if (!cuda_expects(c, !c->recording, "an upload while a step is recorded")) return;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        void *staged = cuda_stage(c, n);
        memcpy(staged, (const char *)from + at, n);
        cuda_send(c, (char *)to + at, staged, n);
    }
}

void cuda_download(struct device *device, void *to, const void *from, size_t bytes) {
    struct cuda *c = cuda_of(device);
    if (bytes == 0) return;
    void *landing = bytes <= SMALL_BYTES ? engine_of(c)->landing : to;
    if (!cuda_expects(c, !c->recording, "a download while a step is recorded")) return;
    if (cuda_did(c, cudaMemcpyAsync(landing, from, bytes, cudaMemcpyDeviceToHost, c->stream),
                 "cudaMemcpyAsync") &&
        cuda_wait(c) && landing != to)
        memcpy(to, landing, bytes);
}

/* Twice the L2 is written, so that nothing of before is left in it; then as much of another buffer
   is read: written lines alone would go back to memory within the next sample. The buffer belongs
   to nobody's account: it is there only where cold caches were asked for. */
void cuda_evict(struct device *device) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = engine_of(c);
    const size_t bytes = (size_t)(2 * c->gpu.l2_bytes + 4095) / 4096 * 4096;
    if (!e->evicted) e->evicted = cuda_alloc(device, 2 * bytes + 4096);
    if (!cuda_expects(c, e->evicted != NULL, "no memory to make caches cold with")) return;
    cuda_did(c, cudaMemsetAsync(e->evicted, 1, bytes, c->stream), "cudaMemsetAsync");
    cuda_read(device, e->evicted + bytes, (int64_t)bytes,
              (float *)(void *)(e->evicted + 2 * bytes));
}
