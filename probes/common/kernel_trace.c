/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/common/kernel_trace.h"

#include "base/err.h"

#ifndef BENCH_CUPTI_BUILT
int kernel_trace_start(struct err *err) {
    return err_set(
        err, ERR_UNSUPPORTED,
        "built without CUPTI's headers (cupti.h was not found), so no kernels are traced");
}
size_t kernel_trace_stop(const struct kernel_event **events, size_t *lost) {
    *events = NULL;
    *lost = 0;
    return 0;
}
void kernel_trace_free(void) {}
#else
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/library.h"

enum { BUFFER_BYTES = 1 << 20, EVENTS_MOST = 1 << 20 };

struct call { /* of the host, which one or many kernels name as their cause */
    uint32_t id;
    int64_t t_ns;
};

static struct {
    void *library;
    CUptiResult (*enable)(CUpti_ActivityKind), (*disable)(CUpti_ActivityKind);
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*timestamp)(uint64_t *);
    CUptiResult (*lost)(CUcontext, uint32_t, size_t *);
    CUptiResult (*text)(CUptiResult, const char **);
    pthread_mutex_t lock; /* CUPTI completes buffers on a thread of its own */
    struct kernel_event *events;
    struct call *calls;
    size_t n_events, room_events, n_calls, room_calls, n_lost;
    int64_t offset_ns; /* from CUPTI's clock to ours */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void *grown(void *list, size_t n, size_t *room, size_t size) {
    if (n < *room) return list;
    *room = *room ? 2 * *room : 1024;
    return must_realloc(list, *room * size);
}

static void keep_kernel(const CUpti_ActivityKernel10 *k) {
    if (trace.n_events == EVENTS_MOST) {
        trace.n_lost++;
        return;
    }
    trace.events = grown(trace.events, trace.n_events, &trace.room_events, sizeof *trace.events);
    struct kernel_event *e = &trace.events[trace.n_events++];
    *e = (struct kernel_event){.launch_ns = k->correlationId,
                               .begin_ns = (int64_t)k->start + trace.offset_ns,
                               .end_ns = (int64_t)k->end + trace.offset_ns,
                               .graph_node = (int64_t)k->graphNodeId,
                               .grid = {k->gridX, k->gridY, k->gridZ},
                               .block = {k->blockX, k->blockY, k->blockZ},
                               .stream = (int32_t)k->streamId,
                               .registers = k->registersPerThread,
                               .shared_bytes = k->staticSharedMemory + k->dynamicSharedMemory};
    snprintf(e->name, sizeof e->name, "%s", k->name ? k->name : "?");
}

static void keep_call(const CUpti_ActivityAPI *a) {
    trace.calls = grown(trace.calls, trace.n_calls, &trace.room_calls, sizeof *trace.calls);
    trace.calls[trace.n_calls++] =
        (struct call){a->correlationId, (int64_t)a->start + trace.offset_ns};
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most_records) {
    *size = BUFFER_BYTES;
    *most_records = 0; /* as many as fit */
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    if (!*buffer) *size = 0; /* CUPTI then counts what it drops */
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    pthread_mutex_lock(&trace.lock);
    while (valid && trace.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        /* Records need not lie on 8 bytes in a buffer that CUPTI packs: copy before looking. */
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
            CUpti_ActivityKernel10 k;
            memcpy(&k, record, sizeof k);
            keep_kernel(&k);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME ||
                   record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
            CUpti_ActivityAPI a;
            memcpy(&a, record, sizeof a);
            keep_call(&a);
        }
    }
    if (trace.lost && trace.lost(context, stream, &lost) == CUPTI_SUCCESS) trace.n_lost += lost;
    pthread_mutex_unlock(&trace.lock);
    free(buffer);
}

static bool find(const char *name, void *function) {
    return library_find(trace.library, name, function);
}

