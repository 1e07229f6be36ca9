/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `serving`: a trace of requests on a model, in real time, by the scheduler of `batching`.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "workloads/common/engine.h"
#include "workloads/common/plain.h"
#include "workloads/common/serving_report.h"
#include "workloads/common/traffic.h"
#include "workloads/model/ledger.h"

struct serving_params {
    struct traffic_params traffic;
    struct schedule_params schedule;
    struct serving_limits limits;
    int64_t step, chunk;
    int policy;
    struct input_params in;
};
struct serving_self {
    struct serving_params params;
    struct engine engine;
    struct request *trace;
    struct step_costs costs;
    double step; /* ns of a step with all slots writing: the unit of arrivals */
};

#define OPTION(field)                                                                              \
    .offset = offsetof(struct serving_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define TRAFFIC(field)  OPTION(traffic.field)
#define SCHEDULE(field) OPTION(schedule.field)
#define LIMIT(name, what)                                                                          \
    {                                                                                              \
        .key = #name "_limit", .type = OPT_TIME, OPTION(limits.name), .def = "0 ns", .min = 0,     \
        .max = 3600e9, .unit = "",                                                                 \
        .help = "Goodput counts only requests whose " what " is within this; 0: whatever it is."   \
    }
static const struct option params[] = {
    TRAFFIC_OPTIONS(TRAFFIC),
    SCHEDULE_OPTIONS(SCHEDULE),
    {.key = "policy",
     .type = OPT_WORD,
     OPTION(policy),
     .def = "continuous",
     .words = policy_words,
     .unit = "",
     .help = "static: groups of `slots` that begin and return together, with rows of padding; "
             "continuous: whoever waits takes a free slot before each step."},
    {.key = "chunk",
     .type = OPT_INT,
     OPTION(chunk),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Of one prompt a step reads so many tokens at most, so that a long one does not make "
             "those who write wait (chunked prefill); 0: all of it."},
    {.key = "step",
     .type = OPT_TIME,
     OPTION(step),
     .def = "0 ns",
     .min = 0,
     .max = 3600e9,
     .unit = "",
     .help = "What a step of `gap` and `times` is; 0: as long as a step with all slots writing "
             "takes here, measured once a run."},
    LIMIT(ttft, "TTFT"),
    LIMIT(tpot, "TPOT"),
    LIMIT(e2e, "time from arrival to return"),
    INPUT_OPTIONS(struct serving_params, in),
    {0},
};
static const struct only only[] = {TRAFFIC_ONLY, {0}};
static const struct phase phases[] = {{"prefill", "prompt token"},
                                      {"decode", "token"},
                                      {"mixed", "token read or written"},
                                      {"wait", "wait"},
                                      {0}};
static const struct mark marks[] = {{"token", ENGINE_DECODE}, {0}};

static struct scheduler_spec course_of(const struct serving_params *p) {
    struct scheduler_spec spec = schedule_spec(&p->schedule, p->policy);
    spec.chunk = (int32_t)p->chunk;
    return spec;
}

/* The cache's own blocks; one for each slot where it is contiguous. */
static struct scheduler_spec spec_of(const struct serving_params *p,
                                     const struct model_config *config, const struct request *trace,
                                     int32_t n) {
    struct scheduler_spec spec = course_of(p);
    spec.block = config->params.layout == 1 ? (int32_t)config->params.block
                                            : (int32_t)scheduler_most_tokens(trace, n, &spec);
    return spec;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct serving_params *p = params_;
    const size_t before = problems_count(problems);
    input_check(&p->in, config, problems);
    traffic_check(&p->traffic, problems);
    if (problems_count(problems) > before) return;
    int32_t n;
    struct request *trace = traffic_make(&p->traffic, 0, &n);
    const struct scheduler_spec spec = course_of(p);
    const int64_t rows = scheduler_most_rows(trace, n, &spec, NULL),
                  tokens = scheduler_most_tokens(trace, n, &spec);
    free(trace);
    if (rows > 1 << 22)
        problem(problems, "workload.slots", "workload.prompt",
                "a step may have %" PRId64 " rows; at most %d", rows, 1 << 22);
    if (tokens * p->schedule.slots > INT32_MAX)
        problem(problems, "workload.slots", "workload.lengths",
                "%" PRId64 " slots of %" PRId64 " tokens are more than 2^31 tokens",
                p->schedule.slots, tokens);
    if (p->schedule.pool && config->params.layout != 1)
        problem(
            problems, "workload.pool", "model.layout",
            "a pool has blocks, and a contiguous cache has none; model.layout = \"paged\" does");
}

static int64_t one_step(void *ctx, const struct batch *batch) {
    (void)ctx, (void)batch;
    return 1;
}

/* The schedule in steps of one length: what is done, if not when. */
struct course {
    const struct model_config *config;
    struct work *work;
    struct ledger_part *parts;
};
static int64_t add_step(void *ctx, const struct batch *batch) {
    struct course *c = ctx;
    struct work *work = &c->work[!batch->reading              ? ENGINE_DECODE
                                 : batch->reading == batch->n ? ENGINE_PREFILL
                                                              : ENGINE_MIXED];
    int out = 0;
    for (int32_t i = 0; i < batch->n; i++) {
        const struct run_of_rows *run = &batch->runs[i];
        c->parts[i] = (struct ledger_part){1, run->rows, run->begin + run->rows};
        out += !run->partial;
    }
    ledger_step(work, c->config, c->parts, batch->n, out);
    work->items += batch->rows;
    return 1;
}

static int64_t log_room(const struct request *trace, int32_t n, const struct scheduler_spec *spec) {
    struct scheduler *s = scheduler_create(trace, n, spec);
    schedule_simulate(s, one_step, NULL);
    const int64_t runs = scheduler_sums(s)->runs;
    scheduler_close(&s);
    return 2 * runs + 1024;
}

/* Nobody serves the last request before it comes: so many steps of the unit that was given, else
 * of those that this machine takes with all slots writing, which last a microsecond at least. */
static void plan_wait(const struct serving_params *p, const struct model_config *config,
                      int64_t steps, int32_t slots, struct plan *plan) {
    const int64_t shortest_ns = 1000, unit = p->step ? p->step : shortest_ns;
    plan->wait_ns = steps < INT64_MAX / unit ? steps * unit : INT64_MAX;
    if (p->step) return;
    ledger_decode(&plan->wait, config, slots, 1, 1);
    plan->wait.flops *= (double)steps;
    for (int c = 0; c < N_CLASSES; c++) plan->wait.bytes[c] *= (double)steps;
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct serving_params *p = params_;
    int32_t n;
    int64_t scales = 0;
    struct request *trace = traffic_make(&p->traffic, 1, &n);
    const struct scheduler_spec spec = spec_of(p, config, trace, n);
    const struct session_spec session = engine_spec(trace, n, &spec);
    struct course course = {config, plan->work,
                            must_alloc(sizeof *course.parts * (size_t)session.cache.n_seq)};
    struct scheduler *s = scheduler_create(trace, n, &spec);
    schedule_simulate(s, add_step, &course);
    for (int32_t i = 0; i < n; i++) {
        ledger_prompt(&plan->prepare, config, 1, 0, trace[i].prompt, 0, false);
        if (trace[i].output > 1)
            ledger_decode(&plan->prepare, config, 1, trace[i].prompt, trace[i].output - 1);
    }
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &session, plan->bytes);
    plan->bytes[MEM_STATE] +=
        inputs_bytes(session.cache.n_seq, 1, session.most_rows, session.most_out);
    plan->host_bytes =
        engine_host_bytes(config, trace, n, &spec, 2 * scheduler_sums(s)->runs + 1024) +
        n * (int64_t)sizeof(struct request);
    plan->most_marks = engine_most_marks(trace, n);
    plan_wait(p, config, n ? trace[n - 1].arrival : 0, scheduler_slots(n, &spec), plan);
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
    scheduler_close(&s);
    free(course.parts);
    free(trace);
}

