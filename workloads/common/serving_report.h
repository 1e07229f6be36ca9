/* SPDX-License-Identifier: Apache-2.0 */
/* What one execution of a trace adds up to: rates, queues, goodput, the cache. */
#ifndef WORKLOADS_COMMON_SERVING_REPORT_H
#define WORKLOADS_COMMON_SERVING_REPORT_H
#include "workloads/common/engine.h"

struct serving_limits {
    int64_t ttft, tpot, e2e; /* ns; 0: none */
};
extern const struct metric serving_metrics[];
/* offered: whether requests came one after the other, so that there is a rate at which they did. */
void serving_report(const struct engine *, const struct serving_limits *, bool offered,
                    struct values *);
/* Whether a request that returned is within all limits. */
bool serving_meets(const struct request *, const struct served *, const struct serving_limits *);

#endif
