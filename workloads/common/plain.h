/* SPDX-License-Identifier: Apache-2.0 */
/* What the plain path of a point yielded, kept for the run, and the comparison of a fast path with
 * it (measurement.md 6). */
#ifndef WORKLOADS_COMMON_PLAIN_H
#define WORKLOADS_COMMON_PLAIN_H
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

/* One sequence: tokens of its steps, how narrowly each won, and the logits of the last step. */
struct plain {
    uint64_t logits_hash; /* of the last step's bits */
    int32_t steps, vocab; /* vocab: 0 where the logits were not kept (devices whose rows are the
                             same bits in any batch) */
    /* then float margin[steps]: largest logit less the second; int32_t token[steps]; float
     * logits[vocab] */
};
bool plain_keeps_logits(const struct device *);
size_t plain_bytes(const struct device *, int32_t steps, int64_t vocab);
void plain_clear(struct plain *, const struct device *, int32_t steps, int64_t vocab);
float *plain_margins(struct plain *);
int32_t *plain_tokens(struct plain *);
const float *plain_logits(struct plain *);
/* Records step i from row `row` of a session's logits; the last one also as hash and logits. Waits
 * for the device. The last may come early: tokens beyond it stay -1. */
void plain_record(struct plain *, struct session *, const struct step *, int32_t row, int32_t i,
                  int32_t token, bool last);
/* Decodes plain->steps tokens of the session's one sequence, which begins with `first`, records
   each and waits for the device. */
int plain_decode(struct plain *, struct session *, int32_t first, struct err *);

/* Identifies device and set-up: bits of one are not expected of the other. */
uint64_t plain_device_hash(struct device *);
/* A piece of the run's memory that later workers see again, or, where there is no room, malloc'ed
   memory that the caller frees (*own). */
void *plain_piece(struct run *, const char *key, size_t bytes, bool *ready, void **own);

/* `exact` where the device promises the same bits in any batch, else `close`. */
enum contract plain_contract(const struct device *);
/* Largest error of a logit that a device may show which sums in another order; logits have a
 * deviation of about 1. */
double plain_tolerance(const struct model_config *);
void plain_begin(struct witness *, const struct device *, const char *note);
/* Compares one sequence: tokens (steps, stride apart, -1 beyond its end) and row `row` of the last
   step's logits; -1: it ended before that step, and its logits are gone.
   `position`: of its step 0. Exact: every token and bit. Close: logits within the tolerance; a
   different token is forgiven where the plain path's margin lay within it, and ends that sequence's
   comparison, since from there on other tokens are fed. */
void plain_compare(struct witness *, struct plain *, struct session *, const struct step *,
                   int32_t row, const int32_t *tokens, int32_t stride, int32_t position);

#endif
