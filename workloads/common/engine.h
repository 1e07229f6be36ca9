/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of requests on a model: what the scheduler says is run, step by step, on one session
 * whose sequences are the slots. */
#ifndef WORKLOADS_COMMON_ENGINE_H
#define WORKLOADS_COMMON_ENGINE_H
#include "workloads/common/scheduler.h"
#include "workloads/common/step_costs.h"
#include "workloads/common/tokens.h"
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

enum engine_phase { ENGINE_PREFILL, ENGINE_DECODE, ENGINE_MIXED, ENGINE_WAIT };

struct engine_log { /* what was run, for the ledger */
    struct engine_run {
        int32_t rows, kv_len;
        int32_t step; /* by rising number */
        int32_t phase;
        bool out; /* whether a token came out */
    } * runs;
    int64_t n, room;
};
struct engine {
    /* the caller's, before engine_open */
    struct run *run;
    struct model_config config;
    struct input_params in;
    const struct request *trace; /* (n) arrivals in ns */
    int32_t n;
    struct scheduler_spec spec;
    int64_t log_room; /* runs of one execution that are logged, at most */

    struct token_stream stream;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    struct scheduler *scheduler;
    int32_t *text;    /* prompts and what was written, request after request */
    int64_t *text_at; /* (n + 1) where each begins */
    int32_t *in_slot; /* (slots) the request whose tokens the cache holds, or NEVER */
    int32_t *pad;     /* (slots) what padding feeds */
    struct span *spans;
    int32_t *last_row; /* (n) which output of the last step is a request's, or -1 */
    struct step last;
    struct engine_log log;
    int64_t end; /* ns, of the last execution */
    uint64_t device_hash;
};

struct session_spec engine_spec(const struct request *, int32_t n, const struct scheduler_spec *);
int64_t engine_host_bytes(const struct model_config *, const struct request *, int32_t n,
                          const struct scheduler_spec *, int64_t log_room);
/* Marks and phases of one execution, at most. */
int64_t engine_most_marks(const struct request *, int32_t n);

int engine_open(struct engine *, struct err *);
void engine_close(struct engine *);
/* Before each execution: nothing is resident, nothing has been written. */
void engine_reset(struct engine *);
/* The whole trace, in real time; marks each token (mark 0) and enters the phases above. */
void engine_execute(struct engine *);
/* Times steps of the grid's rows: whatever the cache holds. */
int engine_measure(struct engine *, struct step_costs *, struct err *);
/* The logged work by phase, into work (MAX_PHASES); false: the log was too short. */
bool engine_work(const struct engine *, struct work *);
/* Tokens of every request, and where all came together the last logits of those in the last step,
 * against running each alone. */
int engine_witness(struct engine *, struct witness *, struct err *);

#endif
