/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the fake device: its script and its clock. */
#ifndef KERNELS_FAKE_FAKE_H
#define KERNELS_FAKE_FAKE_H
#include "base/err.h"
#include "kernels/device.h"

struct fake_params {
    int64_t time_ns, slow_first, slow_for_ns, resolution_ns, reset_ns, fail_at, die_at, hang_at,
        memory, launch_ns, end_at, seed;
    double noise, round_noise, slow_factor, drift, changed, bandwidth, flops;
    int noise_kind;
    bool real_time, queued;
};
struct fake {
    struct device base;
    struct fake_params params;
    double now_ns; /* the virtual clock */
    double busy_ns; /* queued: when the last op that was started will be done */
    uint64_t key;  /* of the noise */
    uint64_t n_noise;
    double factor, ar1; /* of this worker; state of the correlated noise */
    int64_t executions; /* settled since opening */
    bool pending;       /* an execution was announced and its scripted time is not yet spent */
    struct err failed;
};
extern const struct ops fake_ops;
extern const struct device_kind device_fake;

#endif
