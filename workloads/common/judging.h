/* SPDX-License-Identifier: Apache-2.0 */
/* A model judged beside a reference model that is shown the same tokens: perplexity, divergence,
   agreement, continuations and questions. */
#ifndef WORKLOADS_COMMON_JUDGING_H
#define WORKLOADS_COMMON_JUDGING_H
#include "workloads/common/continuing.h"
#include "workloads/common/judged_text.h"
#include "workloads/common/kv_rounder.h"
#include "workloads/common/questions.h"
#include "workloads/common/scoring.h"
#include "workloads/common/weight_error.h"

enum chat { CHAT_AUTO, CHAT_CHATML, CHAT_PLAIN };
enum {
    JUDGING_BLOCK = 32,     /* neighbouring positions that are drawn together */
    JUDGING_TOGETHER = 16,  /* questions that are answered together */
    JUDGING_QUESTION = 128, /* tokens of a question, at most, the template's among them */
};
#define JUDGING_NO_QUESTIONS "none"

struct judging_spec {
    struct windows windows;
    int32_t continuations, each, prompt; /* sequences; tokens written for each; of each prompt */
    int32_t answer;                      /* tokens of an answer, at most */
    bool asks, own_reference;            /* questions; the reference has weights of its own */
};
struct judging {
    /* the caller's, before judging_open */
    struct run *run;
    struct model_config config, reference;
    struct judging_spec spec;
    const char *text_name, *text_digest, *questions_name;
    int chat;                   /* enum chat */
    struct kv_rounder *rounder; /* of ours, or NULL */

    struct model *model;
    struct tokenizer *tokenizer; /* NULL: none is needed */
    struct judged_text text;
    struct questions *questions;
    int32_t *asked_ids;
    struct prompt *asked;   /* (questions) */
    struct prompt *prompts; /* (continuations) into the text */
    int32_t ends[2];        /* ids behind which nothing of an answer counts; -1: none */
    /* The reference's, made once a run. */
    void *own;        /* memory of these, where the run has no room */
    float *logits;    /* (positions, vocab) */
    int32_t *written; /* (continuations, each) */
    int32_t *said;    /* (questions, answer) */
    /* Ours. */
    struct verdict *verdicts;   /* (positions) */
    int32_t *choice, *free_run; /* (continuations, each): fed the reference's tokens; fed its own */
    int32_t *our_said;          /* (questions, answer) */
    struct weight_error weight;
};
/* Adds live bytes beside the weights to bytes (N_CLASSES); returns the host's. */
int64_t judging_bytes(const struct judging_spec *, const struct model_config *config,
                      const struct model_config *reference, int64_t *bytes);
void judging_work(const struct judging_spec *, const struct model_config *, struct work *);

int judging_open(struct judging *, struct err *); /* and whatever the reference has to say */
int judging_run(struct judging *, struct err *);
void judging_close(struct judging *);

extern const struct metric judging_metrics[];
void judging_report(const struct judging *, struct values *);
void judging_witness(const struct judging *, struct witness *);
/* How many of the answers `said` (questions, answer) are right. */
int32_t judging_right(const struct judging *, const int32_t *said);

#endif
