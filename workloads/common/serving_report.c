/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of `serving` beside the harness's own of tokens. */
#include "workloads/common/serving_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

#define SERVED(name, unit, better, help)                                                           \
    { name, unit, help, better, false }
const struct metric serving_metrics[] = {
    SERVED("latency", "ms", BETTER_LOWER, "Mean, from a request's intended arrival to its return."),
    SERVED("queue_time", "ms", BETTER_LOWER, "Mean, from intended arrival to admission."),
    SERVED("goodput", "request/s", BETTER_HIGHER,
           "Requests that met all limits / the whole window, from the first arrival to the last "
           "return."),
    SERVED("goodput_share", "", BETTER_HIGHER,
           "Requests that met all limits / all requests, refused ones included."),
    SERVED("steps", "step", BETTER_NONE, "Forward passes."),
    SERVED("simulated_time", "ms", BETTER_NONE,
           "The whole trace by the scheduler alone, at step costs measured beforehand."),
    SERVED("simulation_error", "", BETTER_NONE, "simulated_time over the real time, less 1."),
    SERVED("request_rate", "request/s", BETTER_HIGHER, "Requests returned / the whole window."),
    SERVED("output_rate", "token/s", BETTER_HIGHER,
           "Tokens written for requests / the whole window; prompts are not in it."),
    SERVED("steady_rate", "token/s", BETTER_HIGHER,
           "output_rate while at least 90 % of the most requests in flight were in flight."),
    SERVED("offered_rate", "request/s", BETTER_NONE,
           "Arrivals after the first / the time from the first to the last."),
    SERVED("ttft_service", "ms", BETTER_LOWER, "Mean, from admission to the first token."),
    SERVED("longest_gap", "ms", BETTER_LOWER,
           "Longest wait of any request between two of its tokens: what a long prompt does to "
           "those who write."),
    SERVED("packed_rows", "row", BETTER_NONE, "Rows of all steps, one below the other."),
    SERVED("padded_rows", "row", BETTER_NONE,
           "packed_rows if each step were a rectangle: sequences times the longest."),
    SERVED("padding", "row", BETTER_LOWER, "Rows of requests that were finished: static groups."),
    SERVED("pairs", "pair", BETTER_NONE, "Positions attended to by rows that are no padding."),
    SERVED("concurrency", "request", BETTER_NONE, "Requests that run in a step, mean over steps."),
    SERVED("most_concurrent", "request", BETTER_NONE, "Requests in flight at most."),
    SERVED("idle_slots", "slot", BETTER_LOWER,
           "Slots left empty in a step although a request waited, over all steps."),
    SERVED("cache_tokens", "token", BETTER_NONE, "Resident after a step, mean over steps."),
    SERVED("cache_occupancy", "", BETTER_HIGHER,
           "Tokens resident / tokens that the blocks held by requests have room for, over steps; a "
           "contiguous cache holds a whole slot for each."),
    SERVED("fragmentation", "", BETTER_LOWER, "1 - cache_occupancy: held, and empty (R36)."),
    SERVED("most_blocks", "block", BETTER_LOWER, "Blocks held at most."),
    SERVED("preempted", "event", BETTER_LOWER, "Times that a request lost its place."),
    SERVED("refused", "request", BETTER_LOWER, "Requests longer than the whole pool."),
    SERVED("step_time", "ms", BETTER_LOWER, "A step with all slots writing, measured beforehand."),
    {0},
};

bool serving_meets(const struct request *r, const struct served *s,
                   const struct serving_limits *l) {
    if (s->returned == NEVER) return false;
    if (l->ttft && s->first - r->arrival > l->ttft) return false;
    if (l->e2e && s->returned - r->arrival > l->e2e) return false;
    return !l->tpot || s->tokens < 2 || s->last - s->first <= l->tpot * (s->tokens - 1);
}

struct moment { /* a request is admitted (+1) or returns (-1), with its tokens */
    int64_t t;
    int32_t change;
};
static int by_time(const void *a, const void *b) {
    const struct moment *p = a, *q = b;
    if (p->t != q->t) return p->t < q->t ? -1 : 1;
    return (p->change > q->change) - (p->change < q->change);
}

/* Tokens are taken as written evenly between the first and the last of a request. */
static double tokens_between(const struct served *s, int64_t from, int64_t to) {
    if (s->returned == NEVER) return 0;
    if (s->last == s->first) return s->first > from && s->first <= to ? s->tokens : 0;
    const int64_t a = from > s->first ? from : s->first, b = to < s->last ? to : s->last;
    const double span = (double)(s->last - s->first);
    const double rest = b > a ? (s->tokens - 1) * (double)(b - a) / span : 0;
    return rest + (s->first > from && s->first <= to);
}

