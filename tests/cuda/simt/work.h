/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream holds until the device gets to it: launches, copies, events, graphs. */
#ifndef TESTS_CUDA_SIMT_WORK_H
#define TESTS_CUDA_SIMT_WORK_H
#include <deque>
#include <memory>
#include <vector>

#include <driver_types.h>

#include "tests/cuda/simt/simt.h"

namespace simt {

struct graph;

struct work {
    enum kind { LAUNCH, COPY, FILL, RECORD, WAIT, GRAPH, FREE, HOST, NOTHING } kind = NOTHING;
    struct launch_record launch = {};
    unsigned char *to = nullptr; // COPY, FILL, FREE
    const unsigned char *from = nullptr;
    std::shared_ptr<std::vector<unsigned char>> staged; // COPY from pageable memory
    size_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
    int value = 0;                       // FILL
    cudaEvent_t event = nullptr;         // RECORD, WAIT
    uint64_t at = 0;                     // WAIT: until that many records were done
    std::shared_ptr<struct graph> graph; // GRAPH
    void (*call)(void *) = nullptr;      // HOST
    void *data = nullptr;
    std::vector<size_t> after; // in a graph: nodes that come before
};
struct graph {
    std::vector<struct work> nodes; // as captured: each after those it depends on
};
struct capture {
    std::shared_ptr<struct graph> graph = std::make_shared<struct graph>();
    cudaStream_t origin = nullptr;
    bool invalid = false;
};

} // namespace simt

struct CUstream_st {
    std::deque<struct simt::work> queue;
    std::shared_ptr<struct simt::capture> capture; // under way
    std::vector<size_t> last;                      // its nodes that this stream's next one follows
    uint64_t chain = 0; // of kernels since the last full dependency; 0: none came last
    bool destroyed = false;
};
struct CUevent_st {
    uint64_t recorded = 0, done = 0;
    int64_t done_ns = 0;
    bool timed = true;
    std::shared_ptr<struct simt::capture> capture; // of the latest record, unless external
    std::vector<size_t> last;
};

namespace simt {

extern std::vector<cudaStream_t> streams; // all, the default stream first
extern bool programmatic_seen;            // some launch may start early

/* Puts work into a stream, or into the graph it is captured into. */
void put(cudaStream_t, struct work &&);
/* Runs the oldest work of a random stream that need not wait; false: there is none. */
bool run_some(void);
/* Runs until the queue of `s` is empty, or all are (nullptr); cudaSuccess, or the failure of what
   ran (then for ever). */
cudaError_t run_until_idle(cudaStream_t s);
cudaError_t run_until_done(cudaEvent_t);
/* Frees destroyed streams in which nothing lies any more. */
void forget_destroyed(void);
bool is_capturing(void);
void invalidate_captures(void);

} // namespace simt
#endif
