/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a GPU ran and when, by CUPTI's activity records; for profiled passes only, since
 * tracing slows launches. */
#ifndef PROBES_COMMON_KERNEL_TRACE_H
#define PROBES_COMMON_KERNEL_TRACE_H
#include <stddef.h>
#include <stdint.h>

struct err;
struct kernel_event {         /* one kernel that ran, in order of its beginning */
    int64_t launch_ns;        /* CLOCK_MONOTONIC: the host's call that caused it; -1 unknown */
    int64_t begin_ns, end_ns; /* on the GPU, in the same clock */
    int64_t graph_node;       /* 0: not launched by a graph */
    int32_t grid[3], block[3], stream, registers, shared_bytes;
    char name[96];
};

/* Loads $BENCH_CUPTI or libcupti.so.13 and starts; ERR_UNSUPPORTED: why it cannot. One trace at a
 * time. */
int kernel_trace_start(struct err *);
/* Ends it, once the device is idle. The events stay until the next start or kernel_trace_free. */
size_t kernel_trace_stop(const struct kernel_event **, size_t *lost);
void kernel_trace_free(void);

#endif
