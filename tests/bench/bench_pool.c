/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of the cpu device's threads: what handing out a job without work and joining
   again costs. Not a test: prints numbers for a person. Usage: bench_pool [jobs] */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/topology.h"

enum { MOST_THREADS = 2, WARM = 1000 };

static void nothing(void *ctx, int64_t begin, int64_t end, int thread) {
    (void)ctx, (void)begin, (void)end, (void)thread;
}

struct meeting {
    int threads;
    _Atomic int64_t came;
};

/* Goes on when every thread has an item: nobody does the others' before they wake. */
static void meet(void *ctx, int64_t begin, int64_t end, int thread) {
    struct meeting *m = ctx;
    (void)thread;
    const int64_t all = ((m->came += end - begin) + m->threads - 1) / m->threads * m->threads;
    while (m->came < all) continue;
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A job has one item a thread. */
static void measure(int threads, bool meets, const struct topology *topology, int64_t *took,
                    int jobs) {
    struct meeting meeting = {.threads = threads};
    struct err err = {0};
    struct pool *pool = NULL;
    if (pool_create(&pool, threads, topology->cpus, &err)) {
        fprintf(stderr, "bench_pool: %s\n", err.text);
        exit(1);
    }
    for (int i = -WARM; i < jobs; i++) {
        const int64_t begin = clock_ns();
        pool_run(pool, threads, 1, 0, meets ? meet : nothing, &meeting);
        if (i >= 0) took[i] = clock_ns() - begin;
    }
    pool_close(&pool);
    qsort(took, (size_t)jobs, sizeof *took, by_value);
    printf("%d thread%s, %s: median %5.2f us, 99 of 100 within %5.2f us, most %.1f us (%d jobs)\n",
           threads, threads > 1 ? "s" : " ",
           meets ? "each takes its item     " : "any may take all of them",
           (double)took[jobs / 2] * 1e-3, (double)took[jobs * 99LL / 100] * 1e-3,
           (double)took[jobs - 1] * 1e-3, jobs);
}

int main(int argc, char **argv) {
    int jobs = argc > 1 ? atoi(argv[1]) : 200000;
    if (jobs < 100) jobs = 100;
    int64_t *took = must_alloc((size_t)jobs * sizeof *took);
    struct topology topology;
    topology_read(&topology);
    for (int threads = 1; threads <= MOST_THREADS && threads <= topology.n_cores; threads++)
        for (int meets = 0; meets < 2; meets++) measure(threads, meets, &topology, took, jobs);
    free(took);
    return 0;
}
