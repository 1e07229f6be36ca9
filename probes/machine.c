/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of the machine does meanwhile: time stolen by a hypervisor, work of other
 * processes. */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "probes/common/proc.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

enum { STEAL_SHARE, FOREIGN_SHARE, LEAST_TICKS = 10 };
static const struct channel channels[] = {
    {"steal_share", "", "stolen time / time of all CPUs, since before the samples (/proc/stat)", 0},
    {"foreign_share", "",
     "CPU time of other processes / time of all CPUs, since before the samples; the kernel counts in "
     "ticks, so that a short visit knows it coarsely",
     0},
    {0},
};

struct self {
    struct tree tree;
    struct machine_ticks first;
    double first_cpu_s, tick_s;
};

static double own_cpu_s(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int machine_open(void *self, struct err *err) {
    struct self *s = self;
    long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0)
        return err_set(err, ERR_UNSUPPORTED, "the length of a clock tick is unknown");
    if (!proc_machine_ticks(&s->first, s->tree.root))
        return err_set(err, ERR_UNSUPPORTED, "/proc/stat is absent or not understood");
    s->tick_s = 1.0 / (double)per_second;
    s->first_cpu_s = own_cpu_s();
    return 0;
}

static void machine_read(void *self, double *values) {
    struct self *s = self;
    struct machine_ticks now;
    values[STEAL_SHARE] = values[FOREIGN_SHARE] = (double)NAN;
    if (!proc_machine_ticks(&now, s->tree.root)) return;
    double total = (double)(now.total - s->first.total);
    double steal = (double)(now.steal - s->first.steal);
    if (total < LEAST_TICKS || steal < 0) return; /* too short, or counters went back */
    double own = (own_cpu_s() - s->first_cpu_s) / s->tick_s;
    double foreign = (double)(now.busy - s->first.busy) - own;
    values[STEAL_SHARE] = steal / total;
    values[FOREIGN_SHARE] = foreign > 0 ? foreign / total : 0; /* ours is known finer than a tick */
}

const struct probe probe_machine = {
    .name = "machine",
    .brief =
        "time stolen by the hypervisor and CPU time of other processes, as shares of the machine",
    .when = PROBE_VISIT,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = machine_open,
    .read = machine_read,
};
