/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `batching`: a trace of requests, scheduled in static groups and iteration by iteration,
 * in steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/option.h"
#include "base/text.h"
#include "workloads/common/traffic.h"
#include "workloads/workload.h"

enum { N_POLICIES = 2 };

struct batching_params {
    struct traffic_params traffic;
    struct schedule_params schedule;
};
struct batching_self {
    struct batching_params params;
    int32_t n;
    struct request *trace; /* arrivals in steps */
    struct scheduler *scheduler[N_POLICIES];
    int64_t end[N_POLICIES], *by_step[N_POLICIES], *by_event[N_POLICIES]; /* (n) returned */
};

#define OPTION(field)                                                                              \
    .offset = offsetof(struct batching_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define TRAFFIC(field)  OPTION(traffic.field)
#define SCHEDULE(field) OPTION(schedule.field)
static const struct option params[] = {
    TRAFFIC_OPTIONS(TRAFFIC),
    SCHEDULE_OPTIONS(SCHEDULE),
    {.key = "block",
     .type = OPT_INT,
     SCHEDULE(block),
     .def = "16",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help = "Tokens of a block of the cache."},
    {0},
};
static const struct only only[] = {TRAFFIC_ONLY, {0}};
static const struct phase phases[] = {{"schedule", "token"}, {0}};
static const struct metric metrics[] = {
    {"throughput_gain", "", "static_steps / continuous_steps: tokens are the same.", BETTER_HIGHER,
     true},
    {"latency_gain", "", "static_latency / continuous_latency: both from arrival.", BETTER_HIGHER,
     true},
    {"static_steps", "step", "From time 0 until the last static group ends.", BETTER_LOWER, true},
    {"continuous_steps", "step", "static_steps of continuous batching.", BETTER_LOWER, true},
    {"static_latency", "step", "Mean, from a request's arrival to its return.", BETTER_LOWER, true},
    {"continuous_latency", "step", "static_latency of continuous batching.", BETTER_LOWER, true},
    {"continuous_service", "step",
     "Mean, from admission to return: what is left without the queue.", BETTER_LOWER, true},
    {"latency_gain_unqueued", "",
     "static_latency / continuous_service: as if only the static side had a queue.", BETTER_NONE,
     true},
    {"static_latency_p95", "step", "95th percentile of the latencies, type 7.", BETTER_LOWER, true},
    {"continuous_latency_p95", "step", "static_latency_p95 of continuous batching.", BETTER_LOWER,
     true},
    {"static_slot_use", "", "Tokens / (slots x steps in which something ran).", BETTER_HIGHER,
     true},
    {"continuous_slot_use", "", "static_slot_use of continuous batching.", BETTER_HIGHER, true},
    {"idle_slots", "slot",
     "Slots that continuous batching left empty in a step although a request waited, over all steps: 0 unless prompts or blocks are limited (E21).",
     BETTER_LOWER, true},
    {"least_steps", "step",
     "No schedule takes fewer: the longest output, or all tokens over the slots (E20).",
     BETTER_NONE, true},
    {"requests", "request", "Requests of the trace.", BETTER_NONE, true},
    {"tokens", "token", "Tokens that all of them write.", BETTER_NONE, true},
    {"longest", "token", "Longest output.", BETTER_NONE, true},
    {"median_length", "token", "Median output.", BETTER_NONE, true},
    {"packed_rows", "row", "Rows of all steps of continuous batching, one below the other (E22).",
     BETTER_NONE, true},
    {"padded_rows", "row",
     "packed_rows if each step were a rectangle: sequences times the longest (E22).", BETTER_NONE,
     true},
    {"pairs", "pair", "Positions attended to by all rows of continuous batching, causally (E22).",
     BETTER_NONE, true},
    {"preempted", "event", "Times that a request lost its place for want of blocks.", BETTER_LOWER,
     true},
    {"refused", "request", "Requests longer than the whole pool.", BETTER_LOWER, true},
    {0},
};

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    (void)config;
    traffic_check(&((const struct batching_params *)params_)->traffic, problems);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct batching_params *p = params_;
    int32_t n;
    struct request *trace = traffic_make(&p->traffic, 1, &n);
    (void)config;
    for (int32_t i = 0; i < n; i++) plan->work[0].items += trace[i].output;
    free(trace);
    plan->host_bytes = n * (int64_t)(sizeof(struct request) + N_POLICIES * sizeof(struct served) +
                                     (1 + 2 * N_POLICIES) * sizeof(int64_t)) +
                       p->schedule.slots * 128;
    plan->peak_bytes = -1;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct batching_self *self = s;
    (void)config, (void)run, (void)err;
    self->params = *(const struct batching_params *)params_;
    self->trace = traffic_make(&self->params.traffic, 1, &self->n);
    for (int k = 0; k < N_POLICIES; k++) {
        const struct scheduler_spec spec = schedule_spec(&self->params.schedule, k);
        self->scheduler[k] = scheduler_create(self->trace, self->n, &spec);
        self->by_step[k] = must_alloc(sizeof(int64_t) * (size_t)self->n);
        self->by_event[k] = must_alloc(sizeof(int64_t) * (size_t)self->n);
    }
    return 0;
}

