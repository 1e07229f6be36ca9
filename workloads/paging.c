/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `paging`: what requests hold of a cache's memory, in contiguous reservations and in
 * blocks.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/first_fit.h"
#include "workloads/common/traffic.h"
#include "workloads/model/blocks.h"
#include "workloads/model/model.h"
#include "workloads/workload.h"

enum reserve { RESERVE_MOST, RESERVE_POWER, RESERVE_EXACT, RESERVE_BLOCKS };
struct paging_params {
    struct traffic_params traffic;
    int64_t slots, block, memory, longest;
    int reserve;
};
struct paging_self {
    struct paging_params params;
    struct model_config config;
    int32_t n;
    struct request *trace; /* arrivals in steps */
    struct course {        /* sums over steps, in tokens of memory */
        int64_t steps, running, tokens, reserved, blocked, unusable, preempted, refused;
    } course;
};

#define OPTION(field)                                                                              \
    .offset = offsetof(struct paging_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define TRAFFIC(field) OPTION(traffic.field)
static const char *const reserve_words[] = {"most", "power", "exact", "blocks", NULL};
static const struct option params[] = {
    TRAFFIC_OPTIONS(TRAFFIC),
    {.key = "slots",
     .type = OPT_INT,
     OPTION(slots),
     .def = "64",
     .min = 1,
     .max = 4096,
     .unit = "requests",
     .help = "Requests in flight at most, however much memory there is."},
    {.key = "block",
     .type = OPT_INT,
     OPTION(block),
     .def = "16",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help = "Tokens of a block."},
    {.key = "memory",
     .type = OPT_INT,
     OPTION(memory),
     .def = "4096",
     .min = 1,
     .max = 1 << 30,
     .unit = "tokens",
     .help = "Tokens that the memory has room for; of blocks, whole ones."},
    {.key = "longest",
     .type = OPT_INT,
     OPTION(longest),
     .def = "2048",
     .min = 1,
     .max = 1 << 17,
     .unit = "tokens",
     .help = "Prompt and output of a request at most: what must be reserved where nobody knows."},
    {.key = "reserve",
     .type = OPT_WORD,
     OPTION(reserve),
     .def = "blocks",
     .words = reserve_words,
     .unit = "",
     .help =
         "At admission, in one piece: most (`longest`), power (the next power of two of what it "
         "will hold), exact (as an oracle knows it); or blocks, as it grows."},
    {0},
};
static const struct only only[] = {TRAFFIC_ONLY, {0}};
static const struct phase phases[] = {{"schedule", "token"}, {0}};
static const struct metric metrics[] = {
    {"use", "", "Tokens resident / memory, mean over time.", BETTER_HIGHER, true},
    {"internal_fragmentation", "", "Reserved and empty / memory, mean over time.", BETTER_LOWER,
     true},
    {"external_fragmentation", "",
     "Free / memory while the first in the queue would fit into what is free and no hole is large enough, summed and divided by all steps (R36).",
     BETTER_LOWER, true},
    {"concurrency", "request", "Requests in flight, mean over time.", BETTER_HIGHER, true},
    {"steps", "step", "From time 0 until the last request returns.", BETTER_LOWER, true},
    {"blocked_steps", "step", "Steps in which a request that had arrived waited for memory.",
     BETTER_LOWER, true},
    {"preempted", "event", "Times that a request lost its blocks to an older one.", BETTER_LOWER,
     true},
    {"refused", "request", "Requests whose reservation is larger than the memory.", BETTER_LOWER,
     true},
    {"held_tokens", "token", "Tokens of all requests at their end, if all were there at once.",
     BETTER_NONE, true},
    {"held_blocks", "block", "Blocks that they need: ceil(tokens / block) each (E23).",
     BETTER_LOWER, true},
    {"block_slots", "token", "Room of those blocks.", BETTER_LOWER, true},
    {"block_waste", "token", "Room left in them: at most block - 1 each.", BETTER_LOWER, true},
    {"block_use", "", "held_tokens / block_slots.", BETTER_HIGHER, true},
    {"most_slots", "token", "Room that reservations of `longest` take.", BETTER_LOWER, true},
    {"most_use", "", "held_tokens / most_slots.", BETTER_HIGHER, true},
    {"power_use", "", "held_tokens over room in powers of two.", BETTER_HIGHER, true},
    {"block_bytes", "byte", "Bytes of one block in all layers.", BETTER_NONE, true},
    {0},
};

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct paging_params *p = params_;
    const size_t before = problems_count(problems);
    (void)config;
    traffic_check(&p->traffic, problems);
    if (problems_count(problems) > before) return;
    int32_t n;
    struct request *trace = traffic_make(&p->traffic, 1, &n);
    for (int32_t i = 0; i < n; i++)
        if (request_most(&trace[i]) > p->longest) {
            problem(problems, "workload.longest", "workload.lengths",
                    "request %d holds %d tokens, more than the longest may: %" PRId64, (int)i + 1,
                    (int)request_most(&trace[i]), p->longest);
            break;
        }
    if (p->reserve == RESERVE_BLOCKS && p->memory < p->block)
        problem(problems, "workload.memory", "workload.block",
                "%" PRId64 " tokens are not one block of %" PRId64, p->memory, p->block);
    free(trace);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct paging_params *p = params_;
    int32_t n;
    struct request *trace = traffic_make(&p->traffic, 1, &n);
    (void)config;
    for (int32_t i = 0; i < n; i++) plan->work[0].items += trace[i].output;
    free(trace);
    plan->host_bytes =
        n * (int64_t)(sizeof(struct request) + sizeof(struct served)) + p->slots * 128;
    plan->peak_bytes = -1;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct paging_self *self = s;
    (void)run, (void)err;
    self->params = *(const struct paging_params *)params_;
    self->config = *config;
    self->trace = traffic_make(&self->params.traffic, 1, &self->n);
    return 0;
}

