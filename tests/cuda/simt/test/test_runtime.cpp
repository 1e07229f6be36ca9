// SPDX-License-Identifier: Apache-2.0
// What the stand-in for the CUDA runtime must refuse, and what must work over it.
#include <math.h>

#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/cuda/ptx.cuh"
#include "tests/cuda/simt/runtime.h"
#include "tests/cuda/simt/test/scenario.h"

enum { N = 512, THREADS = 64 };

struct add_args {
    const float *from;
    float *to;
    float by;
};
extern "C" __global__ void __launch_bounds__(THREADS) add(KERNEL_ARGS(struct add_args, a)) {
    pdl_wait();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    a.to[i] = a.from[i] + a.by;
}
extern "C" __global__ void __launch_bounds__(THREADS) add_hasty(KERNEL_ARGS(struct add_args, a)) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = a.from[i];
    pdl_wait();
    a.to[i] = x + a.by;
}
extern "C" __global__ void __launch_bounds__(THREADS) set_hasty(KERNEL_ARGS(struct add_args, a)) {
    a.to[blockIdx.x * blockDim.x + threadIdx.x] = a.by;
    pdl_wait();
}
extern "C" __global__ void __launch_bounds__(THREADS) add_never(KERNEL_ARGS(struct add_args, a)) {
    if (a.by == 0) a.to[0] = 0;
}
// Weights may be read early: `from` is one where nobody writes it.
extern "C" __global__ void __launch_bounds__(THREADS) add_weight(KERNEL_ARGS(struct add_args, a)) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float weight = a.from[i];
    if (threadIdx.x == 0) pdl_wait();
    __syncthreads();
    a.to[i] += weight;
}
typedef void kernel(struct add_args);

static const struct card card = {"add", "f32", 0, THREADS, 1, 32, 0, 0, 0, 0, 0, 0, ""};
static struct launch over(float blocks_of_n) {
    struct launch l = {};
    l.card = &card;
    l.grid[0] = unsigned(blocks_of_n * N / THREADS);
    l.grid[1] = l.grid[2] = 1;
    return l;
}
static cudaError_t go(kernel *k, float *from, float *to, float by, cudaStream_t s,
                      bool pdl = false) {
    return launch_kernel(k, over(1), queue{s, pdl}, add_args{from, to, by});
}
#define OK(call) EXPECT((call) == cudaSuccess)

static float *device(void) {
    void *p;
    OK(cudaMalloc(&p, N * sizeof(float)));
    return static_cast<float *>(p);
}
static cudaStream_t stream(void) {
    cudaStream_t s;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}
static cudaEvent_t event(void) {
    cudaEvent_t e;
    OK(cudaEventCreate(&e));
    return e;
}
static float *pinned(float value) {
    void *p;
    OK(cudaHostAlloc(&p, N * sizeof(float), 0));
    for (int i = 0; i < N; i++) static_cast<float *>(p)[i] = value;
    return static_cast<float *>(p);
}
static void up(float *to, const float *from, cudaStream_t s) {
    OK(cudaMemcpyAsync(to, from, N * sizeof(float), cudaMemcpyHostToDevice, s));
}
static void down(float *to, const float *from, cudaStream_t s) {
    OK(cudaMemcpyAsync(to, from, N * sizeof(float), cudaMemcpyDeviceToHost, s));
}
static bool all_are(const float *p, float value) {
    for (int i = 0; i < N; i++)
        if (!(p[i] == value)) return false;
    return true;
}

/* ---- what works ---- */

