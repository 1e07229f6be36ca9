/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a schedule beforehand: its bounds, its course at given costs, and the same event
 * by event; and what the times of its requests add up to. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "workloads/common/scheduler.h"

int32_t scheduler_slots(int32_t n, const struct scheduler_spec *spec) {
    return spec->slots < n ? spec->slots : n ? n : 1;
}

int64_t scheduler_most_rows(const struct request *trace, int32_t n,
                            const struct scheduler_spec *spec, int64_t *of_run) {
    const int64_t slots = scheduler_slots(n, spec);
    int64_t most = 1;
    for (int32_t i = 0; i < n; i++) {
        /* Whoever lost its cache reads again all that it had. */
        const bool again = spec->pool > 0 && spec->policy == POLICY_CONTINUOUS;
        const int64_t rows = again ? request_most(&trace[i]) : trace[i].prompt;
        if (rows > most) most = rows;
    }
    if (spec->chunk > 0 && most > spec->chunk) most = spec->chunk;
    if (of_run) *of_run = most;
    int64_t reading = slots;
    if (spec->prefill_batch > 0 && spec->prefill_batch < slots) reading = spec->prefill_batch;
    if (spec->policy == POLICY_STATIC && spec->prefill == PREFILL_TOGETHER) reading = slots;
    return reading * most + slots - reading;
}

int64_t scheduler_most_tokens(const struct request *trace, int32_t n,
                              const struct scheduler_spec *spec) {
    int64_t prompt = 1, output = 1, both = 1;
    for (int32_t i = 0; i < n; i++) {
        if (trace[i].prompt > prompt) prompt = trace[i].prompt;
        if (trace[i].output > output) output = trace[i].output;
        if (request_most(&trace[i]) > both) both = request_most(&trace[i]);
    }
    return spec->policy == POLICY_STATIC ? prompt + output - 1 : both;
}

int64_t schedule_simulate(struct scheduler *s, int64_t (*cost)(void *, const struct batch *),
                          void *ctx) {
    struct batch batch;
    int64_t now = 0, until = 0;
    scheduler_restart(s);
    for (;;) {
        switch (scheduler_next(s, now, &batch, &until)) {
        case ACT_END: return now;
        case ACT_WAIT: now = until; break;
        case ACT_RUN:
            now += cost(ctx, &batch);
            scheduler_done(s, now);
            break;
        }
    }
}

static void static_by_events(const struct request *trace, int32_t n, int32_t slots, int64_t *done) {
    int64_t now = 0;
    for (int32_t begin = 0, end; begin < n; begin = end) {
        int32_t longest = 0;
        end = begin + (n - begin < slots ? n - begin : slots);
        for (int32_t i = begin; i < end; i++)
            if (trace[i].output > longest) longest = trace[i].output;
        if (trace[end - 1].arrival > now) now = trace[end - 1].arrival;
        now += longest;
        for (int32_t i = begin; i < end; i++) done[i] = now;
    }
}

void schedule_by_events(const struct request *trace, int32_t n, int policy, int32_t slots,
                        int64_t *done) {
    if (policy == POLICY_STATIC) {
        static_by_events(trace, n, slots, done);
        return;
    }
    int64_t *idle = must_alloc(sizeof *idle * (size_t)slots); /* when each slot becomes free */
    for (int32_t i = 0; i < n; i++) {
        int32_t first = 0;
        for (int32_t k = 1; k < slots; k++)
            if (idle[k] < idle[first]) first = k;
        const int64_t begin = idle[first] > trace[i].arrival ? idle[first] : trace[i].arrival;
        idle[first] = done[i] = begin + trace[i].output;
    }
    free(idle);
}

static int64_t time_of(const struct request *r, const struct served *s, enum served_time which) {
    if (s->returned == NEVER) return NEVER;
    switch (which) {
    case SERVED_LATENCY: return s->returned - r->arrival;
    case SERVED_QUEUE: return s->admitted - r->arrival;
    case SERVED_SERVICE: return s->returned - s->admitted;
    case SERVED_TTFT: return s->first - r->arrival;
    }
    return NEVER;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double served_quantile(double *x, int32_t n, double q) {
    if (!n) return (double)NAN;
    qsort(x, (size_t)n, sizeof *x, ascending);
    const double at = q * (n - 1), below = floor(at);
    const int32_t i = (int32_t)below;
    return i + 1 < n ? x[i] + (at - below) * (x[i + 1] - x[i]) : x[n - 1];
}

int32_t served_times(const struct request *trace, const struct served *served, int32_t n,
                     enum served_time which, double *out) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        const int64_t t = time_of(&trace[i], &served[i], which);
        if (t >= 0) out[kept++] = (double)t;
    }
    return kept;
}

double served_mean(const struct request *trace, const struct served *served, int32_t n,
                   enum served_time which) {
    double sum = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        const int64_t t = time_of(&trace[i], &served[i], which);
        if (t < 0) continue;
        sum += (double)t;
        kept++;
    }
    return kept ? sum / kept : (double)NAN;
}
