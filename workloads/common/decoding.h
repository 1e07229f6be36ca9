/* SPDX-License-Identifier: Apache-2.0 */
/* Decode steps of sequences that hold a context: the session, its first tokens, and the comparison
 * with decoding each sequence alone. */
#ifndef WORKLOADS_COMMON_DECODING_H
#define WORKLOADS_COMMON_DECODING_H
#include "workloads/common/tokens.h"
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

struct decoding {
    /* the caller's, before decoding_open */
    struct run *run;
    struct model_config config;
    struct input_params in;
    int32_t batch, context, steps;
    const char
        *name; /* of what is kept for later visits: how the contexts came to be is part of it */

    struct token_stream stream;
    struct model *model;
    struct session *session;
    int32_t *first;  /* (batch) the token that the first step feeds: the stream's next one */
    int32_t *tokens; /* (steps, batch) sampled in the last execution */
    uint64_t device_hash;
};

/* The keys batch and context; PARAM(field) gives their places. */
#define DECODING_OPTIONS(PARAM)                                                                    \
    {.key = "batch",                                                                               \
     .type = OPT_INT,                                                                              \
     PARAM(batch),                                                                                 \
     .def = "1",                                                                                   \
     .min = 1,                                                                                     \
     .max = 4096,                                                                                  \
     .unit = "sequences",                                                                          \
     .help = "Sequences that decode together."},                                                   \
    {                                                                                              \
        .key = "context", .type = OPT_INT, PARAM(context), .def = "64", .min = 1, .max = 1 << 24,  \
        .unit = "tokens", .help = "Tokens that each sequence already holds in its cache."          \
    }
/* Refuses more than 2^31 tokens of all sequences. */
void decoding_check(int64_t batch, int64_t tokens, struct problems *);

struct session_spec decoding_spec(int64_t batch, int64_t context, int64_t steps);
/* One sequence alone in chunks: fills its context; with a chunk of 1 it is the plain path. */
struct session_spec decoding_alone(int64_t context, int64_t steps, int64_t chunk);

int decoding_open(struct decoding *, struct err *);
void decoding_close(struct decoding *);
/* Back to the contexts, before an execution. */
void decoding_reset(struct decoding *);
/* Tokens and last logits of each sequence against those of decoding it alone from the KV that the
 * session itself holds of its context. */
int decoding_witness(struct decoding *, struct witness *, struct err *);

#endif
