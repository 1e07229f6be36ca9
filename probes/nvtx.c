/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges for Nsight Systems, listed among the probes: base/range makes them. */
#include "base/err.h"
#include "base/range.h"
#include "probes/probe.h"

static const struct channel channels[] = {{0}};

static int nvtx_open(void *self, struct err *err) {
    (void)self;
    if (range_built()) return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "built without NVTX headers (nvtx3/nvToolsExt.h was not found); `--profile` "
                   "records ranges all the same");
}

static void nvtx_read(void *self, double *values) {
    (void)self;
    (void)values;
}

const struct probe probe_nvtx = {
    .name = "nvtx",
    .brief =
        "named ranges of the domain 'bench' for an attached tool; table 'ranges' with --profile",
    .when = PROBE_VISIT,
    .channels = channels,
    .open = nvtx_open,
    .read = nvtx_read,
};
