/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the cores run: what the kernel says, what a chain of known length takes, and throttling.
 */
#include <math.h>

#include "probes/common/clock_rate.h"
#include "probes/common/frequency.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

enum { KERNEL, MEASURED, LOWEST, THROTTLES };
static const struct channel channels[] = {
    {"kernel_ghz", "GHz", "mean frequency of the cores as cpufreq or /proc/cpuinfo states it", 0},
    {"measured_ghz", "GHz",
     "cycles / time of a chain of dependent multiplications on the loop's core, best of 3", 0},
    {"lowest_ghz", "GHz", "lowest measured_ghz from before the samples on", 0},
    {"throttles", "", "thermal throttling events of all cores and packages", 1},
    {0},
};

struct self {
    struct tree tree;
    double lowest;
};

static int clocks_open(void *self, struct err *err) {
    struct self *s = self;
    (void)err;
    s->lowest = (double)NAN;
    return 0; /* a chain can be timed everywhere */
}

static void clocks_read(void *self, double *values) {
    struct self *s = self;
    double rate = clock_rate(3);
    int64_t throttles = frequency_throttles(s->tree.root);
    if (rate > 0) s->lowest = fmin(s->lowest, rate); /* of NAN and a number fmin takes the number */
    values[KERNEL] = frequency_now(s->tree.root);
    values[MEASURED] = rate > 0 ? rate : (double)NAN;
    values[LOWEST] = s->lowest;
    values[THROTTLES] = throttles >= 0 ? (double)throttles : (double)NAN;
}

const struct probe probe_clocks = {
    .name = "clocks",
    .brief = "clock rate of the cores, stated and measured, and thermal throttling",
    .when = PROBE_BLOCK,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = clocks_open,
    .read = clocks_read,
};
