/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of perf_event_open, as its manual page explains them. */
#include "probes/common/perf_reason.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"

int perf_reason(struct err *err, int why, int64_t paranoid) {
    switch (why) {
    case EACCES:
    case EPERM:
        if (paranoid > 2)
            return err_set(err, ERR_UNSUPPORTED,
                           "the kernel does not allow it: kernel.perf_event_paranoid is %" PRId64
                           ", 2 is enough",
                           paranoid);
        return err_set(err, ERR_UNSUPPORTED,
                       "the kernel does not allow it (seccomp or a capability)");
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return err_set(err, ERR_UNSUPPORTED,
                       "this machine has no hardware counters (virtual machines often have none)");
    case ENOSYS: return err_set(err, ERR_UNSUPPORTED, "this kernel has no perf_event_open");
    case E2BIG: return err_set(err, ERR_UNSUPPORTED, "more than 256 threads");
    case 0: return err_set(err, ERR_UNSUPPORTED, "no thread to count");
    default: return err_set(err, ERR_UNSUPPORTED, "perf_event_open: %s", strerror(why));
    }
}
