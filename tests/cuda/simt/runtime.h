/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the CUDA runtime on the host, with the functions that the engine calls, over the
   emulated threads of simt.h. It does what the real one may do and code must bear: work waits in
   its stream until something synchronises, and then runs from a random stream; device memory cannot
   be touched by host code, begins as NaN and ends near a page that faults; what may not be done
   while a stream is captured fails; and programmatic launches are held to their rule (memory.h).

   Environment, besides that of simt.h and record.h:
     SIMT_DRIVER=none|old|stub|nodevice  what cudaGetDeviceCount then says: 35 with driver version
   0, 35 with 11080, 34, 100 SIMT_MEMORY=N   bytes of device memory (default 64 GiB); more is
   cudaErrorMemoryAllocation SIMT_SMS=N      multiprocessors (default 4: grids follow them, and
   small ones are fast here) SIMT_CC=N       compute capability (default 90) SIMT_FAIL=NAME  a
   launch of kernel NAME fails, as the next synchronisation then says (719) SIMT_COUNTS=FILE  at
   exit the counts below are appended, a line "name<TAB>value" each */
#ifndef TESTS_CUDA_SIMT_RUNTIME_H
#define TESTS_CUDA_SIMT_RUNTIME_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* X-macro, so that names in files and fields agree. */
#define SIMT_COUNTS(COUNT)                                                                         \
    COUNT(allocations) /* of device memory */                                                      \
    COUNT(frees)                                                                                   \
    COUNT(host_allocations) /* pinned */                                                           \
    COUNT(host_frees)                                                                              \
    COUNT(live_allocations) /* of device memory, now */                                            \
    COUNT(live_bytes)                                                                              \
    COUNT(peak_bytes)                                                                              \
    COUNT(synchronisations) /* calls that make the host wait: of stream, device, event, copies */  \
    COUNT(launches)         /* of kernels by the host, captured ones included */                   \
    COUNT(kernels_run)      /* by the device, replays included */                                  \
    COUNT(copies)           /* asynchronous ones and others, captured ones included */             \
    COUNT(fills)                                                                                   \
    COUNT(captures)                                                                                \
    COUNT(instantiations)                                                                          \
    COUNT(graph_launches)                                                                          \
    COUNT(graphs_live) /* graphs and executable graphs, now */                                     \
    COUNT(events_live)                                                                             \
    COUNT(streams_live)                                                                            \
    COUNT(forbidden) /* calls that a capture forbids, or that name what is not there */

struct simt_counts {
#define SIMT_FIELD(name) int64_t name;
    SIMT_COUNTS(SIMT_FIELD)
#undef SIMT_FIELD
};
const struct simt_counts *simt_counts_get(void);
void simt_set_seed(unsigned);
void simt_counts_to_file(void); // at exit, where SIMT_COUNTS was set only later

#ifdef __cplusplus
}
#endif
#endif
