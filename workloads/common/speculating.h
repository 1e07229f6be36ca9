/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative decoding of a batch: plain decoding first, then the same tokens by drafts that the
   target verifies, several positions in one pass; both within one execution. */
#ifndef WORKLOADS_COMMON_SPECULATING_H
#define WORKLOADS_COMMON_SPECULATING_H
#include "workloads/common/contexts.h"
#include "workloads/common/tokens.h"
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

enum draft_kind { DRAFT_MODEL, DRAFT_NGRAM, DRAFT_ORACLE };
enum { SPECULATE_PLAIN, SPECULATE_DRAFT, SPECULATE_VERIFY }; /* phases */

struct speculating_spec {
    enum draft_kind draft;
    int32_t batch, prompt, tokens, gamma;
    int32_t ngram;      /* longest suffix that is looked up */
    double alpha;       /* of an oracle */
    double temperature; /* 0: greedy */
    bool runs_model;    /* a model drafts: its tokens, or the oracle's at its price */
    bool own_weights;   /* of the drafting model; else it is the target's first layers */
};
struct pass {      /* of one sequence */
    int32_t known; /* tokens before it, the prompt's among them */
    int32_t drafted, accepted;
};
struct speculating_times { /* sums over executions, ns */
    double plain, draft, verify;
    int64_t executions;
};
struct speculating {
    /* the caller's, before speculating_open */
    struct run *run;
    struct model_config config, draft_config;
    struct input_params in;
    struct speculating_spec spec;

    struct token_stream stream;
    struct model *model; /* the target */
    struct model part;   /* what drafts, unless it has weights of its own: a view of the target's */
    struct session *target, *drafter; /* drafter: NULL where no model runs */
    struct inputs *verify, *feed;     /* a pass of the target; the first step of the drafter */
    int32_t *text;  /* (batch, prompt + tokens) the prompt and what was committed; drafts beyond */
    int32_t *plain; /* (batch, tokens) of plain decoding in the last execution */
    int32_t *len;   /* (batch) tokens known */
    int32_t *n_drafts;            /* (batch) of the present pass; they lie in text from len on */
    int32_t *active, n_active;    /* (batch) sequences that go on, by rising number */
    int32_t *seqs, *ids, *tokens; /* (batch), (batch (gamma + 1)), (batch): room for a step */
    struct span *spans;           /* (batch) */
    struct pass *passes;          /* (batch, tokens) of the last execution */
    int32_t *n_passes;            /* (batch) */
    struct step last;             /* of the target, in the last execution */
    int32_t *last_row;            /* (batch) of its logits: behind which a sequence ended, or -1 */
    /* Where tokens are drawn, else NULL. */
    double *p, *q; /* (batch, gamma, vocab) of drafts, unless they come by lookup; (vocab) */
    float *row;    /* (vocab) logits on the host */
    float *final;  /* (batch, vocab) that each sequence's last token was drawn from */
    struct speculating_times times; /* the first, cold execution of a visit left out */
    int64_t executions;
    uint64_t device_hash;
};

struct session_spec speculating_target(const struct speculating_spec *);
struct session_spec speculating_drafter(const struct speculating_spec *);
/* What fills one context at a time; most_q is at least 1. */
struct session_spec speculating_alone(const struct speculating_spec *);
int64_t speculating_host_bytes(const struct speculating_spec *, int64_t vocab);
int64_t speculating_most_marks(const struct speculating_spec *);

int speculating_open(struct speculating *, struct err *);
void speculating_close(struct speculating *);
void speculating_reset(struct speculating *);
void speculating_execute(struct speculating *);
/* The logged passes' work by phase, into work (MAX_PHASES). */
void speculating_work(const struct speculating *, struct work *);
/* Tokens and last logits against each sequence alone. */
int speculating_witness(struct speculating *, struct witness *, struct err *);

extern const struct metric speculating_metrics[];
void speculating_report(const struct speculating *, struct values *);

/* ---- shared by its files */

/* Drafts for each active sequence: text[len ...] and n_drafts. */
int speculating_draft(struct speculating *, struct err *);
static inline int32_t *speculating_text(const struct speculating *s, int32_t q) {
    return s->text + (int64_t)q * (s->spec.prompt + s->spec.tokens);
}
static inline double *speculating_p(const struct speculating *s, int32_t q, int32_t k) {
    return s->p + ((int64_t)q * s->spec.gamma + k) * s->config.shape.vocab;
}
/* Random numbers are a function of sequence, position and use: what was drafted in vain and is
   drafted again is independent of what was committed. */
enum speculating_use { USE_DRAFT, USE_ACCEPT, USE_TOKEN, N_USES };
double speculating_random(const struct speculating *, int32_t q, int32_t position,
                          enum speculating_use);
/* Row o of a step's logits as probabilities p (vocab); the logits stay in s->row. */
void speculating_softmax(struct speculating *, const struct session *, const struct step *,
                         int32_t o, double *p);

#endif