/* From the first to the last moment at which 90 % of the peak were in flight. */
static double steady_rate(const struct served *served, int32_t n, int64_t most) {
    struct moment *m = must_alloc(sizeof *m * (2 * (size_t)n + 1));
    size_t k = 0;
    int64_t in_flight = 0, from = NEVER, to = NEVER;
    double tokens = 0;
    for (int32_t i = 0; i < n; i++) {
        if (served[i].returned == NEVER) continue;
        m[k++] = (struct moment){served[i].admitted, 1};
        m[k++] = (struct moment){served[i].returned, -1};
    }
    if (k) qsort(m, k, sizeof *m, by_time);
    for (size_t i = 0; i < k; i++) {
        const bool before = 10 * in_flight >= 9 * most;
        in_flight += m[i].change;
        const bool after = 10 * in_flight >= 9 * most;
        if (!before && after && from == NEVER) from = m[i].t;
        if (before && !after) to = m[i].t;
    }
    free(m);
    if (from == NEVER || to <= from) return (double)NAN;
    for (int32_t i = 0; i < n; i++) tokens += tokens_between(&served[i], from, to);
    return tokens / (double)(to - from) * 1e9;
}

/* A queue longer than the slots when the last one comes did not keep up. */
static void warn_saturated(const struct engine *e) {
    const struct served *served = scheduler_served(e->scheduler);
    const int64_t last = e->trace[e->n - 1].arrival;
    int32_t waiting = 0;
    for (int32_t i = 0; i < e->n; i++)
        waiting += e->trace[i].arrival <= last && served[i].admitted > last;
    if (waiting > e->spec.slots && 50 * (int64_t)waiting > e->n)
        run_flag(e->run, "saturated", "%d of %d requests still waited when the last one came",
                 (int)waiting, (int)e->n);
}

static void report_rates(const struct engine *e, const struct serving_limits *limits,
                         struct values *values) {
    const struct served *served = scheduler_served(e->scheduler);
    int64_t met = 0, returned = 0, tokens = 0;
    for (int32_t i = 0; i < e->n; i++) {
        met += serving_meets(&e->trace[i], &served[i], limits);
        returned += served[i].returned != NEVER;
        tokens += served[i].tokens;
    }
    const int64_t begin = e->trace[0].arrival;
    const double seconds = (double)(e->end - begin) * 1e-9;
    const bool any = returned > 0 && seconds > 0;
    values_set(values, "goodput", any ? (double)met / seconds : (double)NAN);
    values_set(values, "goodput_share", (double)met / e->n);
    values_set(values, "request_rate", any ? (double)returned / seconds : (double)NAN);
    values_set(values, "output_rate", any ? (double)tokens / seconds : (double)NAN);
    values_set(values, "steady_rate",
               steady_rate(served, e->n, scheduler_sums(e->scheduler)->most_runs));
    const double spread = (double)(e->trace[e->n - 1].arrival - begin) * 1e-9;
    values_set(values, "offered_rate", spread > 0 ? (e->n - 1) / spread : (double)NAN);
}

static void report_queues(const struct engine *e, struct values *values) {
    const struct served *served = scheduler_served(e->scheduler);
    const double latency = served_mean(e->trace, served, e->n, SERVED_LATENCY),
                 queue = served_mean(e->trace, served, e->n, SERVED_QUEUE),
                 ttft = served_mean(e->trace, served, e->n, SERVED_TTFT);
    values_set(values, "latency", latency / 1e6);
    values_set(values, "queue_time", queue / 1e6);
    values_set(values, "ttft_service", (ttft - queue) / 1e6);
    int64_t longest = 0;
    for (int32_t i = 0; i < e->n; i++)
        if (served[i].longest > longest) longest = served[i].longest;
    values_set(values, "longest_gap", (double)longest / 1e6);
}

static void report_steps(const struct engine *e, struct values *values) {
    const struct schedule_sums *sums = scheduler_sums(e->scheduler);
    const double steps = sums->steps ? (double)sums->steps : (double)NAN,
                 room = (double)sums->blocks * e->spec.block,
                 occupancy = room > 0 ? (double)sums->tokens / room : (double)NAN;
    values_set(values, "steps", (double)sums->steps);
    values_set(values, "packed_rows", (double)sums->rows);
    values_set(values, "padded_rows", (double)sums->padded_rows);
    values_set(values, "padding", (double)sums->padding);
    values_set(values, "pairs", (double)sums->pairs);
    values_set(values, "concurrency", (double)sums->runs / steps);
    values_set(values, "most_concurrent", (double)sums->most_runs);
    values_set(values, "idle_slots", (double)sums->idle_slots);
    values_set(values, "cache_tokens", (double)sums->tokens / steps);
    values_set(values, "cache_occupancy", occupancy);
    values_set(values, "fragmentation", 1 - occupancy);
    values_set(values, "most_blocks", (double)sums->most_blocks);
    values_set(values, "preempted", (double)sums->preempted);
    values_set(values, "refused", (double)sums->refused);
}

void serving_report(const struct engine *e, const struct serving_limits *limits, bool offered,
                    struct values *values) {
    report_rates(e, limits, values);
    report_queues(e, values);
    report_steps(e, values);
    if (offered) warn_saturated(e);
}
