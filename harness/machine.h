/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about this machine and this build, as facts; what cannot be known is 'unknown', never 'ok'. */
#ifndef HARNESS_MACHINE_H
#define HARNESS_MACHINE_H
#include <stdint.h>
#include "base/facts.h"

/* cpu.model, cpu.cores, cpu.allowed, cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes, cpu.isa, cpu.smt, cpu.governor, cpu.turbo,
   numa.nodes, memory.total_bytes, memory.limit_bytes, memory.huge_pages, cgroup.cpu_quota, load.1min, kernel.release,
   virtual.hypervisor, clock.source, clock.resolution_ns, aslr; build.* (version, revision, dirty, compiler, flags, digest),
   library.* versions. root: "/" (tests give a made-up tree for /sys and /proc). No user or host name. */
void machine_facts(struct facts *, const char *root);
/* Cumulative counters, for shares over an interval: -1 where unknown. */
struct machine_load { int64_t steal_ticks, busy_ticks, total_ticks; };
void machine_load(struct machine_load *);
/* A lock per machine: fd >= 0 held until closed; -1 if another bench holds it (holder's pid in *pid). */
int machine_lock(int *pid);

#endif