static int64_t one_step(void *ctx, const struct batch *batch) {
    (void)ctx, (void)batch;
    return 1;
}

static void execute(void *s) {
    struct batching_self *self = s;
    for (int k = 0; k < N_POLICIES; k++) {
        self->end[k] = schedule_simulate(self->scheduler[k], one_step, NULL);
        const struct served *served = scheduler_served(self->scheduler[k]);
        for (int32_t i = 0; i < self->n; i++) self->by_step[k][i] = served[i].returned;
    }
}

/* What the event-driven schedule knows of: nothing but outputs and slots. */
static bool is_plain(const struct schedule_params *p) {
    return !p->pool && p->prefill == PREFILL_TOGETHER &&
           (!p->prefill_batch || p->prefill_batch >= p->slots);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct batching_self *self = s;
    (void)err;
    *w = (struct witness){.contract = CONTRACT_NONE,
                          .holds = true,
                          .identical = true,
                          .first_difference = -1,
                          .max_error = NAN};
    if (!is_plain(&self->params.schedule)) return 0;
    w->contract = CONTRACT_EXACT;
    for (int k = 0; k < N_POLICIES; k++) {
        const size_t bytes = sizeof(int64_t) * (size_t)self->n;
        schedule_by_events(self->trace, self->n, k, (int32_t)self->params.schedule.slots,
                           self->by_event[k]);
        for (int32_t i = 0; i < self->n; i++, w->compared++) {
            if (self->by_step[k][i] == self->by_event[k][i]) continue;
            w->holds = w->identical = false;
            if (w->first_difference < 0) w->first_difference = i;
        }
        w->hash = hash_bytes(self->by_step[k], bytes, w->hash);
        w->plain_hash = hash_bytes(self->by_event[k], bytes, w->plain_hash);
    }
    snprintf(w->note, sizeof w->note, "when each request returns: step by step, and by events");
    return 0;
}

static void report_trace(const struct batching_self *self, struct values *values) {
    double *x = must_alloc(sizeof *x * ((size_t)self->n + 1)), tokens = 0;
    for (int32_t i = 0; i < self->n; i++) {
        x[i] = self->trace[i].output;
        tokens += x[i];
    }
    const double longest = served_quantile(x, self->n, 1);
    values_set(values, "requests", self->n);
    values_set(values, "tokens", tokens);
    values_set(values, "longest", longest);
    values_set(values, "median_length", served_quantile(x, self->n, 0.5));
    values_set(values, "least_steps",
               fmax(longest, ceil(tokens / (double)self->params.schedule.slots)));
    free(x);
}

