/* SPDX-License-Identifier: Apache-2.0 */
/* What the host clock resolves and costs, measured once, and dates in UTC. */
#include "base/clock.h"

#include <pthread.h>

static int64_t resolution_ns;
static double cost_ns;

static void clock_measure(void) {
    enum { READS = 4096, BATCHES = 9 };
    int64_t smallest = INT64_MAX;
    for (int i = 0; i < READS; i++) {
        int64_t before = clock_ns(), now = clock_ns();
        for (int spins = 0; now == before && spins < 1000000; spins++)
            now = clock_ns(); /* a coarse clock stands still for a while */
        if (now > before && now - before < smallest) smallest = now - before;
    }
    resolution_ns = smallest == INT64_MAX ? 0 : smallest; /* 0: it never moved */
    cost_ns = 1e300;
    for (int b = 0; b < BATCHES; b++) { /* the least disturbed batch */
        int64_t begin = clock_ns(), last = begin;
        for (int i = 0; i < READS; i++) last = clock_ns();
        double cost = (double)(last - begin) / READS;
        cost_ns = cost < cost_ns ? cost : cost_ns;
    }
}

static void clock_measure_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, clock_measure);
}

int64_t clock_resolution_ns(void) {
    clock_measure_once();
    return resolution_ns;
}

double clock_cost_ns(void) {
    clock_measure_once();
    return cost_ns;
}

static char *utc(char out[32], const char *fmt) {
    time_t now = time(NULL);
    struct tm tm = {0};
    gmtime_r(&now, &tm);
    if (!strftime(out, 32, fmt, &tm)) /* digits only: no locale changes them */
        out[0] = 0;
    return out;
}

char *clock_rfc3339(char out[32]) { return utc(out, "%Y-%m-%dT%H:%M:%SZ"); }

char *clock_stamp(char out[32]) { return utc(out, "%Y%m%d-%H%M%S"); }
