/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's threads: pinned, spinning briefly and then asleep, claiming work in small
 * pieces. */
#ifndef KERNELS_CPU_POOL_H
#define KERNELS_CPU_POOL_H
#include <stdint.h>

struct err;
struct pool; /* opaque */

/* Items begin ... end-1 of a job; thread is 0 (the caller) ... n-1. Never called twice for one
 * item. */
typedef void pool_fn(void *ctx, int64_t begin, int64_t end, int thread);

/* n threads, the caller among them. cpus (n): where each is pinned, or NULL: nowhere. Pins the
   caller too and remembers where it was allowed before. One thread at a time may use a pool.
   ERR_SYSTEM. */
int pool_create(struct pool **, int n, const int *cpus, struct err *);
void pool_close(
    struct pool **); /* ends the threads; the caller may run again where it might before */
int pool_threads(const struct pool *);
void pool_stay(struct pool *); /* each thread keeps its CPU, even one that others have taken */

/* Runs n items (< 2^31) and returns when all are done. Each thread starts in its own n-th part of
   the items (so that a part stays in its caches from job to job), takes at most `grain` items at
   once, fewer near the end, and then helps the others. n <= serial, or one thread: the caller runs
   everything itself. */
void pool_run(struct pool *, int64_t n, int64_t grain, int64_t serial, pool_fn *, void *ctx);

#endif
