/* SPDX-License-Identifier: Apache-2.0 */
/* The two ceilings by plain loops that share nothing with the device's: what the cpu device calls
   `read` and `fma` (f32) must come out here too, as far as a compiler gets with -O3 -march=native.
   plain_ceilings THREADS MIB: one line, "read GB/s fma GFLOP/s", the best of several passes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Vectors as wide as the machine's, as many as it has registers for. */
#if defined(__AVX512F__)
enum { WIDTH = 16, CHAINS = 24 };
#elif defined(__AVX__)
enum { WIDTH = 8, CHAINS = 12 };
#else
enum { WIDTH = 4, CHAINS = 12 };
#endif
enum { READS = 12, PASSES = 18, ROUNDS = 4000000, MOST_THREADS = 1024 };
typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));

struct part {
    pthread_t thread;
    const uint64_t *data;
    size_t words;
    int core;
    double begin[PASSES], done[PASSES];
    volatile uint64_t sum;
    volatile float end;
};
static pthread_barrier_t together;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t read_all(const uint64_t *data, size_t words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++) sum ^= data[i];
    return sum;
}

/* Chains enough to hide the latency of any of today's cores. */
static float multiply_add(void) {
    vector a[CHAINS], by = {0}, plus = {0};
    for (int j = 0; j < WIDTH; j++) by[j] = 0.999f, plus[j] = 1e-3f;
    for (int i = 0; i < CHAINS; i++) a[i] = plus * (float)i;
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 24 /* at least CHAINS */
        for (int i = 0; i < CHAINS; i++) a[i] = a[i] * by + plus;
    }
    float sum = 0;
    for (int i = 0; i < CHAINS; i++) sum += a[i][i % WIDTH];
    return sum;
}

static void *work(void *ctx) {
    struct part *part = ctx;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(part->core, &set);
    sched_setaffinity(0, sizeof set, &set);
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_barrier_wait(&together);
        part->begin[pass] = now();
        if (pass < READS)
            part->sum = read_all(part->data, part->words);
        else
            part->end = multiply_add();
        part->done[pass] = now();
    }
    return NULL;
}

/* From the first thread's begin to the last one's end, in the best of the passes from .. to-1. */
static double best_time(const struct part *parts, int threads, int from, int to) {
    double best = 1e9;
    for (int pass = from; pass < to; pass++) {
        double begin = parts[0].begin[pass], done = parts[0].done[pass];
        for (int i = 1; i < threads; i++) {
            if (parts[i].begin[pass] < begin) begin = parts[i].begin[pass];
            if (parts[i].done[pass] > done) done = parts[i].done[pass];
        }
        if (done - begin < best) best = done - begin;
    }
    return best;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const size_t bytes = (size_t)(argc > 2 ? atoi(argv[2]) : 256) << 20;
    static struct part parts[MOST_THREADS];
    char *data = aligned_alloc((size_t)2 << 20, bytes);
    if (threads < 1 || threads > MOST_THREADS || data == NULL) {
        fprintf(stderr, "plain_ceilings THREADS MIB: 1 to %d threads, and memory for MIB\n",
                MOST_THREADS);
        return 2;
    }
    madvise(data, bytes, MADV_HUGEPAGE);
    memset(data, 1, bytes);
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        const size_t words = bytes / sizeof(uint64_t) / (size_t)threads;
        parts[i] = (struct part){
            .data = (const uint64_t *)(void *)data + words * (size_t)i, .words = words, .core = i};
        if (pthread_create(&parts[i].thread, NULL, work, &parts[i])) return 1;
    }
    for (int i = 0; i < threads; i++) pthread_join(parts[i].thread, NULL);
    const double read_s = best_time(parts, threads, 0, READS),
                 fma_s = best_time(parts, threads, READS, PASSES);
    printf("%.3f %.3f\n", (double)bytes / read_s * 1e-9,
           2.0 * CHAINS * WIDTH * ROUNDS * threads / fma_s * 1e-9);
    free(data);
    return 0;
}
