/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel gives no hardware counters, in one sentence. */
#ifndef PROBES_COMMON_PERF_REASON_H
#define PROBES_COMMON_PERF_REASON_H
#include <stdint.h>

struct err;
#define PARANOID_UNKNOWN INT64_MIN
/* why: errno of perf_event_open; paranoid: kernel.perf_event_paranoid. Returns ERR_UNSUPPORTED. */
int perf_reason(struct err *, int why, int64_t paranoid);

#endif
