/* SPDX-License-Identifier: Apache-2.0 */
/* What disturbs a visit: time that our threads waited for a core, context switches, faults, stolen
 * and foreign CPU time. */
#ifndef HARNESS_WATCH_H
#define HARNESS_WATCH_H
#include <stdint.h>

struct watch { /* cumulative since boot or process start; -1 where the kernel does not say */
    int64_t wall_ns, cpu_ns,
        wait_ns; /* wait: runnable but not running, all threads of this process */
    int64_t involuntary, faults;
    int64_t steal_ticks, busy_ticks, total_ticks; /* of the whole machine */
    int64_t rss_peak;                             /* watch_read only */
};
void watch_quick(struct watch *); /* this process alone: about 10 us a thread */
void watch_read(struct watch *);  /* also the machine */
/* Cycles of a core per ns, by a chain of dependent multiplications of 3 cycles each (Intel and AMD
   since 2013; elsewhere a relative figure): best of a few tries of 20 us. */
double watch_clock_rate(void);

#endif
