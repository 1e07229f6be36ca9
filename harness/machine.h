/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about this machine and this build, as facts; what cannot be known is 'unknown',
 * never 'ok'. */
#ifndef HARNESS_MACHINE_H
#define HARNESS_MACHINE_H
#include <stdint.h>
#include "base/facts.h"

/* cpu.model, cpu.cores (logical, online), cpu.physical_cores, cpu.sockets, cpu.allowed,
   cpu.allowed_list, cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes, cpu.isa, cpu.smt, cpu.governor
   ("mixed" where cores differ), cpu.turbo, numa.nodes, memory.total_bytes, memory.limit_bytes (of
   the cgroup; "none"), memory.free_bytes, memory.huge_pages, cgroup.cpu_quota, kernel.release,
   virtual.hypervisor, clock.source, clock.resolution_ns (as the kernel states it), aslr; build.*
   (version, revision, dirty, compiler, flags, type, command, digest), library.* versions. By the minute
   change load.1min, memory.free_bytes and moment.*: throttles, temperature, quota_throttled,
   clock_step_ns and clock_cost_ns (measured). What the tree does not say, or says in a way that is
   not understood, is "unknown". root: "/" (tests give a made-up tree for /sys and /proc). No user
   or host name. */
void machine_facts(struct facts *, const char *root);
void machine_build_facts(struct facts *); /* build.* and library.* alone */
/* Cumulative counters, for shares over an interval: -1 where unknown. */
struct machine_load {
    int64_t steal_ticks, busy_ticks, total_ticks;
};
void machine_load(struct machine_load *);
/* A lock per machine: fd >= 0 held until closed; -1 if another bench holds it (its pid in *pid, 1
   where it has not said it) or if there can be no lock (*pid 0). */
int machine_lock(int *pid);
int machine_lock_at(const char *path, int *pid); /* for tests */

#endif
