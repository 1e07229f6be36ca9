// SPDX-License-Identifier: Apache-2.0
// Runs what lies in streams, as late as synchronisation allows, and from a random stream.
#include "tests/cuda/simt/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/simt/memory.h"
#include "tests/cuda/simt/runtime.h"
#include "tests/cuda/simt/runtime_counts.h"

namespace simt {

static CUstream_st default_stream;
std::vector<cudaStream_t> streams = {&default_stream};
bool programmatic_seen;
static uint64_t last_chain;
static cudaError_t broken; // what no call recovers from

static unsigned random_below(unsigned n) {
    static unsigned state = 2463534242u + 7919 * seed();
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}
static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

/* ---- execution ---- */

static void run_kernel(const struct launch_record &l, bool after_kernel, uint64_t *chain) {
    const bool early = l.pdl && after_kernel;
    if (!early) *chain = ++last_chain;
    memory_kernel_begin(programmatic_seen ? *chain : 0, early);
    run(l);
    memory_kernel_end();
    counts.kernels_run++;
    const char *name = getenv("SIMT_FAIL");
    if (name && !broken && strcmp(name, l.name) == 0) broken = cudaErrorLaunchFailure;
}
static void run_copy(const struct work &w) {
    const unsigned char *from = w.staged ? w.staged->data() : w.from;
    for (size_t r = 0; r < w.rows; r++)
        memcpy(w.to + r * w.to_pitch, from + r * w.from_pitch, w.bytes);
}
static void run_graph(const struct graph &);

// chain: of the stream or graph branch; 0 after what is no kernel.
static void run_one(const struct work &w, uint64_t *chain) {
    if (w.kind == work::LAUNCH) {
        run_kernel(w.launch, *chain != 0, chain);
        return;
    }
    *chain = 0;
    memory_kernel_begin(0, false);
    switch (w.kind) {
    case work::COPY: run_copy(w); break;
    case work::FILL:
        for (size_t r = 0; r < w.rows; r++) memset(w.to + r * w.to_pitch, w.value, w.bytes);
        break;
    case work::RECORD:
        w.event->done++;
        w.event->done_ns = now_ns();
        break;
    case work::GRAPH: run_graph(*w.graph); break;
    case work::FREE: memory_free(w.to); break;
    case work::HOST: w.call(w.data); break; // has no business with device memory, but is trusted
    case work::LAUNCH:
    case work::WAIT:
    case work::NOTHING: break;
    }
}

// Any order that the dependencies allow; seed 0: as captured.
static void run_graph(const struct graph &g) {
    const size_t n = g.nodes.size();
    std::vector<bool> done(n);
    uint64_t chain = 0;
    size_t previous = n;
    for (size_t k = 0; k < n; k++) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < n; i++) {
            bool can = !done[i];
            for (size_t before : g.nodes[i].after) can = can && done[before];
            if (can) ready.push_back(i);
            if (can && seed() == 0) break;
        }
        const size_t i = ready[random_below(unsigned(ready.size()))];
        const struct work &w = g.nodes[i];
        if (w.after.size() != 1 || w.after[0] != previous) chain = 0; // a full dependency
        run_one(w, &chain);
        done[i] = true;
        previous = i;
    }
}

static bool must_wait(const struct work &w) { return w.kind == work::WAIT && w.event->done < w.at; }
void forget_destroyed(void) {
    for (size_t i = streams.size(); i-- > 1;) {
        if (!streams[i]->destroyed || !streams[i]->queue.empty()) continue;
        delete streams[i];
        streams.erase(streams.begin() + long(i));
    }
}

bool run_some(void) {
    std::vector<cudaStream_t> can;
    for (cudaStream_t s : streams)
        if (!s->queue.empty() && !must_wait(s->queue.front())) can.push_back(s);
    if (can.empty()) return false;
    cudaStream_t s = can[random_below(unsigned(can.size()))];
    const struct work w = std::move(s->queue.front());
    s->queue.pop_front();
    run_one(w, &s->chain);
    return true;
}

// Runs until `idle`; a stream that waits for what never comes is a mistake of the program.
template <class Idle> static cudaError_t run_while(Idle idle) {
    memory_device_begin();
    bool moved = true;
    while (moved && !idle()) moved = run_some();
    memory_device_end();
    forget_destroyed();
    if (!moved && !idle()) {
        fputs("simt: streams wait for events of each other\n", stderr);
        return cudaErrorLaunchFailure;
    }
    return broken;
}
cudaError_t run_until_idle(cudaStream_t s) {
    return run_while([s] {
        if (s) return s->queue.empty();
        for (cudaStream_t other : streams)
            if (!other->queue.empty()) return false;
        return true;
    });
}
cudaError_t run_until_done(cudaEvent_t e) {
    const uint64_t at = e->recorded;
    return run_while([e, at] { return e->done >= at; });
}

/* ---- capture ---- */

bool is_capturing(void) {
    for (cudaStream_t s : streams)
        if (s->capture) return true;
    return false;
}
void invalidate_captures(void) {
    for (cudaStream_t s : streams)
        if (s->capture) s->capture->invalid = true;
}

void put(cudaStream_t s, struct work &&w) {
    if (!s->capture) {
        s->queue.push_back(std::move(w));
        return;
    }
    struct graph &g = *s->capture->graph;
    w.after = s->last;
    s->last = {g.nodes.size()};
    g.nodes.push_back(std::move(w));
}

} // namespace simt
