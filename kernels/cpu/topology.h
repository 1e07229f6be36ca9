/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use of the machine: cores, quota, caches, memory, and the instruction sets
 * of the CPU. */
#ifndef KERNELS_CPU_TOPOLOGY_H
#define KERNELS_CPU_TOPOLOGY_H
#include <stdbool.h>
#include <stdint.h>

enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_NEON, N_ISAS };

enum { TOPOLOGY_MOST_CPUS = 1024 };

struct topology {
    int n_cpus;                   /* logical CPUs of the affinity mask */
    int n_cores;                  /* physical cores among them */
    int quota;                    /* whole CPUs of the cgroup's quota, at least 1; 0: unlimited */
    int cpus[TOPOLOGY_MOST_CPUS]; /* (n_cpus) first one CPU of each core, then their siblings */
    int64_t l2_bytes, l3_bytes;   /* of the first CPU; 0 where unknown */
};

void topology_read(struct topology *);
/* Bytes of the last caches before memory of all CPUs that this process may use; 0: unknown. */
int64_t topology_cached(void);
/* Binds a thread (0: the caller) to a CPU. A CPU taken away meanwhile: it stays where it may run.
 */
void topology_pin(int tid, int cpu);
/* The same for a thread that goes on after the device is closed: the first call notes where it was
   allowed before, which topology_read goes on to answer; the last unpin gives it back. */
void topology_pin_caller(int cpu);
void topology_unpin_caller(void);
enum isa isa_best(void); /* the highest level that CPU and operating system can run */
/* Why this process has no tile registers, or NULL. Asks Linux for them, which must be done before
   they are used and holds for all threads. */
const char *topology_tiles(void);
/* Whether this machine's CPU adds four products of bytes at once, at a level that isa_best allows:
   AVX-512 VNNI, Arm's dot product. */
bool isa_has_int8_dot(enum isa);
/* The kernel's policy on huge pages: "always", "madvise" (where asked for), "never", or "unknown".
 */
const char *topology_huge_pages(void);

#endif
