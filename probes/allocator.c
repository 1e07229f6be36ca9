/* SPDX-License-Identifier: Apache-2.0 */
/* The device's allocation log, listed among the probes: kernels/tracker keeps it, the loop stores
 * it. */
#include "probes/probe.h"

static const struct channel channels[] = {{0}};

static int allocator_open(void *self, struct err *err) {
    (void)self;
    (void)err;
    return 0;
}

static void allocator_read(void *self, double *values) {
    (void)self;
    (void)values;
}

const struct probe probe_allocator = {
    .name = "allocator",
    .brief = "every allocation of the device with class, name and phase: table 'memory', always on",
    .when = PROBE_VISIT,
    .channels = channels,
    .open = allocator_open,
    .read = allocator_read,
};
