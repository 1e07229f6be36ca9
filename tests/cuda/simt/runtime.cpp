// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime, over work.h and memory.h: see runtime.h.
#include "tests/cuda/simt/runtime.h"

#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "tests/cuda/simt/memory.h"
#include "tests/cuda/simt/runtime_counts.h"
#include "tests/cuda/simt/work.h"

using namespace simt;

struct simt_counts simt_counts_now;

struct CUgraph_st {
    std::shared_ptr<struct graph> graph;
};
struct CUgraphExec_st {
    std::shared_ptr<struct graph> graph;
};
struct CUmemPoolHandle_st {
    uint64_t release_threshold, used_high, reserved, reserved_high;
};
static struct CUmemPoolHandle_st pool;
static std::map<uintptr_t, size_t> pinned; // end -> bytes
static cudaError_t last_error;

/* ---- errors ---- */

static cudaError_t told(cudaError_t e) {
    if (e != cudaSuccess) last_error = e;
    return e;
}
__attribute__((format(printf, 2, 3))) static cudaError_t refuse(cudaError_t e, const char *format,
                                                                ...) {
    va_list list;
    va_start(list, format);
    fputs("simt: ", stderr);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, " (%d, seed %u)\n", int(e), seed());
    simt_counts_now.forbidden++;
    return told(e);
}
static cudaError_t while_capturing(const char *call) {
    if (!is_capturing()) return cudaSuccess;
    invalidate_captures();
    return refuse(cudaErrorStreamCaptureUnsupported, "%s while a stream is captured", call);
}
#define NOT_WHILE_CAPTURING()                                                                      \
    do {                                                                                           \
        const cudaError_t unwanted = while_capturing(__func__);                                    \
        if (unwanted) return unwanted;                                                             \
    } while (0)

static cudaError_t driver(void) {
    const char *text = getenv("SIMT_DRIVER");
    if (!text || !*text) return cudaSuccess;
    if (strcmp(text, "stub") == 0) return cudaErrorStubLibrary;
    if (strcmp(text, "nodevice") == 0) return cudaErrorNoDevice;
    return cudaErrorInsufficientDriver; // none, old
}
// The driver's answer; or that of a child whose parent used it before the fork.
static cudaError_t usable(void) {
    static const pid_t owner = getpid();
    if (driver()) return told(driver());
    if (owner != getpid())
        return refuse(cudaErrorInitializationError, "used after a fork by parent and child");
    return cudaSuccess;
}
#define NEEDS_DRIVER()                                                                             \
    do {                                                                                           \
        const cudaError_t unusable = usable();                                                     \
        if (unusable) return unusable;                                                             \
    } while (0)

