/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a run: what the measuring loop sets up and a workload reaches only through
 * workload.h. */
#ifndef WORKLOADS_COMMON_RUN_H
#define WORKLOADS_COMMON_RUN_H
#include "workloads/workload.h"

struct mark_record { /* one run_mark, or one run_phase (mark = -1 - phase) */
    int64_t t_ns;    /* since the execution began */
    int32_t mark, who, n, pad;
};
struct run_store { /* where models and snapshots live; filled by the harness; each slot optional */
    int (*model)(void *ctx, struct model **, struct err *);
    int (*beside)(void *ctx, struct model **, struct err *);
    void *(*snapshot)(void *ctx, const char *key, size_t bytes, bool *ready);
    void (*snapshot_ready)(void *ctx, const char *key);
    void *ctx;
    const char *text; /* of the point, or NULL */
    size_t text_bytes;
};
enum { RUN_FLAGS_MOST = 4 };
struct run_flag {
    const char *flag; /* static text */
    char reason[200];
};
struct run {
    struct device *device;
    const struct workload *workload;
    struct run_store store;
    uint64_t seed;
    int64_t begin_ns;          /* device clock at the start of the execution */
    struct mark_record *marks; /* (most_marks), of the present execution */
    int64_t n_marks, most_marks, lost_marks;
    int phase; /* the open phase, or -1 */
    bool failed;
    char failure[200];
    struct run_flag flags[RUN_FLAGS_MOST];
    int n_flags;
};
/* Begins and ends one execution: clears marks, opens phase 0 if the workload has only one, closes
 * open ranges. */
void run_begin(struct run *, int64_t now_ns);
void run_end(struct run *);

#endif
