/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured: the record of a workload. The harness owns the loop, the clock and the
 * statistics. */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric.h"
#include "kernels/tracker.h"

struct device;
struct device_kind;
struct err;
struct model;
struct model_config;
struct option;
struct problems;
struct run;

enum {                 /* workload.flags */
       WORK_MODEL = 1, /* takes [model]; otherwise a [model] section is unused, an error */
       WORK_ONCE =
           2, /* exact or simulated: one execution per visit, no warm-up, no time, one round */
       WORK_ALLOCATES = 4, /* execute may call device_alloc (tracked), never malloc */
       WORK_WAITS = 8,     /* execute may run_wait */
       WORK_CEILING =
           16, /* its best round is a ceiling of the device: visited first in every round */
};
#define MAX_PHASES 12
enum { TEXT_MOST_BYTES = 1 << 20 }; /* of a text that a point names */

struct work {     /* the ledger: one execution's arithmetic and traffic, from shapes alone */
    double flops; /* a multiply-add is 2 */
    double bytes[N_CLASSES]; /* read and written, by class (enum memory_class) */
    double items;            /* of the phase's item: tokens, bytes, ... */
};
struct phase {
    const char *name, *item;
}; /* "prefill", "prompt token"; a list ends with name NULL */
struct mark {
    const char *name;
    int phase;
}; /* "token", and the phase it belongs to; ends with name NULL */
struct plan {
    struct work work[MAX_PHASES]; /* per execution, by phase */
    struct work prepare; /* done in prepare and witness, once per worker (for the time estimate) */
    int64_t bytes[N_CLASSES]; /* peak live set on the device, by class: refused before the start if
                                 it cannot fit */
    int64_t host_bytes;       /* memory of the workload itself */
    /* What an execution waits for lasts at least so long, and at least as long as such work takes
     * on the device: arrivals, given in time or in steps of this machine. */
    int64_t wait_ns;
    struct work wait;
    int64_t most_marks; /* run_mark and run_phase calls of one execution, at most */
    /* Device memory that one execution takes beyond what was live before it, by formula; 0: it must
     * not allocate (the loop checks); -1: not promised. */
    int64_t peak_bytes;
    bool theory;      /* nothing runs: the numbers of this point follow from formulas alone */
    int binding_type; /* enum dtype of the peak that bounds the arithmetic (MFU): usually DT_F32 on
                         cpu */
};

enum contract { CONTRACT_NONE, CONTRACT_EXACT, CONTRACT_CLOSE, CONTRACT_LOSSY };
extern const char *const contract_names[5]; /* "none", "exact", "close", "lossy", NULL */
struct witness { /* the fast path against the plain path of the same device (measurement.md section
                    6) */
    enum contract contract;
    bool holds;                /* the declared contract held */
    bool identical;            /* all tokens and bits agree */
    int64_t compared;          /* tokens or values compared */
    int64_t first_difference;  /* position; -1: none */
    double max_error;          /* largest absolute logit error; NAN: not compared */
    uint64_t hash, plain_hash; /* of the outputs (tokens, then logit bits where kept) */
    char note[120];            /* what was compared with what; "" */
};

/* What an execution may call. All are cheap enough for the timed region. */
struct device *run_device(struct run *);
uint64_t run_seed(struct run *); /* of this point: inputs, sampling */
int64_t run_now(struct run *);   /* ns since this execution began; virtual on `fake` */
void run_wait(struct run *, int64_t until_ns);
void run_phase(struct run *,
               int phase); /* NVTX range, allocator phase and ledger phase in one call */
void run_mark(struct run *, int mark, int32_t who,
              int32_t n); /* who: sequence or request; n: tokens committed */
/* The request `who` was meant to come at at_ns, whenever it was looked at: the times of its tokens
 * (mark 0) count from there, and not from the beginning of the execution. Before its first token.
 */
void run_arrived(struct run *, int32_t who, int64_t at_ns);
void run_fail(struct run *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* this execution is no sample */
/* prepare and report only: a flag of this visit, with its reason. */
void run_flag(struct run *, const char *flag, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* prepare only: the model of this point, packed once per worker and kept by it. */
int run_model(struct run *, struct model **, struct err *);
/* prepare only: what the slot `beside` names, kept in the same way as long as points need it. */
int run_model_beside(struct run *, struct model **, struct err *);
/* prepare only: the text that the point's key `text` names (zero-terminated); NULL: none. */
const char *run_text(struct run *, size_t *bytes);
/* prepare and witness only: bytes that later workers of the same run see again (a prefilled
 *context, plain-path tokens). ready says whether somebody filled them; the one who fills calls
 *run_snapshot_ready. NULL: no room, compute it yourself. */
void *run_snapshot(struct run *, const char *key, size_t bytes, bool *ready);
void run_snapshot_ready(struct run *, const char *key);

struct only { /* a key of [workload] that decides nothing unless another key has one of these words
               */
    const char *key, *of, *words; /* {"gap", "arrival", "evenly poisson"} */
};

struct workload {             /* optional slots say so */
    const char *name, *brief; /* brief: one line for `bench list workloads` */
    const char *help; /* paragraphs for `bench help NAME`: the question, what lies inside the
                         timing, formulas */
    unsigned flags;
    const struct option *params; /* keys of [workload] besides `name`; ends with key NULL */
    const struct only
        *only; /* optional; ends with key NULL: such a key that was given is a mistake */
    size_t params_size, self_size;
    const struct metric *metrics; /* of report; optional */
    const struct phase *phases;   /* at least one; with exactly one, run_phase need not be called */
    const struct mark *marks;     /* optional */
    /* Pure; every point, before the run; config is NULL without WORK_MODEL. Optional. */
    void (*check)(const void *params, const struct model_config *, struct problems *);
    /* Pure: ledger, memory, marks. Optional beside compute, as prepare and execute are. */
    void (*plan)(const void *params, const struct model_config *, struct plan *);
    /* Optional, right after parsing: what the word `auto` means on this kind of device. */
    void (*adapt)(void *params, const struct device_kind *);
    /* Optional; pure: a second model that prepare asks for. Points with the same one are visited
     * one after the other, so that it is packed once. false: this point has none. */
    bool (*beside)(const void *params, const struct model_config *, struct model_config *other);
    /* Untimed; may allocate on the device. self is zeroed. After a failure dispose is called. */
    int (*prepare)(void *self, const void *params, const struct model_config *, struct run *,
                   struct err *);
    void (*reset)(
        void *self); /* optional, untimed, before each execution (synchronised by the loop) */
    void (*execute)(void *self); /* the only timed code */
    /* Optional, where what comes out decides what is done (an early end token): the work of the
     * last execution by phase, added to work (MAX_PHASES, zeroed). false: what the plan says. */
    bool (*worked)(const void *self, struct work *work);
    /* Optional; after warm-up and again after the samples of a visit; compares the state that
     * execute left. */
    int (*witness)(void *self, struct witness *, struct err *);
    void (*report)(void *self,
                   struct values *); /* optional; times come from marks, never from here */
    void (*dispose)(void *self);     /* optional */
    /* Instead of plan, prepare, execute and report, with WORK_ONCE: numbers from formulas alone.
     * Pure; never fails, whatever check let through. Its rows say that they are theory. */
    void (*compute)(const void *params, const struct model_config *, struct values *);
};
extern const struct workload *const all_workloads[]; /* generated; NULL-terminated */
const struct workload *workload_find(const char *name);

#endif
