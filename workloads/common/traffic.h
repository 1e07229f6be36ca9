/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: how many, how long, and when they come. A pure function of the keys, so that a plan
 * knows them. */
#ifndef WORKLOADS_COMMON_TRAFFIC_H
#define WORKLOADS_COMMON_TRAFFIC_H
#include "base/option.h"
#include "workloads/common/scheduler.h"

struct problems;

enum { TRAFFIC_MOST_REQUESTS = 100000, TRAFFIC_MOST_TOKENS = 1 << 24 };
enum traffic_law { LAW_FIXED, LAW_UNIFORM, LAW_GEOMETRIC, LAW_LOGNORMAL };
enum traffic_arrival {
    ARRIVE_TOGETHER,
    ARRIVE_EVENLY,
    ARRIVE_POISSON,
    ARRIVE_BURSTS,
    ARRIVE_GIVEN
};
extern const char *const traffic_law_words[], *const traffic_arrival_words[];

struct traffic_params {
    int64_t requests, most, burst, draw;
    struct ints lengths, prompt, times;
    int law, arrival;
    double output, spread, gap;
};

/* PARAM(field) gives the place of a field of struct traffic_params. */
#define TRAFFIC_OPTIONS(PARAM)                                                                     \
    {.key = "requests",                                                                            \
     .type = OPT_INT,                                                                              \
     PARAM(requests),                                                                              \
     .def = "0",                                                                                   \
     .min = 0,                                                                                     \
     .max = TRAFFIC_MOST_REQUESTS,                                                                 \
     .unit = "requests",                                                                           \
     .help = "Requests; 0: as many as `lengths` lists, or 64."},                                   \
        {.key = "lengths",                                                                         \
         .type = OPT_INTS,                                                                         \
         PARAM(lengths),                                                                           \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 1 << 16,                                                                           \
         .unit = "tokens",                                                                         \
         .help =                                                                                   \
             "Tokens that each request writes, in order of arrival, over again where requests "    \
             "are more; 0: drawn by `law`."},                                                      \
        {.key = "law",                                                                             \
         .type = OPT_WORD,                                                                         \
         PARAM(law),                                                                               \
         .def = "lognormal",                                                                       \
         .words = traffic_law_words,                                                               \
         .unit = "",                                                                               \
         .help = "How output lengths are drawn: fixed; uniform in 1 ... 2 output - 1; geometric "  \
                 "of mean `output`; lognormal of median `output`."},                               \
        {.key = "output",                                                                          \
         .type = OPT_REAL,                                                                         \
         PARAM(output),                                                                            \
         .def = "18",                                                                              \
         .min = 1,                                                                                 \
         .max = 1 << 16,                                                                           \
         .unit = "tokens",                                                                         \
         .help = "Mean of the law; of lognormal its median."},                                     \
        {.key = "spread",                                                                          \
         .type = OPT_REAL,                                                                         \
         PARAM(spread),                                                                            \
         .def = "0.986",                                                                           \
         .min = 0,                                                                                 \
         .max = 4,                                                                                 \
         .unit = "",                                                                               \
         .help = "lognormal: deviation of the logarithm; 0.986 with a median of 18 has the "       \
                 "seeds' mean of 29.28 (E20)."},                                                   \
        {.key = "most",                                                                            \
         .type = OPT_INT,                                                                          \
         PARAM(most),                                                                              \
         .def = "256",                                                                             \
         .min = 1,                                                                                 \
         .max = 1 << 16,                                                                           \
         .unit = "tokens",                                                                         \
         .help = "No drawn output is longer."},                                                    \
        {.key = "prompt",                                                                          \
         .type = OPT_INTS,                                                                         \
         PARAM(prompt),                                                                            \
         .def = "1",                                                                               \
         .min = 1,                                                                                 \
         .max = 1 << 16,                                                                           \
         .unit = "tokens",                                                                         \
         .help = "Tokens of the prompts, in order of arrival, over again where requests are "      \
                 "more."},                                                                         \
        {.key = "arrival",                                                                         \
         .type = OPT_WORD,                                                                         \
         PARAM(arrival),                                                                           \
         .def = "together",                                                                        \
         .words = traffic_arrival_words,                                                           \
         .unit = "",                                                                               \
         .help =                                                                                   \
             "together: all at time 0; evenly: one every `gap`; poisson: independent, `gap` "      \
             "apart on average; bursts: `burst` at once, bursts independent, as many requests "    \
             "a step; given: at `times`."},                                                        \
        {.key = "gap",                                                                             \
         .type = OPT_REAL,                                                                         \
         PARAM(gap),                                                                               \
         .def = "6",                                                                               \
         .min = 0,                                                                                 \
         .max = 1e6,                                                                               \
         .unit = "steps",                                                                          \
         .help =                                                                                   \
             "evenly, poisson, bursts: mean distance of two arrivals, in steps; 0: all at once."}, \
        {.key = "burst",                                                                           \
         .type = OPT_INT,                                                                          \
         PARAM(burst),                                                                             \
         .def = "8",                                                                               \
         .min = 1,                                                                                 \
         .max = TRAFFIC_MOST_REQUESTS,                                                             \
         .unit = "requests",                                                                       \
         .help = "bursts: requests of one."},                                                      \
        {.key = "times",                                                                           \
         .type = OPT_INTS,                                                                         \
         PARAM(times),                                                                             \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 1e9,                                                                               \
         .unit = "steps",                                                                          \
         .help =                                                                                   \
             "With arrival = \"given\": when each request comes, ascending; the list's length "    \
             "is the number of requests."},                                                        \
    {                                                                                              \
        .key = "draw", .type = OPT_INT, PARAM(draw), .def = "1", .min = 0, .max = 1e9, .unit = "", \
        .help = "Which lengths and arrivals are drawn."                                            \
    }

