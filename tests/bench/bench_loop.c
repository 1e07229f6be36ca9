/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of the measuring loop: what one sample costs beyond its clock reads, and 10^6
   samples. Not a test: prints numbers for a person. Usage: bench_loop [device [sample_probes]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "harness/loop.h"
#include "results/table.h"
#include "workloads/workload.h"

enum { MOST = 1 << 20, SAMPLES = 1000000, VISITS = 3 };
static int64_t *begun; /* when each execution began, in order */
static int64_t n_begun;

static int prepare(void *self, const void *params, const struct model_config *config,
                   struct run *run, struct err *err) {
    (void)self;
    (void)params;
    (void)config;
    (void)run;
    (void)err;
    return 0;
}
static void execute(void *self) {
    (void)self;
    begun[n_begun++ % MOST] = clock_ns();
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* From the begin of one execution to that of the next lie the loop's two clock reads and ours. */
static double cost_of_sample(int64_t n) {
    int64_t *gap = must_alloc((size_t)n * sizeof *gap);
    for (int64_t i = 1; i < n; i++) {
        int64_t at = n_begun - n + i;
        gap[i] = begun[at % MOST] - begun[(at - 1) % MOST];
    }
    qsort(gap + 1, (size_t)n - 1, sizeof *gap, ascending);
    double median = (double)gap[n / 2];
    free(gap);
    return median - 3 * clock_cost_ns();
}

int main(int argc, char **argv) {
    struct arena *arena = arena_create();
    struct facts facts = {0};
    struct err err = {0};
    struct measure_params measure = {0};
    struct point *point = arena_alloc(arena, sizeof *point);
    struct device *device = NULL;
    struct sample_log log;
    struct rusage usage;
    int fd;
    begun = must_alloc(MOST * sizeof *begun);
    option_defaults(measure_options, &measure, arena);
    measure.sample_probes = argc > 2;
    measure.stop = STOP_SAMPLES;
    measure.samples = SAMPLES;
    facts_set(&facts, "workload.name", "null", "", "");
    facts_set(&facts, "device.kind", argc > 1 ? argv[1] : "cpu", "", "");
    if (point_parse(point, &facts, arena, NULL, &err) ||
        device_open(&device, point->device, point->device_params, &err) ||
        sample_log_create(&fd, &log, &err)) {
        fprintf(stderr, "bench_loop: %s\n", err.text);
        return 1;
    }
    /* `null` with an execution that tells when it begins, one execution a sample */
    struct workload noted = {.name = point->workload->name,
                             .brief = point->workload->brief,
                             .flags = point->workload->flags | WORK_ALLOCATES,
                             .self_size = point->workload->self_size,
                             .phases = point->workload->phases,
                             .marks = point->workload->marks,
                             .prepare = prepare,
                             .execute = execute};
    point->workload = &noted;
    point->label = "";
    for (int k = 0; k < VISITS; k++) {
        struct tables *out = tables_create();
        struct visit_request request = {
            .point = point, .measure = &measure, .first = k == 0, .share_ns = 5000000000};
        struct run_store store = {0};
        n_begun = 0;
        int64_t t = clock_ns();
        loop_visit(&request, device, &store, &log, out);
        double seconds = 1e-9 * (double)(clock_ns() - t);
        getrusage(RUSAGE_SELF, &usage);
        printf("%s: %.1f ns a sample beyond 3 clock reads of %.1f ns; %lld samples in %.2f s, "
               "%.0f MiB resident at most\n",
               table_text(tables_peek(out, "visits"), 0, "state"), cost_of_sample(SAMPLES),
               clock_cost_ns(), (long long)log.head->samples, seconds,
               (double)usage.ru_maxrss / 1024);
        tables_close(&out);
    }
    sample_log_unmap(&log);
    device_close(&device);
    facts_free(&point->facts);
    facts_free(&facts);
    arena_close(&arena);
    free(begun);
    return 0;
}
