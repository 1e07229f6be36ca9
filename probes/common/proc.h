/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative counters of the machine and of this process, from /proc. */
#ifndef PROBES_COMMON_PROC_H
#define PROBES_COMMON_PROC_H
#include <stdbool.h>
#include <stdint.h>

struct machine_ticks {                /* of all CPUs since boot, in clock ticks (usually 10 ms) */
    int64_t busy, idle, steal, total; /* busy: user, nice, system, interrupts; total: all of them */
};
bool proc_machine_ticks(struct machine_ticks *, const char *root); /* first line of /proc/stat */

/* Time that threads of this process were ready to run and waited for a core. */
enum { WAIT_MOST_THREADS = 1024 };
struct thread_waits { /* zeroed to begin with; goes on counting when threads end */
    int64_t total_ns;
    int n;
    struct {
        int tid;
        int64_t wait_ns;
    } thread[WAIT_MOST_THREADS];
};
/* Adds what each thread waited since the last call; false where the kernel keeps no account.
 * Threads beyond WAIT_MOST_THREADS, and the last moments of one that ended, are not seen. */
bool proc_thread_waits(struct thread_waits *, const char *root);

#endif
