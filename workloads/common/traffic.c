/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and arrivals, listed or drawn. */
#include "workloads/common/traffic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/problems.h"
#include "base/random.h"

const char *const traffic_law_words[] = {"fixed", "uniform", "geometric", "lognormal", NULL};
const char *const traffic_arrival_words[] = {"together", "evenly", "poisson",
                                             "bursts",   "given",  NULL};
enum { STREAM_LENGTHS = 1, STREAM_ARRIVALS };

/* "0" stands for an absent list. */
static bool listed(const struct ints *v) { return v->n > 1 || (v->n == 1 && v->v[0] > 0); }

int32_t traffic_requests(const struct traffic_params *p) {
    if (p->arrival == ARRIVE_GIVEN) return p->times.n;
    if (p->requests) return (int32_t)p->requests;
    return listed(&p->lengths) ? p->lengths.n : 64;
}

static int32_t drawn_length(const struct traffic_params *p, uint64_t key, int32_t i) {
    const double u = random_unit(key, (uint64_t)i);
    double length = p->output;
    if (p->law == LAW_UNIFORM) length = 1 + floor(u * (2 * p->output - 1));
    if (p->law == LAW_GEOMETRIC)
        length = p->output > 1 ? 1 + floor(log1p(-u) / log1p(-1 / p->output)) : 1;
    if (p->law == LAW_LOGNORMAL)
        length = round(p->output * exp(p->spread * random_normal(key, (uint64_t)i)));
    if (!(length < (double)p->most)) length = (double)p->most;
    return length < 1 ? 1 : (int32_t)length;
}

static int32_t output_of(const struct traffic_params *p, uint64_t key, int32_t i) {
    if (listed(&p->lengths)) return (int32_t)p->lengths.v[i % p->lengths.n];
    return drawn_length(p, key, i);
}

/* In steps. */
static double next_arrival(const struct traffic_params *p, uint64_t key, int32_t i, double now) {
    const double u = random_unit(key, (uint64_t)i);
    switch (p->arrival) {
    case ARRIVE_EVENLY: return p->gap * i;
    case ARRIVE_POISSON: return now - p->gap * log1p(-u);
    case ARRIVE_BURSTS: return i % p->burst ? now : now - p->gap * (double)p->burst * log1p(-u);
    case ARRIVE_GIVEN: return (double)p->times.v[i];
    default: return 0;
    }
}

void traffic_check(const struct traffic_params *p, struct problems *problems) {
    const int32_t n = traffic_requests(p);
    int64_t tokens = 0;
    if (listed(&p->lengths))
        for (int32_t i = 0; i < p->lengths.n; i++)
            if (p->lengths.v[i] < 1) {
                problem(problems, "workload.lengths", NULL,
                        "request %d writes no token; each writes at least 1", (int)i + 1);
                return;
            }
    if (!listed(&p->lengths) && p->law == LAW_FIXED && p->output != floor(p->output))
        problem(problems, "workload.output", "workload.law",
                "nobody writes %g tokens: with law = fixed it is a whole number", p->output);
    for (int32_t i = 1; p->arrival == ARRIVE_GIVEN && i < n; i++)
        if (p->times.v[i] < p->times.v[i - 1]) {
            problem(problems, "workload.times", NULL,
                    "request %d comes before request %d; times ascend", (int)i + 1, (int)i);
            return;
        }
    if (p->arrival == ARRIVE_GIVEN && p->requests && p->requests != n)
        problem(problems, "workload.requests", "workload.times",
                "%" PRId64 " requests, and %d times at which they come", p->requests, (int)n);
    if (n > TRAFFIC_MOST_REQUESTS) {
        problem(problems, "workload.times", NULL, "%d requests; at most %d", (int)n,
                (int)TRAFFIC_MOST_REQUESTS);
        return;
    }
    const uint64_t key = random_key((uint64_t)p->draw, STREAM_LENGTHS);
    for (int32_t i = 0; i < n; i++) tokens += output_of(p, key, i) + p->prompt.v[i % p->prompt.n];
    if (tokens > TRAFFIC_MOST_TOKENS)
        problem(problems, "workload.requests", NULL,
                "prompts and outputs have %" PRId64 " tokens in all; at most %d", tokens,
                (int)TRAFFIC_MOST_TOKENS);
}

struct request *traffic_make(const struct traffic_params *p, double step, int32_t *n) {
    const uint64_t lengths = random_key((uint64_t)p->draw, STREAM_LENGTHS),
                   arrivals = random_key((uint64_t)p->draw, STREAM_ARRIVALS);
    double now = 0;
    *n = traffic_requests(p);
    struct request *trace = must_alloc(sizeof *trace * ((size_t)*n + 1));
    for (int32_t i = 0; i < *n; i++) {
        now = next_arrival(p, arrivals, i, now);
        trace[i] = (struct request){.arrival = (int64_t)fmin(now * step, 0x1p62),
                                    .prompt = (int32_t)p->prompt.v[i % p->prompt.n],
                                    .output = output_of(p, lengths, i)};
    }
    return trace;
}

struct scheduler_spec schedule_spec(const struct schedule_params *p, int policy) {
    return (struct scheduler_spec){.policy = policy,
                                   .prefill = p->prefill,
                                   .slots = (int32_t)p->slots,
                                   .prefill_batch = (int32_t)p->prefill_batch,
                                   .block = (int32_t)p->block,
                                   .pool = p->pool};
}