#define SIMT_ERRORS(E)                                                                             \
    E(cudaSuccess, "no error")                                                                     \
    E(cudaErrorInvalidValue, "invalid argument")                                                   \
    E(cudaErrorMemoryAllocation, "out of memory")                                                  \
    E(cudaErrorInitializationError, "initialization error")                                        \
    E(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    E(cudaErrorStubLibrary, "CUDA driver is a stub library")                                       \
    E(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    E(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    E(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    E(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    E(cudaErrorIllegalState, "the operation cannot be performed in the present state")             \
    E(cudaErrorNotReady, "device not ready")                                                       \
    E(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    E(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    E(cudaErrorStreamCaptureInvalidated,                                                           \
      "operation failed due to a previous error during capture")                                   \
    E(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream")                 \
    E(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                        \
    E(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")  \
    E(cudaErrorStreamCaptureImplicit,                                                              \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    E(cudaErrorCapturedEvent,                                                                      \
      "operation not permitted on an event last recorded in a capturing stream")

extern "C" {

const struct simt_counts *simt_counts_get(void) {
    counts.live_bytes = int64_t(memory_used());
    return &counts;
}
void simt_set_seed(unsigned s) { set_seed(s); }

const char *cudaGetErrorName(cudaError_t e) {
    switch (int(e)) {
#define NAME(code, text)                                                                           \
    case code: return #code;
        SIMT_ERRORS(NAME)
#undef NAME
    default: return "unrecognized error code";
    }
}
const char *cudaGetErrorString(cudaError_t e) {
    switch (int(e)) {
#define TEXT(code, text)                                                                           \
    case code: return text;
        SIMT_ERRORS(TEXT)
#undef TEXT
    default: return "unrecognized error code";
    }
}
cudaError_t cudaGetLastError(void) {
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError(void) { return last_error; }

/* ---- device ---- */

static int64_t number(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoll(text, nullptr, 10) : otherwise;
}
cudaError_t cudaDriverGetVersion(int *version) {
    const char *text = getenv("SIMT_DRIVER");
    *version = driver() == cudaSuccess || driver() == cudaErrorNoDevice ? CUDART_VERSION : 0;
    if (text && strcmp(text, "old") == 0) *version = 11080;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *n) { // leaves n alone where it fails, as the real one does
    NEEDS_DRIVER();
    *n = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    NEEDS_DRIVER();
    return told(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int *device) {
    NEEDS_DRIVER();
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    NEEDS_DRIVER();
    if (device != 0) return told(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    strcpy(p->name, "emulated threads on the host");
    const int cc = int(number("SIMT_CC", 90));
    p->major = cc / 10;
    p->minor = cc % 10;
    p->multiProcessorCount = int(number("SIMT_SMS", 4));
    p->totalGlobalMem = memory_limit();
    p->sharedMemPerBlock = SHARED_WITHOUT_LEAVE;
    p->sharedMemPerBlockOptin = MOST_SHARED;
    p->sharedMemPerMultiprocessor = MOST_SHARED + 1024;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = MOST_THREADS;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    const int block[3] = {1024, 1024, 64}, grid[3] = {2147483647, 65535, 65535};
    memcpy(p->maxThreadsDim, block, sizeof block);
    memcpy(p->maxGridSize, grid, sizeof grid);
    p->l2CacheSize = 50 << 20;
    p->memoryBusWidth = 6144;
    p->asyncEngineCount = 3;
    p->unifiedAddressing = p->concurrentKernels = p->memoryPoolsSupported = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device) {
    struct cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceProperties(&p, device);
    if (e) return e;
    switch (what) {
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = int(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = int(p.sharedMemPerMultiprocessor);
        break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMemoryPoolsSupported: *value = p.memoryPoolsSupported; break;
    case cudaDevAttrClockRate: *value = 1980000; break; // kHz, an H200's
    case cudaDevAttrMemoryClockRate: *value = 3201000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrEccEnabled: *value = 0; break;
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId: *value = 0; break;
    default: return refuse(cudaErrorInvalidValue, "cudaDeviceGetAttribute knows no %d", int(what));
    }
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int) {
    NEEDS_DRIVER();
    snprintf(id, size_t(bytes), "0000:00:00.0");
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    counts.synchronisations++;
    return told(run_until_idle(nullptr));
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *kernel) {
    NEEDS_DRIVER();
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = MOST_THREADS;
    return told(load("?", reinterpret_cast<void (*)()>(const_cast<void *>(kernel)), 0));
}
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute what, int value) {
    NEEDS_DRIVER();
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    return told(load("?", reinterpret_cast<void (*)()>(const_cast<void *>(kernel)), value));
}

/* ---- memory ---- */

static cudaError_t allocate(void **p, size_t bytes) {
    *p = nullptr;
    if (bytes == 0) return cudaSuccess;
    *p = memory_allocate(bytes);
    if (!*p) return told(cudaErrorMemoryAllocation);
    counts.allocations++;
    counts.live_allocations++;
    counts.peak_bytes = std::max(counts.peak_bytes, int64_t(memory_used()));
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **p, size_t bytes) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    return allocate(p, bytes);
}
cudaError_t cudaFree(void *p) {
    NEEDS_DRIVER();
    if (!p) return cudaSuccess;
    NOT_WHILE_CAPTURING();
    counts.synchronisations++; // it waits for the whole device
    const cudaError_t e = run_until_idle(nullptr);
    if (!memory_free(p)) return refuse(cudaErrorInvalidValue, "cudaFree of %p, no allocation", p);
    counts.frees++;
    counts.live_allocations--;
    return told(e);
}
/* The pool reserves in steps of 2 MiB and gives back when trimmed, or at a synchronisation what is
   above the threshold. */
static void pool_note(void) {
    const uint64_t used = memory_used(), step = 2 << 20;
    pool.used_high = std::max(pool.used_high, used);
    pool.reserved = std::max(pool.reserved, (used + step - 1) / step * step);
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
}
cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    const cudaError_t e = allocate(p, bytes);
    pool_note();
    return e;
}
cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t, cudaStream_t s) {
    return cudaMallocAsync(p, bytes, s);
}
static cudaStream_t known(cudaStream_t s) {
    if (!s) return streams[0];
    for (cudaStream_t other : streams)
        if (other == s && !s->destroyed) return s;
    return nullptr;
}
#define KNOWN(stream)                                                                              \
    cudaStream_t s = known(stream);                                                                \
    if (!s) return refuse(cudaErrorInvalidResourceHandle, "%s: no such stream", __func__)

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
    NEEDS_DRIVER();
    if (!p) return cudaSuccess;
    NOT_WHILE_CAPTURING();
    KNOWN(stream);
    struct allocation a;
    if (!memory_find(p, &a) || a.data != p)
        return refuse(cudaErrorInvalidValue, "cudaFreeAsync of %p, no allocation", p);
    struct work w;
    w.kind = work::FREE;
    w.to = a.data;
    put(s, std::move(w));
    counts.frees++;
    counts.live_allocations--;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *p, int) {
    NEEDS_DRIVER();
    *p = &pool;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *p, int device) {
    return cudaDeviceGetDefaultMemPool(p, device);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t p, size_t keep) {
    p->reserved = std::min<uint64_t>(p->reserved, std::max<uint64_t>(keep, memory_used()));
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr what, void *value) {
    uint64_t v;
    memcpy(&v, value, what >= cudaMemPoolAttrReleaseThreshold ? sizeof v : sizeof(int));
    switch (what) {
    case cudaMemPoolAttrReleaseThreshold: p->release_threshold = v; break;
    case cudaMemPoolAttrUsedMemHigh: p->used_high = memory_used(); break; // 0 resets it
    case cudaMemPoolAttrReservedMemHigh: p->reserved_high = p->reserved; break;
    default: break; // which blocks may be reused: all the same here
    }
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr what, void *value) {
    uint64_t v = 0;
    switch (what) {
    case cudaMemPoolAttrReleaseThreshold: v = p->release_threshold; break;
    case cudaMemPoolAttrUsedMemCurrent: v = memory_used(); break;
    case cudaMemPoolAttrUsedMemHigh: v = p->used_high; break;
    case cudaMemPoolAttrReservedMemCurrent: v = p->reserved; break;
    case cudaMemPoolAttrReservedMemHigh: v = p->reserved_high; break;
    default: return refuse(cudaErrorInvalidValue, "cudaMemPoolGetAttribute knows no %d", int(what));
    }
    memcpy(value, &v, sizeof v);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    NEEDS_DRIVER();
    *total = memory_limit();
    *free_bytes = *total - std::min(*total, memory_used());
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    *p = aligned_alloc(256, (std::max<size_t>(bytes, 1) + 255) / 256 * 256);
    if (!*p) return told(cudaErrorMemoryAllocation);
    memset(*p, 0xff, bytes);
    pinned[uintptr_t(*p) + bytes] = bytes;
    counts.host_allocations++;
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
static bool is_pinned(const void *p, size_t bytes) {
    const auto i = pinned.upper_bound(uintptr_t(p));
    return i != pinned.end() && i->first - i->second <= uintptr_t(p) &&
           uintptr_t(p) + bytes <= i->first;
}
cudaError_t cudaFreeHost(void *p) {
    if (!p) return cudaSuccess;
    NOT_WHILE_CAPTURING();
    const auto i = pinned.upper_bound(uintptr_t(p));
    if (i == pinned.end() || i->first - i->second != uintptr_t(p))
        return refuse(cudaErrorInvalidValue, "cudaFreeHost of %p, no allocation", p);
    counts.synchronisations++;
    const cudaError_t e = run_until_idle(nullptr);
    pinned.erase(i);
    counts.host_frees++;
    free(p);
    return told(e);
}

// `bytes` from p on must be device memory, or must not be.
static bool side_holds(const void *p, size_t bytes, bool device) {
    return device ? memory_holds(p, bytes) : p && !memory_find(p, nullptr);
}
static cudaError_t queue_copy(const char *call, void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t bytes, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
    KNOWN(stream);
    if (bytes == 0 || rows == 0) return cudaSuccess;
    if (kind == cudaMemcpyDefault)
        kind = memory_find(to, nullptr)
                   ? memory_find(from, nullptr) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
               : memory_find(from, nullptr) ? cudaMemcpyDeviceToHost
                                            : cudaMemcpyHostToHost;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const size_t to_bytes = (rows - 1) * to_pitch + bytes,
                 from_bytes = (rows - 1) * from_pitch + bytes;
    if (bytes > to_pitch || bytes > from_pitch || !side_holds(to, to_bytes, to_device) ||
        !side_holds(from, from_bytes, from_device))
        return refuse(cudaErrorInvalidValue,
                      "%s: %zu bytes from %p to %p do not suit kind %d and the allocations", call,
                      bytes, from, to, int(kind));
    struct work w;
    w.kind = work::COPY;
    w.to = static_cast<unsigned char *>(to);
    w.from = static_cast<const unsigned char *>(from);
    w.bytes = bytes;
    w.rows = rows;
    w.to_pitch = to_pitch;
    w.from_pitch = from_pitch;
    const bool pageable =
        (!to_device && !is_pinned(to, to_bytes)) || (!from_device && !is_pinned(from, from_bytes));
    if (pageable && s->capture) {
        invalidate_captures();
        return refuse(cudaErrorStreamCaptureUnsupported, "%s of pageable memory while captured",
                      call);
    }
    if (!from_device && pageable) // the caller may reuse it at once; pinned memory is read late
        w.staged = std::make_shared<std::vector<unsigned char>>(w.from, w.from + from_bytes);
    put(s, std::move(w));
    counts.copies++;
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    NEEDS_DRIVER();
    return queue_copy(__func__, to, bytes, from, bytes, bytes, 1, kind, stream);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t bytes, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
    NEEDS_DRIVER();
    return queue_copy(__func__, to, to_pitch, from, from_pitch, bytes, rows, kind, stream);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    cudaError_t e = queue_copy(__func__, to, bytes, from, bytes, bytes, 1, kind, nullptr);
    counts.synchronisations++;
    if (!e) e = run_until_idle(streams[0]); // other streams are not waited for
    return told(e);
}
static cudaError_t queue_fill(const char *call, void *to, size_t pitch, int value, size_t bytes,
                              size_t rows, cudaStream_t stream) {
    KNOWN(stream);
    if (bytes == 0 || rows == 0) return cudaSuccess;
    if (bytes > pitch || !memory_holds(to, (rows - 1) * pitch + bytes))
        return refuse(cudaErrorInvalidValue, "%s: %zu bytes at %p are in no allocation", call,
                      bytes, to);
    struct work w;
    w.kind = work::FILL;
    w.to = static_cast<unsigned char *>(to);
    w.bytes = bytes;
    w.rows = rows;
    w.to_pitch = pitch;
    w.value = value;
    put(s, std::move(w));
    counts.fills++;
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    NEEDS_DRIVER();
    return queue_fill(__func__, to, bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t bytes, size_t rows,
                              cudaStream_t stream) {
    NEEDS_DRIVER();
    return queue_fill(__func__, to, pitch, value, bytes, rows, stream);
}
cudaError_t cudaMemset(void *to, int value, size_t bytes) { // of device memory it may return early
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    return queue_fill(__func__, to, bytes, value, bytes, 1, nullptr);
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    if (flags != cudaStreamNonBlocking) // what blocking ones owe the default stream is not emulated
        return refuse(cudaErrorInvalidValue, "only non-blocking streams are emulated");
    *stream = new CUstream_st;
    streams.push_back(*stream);
    counts.streams_live++;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { // what lies in it still runs
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    KNOWN(stream);
    if (s == streams[0]) return told(cudaErrorInvalidResourceHandle);
    s->destroyed = true;
    forget_destroyed();
    counts.streams_live--;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    KNOWN(stream);
    counts.synchronisations++;
    return told(run_until_idle(s));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { // a loop of these must end
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    KNOWN(stream);
    if (s->queue.empty()) return cudaSuccess;
    memory_device_begin();
    run_some();
    memory_device_end();
    return told(cudaErrorNotReady); // no failure, but the real one keeps it too
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data) {
    NEEDS_DRIVER();
    KNOWN(stream);
    struct work w;
    w.kind = work::HOST;
    w.call = call;
    w.data = data;
    put(s, std::move(w));
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    NEEDS_DRIVER();
    *e = new CUevent_st;
    (*e)->timed = !(flags & cudaEventDisableTiming);
    counts.events_live++;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    if (!e) return told(cudaErrorInvalidResourceHandle);
    const cudaError_t error = e->done < e->recorded ? run_until_done(e) : cudaSuccess;
    counts.events_live--;
    delete e;
    return told(error);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t stream, unsigned flags) {
    NEEDS_DRIVER();
    KNOWN(stream);
    const bool external = flags & cudaEventRecordExternal;
    if (s->capture && !external) { // marks a place in the graph, no time
        e->capture = s->capture;
        e->last = s->last;
        return cudaSuccess;
    }
    e->capture = nullptr;
    if (!s->capture) e->recorded++;
    struct work w;
    w.kind = work::RECORD;
    w.event = e;
    put(s, std::move(w));
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
    return cudaEventRecordWithFlags(e, stream, cudaEventRecordDefault);
}
#define NOT_CAPTURED(e)                                                                            \
    if (!(e)) return told(cudaErrorInvalidResourceHandle);                                         \
    if ((e)->capture)                                                                              \
    return refuse(cudaErrorCapturedEvent,                                                          \
                  "%s of an event that was captured without cudaEventRecordExternal", __func__)

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    NOT_CAPTURED(e);
    counts.synchronisations++;
    return told(run_until_done(e));
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    NOT_CAPTURED(e);
    if (e->done >= e->recorded) return cudaSuccess;
    memory_device_begin();
    run_some();
    memory_device_end();
    return told(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    NEEDS_DRIVER();
    NOT_CAPTURED(from);
    NOT_CAPTURED(to);
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        return refuse(cudaErrorInvalidResourceHandle,
                      "cudaEventElapsedTime of an event without time or record");
    if (from->done < from->recorded || to->done < to->recorded) return told(cudaErrorNotReady);
    *ms = float((to->done_ns - from->done_ns) / 500) * 500e-6f; // resolution of half a microsecond
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
    NEEDS_DRIVER();
    KNOWN(stream);
    if (e->capture) {
        if (s->capture && s->capture != e->capture) return told(cudaErrorStreamCaptureIsolation);
        if (!s->capture && e->capture->origin == nullptr)
            return refuse(cudaErrorCapturedEvent, "wait for an event of a capture that has ended");
        if (!s->capture) s->last.clear(); // joins the capture
        s->capture = e->capture;
        for (size_t node : e->last)
            if (std::find(s->last.begin(), s->last.end(), node) == s->last.end())
                s->last.push_back(node);
        return cudaSuccess;
    }
    if (s->capture) {
        invalidate_captures();
        return refuse(cudaErrorStreamCaptureIsolation, "captured wait for an uncaptured event");
    }
    struct work w;
    w.kind = work::WAIT;
    w.event = e;
    w.at = e->recorded;
    put(s, std::move(w));
    return cudaSuccess;
}

/* ---- capture and graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
    NEEDS_DRIVER();
    KNOWN(stream);
    if (s == streams[0])
        return refuse(cudaErrorStreamCaptureUnsupported, "capture of the default stream");
    if (s->capture) return refuse(cudaErrorIllegalState, "the stream is being captured already");
    s->capture = std::make_shared<struct capture>();
    s->capture->origin = s;
    s->last.clear();
    counts.captures++;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    NEEDS_DRIVER();
    KNOWN(stream);
    *status = !s->capture           ? cudaStreamCaptureStatusNone
              : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
// Whether each node comes before what the origin's stream has last.
static bool is_joined(const struct graph &g, const std::vector<size_t> &last) {
    std::vector<bool> reached(g.nodes.size());
    for (size_t i : last) reached[i] = true;
    for (size_t i = g.nodes.size(); i-- > 0;)
        if (reached[i])
            for (size_t before : g.nodes[i].after) reached[before] = true;
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
    NEEDS_DRIVER();
    KNOWN(stream);
    *out = nullptr;
    const std::shared_ptr<struct capture> c = s->capture;
    if (!c) return refuse(cudaErrorIllegalState, "no capture to end");
    if (c->origin != s) return refuse(cudaErrorStreamCaptureUnmatched, "capture began elsewhere");
    const bool joined = is_joined(*c->graph, s->last);
    for (cudaStream_t other : streams)
        if (other->capture == c) other->capture = nullptr;
    c->origin = nullptr;
    if (c->invalid) return told(cudaErrorStreamCaptureInvalidated);
    if (!joined) return refuse(cudaErrorStreamCaptureUnjoined, "a captured stream was not joined");
    *out = new CUgraph_st{c->graph};
    counts.graphs_live++;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    *exec = new CUgraphExec_st{std::make_shared<struct graph>(*g->graph)};
    counts.instantiations++;
    counts.graphs_live++;
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    NEEDS_DRIVER();
    NOT_WHILE_CAPTURING();
    KNOWN(stream);
    for (const struct work &node : exec->graph->nodes)
        if (node.kind == work::RECORD) node.event->recorded++;
    struct work w;
    w.kind = work::GRAPH;
    w.graph = exec->graph;
    put(s, std::move(w));
    counts.graph_launches++;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    delete g;
    counts.graphs_live--;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { // a launch under way keeps its nodes
    delete exec;
    counts.graphs_live--;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n) {
    const size_t have = g->graph->nodes.size(), room = nodes ? *n : 0;
    for (size_t i = 0; i < room; i++)
        nodes[i] = i < have ? reinterpret_cast<cudaGraphNode_t>(&g->graph->nodes[i]) : nullptr;
    *n = nodes ? std::min(room, have) : have;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
    switch (reinterpret_cast<struct work *>(node)->kind) {
    case work::LAUNCH: *type = cudaGraphNodeTypeKernel; break;
    case work::COPY: *type = cudaGraphNodeTypeMemcpy; break;
    case work::FILL: *type = cudaGraphNodeTypeMemset; break;
    case work::RECORD: *type = cudaGraphNodeTypeEventRecord; break;
    case work::HOST: *type = cudaGraphNodeTypeHost; break;
    default: *type = cudaGraphNodeTypeEmpty; break;
    }
    return cudaSuccess;
}

} // extern "C"

/* ---- launches ---- */

static cudaError_t take(const struct launch_record &l, cudaStream_t stream) {
    NEEDS_DRIVER();
    KNOWN(stream);
    if (s->capture && !kernel_is_loaded(l.kernel)) {
        invalidate_captures();
        return refuse(cudaErrorStreamCaptureUnsupported,
                      "kernel %s is first loaded while a stream is captured", l.name);
    }
    counts.launches++;
    if (l.pdl) programmatic_seen = true;
    struct work w;
    w.kind = work::LAUNCH;
    w.launch = l;
    put(s, std::move(w));
    return cudaSuccess;
}

static void counts_write(void) {
    FILE *f = fopen(getenv("SIMT_COUNTS"), "a");
    if (!f) return;
    const struct simt_counts c = *simt_counts_get();
#define LINE(name) fprintf(f, #name "\t%lld\n", (long long)c.name);
    SIMT_COUNTS(LINE)
#undef LINE
    fclose(f);
}

void simt_counts_to_file(void) {
    static bool is_wanted = false;
    if (!is_wanted) atexit(counts_write);
    is_wanted = true;
}

static struct hang_in {
    hang_in() {
        hooks.take = take;
        hooks.prologue_begin = [](const struct launch_record &) { memory_prologue_begin(); };
        hooks.prologue_end = memory_prologue_end;
        hooks.is_device_memory = memory_holds;
        hooks.may_change = memory_may_change;
        if (getenv("SIMT_COUNTS")) simt_counts_to_file();
    }
} hang_in;
