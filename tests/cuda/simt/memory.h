/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that only the device can touch. An allocation has pages of its own between two
   guards; they are inaccessible except while device work runs, which opens them one by one as it
   touches them.

   This also enforces the rule of programmatic launches. A kernel that may start before its
   predecessor has ended must, before its pdl_wait, write nothing, and read nothing that the kernels
   since the last full dependency have written: what those have written is known from the first
   write to each allocation, which faults. */
#ifndef TESTS_CUDA_SIMT_MEMORY_H
#define TESTS_CUDA_SIMT_MEMORY_H
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace simt {

struct allocation {
    unsigned char *data;
    size_t bytes;
};

void *memory_allocate(size_t bytes); // 256-aligned, filled with 0xff; nullptr: no more
bool memory_free(void *);            // false: not the start of a live allocation
bool memory_find(const void *, struct allocation *);
bool memory_holds(const void *, size_t bytes);   // wholly inside one live allocation
std::vector<struct allocation> memory_all(void); // ascending
size_t memory_used(void);
size_t memory_limit(void);
/* Whether device work runs now. Nests. At the end, what was written just past an allocation fails.
 */
void memory_device_begin(void);
void memory_device_end(void);

/* A kernel starts. chain: identifies the kernels since the last full dependency of its stream;
   0: nobody tracks what it writes. */
void memory_kernel_begin(uint64_t chain, bool may_start_early);
void memory_kernel_end(void);
void memory_prologue_begin(void);
void memory_prologue_end(void);
bool memory_may_change(
    const void *); // by the kernels of the chain, while one that started early runs

} // namespace simt
#endif