/* Rows of struct only. */
#define TRAFFIC_ONLY                                                                               \
    {"spread", "law", "lognormal"}, {"gap", "arrival", "evenly poisson bursts"},                   \
        {"burst", "arrival", "bursts"}, {                                                          \
        "times", "arrival", "given"                                                                \
    }

int32_t traffic_requests(const struct traffic_params *);
/* Contradictions between the keys; trace_make is defined for what has none. Pure. */
void traffic_check(const struct traffic_params *, struct problems *);
/* The trace, malloc'ed: arrivals in ticks, `step` ticks each step, rounded down. */
struct request *traffic_make(const struct traffic_params *, double step, int32_t *n);

struct schedule_params {
    int64_t slots, prefill_batch, block, pool;
    int prefill;
};
#define SCHEDULE_OPTIONS(PARAM)                                                                    \
    {.key = "slots",                                                                               \
     .type = OPT_INT,                                                                              \
     PARAM(slots),                                                                                 \
     .def = "8",                                                                                   \
     .min = 1,                                                                                     \
     .max = 4096,                                                                                  \
     .unit = "requests",                                                                           \
     .help = "Requests in flight at most."},                                                       \
        {.key = "prefill",                                                                         \
         .type = OPT_WORD,                                                                         \
         PARAM(prefill),                                                                           \
         .def = "together",                                                                        \
         .words = prefill_words,                                                                   \
         .unit = "",                                                                               \
         .help = "together: prompts are read in steps in which others write; apart: in steps of "  \
                 "their own, which go first."},                                                    \
        {.key = "prefill_batch",                                                                   \
         .type = OPT_INT,                                                                          \
         PARAM(prefill_batch),                                                                     \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 4096,                                                                              \
         .unit = "requests",                                                                       \
         .help = "Prompts that one step reads at most; 0: as many as there are slots."},           \
    {                                                                                              \
        .key = "pool", .type = OPT_INT, PARAM(pool), .def = "0", .min = 0, .max = 1 << 30,         \
        .unit = "blocks",                                                                          \
        .help = "Blocks of all requests together; where they run out the youngest request loses "  \
                "its place, and longer ones than the pool are refused; 0: as many as are needed."  \
    }
struct scheduler_spec schedule_spec(const struct schedule_params *, int policy);

#endif
