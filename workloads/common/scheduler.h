/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests run in the next step: static groups, or iteration by iteration (seeds E20, E21).
 * Pure: no device and no clock; who drives it says what time it is, in ticks of its own choice. */
#ifndef WORKLOADS_COMMON_SCHEDULER_H
#define WORKLOADS_COMMON_SCHEDULER_H
#include <stdbool.h>
#include <stdint.h>

struct request {
    int64_t arrival;        /* ticks; a trace has them in ascending order */
    int32_t prompt, output; /* tokens, each at least 1; the last one written is never fed back */
};
static inline int32_t request_most(const struct request *r) { /* tokens ever resident */
    return r->prompt + r->output - 1;
}

/* Static: groups of `slots` in order of arrival; one starts when all of it has arrived and the
 * group before has ended; all return at its end, and rows of those that are finished are padding
 * until then. Continuous: before each step, whoever waits takes the slots that are free, first come
 * first served. */
enum policy { POLICY_STATIC, POLICY_CONTINUOUS };
extern const char *const policy_words[]; /* "static", "continuous", NULL */
/* Together: prompts are read in steps in which others write (selective batching, E22). Apart: in
 * steps of their own, which go first (E64). */
enum prefill { PREFILL_TOGETHER, PREFILL_APART };
extern const char *const prefill_words[]; /* "together", "apart", NULL */

struct scheduler_spec {
    int policy, prefill;   /* enum policy, enum prefill */
    int32_t slots;         /* requests in flight at most, at least 1 */
    int32_t prefill_batch; /* prompts of one step at most; 0: as many as there are slots */
    int32_t block;         /* tokens of a block of the cache, at least 1 */
    int32_t chunk;         /* rows of a prompt that one step reads at most; 0: all that it has */
    int64_t pool;          /* blocks of all requests together; 0: as many as they need */
};

/* Rows that one request feeds: tokens begin ... begin + rows - 1 of its text, prompt first. The
 * last one's logits give the token behind them. */
struct run_of_rows {
    int32_t request, slot, begin, rows;
    bool padding; /* of a request that is finished: what comes out is thrown away */
    bool partial; /* more of its prompt is read in later steps: nothing comes out */
};
struct batch {                      /* one step */
    const struct run_of_rows *runs; /* (n) by rising slot */
    int32_t n, rows, most_rows;     /* rows of all, and of the longest run */
    int32_t reading;                /* runs that feed a prompt, or one again */
};

enum { NEVER = -1 };
struct served { /* what became of a request; times in ticks, NEVER where it did not happen */
    int64_t admitted, first, last, returned;
    int64_t longest;   /* wait between two of its tokens; 0 below two */
    int32_t tokens;    /* written */
    int32_t preempted; /* times that it lost its place, and its cache */
    bool refused;      /* longer than the whole pool: never admitted */
};

/* Of all steps since the start. Sums over steps, so that means are over steps. */
struct schedule_sums {
    int64_t steps, reading_steps, runs, rows;
    int64_t padding;            /* rows of requests that were finished */
    int64_t padded_rows;        /* rows if each step were a rectangle: runs times its longest run */
    int64_t pairs;              /* positions attended to, causally, by rows that are no padding */
    int64_t idle_slots;         /* slots left empty although a request had arrived and waited */
    int64_t idle_steps;         /* steps with such slots */
    int64_t tokens, blocks;     /* resident after the step */
    int32_t most_runs;          /* in flight at most */
    int64_t most_blocks;        /* held at most */
    int64_t preempted, refused; /* events */
};

struct scheduler;
/* The trace (n) must outlive it. */
struct scheduler *scheduler_create(const struct request *, int32_t n,
                                   const struct scheduler_spec *);
void scheduler_close(struct scheduler **);
void scheduler_restart(struct scheduler *); /* nothing has happened yet */

enum act { ACT_END, ACT_WAIT, ACT_RUN };
/* What to do at `now`: end; wait until *until, when the next one arrives; or run the batch, and say
 * scheduler_done afterwards. Always ends: each step writes a token, or reads again what the oldest
 * request displaced by writing one. */
enum act scheduler_next(struct scheduler *, int64_t now, struct batch *, int64_t *until);
void scheduler_done(struct scheduler *, int64_t now);
const struct served *scheduler_served(const struct scheduler *); /* (n) */
const struct schedule_sums *scheduler_sums(const struct scheduler *);
int32_t scheduler_in_slot(const struct scheduler *, int32_t slot); /* the request, or NEVER */

/* Slots that are ever taken. */
int32_t scheduler_slots(int32_t n, const struct scheduler_spec *);
/* Rows of any step, and of any run, at most. */
int64_t scheduler_most_rows(const struct request *, int32_t n, const struct scheduler_spec *,
                            int64_t *of_run);
/* Tokens resident in any slot at most. */
int64_t scheduler_most_tokens(const struct request *, int32_t n, const struct scheduler_spec *);

/* Runs a trace to its end where a step takes cost(ctx, batch) ticks; the time at which it ends. */
int64_t schedule_simulate(struct scheduler *, int64_t (*cost)(void *, const struct batch *),
                          void *);
/* An independent computation, event by event, of when each request returns: a step takes one tick
 * whatever is in it, prompts are read together, and the pool binds nothing. done (n). */
void schedule_by_events(const struct request *, int32_t n, int policy, int32_t slots,
                        int64_t *done);

/* Of requests that returned, in ticks: from arrival to return, from arrival to admission, from
 * admission to return, from arrival to the first token. */
enum served_time { SERVED_LATENCY, SERVED_QUEUE, SERVED_SERVICE, SERVED_TTFT };
/* Into out (n); how many there are. */
int32_t served_times(const struct request *, const struct served *, int32_t n, enum served_time,
                     double *out);
double served_mean(const struct request *, const struct served *, int32_t n, enum served_time);
double served_quantile(double *x, int32_t n, double q); /* type 7; sorts x; NAN if n is 0 */

#endif