static int load(struct err *err) {
    const char *name = getenv("BENCH_CUPTI");
    if (trace.library) return 0; /* CUPTI cannot be unloaded safely: once in, it stays */
    if (!name || !*name) name = "libcupti.so.13";
    trace.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!trace.library)
        return err_set(err, ERR_UNSUPPORTED, "CUPTI (%s) is not here, so no kernels are traced",
                       name);
    bool ok = find("cuptiActivityEnable", &trace.enable);
    ok = find("cuptiActivityDisable", &trace.disable) && ok;
    ok = find("cuptiActivityRegisterCallbacks", &trace.callbacks) && ok;
    ok = find("cuptiActivityGetNextRecord", &trace.next) && ok;
    ok = find("cuptiActivityFlushAll", &trace.flush) && ok;
    ok = find("cuptiGetTimestamp", &trace.timestamp) && ok;
    find("cuptiActivityGetNumDroppedRecords", &trace.lost);
    find("cuptiGetResultString", &trace.text);
    if (ok) return 0;
    dlclose(trace.library);
    trace.library = NULL;
    return err_set(err, ERR_UNSUPPORTED, "%s lacks functions that tracing needs", name);
}

static const char *text_of(CUptiResult code) {
    const char *text = NULL;
    if (trace.text) trace.text(code, &text);
    return text ? text : "an error";
}

int kernel_trace_start(struct err *err) {
    uint64_t theirs = 0;
    if (load(err)) return ERR_UNSUPPORTED;
    kernel_trace_free();
    CUptiResult code = trace.callbacks(give_buffer, take_buffer);
    if (code == CUPTI_SUCCESS) code = trace.timestamp(&theirs);
    trace.offset_ns = clock_ns() - (int64_t)theirs;
    for (int i = 0; i < N_KINDS && code == CUPTI_SUCCESS; i++) {
        code = trace.enable(kinds[i]);
        for (int j = 0; j < i && code != CUPTI_SUCCESS; j++) trace.disable(kinds[j]);
    }
    if (code == CUPTI_SUCCESS) return 0;
    return err_set(err, ERR_UNSUPPORTED, "CUPTI does not trace here (%s), so no kernels are traced",
                   text_of(code));
}

static int by_id(const void *a, const void *b) {
    uint32_t x = ((const struct call *)a)->id, y = ((const struct call *)b)->id;
    return (x > y) - (x < y);
}

static int by_begin(const void *a, const void *b) {
    int64_t x = ((const struct kernel_event *)a)->begin_ns,
            y = ((const struct kernel_event *)b)->begin_ns;
    return (x > y) - (x < y);
}

size_t kernel_trace_stop(const struct kernel_event **events, size_t *lost) {
    trace.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (int i = 0; i < N_KINDS; i++) trace.disable(kinds[i]);
    pthread_mutex_lock(&trace.lock);
    if (trace.n_calls) qsort(trace.calls, trace.n_calls, sizeof *trace.calls, by_id);
    for (size_t i = 0; i < trace.n_events; i++) { /* until here launch_ns holds the cause's id */
        const struct call key = {.id = (uint32_t)trace.events[i].launch_ns}, *call = NULL;
        if (trace.n_calls)
            call = bsearch(&key, trace.calls, trace.n_calls, sizeof *trace.calls, by_id);
        trace.events[i].launch_ns = call ? call->t_ns : -1;
    }
    if (trace.n_events) qsort(trace.events, trace.n_events, sizeof *trace.events, by_begin);
    *events = trace.events;
    *lost = trace.n_lost;
    size_t n = trace.n_events;
    pthread_mutex_unlock(&trace.lock);
    return n;
}

void kernel_trace_free(void) {
    pthread_mutex_lock(&trace.lock);
    free(trace.events);
    free(trace.calls);
    trace.events = NULL;
    trace.calls = NULL;
    trace.n_events = trace.room_events = trace.n_calls = trace.room_calls = trace.n_lost = 0;
    pthread_mutex_unlock(&trace.lock);
}
#endif