static int64_t power_of_two(int64_t n) {
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

static int64_t reserved_for(const struct paging_params *p, const struct request *r) {
    if (p->reserve == RESERVE_MOST) return p->longest;
    return p->reserve == RESERVE_POWER ? power_of_two(request_most(r)) : request_most(r);
}

/* ---- in one piece each */

struct holder {
    int32_t request, written;
    int64_t begin;
};

/* First come first served: whoever finds no hole keeps the others waiting. */
static int32_t admit(const struct paging_self *self, struct first_fit *memory,
                     struct holder *holders, int32_t *n, int32_t next, struct course *c) {
    const struct paging_params *p = &self->params;
    for (; next < self->n && self->trace[next].arrival <= c->steps; next++) {
        const int64_t size = reserved_for(p, &self->trace[next]);
        if (size > p->memory) {
            c->refused++;
            continue;
        }
        if (*n == p->slots) break;
        const int64_t begin = first_fit_take(memory, size), free_now = p->memory - memory->used;
        if (begin < 0) {
            c->blocked++;
            c->unusable += free_now >= size ? free_now : 0;
            break;
        }
        holders[(*n)++] = (struct holder){next, 0, begin};
    }
    return next;
}

static void run_contiguous(struct paging_self *self) {
    struct course *c = &self->course;
    struct holder *holders = must_alloc(sizeof *holders * (size_t)self->params.slots);
    struct first_fit memory;
    int32_t n = 0, next = 0;
    first_fit_open(&memory, self->params.memory);
    for (;;) {
        next = admit(self, &memory, holders, &n, next, c);
        if (!n && next == self->n) break;
        if (!n) { /* nothing happens until somebody comes */
            c->steps = self->trace[next].arrival;
            continue;
        }
        c->steps++;
        c->running += n;
        c->reserved += memory.used;
        for (int32_t i = n; i-- > 0;) {
            const struct request *r = &self->trace[holders[i].request];
            c->tokens += r->prompt + holders[i].written++;
            if (holders[i].written < r->output) continue;
            first_fit_give(&memory, holders[i].begin);
            holders[i] = holders[--n];
        }
    }
    first_fit_close(&memory);
    free(holders);
}

/* ---- in blocks */

static int64_t one_step(void *ctx, const struct batch *batch) {
    (void)ctx, (void)batch;
    return 1;
}

static void run_blocks(struct paging_self *self) {
    const struct paging_params *p = &self->params;
    const struct scheduler_spec spec = {.policy = POLICY_CONTINUOUS,
                                        .slots = (int32_t)p->slots,
                                        .block = (int32_t)p->block,
                                        .pool = p->memory / p->block};
    struct scheduler *s = scheduler_create(self->trace, self->n, &spec);
    const int64_t end = schedule_simulate(s, one_step, NULL);
    const struct schedule_sums *sums = scheduler_sums(s);
    self->course = (struct course){.steps = end,
                                   .running = sums->runs,
                                   .tokens = sums->tokens,
                                   .reserved = sums->blocks * p->block,
                                   .blocked = sums->idle_steps,
                                   .preempted = sums->preempted,
                                   .refused = sums->refused};
    scheduler_close(&s);
}

static void execute(void *s) {
    struct paging_self *self = s;
    self->course = (struct course){0};
    if (self->params.reserve == RESERVE_BLOCKS)
        run_blocks(self);
    else
        run_contiguous(self);
}

static void report_held(const struct paging_self *self, struct values *values) {
    const struct paging_params *p = &self->params;
    double tokens = 0, blocks = 0, power = 0;
    for (int32_t i = 0; i < self->n; i++) {
        const int64_t held = request_most(&self->trace[i]);
        tokens += (double)held;
        blocks += (double)blocks_for(held, p->block);
        power += (double)power_of_two(held);
    }
    const double room = blocks * (double)p->block, most = (double)p->longest * self->n;
    int64_t scales = 0;
    const int64_t bytes = model_kv_bytes_per_token(&self->config, &scales);
    values_set(values, "held_tokens", tokens);
    values_set(values, "held_blocks", blocks);
    values_set(values, "block_slots", room);
    values_set(values, "block_waste", room - tokens);
    values_set(values, "block_use", tokens / room);
    values_set(values, "most_slots", most);
    values_set(values, "most_use", tokens / most);
    values_set(values, "power_use", tokens / power);
    values_set(values, "block_bytes", (double)((bytes + scales) * p->block));
}

static void report(void *s, struct values *values) {
    const struct paging_self *self = s;
    const struct course *c = &self->course;
    const double all = (double)c->steps * (double)self->params.memory;
    values_set(values, "use", (double)c->tokens / all);
    values_set(values, "internal_fragmentation", (double)(c->reserved - c->tokens) / all);
    values_set(values, "external_fragmentation", (double)c->unusable / all);
    values_set(values, "concurrency", (double)c->running / (double)c->steps);
    values_set(values, "steps", (double)c->steps);
    values_set(values, "blocked_steps", (double)c->blocked);
    values_set(values, "preempted", (double)c->preempted);
    values_set(values, "refused", (double)c->refused);
    report_held(self, values);
}

static void dispose(void *s) { free(((struct paging_self *)s)->trace); }

const struct workload workload_paging = {
    .name = "paging",
    .brief = "what requests hold of a cache's memory: contiguous reservations against blocks",
    .help =
        "Question: how much of a cache's memory holds tokens, and where is the rest lost? (seed "
        "E23)\n\n"
        "Simulated, no time and no model: only its bytes per token are used. Requests are admitted "
        "first come first served while memory and slots last, and write one token a step.\n\n"
        "most, power, exact: one piece for the whole request, in the lowest hole that is large "
        "enough; what is reserved and not yet (or never) written is internal fragmentation, holes that "
        "are too small while their sum would do are external fragmentation.\n\n"
        "blocks: a block is taken when a sequence grows into it, anywhere: at most block - 1 tokens "
        "of each sequence are lost, and no hole is ever too small. Where the pool runs out the "
        "youngest request loses its blocks and reads its text again later: the pool is promised to "
        "more requests than it holds.\n\n"
        "What starts with held, block, most or power is of all requests at once, at their end.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct paging_params),
    .self_size = sizeof(struct paging_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .report = report,
    .dispose = dispose,
};