/* The unit of arrivals: the first worker's, so that all visits of a run see the same traffic. */
static int64_t unit_of(struct serving_self *self, struct run *run, int64_t measured) {
    char key[160];
    bool ready;
    void *own;
    if (self->params.step) return self->params.step;
    snprintf(key, sizeof key, "step %016" PRIx64 " %016" PRIx64 " %" PRId64,
             model_hash(&self->engine.config), self->engine.device_hash,
             self->params.schedule.slots);
    int64_t *piece = plain_piece(run, key, sizeof *piece, &ready, &own);
    if (!ready) *piece = measured;
    const int64_t unit = *piece;
    if (!ready && !own) run_snapshot_ready(run, key);
    free(own);
    return unit;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct serving_self *self = s;
    struct engine *e = &self->engine;
    int32_t n;
    self->params = *(const struct serving_params *)params_;
    const struct serving_params *p = &self->params;
    self->trace = traffic_make(&p->traffic, 1, &n);
    *e = (struct engine){.run = run,
                         .config = *config,
                         .in = p->in,
                         .trace = self->trace,
                         .n = n,
                         .spec = spec_of(p, config, self->trace, n)};
    e->log_room = log_room(self->trace, n, &e->spec);
    int code = engine_open(e, err);
    if (!code) code = engine_measure(e, &self->costs, err);
    if (code) return code;
    self->step = (double)unit_of(
        self, run, (int64_t)step_costs_at(&self->costs, e->session->spec.cache.n_seq));
    struct request *timed = traffic_make(&p->traffic, self->step, &n);
    for (int32_t i = 0; i < n; i++) self->trace[i].arrival = timed[i].arrival;
    free(timed);
    return 0;
}

