/* SPDX-License-Identifier: Apache-2.0 */
/* What launching costs on this GPU, with kernels that do nothing: constants of the step model
   (docs/cuda-bounds.md). Prints name, value in ns, and what it is, separated by tabs. Runs on the
   emulated runtime too, where only its form is looked at. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cuda/ptx.cuh"

struct nothing_args {
    int32_t *sink;
};
static const card nothing_card = {"nothing", "none", 0, 32, 1, 32, 0, 0, 0, 0, 0, 0, "constants"};

extern "C" __global__ void __launch_bounds__(32, 1) nothing(KERNEL_ARGS(struct nothing_args, a)) {
    pdl_launch();
    pdl_wait();
    if (a.sink != nullptr) *a.sink = 1;
}

#ifdef BENCH_SIMT /* the form alone is looked at */
enum { EAGER = 20, NODES = 16, REPLAYS = 3, TRIES = 3 };
#else
enum { EAGER = 500, NODES = 256, REPLAYS = 50, TRIES = 9 };
#endif

static cudaStream_t stream;
static cudaEvent_t begin, end;

static void must(cudaError_t e, const char *what) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static double host_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * double(t.tv_sec) + double(t.tv_nsec);
}

static void launches(int n, bool pdl) {
    const launch l = {&nothing_card, {1, 1, 1}, 0, 0, 0};
    const queue q = {stream, pdl};
    const nothing_args a = {nullptr};
    for (int i = 0; i < n; i++) must(launch_kernel(nothing, l, q, a), "launch");
}

static double median(double (&v)[TRIES]) {
    for (int i = 1; i < TRIES; i++)
        for (int j = i; j > 0 && v[j] < v[j - 1]; j--) {
            const double t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
    return v[TRIES / 2];
}

struct costs { /* of one unit, medians */
    double host, device;
};

/* `run` puts `n` units into the stream. */
template <class F> static costs measure(int n, const F &run) {
    double host[TRIES], device[TRIES];
    run(); /* warm */
    must(cudaStreamSynchronize(stream), "synchronize");
    for (int i = 0; i < TRIES; i++) {
        must(cudaEventRecord(begin, stream), "record");
        const double t = host_ns();
        run();
        host[i] = (host_ns() - t) / n;
        must(cudaEventRecord(end, stream), "record");
        must(cudaStreamSynchronize(stream), "synchronize");
        float ms = 0;
        must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
        device[i] = 1e6 * double(ms) / n;
    }
    return {median(host), median(device)};
}

static void graph(bool pdl, const char *suffix) {
    cudaGraph_t recorded;
    cudaGraphExec_t ready;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
    launches(NODES, pdl);
    must(cudaStreamEndCapture(stream, &recorded), "end capture");
    must(cudaGraphInstantiate(&ready, recorded, 0), "instantiate");
    const costs c = measure(REPLAYS, [&] {
        for (int i = 0; i < REPLAYS; i++) must(cudaGraphLaunch(ready, stream), "graph launch");
    });
    printf("graph_gap%s\t%.1f\tns from kernel to kernel in a graph of %d\n", suffix,
           c.device / NODES, int(NODES));
    printf("graph_host%s\t%.1f\tns of the host per replay\n", suffix, c.host);
    must(cudaGraphExecDestroy(ready), "destroy");
    must(cudaGraphDestroy(recorded), "destroy");
}

int main() {
    int n = 0;
    cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        fprintf(stderr, "skipped: %s\n", e != cudaSuccess ? cudaGetErrorString(e) : "no device");
        return 77;
    }
    must(cudaGetDeviceProperties(&p, 0), "properties");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    must(load_kernel(nothing, nothing_card), "load");
    const costs eager = measure(EAGER, [] { launches(EAGER, false); });
    printf("eager_host\t%.1f\tns of the host per launch\n", eager.host);
    printf("eager_gap\t%.1f\tns from kernel to kernel, launched one by one\n", eager.device);
    graph(false, "");
    if (p.major >= 9) {
        const costs pdl = measure(EAGER, [] { launches(EAGER, true); });
        printf("eager_gap_pdl\t%.1f\tns from kernel to kernel, launched one by one, dependent\n",
               pdl.device);
        graph(true, "_pdl");
    }
    const costs none = measure(1, [] {});
    printf("event_pair\t%.1f\tns between two events with nothing between\n", none.device);
    return 0;
}
