/* SPDX-License-Identifier: Apache-2.0 */
/* The search doubles: counts beyond 2^31 come where a body is empty and a clock is coarse. */
#include "harness/batch.h"

enum batch_found batch_find(int64_t (*time)(void *ctx, int64_t k), void *ctx, int64_t first_ns,
                            int64_t resolution_ns, int64_t *batch) {
    const int64_t least_ns = BATCH_STEPS * resolution_ns;
    *batch = 1;
    if (first_ns >= least_ns) return BATCH_FOUND;
    for (int64_t k = 2; k <= BATCH_MOST; k *= 2) {
        const int64_t t = time(ctx, k);
        if (t < 0) return BATCH_FAILED;
        if (t >= least_ns) {
            /* In double: k * least_ns is beyond 64 bits with a clock of 1 ms. */
            const double share = (double)k * (double)least_ns / (double)t;
            *batch = share < (double)(k - 1) ? (int64_t)share + 1 : k;
            return BATCH_FOUND;
        }
        if (t == 0 && k >= BATCH_UNMOVED_MOST) return BATCH_UNMOVED;
    }
    *batch = BATCH_MOST;
    return BATCH_TOO_SHORT;
}