static void reset(void *s) { engine_reset(&((struct serving_self *)s)->engine); }

static void execute(void *s) { engine_execute(&((struct serving_self *)s)->engine); }

static bool worked(const void *s, struct work *work) {
    return engine_work(&((const struct serving_self *)s)->engine, work);
}

static int witness(void *s, struct witness *w, struct err *err) {
    return engine_witness(&((struct serving_self *)s)->engine, w, err);
}

static void report(void *s, struct values *values) {
    struct serving_self *self = s;
    struct engine *e = &self->engine;
    serving_report(e, &self->params.limits, self->params.traffic.arrival != ARRIVE_TOGETHER,
                   values);
    /* The same trace at the measured costs, by the same scheduler. */
    struct scheduler *simulated = scheduler_create(self->trace, e->n, &e->spec);
    const int64_t end = schedule_simulate(simulated, step_costs_of, &self->costs);
    scheduler_close(&simulated);
    values_set(values, "step_time",
               step_costs_at(&self->costs, e->session->spec.cache.n_seq) / 1e6);
    values_set(values, "simulated_time", (double)end / 1e6);
    values_set(values, "simulation_error",
               e->end > 0 ? (double)end / (double)e->end - 1 : (double)NAN);
}

static void dispose(void *s) {
    struct serving_self *self = s;
    engine_close(&self->engine);
    free(self->trace);
}

const struct workload workload_serving = {
    .name = "serving",
    .brief = "a trace of requests served by a model, step by step: latencies, goodput, the cache",
    .help =
        "Question: what do requests that come and go see of a model that serves them together? "
        "(seeds E08, E20-E22, E62, E64)\n\n"
        "One execution serves the whole trace in real time. Before each step the scheduler of "
        "`batching` says who runs; attention works on each sequence's own cache, all other products "
        "once on the packed rows of all of them. Prompts are read in the same steps in which others "
        "write, or in steps of their own (`prefill`), whole or in pieces of `chunk` tokens.\n\n"
        "Inside the timing: waiting for arrivals, scheduling, building each step's inputs, the "
        "forward pass, the head, greedy selection, reading the ids.\n\n"
        "Outside: drawing the trace, the prompts, the measuring of step costs, the comparison. The "
        "trace says how long a prompt is, `input` what it says: with a model's file that reads text, "
        "that.\n\n"
        "Times of a request count from the moment at which it was meant to come, however late it was "
        "looked at: no co-ordinated omission. A preempted request loses its cache and reads all of "
        "its text again; it is served late and counts so. A refused one has no latency, and counts "
        "against goodput.\n\n"
        "Phases: prefill (steps that only read; item: prompt token), decode (steps that only write), "
        "mixed, wait. Mark: token.\n\n"
        "simulated_time is what the scheduler says at costs that were measured before: steps by their "
        "number of rows, whatever the context.\n\n"
        "Witness: the tokens of every request equal those of running it alone, and where all came "
        "together so do the last logits of those in the last step: exact where the device computes rows independently of the "
        "batch, else close.\n",
    .flags = WORK_MODEL | WORK_WAITS,
    .params = params,
    .only = only,
    .params_size = sizeof(struct serving_params),
    .self_size = sizeof(struct serving_self),
    .metrics = serving_metrics,
    .phases = phases,
    .marks = marks,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .worked = worked,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