static void report_policy(const struct batching_self *self, int k, struct values *values) {
    const struct served *served = scheduler_served(self->scheduler[k]);
    const struct schedule_sums *sums = scheduler_sums(self->scheduler[k]);
    double *x = must_alloc(sizeof *x * ((size_t)self->n + 1));
    char name[48];
    snprintf(name, sizeof name, "%s_steps", policy_words[k]);
    values_set(values, name, (double)self->end[k]);
    snprintf(name, sizeof name, "%s_latency", policy_words[k]);
    values_set(values, name, served_mean(self->trace, served, self->n, SERVED_LATENCY));
    const int32_t n = served_times(self->trace, served, self->n, SERVED_LATENCY, x);
    snprintf(name, sizeof name, "%s_latency_p95", policy_words[k]);
    values_set(values, name, served_quantile(x, n, 0.95));
    snprintf(name, sizeof name, "%s_slot_use", policy_words[k]);
    values_set(values, name,
               (double)(sums->runs - sums->padding) /
                   ((double)self->params.schedule.slots * (double)sums->steps));
    free(x);
}

static void report(void *s, struct values *values) {
    const struct batching_self *self = s;
    const struct scheduler *continuous = self->scheduler[POLICY_CONTINUOUS];
    const struct schedule_sums *sums = scheduler_sums(continuous);
    report_trace(self, values);
    for (int k = 0; k < N_POLICIES; k++) report_policy(self, k, values);
    const double waited = values_get(values, "static_latency"),
                 served = served_mean(self->trace, scheduler_served(continuous), self->n,
                                      SERVED_SERVICE);
    values_set(values, "throughput_gain",
               (double)self->end[POLICY_STATIC] / (double)self->end[POLICY_CONTINUOUS]);
    values_set(values, "continuous_service", served);
    values_set(values, "latency_gain", waited / values_get(values, "continuous_latency"));
    values_set(values, "latency_gain_unqueued", waited / served);
    values_set(values, "idle_slots", (double)sums->idle_slots);
    values_set(values, "packed_rows", (double)sums->rows);
    values_set(values, "padded_rows", (double)sums->padded_rows);
    values_set(values, "pairs", (double)sums->pairs);
    values_set(values, "preempted", (double)sums->preempted);
    values_set(values, "refused", (double)sums->refused);
}

static void dispose(void *s) {
    struct batching_self *self = s;
    for (int k = 0; k < N_POLICIES; k++) {
        scheduler_close(&self->scheduler[k]);
        free(self->by_step[k]);
        free(self->by_event[k]);
    }
    free(self->trace);
}

const struct workload workload_batching = {
    .name = "batching",
    .brief = "a trace of requests in static groups and iteration by iteration: simulated, in steps",
    .help =
        "Question: what does regrouping after every step gain over static groups? (seeds E20-E22)\n\n"
        "Simulated, no time: a step takes one unit whatever is in it, so that step costs cancel in "
        "the ratios. `serving` runs the same traces on a model.\n\n"
        "static: requests in order of arrival, in groups of `slots`; a group starts when all its "
        "members have arrived and the group before has ended, takes as many steps as its longest "
        "output, and returns all members at its end.\n\n"
        "continuous: before each step the free slots are filled from the queue, first come first "
        "served; each active request writes one token a step, the first in the step that reads its "
        "prompt; a request that ends in step k returns at time k + 1, and its slot is free for step "
        "k + 1.\n\n"
        "Where throughput gains 1.6 the mean latency, counted from arrival on both sides, gains "
        "about 2.7 if all requests wait at time 0, and ten only where arrivals are spread out; "
        "latency_gain_unqueued counts the queue on the static side alone.\n\n"
        "Witness: when each request returns, step by step, against an independent computation by "
        "events; with `pool`, `prefill` or `prefill_batch` there is none.\n",
    .flags = WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct batching_params),
    .self_size = sizeof(struct batching_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
