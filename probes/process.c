/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel counts for this process: faults, context switches, CPU time, memory, waiting. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "probes/common/proc.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

enum {
    MINOR_FAULTS,
    MAJOR_FAULTS,
    VOLUNTARY,
    INVOLUNTARY,
    USER,
    SYSTEM,
    WAITED,
    RSS_PEAK,
};
static const struct channel channels[] = {
    {"minor_faults", "", "page faults served without a disk (getrusage)", 1},
    {"major_faults", "", "page faults that read a disk (getrusage)", 1},
    {"voluntary_switches", "", "context switches because a thread waited for something", 1},
    {"involuntary_switches", "", "context switches because another thread got the core", 1},
    {"user_s", "s", "CPU time of all threads in user mode", 1},
    {"system_s", "s", "CPU time of all threads in the kernel", 1},
    {"waited_s", "s", "time that threads were ready but had no core (field 2 of task/*/schedstat)",
     1},
    {"rss_peak", "byte", "resident high-water mark since the process began (VmHWM)", 0},
    {0},
};

struct self {
    struct tree tree;
    struct thread_waits *waits;
};

static int process_open(void *self, struct err *err) {
    struct self *s = self;
    (void)err;
    s->waits = calloc(1, sizeof *s->waits);
    return 0; /* getrusage is always there; what is missing of the rest stays NAN */
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void process_read(void *self, double *values) {
    struct self *s = self;
    struct rusage usage;
    int64_t peak;
    getrusage(RUSAGE_SELF, &usage);
    values[MINOR_FAULTS] = (double)usage.ru_minflt;
    values[MAJOR_FAULTS] = (double)usage.ru_majflt;
    values[VOLUNTARY] = (double)usage.ru_nvcsw;
    values[INVOLUNTARY] = (double)usage.ru_nivcsw;
    values[USER] = seconds(usage.ru_utime);
    values[SYSTEM] = seconds(usage.ru_stime);
    bool known = s->waits && proc_thread_waits(s->waits, s->tree.root);
    values[WAITED] = known ? 1e-9 * (double)s->waits->total_ns : (double)NAN;
    /* Not ru_maxrss: that one is inherited through exec, from a parent that may have been larger.
     */
    known = tree_kib(&peak, "VmHWM", s->tree.root, "proc/self/status");
    values[RSS_PEAK] = known ? (double)peak : (double)NAN;
}

static void process_close(void *self) {
    struct self *s = self;
    free(s->waits);
    s->waits = NULL;
}

const struct probe probe_process = {
    .name = "process",
    .brief = "page faults, context switches, CPU time, waiting for a core and memory of the worker",
    .when = PROBE_VISIT,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = process_open,
    .read = process_read,
    .close = process_close,
};
