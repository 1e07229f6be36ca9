/* SPDX-License-Identifier: Apache-2.0 */
/* How many executions one sample takes, where a single one is too short for the clock. */
#ifndef HARNESS_BATCH_H
#define HARNESS_BATCH_H
#include <stdint.h>

#define BATCH_STEPS 100                /* of the clock, that a sample takes at least */
#define BATCH_MOST  (INT64_C(1) << 40) /* executions of a sample */
#define BATCH_UNMOVED_MOST                                                                         \
    (1 << 24) /* executions that may take no time before the clock is blamed */

enum batch_found {
    BATCH_FOUND,
    BATCH_FAILED,    /* an execution failed: it has said why */
    BATCH_UNMOVED,   /* BATCH_UNMOVED_MOST executions take no time at all */
    BATCH_TOO_SHORT, /* even BATCH_MOST take less than BATCH_STEPS; that is the batch all the same
                      */
};
/* time: runs k executions and returns their ns, negative if one failed. first_ns: of one. */
enum batch_found batch_find(int64_t (*time)(void *ctx, int64_t k), void *ctx, int64_t first_ns,
                            int64_t resolution_ns, int64_t *batch);

#endif