static void copies_and_launches(void) {
    cudaStream_t s = stream();
    float *x = device(), *y = device(), *h = pinned(3);
    up(x, h, s);
    OK(go(add, x, y, 1, s));
    OK(go(add, y, y, 1, s));
    down(h, y, s);
    EXPECT(all_are(h, 3)); // nothing has run yet
    OK(cudaStreamSynchronize(s));
    EXPECT(all_are(h, 5));
    EXPECT(simt_counts_get()->launches == 2 && simt_counts_get()->kernels_run == 2);
    EXPECT(simt_counts_get()->live_allocations == 2);
    EXPECT(simt_counts_get()->live_bytes == 2 * N * 4);
    OK(cudaFree(x));
    OK(cudaFreeAsync(y, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(simt_counts_get()->live_allocations == 0 && simt_counts_get()->live_bytes == 0);
}
// Streams ordered by an event; wait: whether it is waited for. Returns y.
static float *two_streams(bool wait) {
    cudaStream_t a = stream(), b = stream();
    float *x = device(), *y = device(), *h = pinned(1);
    cudaEvent_t e = event();
    up(x, h, a);
    OK(go(add, x, x, 1, a));
    OK(cudaEventRecord(e, a));
    if (wait) OK(cudaStreamWaitEvent(b, e, 0));
    OK(go(add, x, y, 1, b));
    float *out = pinned(0);
    down(out, y, b);
    OK(cudaStreamSynchronize(b));
    return out;
}
static void events_order_streams(void) {
    for (unsigned seed = 0; seed < 20; seed++) {
        simt_set_seed(seed);
        EXPECT(all_are(two_streams(true), 3));
    }
}
static void a_missing_wait_shows(void) {
    int wrong = 0;
    for (unsigned i = 0; i < 20; i++) wrong += !all_are(two_streams(false), 3);
    EXPECT(wrong > 0);
}
static void a_missing_synchronise_shows(void) {
    cudaStream_t s = stream();
    float *x = device(), *h = pinned(0);
    OK(cudaMemsetAsync(x, 0, N * sizeof(float), s));
    OK(go(add, x, x, 7, s));
    down(h, x, s);
    EXPECT(!all_are(h, 7));
}
static void pinned_memory_is_read_late(void) {
    cudaStream_t s = stream();
    float *x = device(), *h = pinned(1), *out = pinned(0);
    up(x, h, s);
    h[5] = 2; // too early: the copy is still to come
    down(out, x, s);
    OK(cudaStreamSynchronize(s));
    EXPECT(out[5] == 2);
}
static void pageable_memory_may_be_reused(void) {
    cudaStream_t s = stream();
    float *x = device(), *out = pinned(0);
    std::vector<float> h(N, 1.0f);
    up(x, h.data(), s);
    h[5] = 2;
    down(out, x, s);
    OK(cudaStreamSynchronize(s));
    EXPECT(all_are(out, 1));
}

/* ---- graphs ---- */

static cudaGraphExec_t end(cudaStream_t s) {
    cudaGraph_t g;
    cudaGraphExec_t x;
    OK(cudaStreamEndCapture(s, &g));
    OK(cudaGraphInstantiate(&x, g, 0));
    OK(cudaGraphDestroy(g));
    return x;
}
static void begin(cudaStream_t s) {
    for (kernel *k : {add, add_hasty, set_hasty, add_weight}) OK(load_kernel(k, card));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
}
static void graphs_replay(void) {
    for (unsigned seed = 0; seed < 8; seed++) {
        simt_set_seed(seed);
        cudaStream_t a = stream(), b = stream();
        float *x = device(), *y = device(), *z = device(), *h = pinned(1), *out = pinned(0);
        cudaEvent_t fork = event(), join = event(), before = event(), after = event();
        up(x, h, a);
        begin(a);
        OK(cudaEventRecordWithFlags(before, a, cudaEventRecordExternal));
        OK(go(add, x, x, 1, a));
        OK(cudaEventRecord(fork, a));
        OK(cudaStreamWaitEvent(b, fork, 0));
        OK(go(add, x, y, 10, b));
        OK(go(add, x, z, 20, a));
        OK(cudaEventRecord(join, b));
        OK(cudaStreamWaitEvent(a, join, 0));
        OK(go(add, y, z, 0, a));
        OK(cudaEventRecordWithFlags(after, a, cudaEventRecordExternal));
        cudaGraphExec_t g = end(a);
        for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(g, a));
        down(out, z, a);
        OK(cudaStreamSynchronize(a));
        EXPECT(all_are(out, 14)); // 1 + 3, + 10
        float ms = -1;
        OK(cudaEventElapsedTime(&ms, before, after));
        EXPECT(ms >= 0 && ms < 60e3f);
        OK(cudaGraphExecDestroy(g));
    }
    EXPECT(simt_counts_get()->graphs_live == 0 && simt_counts_get()->forbidden == 0);
    EXPECT(simt_counts_get()->graph_launches == 24 && simt_counts_get()->kernels_run == 96);
}
static void nodes_can_be_listed(void) {
    cudaStream_t s = stream();
    float *x = device();
    begin(s);
    OK(cudaMemsetAsync(x, 0, 4, s));
    OK(go(add, x, x, 1, s));
    cudaGraph_t g;
    OK(cudaStreamEndCapture(s, &g));
    size_t n = 0;
    OK(cudaGraphGetNodes(g, nullptr, &n));
    EXPECT(n == 2);
    cudaGraphNode_t nodes[2];
    OK(cudaGraphGetNodes(g, nodes, &n));
    enum cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(nodes[0], &type));
    EXPECT(type == cudaGraphNodeTypeMemset);
    OK(cudaGraphNodeGetType(nodes[1], &type));
    EXPECT(type == cudaGraphNodeTypeKernel);
}
static void allocation_in_capture(void) {
    cudaStream_t s = stream();
    begin(s);
    void *p;
    EXPECT(cudaMalloc(&p, 4) == cudaErrorStreamCaptureUnsupported);
    EXPECT(simt_counts_get()->forbidden == 1);
    cudaGraph_t g;
    EXPECT(cudaStreamEndCapture(s, &g) == cudaErrorStreamCaptureInvalidated && !g);
}
static void synchronise_in_capture(void) {
    cudaStream_t s = stream();
    begin(s);
    EXPECT(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
}
static void unloaded_kernel_in_capture(void) {
    cudaStream_t s = stream();
    float *x = device();
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    EXPECT(go(add, x, x, 1, s) == cudaErrorStreamCaptureUnsupported);
}
static void pageable_copy_in_capture(void) {
    cudaStream_t s = stream();
    float *x = device();
    std::vector<float> h(N);
    begin(s);
    EXPECT(cudaMemcpyAsync(x, h.data(), 4, cudaMemcpyHostToDevice, s) ==
           cudaErrorStreamCaptureUnsupported);
}
static void captured_events_have_no_time(void) {
    cudaStream_t s = stream();
    cudaEvent_t a = event(), b = event();
    begin(s);
    OK(cudaEventRecord(a, s));
    OK(go(add, nullptr, nullptr, 0, s)); // never run
    OK(cudaEventRecord(b, s));
    end(s);
    float ms;
    EXPECT(cudaEventElapsedTime(&ms, a, b) == cudaErrorCapturedEvent);
}
static void unjoined_stream(void) {
    cudaStream_t a = stream(), b = stream();
    float *x = device();
    cudaEvent_t e = event();
    begin(a);
    OK(cudaEventRecord(e, a));
    OK(cudaStreamWaitEvent(b, e, 0));
    OK(go(add, x, x, 1, b));
    cudaGraph_t g;
    EXPECT(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureUnjoined);
}

/* ---- memory ---- */

static void host_reads_device_memory(void) {
    volatile float *x = device();
    (void)x[3];
}
static void host_writes_device_memory_after_a_kernel(void) {
    cudaStream_t s = stream();
    float *x = device();
    OK(cudaMemsetAsync(x, 0, N * sizeof(float), s));
    OK(go(add, x, x, 1, s));
    OK(cudaStreamSynchronize(s));
    x[3] = 1;
}
static void new_memory_is_nan(void) {
    cudaStream_t s = stream();
    float *x = device(), *h = pinned(0);
    down(h, x, s);
    OK(cudaStreamSynchronize(s));
    for (int i = 0; i < N; i++) EXPECT(isnan(h[i]));
}
static void overrun(void) {
    cudaStream_t s = stream();
    float *x = device();
    OK(launch_kernel(add, over(2), queue{s, false}, add_args{x, x, 1}));
    cudaStreamSynchronize(s);
}
static void small_overrun(void) { // within the last 256 bytes: seen at the next synchronisation
    cudaStream_t s = stream();
    void *x;
    OK(cudaMalloc(&x, (N - 1) * sizeof(float)));
    float *y = device();
    OK(cudaMemsetAsync(y, 0, N * sizeof(float), s));
    OK(go(add, y, static_cast<float *>(x), 1, s));
    cudaStreamSynchronize(s);
}
static void use_after_free(void) {
    cudaStream_t s = stream();
    float *x = device();
    OK(go(add, x, x, 1, s));
    OK(cudaFreeAsync(x, s));
    OK(go(add, x, x, 1, s));
    cudaStreamSynchronize(s);
}
static void wrong_direction(void) {
    float *x = device();
    float h[4];
    EXPECT(cudaMemcpy(x, h, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(x, h, N * 4 + 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
}
static void out_of_memory(void) {
    setenv("SIMT_MEMORY", "4096", 1);
    void *p, *q;
    OK(cudaMallocAsync(&p, 4096, nullptr));
    EXPECT(cudaMallocAsync(&q, 1, nullptr) == cudaErrorMemoryAllocation && !q);
    OK(cudaFreeAsync(p, nullptr));
    OK(cudaDeviceSynchronize());
    OK(cudaMallocAsync(&q, 1, nullptr));
    size_t free_bytes, total;
    OK(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(total == 4096 && free_bytes == 4095);
}
static void pool_has_high_marks(void) {
    cudaMemPool_t pool;
    void *p, *q;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&p, 3 << 20, nullptr));
    OK(cudaMallocAsync(&q, 1 << 20, nullptr));
    OK(cudaFreeAsync(q, nullptr));
    OK(cudaDeviceSynchronize());
    uint64_t used, high, reserved;
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    EXPECT(used == 3 << 20 && high == 4 << 20 && reserved >= high);
    uint64_t zero = 0;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    EXPECT(high == used);
}

/* ---- launches ---- */

static void bad_launches(void) {
    struct launch l = over(1);
    l.grid[1] = 65536;
    EXPECT(launch_kernel(add, l, queue{nullptr, false}, add_args{}) ==
           cudaErrorInvalidConfiguration);
    l = over(0);
    EXPECT(launch_kernel(add, l, queue{nullptr, false}, add_args{}) ==
           cudaErrorInvalidConfiguration);
    l = over(1);
    l.shared_bytes = 48 * 1024 + 16; // not loaded with leave for more
    EXPECT(launch_kernel(add, l, queue{nullptr, false}, add_args{}) == cudaErrorInvalidValue);
}
static void failed_kernel(void) {
    setenv("SIMT_FAIL", "add", 1);
    cudaStream_t s = stream();
    float *x = device();
    OK(go(add, x, x, 1, s));
    EXPECT(cudaStreamSynchronize(s) == cudaErrorLaunchFailure);
    EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure") == 0);
}

/* ---- programmatic launches ---- */

static void pair(kernel *first, kernel *second, bool in_graph) {
    cudaStream_t s = stream();
    float *x = device(), *y = device(), *w = device(), *h = pinned(1);
    up(x, h, s);
    up(w, h, s);
    OK(cudaMemsetAsync(y, 0, N * sizeof(float), s));
    if (in_graph) begin(s);
    OK(go(first, x, y, 1, s, true)); // after a copy or at a graph's start: fully ordered
    OK(go(second, second == add_weight ? w : y, second == set_hasty ? x : y, 1, s, true));
    OK(go(add, y, y, 0, s, true));
    if (in_graph) OK(cudaGraphLaunch(end(s), s));
    float *out = pinned(0);
    down(out, y, s);
    OK(cudaStreamSynchronize(s));
    EXPECT(all_are(out, 3));
}
static void programmatic_order(void) {
    for (unsigned seed = 0; seed < 6; seed++) {
        simt_set_seed(seed);
        for (bool in_graph : {false, true}) {
            pair(add, add, in_graph);
            pair(add, add_weight, in_graph);
            pair(add_hasty, add, in_graph); // has no kernel before it to be hasty about
        }
    }
}
static void programmatic_read_too_early(void) { pair(add, add_hasty, false); }
static void programmatic_read_too_early_in_graph(void) { pair(add, add_hasty, true); }
static void programmatic_write_too_early(void) { pair(add, set_hasty, false); }
static void programmatic_never_waits(void) { pair(add, add_never, false); }
static void programmatic_grandparent(void) { // the kernel between may have started early as well
    cudaStream_t s = stream();
    float *x = device(), *y = device(), *z = device();
    OK(cudaMemsetAsync(x, 0, N * sizeof(float), s));
    OK(go(add, x, y, 1, s));
    OK(go(add, x, z, 1, s, true));
    OK(go(add_hasty, y, z, 1, s, true));
    cudaStreamSynchronize(s);
}

extern "C" __global__ void __launch_bounds__(THREADS) add_const(KERNEL_ARGS(struct add_args, a)) {
    pdl_wait();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 v = load_stream_16(a.from + i / 4 * 4);
    a.to[i] = __uint_as_float(i % 4 == 0 ? v.x : i % 4 == 1 ? v.y : i % 4 == 2 ? v.z : v.w) + a.by;
}
static void programmatic_constant(void) { pair(add, add_const, false); }
static void constant_without_programmatic(void) { // then it ended before
    cudaStream_t s = stream();
    float *x = device(), *y = device();
    OK(go(add, x, x, 1, s));
    OK(go(add_const, x, y, 1, s));
    OK(go(add, x, x, 1, s, true));
    OK(cudaStreamSynchronize(s));
}

/* ---- files ---- */

static std::string folder(void) {
    char name[] = "/tmp/simt_test_XXXXXX";
    EXPECT(mkdtemp(name));
    return name;
}
static std::string contents(const std::string &path) {
    std::string all;
    FILE *f = fopen(path.c_str(), "rb");
    if (!f) return all;
    for (int c; (c = getc(f)) != EOF;) all += char(c);
    fclose(f);
    return all;
}
static void launches_are_recorded(void) {
    const std::string in = folder();
    setenv("SIMT_RECORD", in.c_str(), 1);
    cudaStream_t s = stream();
    float *x = device(), *y = device();
    OK(cudaMemsetAsync(x, 0, N * sizeof(float), s));
    for (float part : {1.0f, 0.5f, 1.0f, 0.25f})
        OK(launch_kernel(add, over(part), queue{s, false}, add_args{x, y, part}));
    OK(cudaStreamSynchronize(s));
    EXPECT(contents(in + "/add-000000000512-8.1.1-0.rec").empty()); // not among the two smallest
    EXPECT(!contents(in + "/add-000000000256-4.1.1-0.rec").empty());
    const std::string r = contents(in + "/add-000000000128-2.1.1-0.rec");
    const size_t args = 8 + 48 + 8, memory = args + sizeof(struct add_args);
    EXPECT(r.size() == memory + 2 * 24 + 3 * N * sizeof(float));
    uint32_t head[12];
    memcpy(head, r.data() + 8, sizeof head);
    const uint32_t wanted[12] = {2, 1, 1, THREADS, 1, 1, 0, 0, 3, sizeof(struct add_args), 2, 0};
    EXPECT(r.compare(0, 8, "SIMTREC1") == 0 && memcmp(head, wanted, sizeof head) == 0);
    EXPECT(r.compare(56, 3, "add") == 0);
    uint64_t piece[3];
    memcpy(piece, r.data() + memory, sizeof piece);
    EXPECT(piece[0] == uintptr_t(std::min(x, y)) && piece[1] == N * sizeof(float));
    EXPECT(piece[2] == (y < x)); // only y has changed
    EXPECT(system(("rm -r " + in).c_str()) == 0);
}
static void counts_are_written(void) {
    const std::string in = folder();
    setenv("SIMT_COUNTS", (in + "/counts").c_str(), 1);
    setenv("SIMT_STATS", (in + "/stats").c_str(), 1);
    simt_counts_to_file();
    const pid_t child = fork();
    if (child == 0) {
        cudaStream_t s = stream();
        float *x = device();
        OK(go(add, x, x, 1, s));
        OK(cudaStreamSynchronize(s));
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
    EXPECT(contents(in + "/counts").find("kernels_run\t1\n") != std::string::npos);
    EXPECT(contents(in + "/stats") == "add\t1\t8\t512\t0\t0\t0\t0\n");
    EXPECT(system(("rm -r " + in).c_str()) == 0);
}

/* ---- drivers ---- */

static void driver_is(const char *what, cudaError_t error, int version) {
    setenv("SIMT_DRIVER", what, 1);
    int n = -7, v;
    EXPECT(cudaGetDeviceCount(&n) == error && n == -7);
    EXPECT(cudaDriverGetVersion(&v) == cudaSuccess && v == version);
    cudaStream_t s;
    EXPECT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == error);
}
static void no_driver(void) {
    driver_is("none", cudaErrorInsufficientDriver, 0);
    driver_is("old", cudaErrorInsufficientDriver, 11080);
    driver_is("stub", cudaErrorStubLibrary, 0);
    driver_is("nodevice", cudaErrorNoDevice, CUDART_VERSION);
}
static void fork_after_use(void) {
    float *x = device();
    (void)x;
    const pid_t child = fork();
    if (child == 0) {
        void *p;
        _exit(cudaMalloc(&p, 4) == cudaErrorInitializationError ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
}

static const struct scenario list[] = {
    {"copies and launches run at a synchronisation", copies_and_launches, 0, nullptr},
    {"events order streams", events_order_streams, 0, nullptr},
    {"a missing wait for an event shows", a_missing_wait_shows, 0, nullptr},
    {"a missing synchronisation shows", a_missing_synchronise_shows, 0, nullptr},
    {"pinned memory is read late", pinned_memory_is_read_late, 0, nullptr},
    {"pageable memory may be reused", pageable_memory_may_be_reused, 0, nullptr},
    {"graphs replay, with times of external events", graphs_replay, 0, nullptr},
    {"nodes of a graph can be listed", nodes_can_be_listed, 0, nullptr},
    {"allocation while capturing", allocation_in_capture, 0,
     "cudaMalloc while a stream is captured"},
    {"synchronisation while capturing", synchronise_in_capture, 0,
     "cudaStreamSynchronize while a stream is captured"},
    {"kernel loaded while capturing", unloaded_kernel_in_capture, 0, "kernel add is first loaded"},
    {"pageable copy while capturing", pageable_copy_in_capture, 0, "of pageable memory"},
    {"captured events have no time", captured_events_have_no_time, 0, "cudaEventRecordExternal"},
    {"unjoined stream", unjoined_stream, 0, "was not joined"},
    {"host reads device memory", host_reads_device_memory, 97, "host code touched device memory"},
    {"host writes device memory", host_writes_device_memory_after_a_kernel, 97,
     "host code touched device memory: byte 12 of an allocation of 2048 bytes"},
    {"new memory is NaN", new_memory_is_nan, 0, nullptr},
    {"overrun of an allocation", overrun, 97,
     "access outside an allocation: byte 2048 of an allocation of 2048 bytes"},
#ifdef __SANITIZE_ADDRESS__
    {"small overrun of an allocation", small_overrun, 1, "AddressSanitizer"},
#else
    {"small overrun of an allocation", small_overrun, 97, "written past the end"},
#endif
    {"use after free", use_after_free, 97, "freed device memory was touched"},
    {"copies are checked", wrong_direction, 0, "do not suit kind 2"},
    {"memory ends", out_of_memory, 0, nullptr},
    {"the pool has high marks", pool_has_high_marks, 0, nullptr},
    {"launches are checked", bad_launches, 0, nullptr},
    {"a failed kernel fails the next synchronisation", failed_kernel, 0, nullptr},
    {"programmatic launches in order", programmatic_order, 0, nullptr},
    {"programmatic: read before the wait", programmatic_read_too_early, 97,
     "memory that an earlier kernel writes was touched before pdl_wait"},
    {"programmatic: the same in a graph", programmatic_read_too_early_in_graph, 97,
     "memory that an earlier kernel writes was touched before pdl_wait"},
    {"programmatic: write before the wait", programmatic_write_too_early, 97,
     "memory was written before pdl_wait"},
    {"programmatic: no wait", programmatic_never_waits, 97, "never called pdl_wait"},
    {"programmatic: what the last but one writes", programmatic_grandparent, 97,
     "memory that an earlier kernel writes was touched before pdl_wait"},
    {"programmatic: read-only loads of what changes", programmatic_constant, 97,
     "is written by a kernel that may not have ended"},
    {"read-only loads of what has changed before", constant_without_programmatic, 0, nullptr},
    {"launches are recorded", launches_are_recorded, 0, nullptr},
    {"counts are written", counts_are_written, 0, nullptr},
    {"no driver, old, stub, no device", no_driver, 0, nullptr},
    {"use after a fork", fork_after_use, 0, "used after a fork"},
};

int main(void) { return run_scenarios(list); }
