/* SPDX-License-Identifier: Apache-2.0 */
/* Logits of a text's positions, window by window and a chunk at a time; and what two models that
   were shown the same tokens say of one position. */
#ifndef WORKLOADS_COMMON_SCORING_H
#define WORKLOADS_COMMON_SCORING_H
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

/* Window w holds tokens w stride ... w stride + window - 1. Its position i (token i is the last one
   seen) is scored from i = unscored on, by how likely token i + 1 was; the last has no successor.
 */
struct windows {
    int32_t window, stride, unscored, n;
};
static inline int32_t windows_scored(const struct windows *w) { /* of each */
    return w->window - 1 - w->unscored;
}
static inline int64_t windows_positions(const struct windows *w) {
    return (int64_t)w->n * windows_scored(w);
}
static inline int64_t windows_tokens(const struct windows *w) {
    return (int64_t)(w->n - 1) * w->stride + w->window;
}
/* The token that scored position p (0 ... windows_positions - 1) is judged by, as an index. */
static inline int64_t windows_target(const struct windows *w, int64_t p) {
    const int32_t scored = windows_scored(w);
    return p / scored * w->stride + w->unscored + p % scored + 1;
}

enum { SCORING_CHUNK = 128 }; /* rows of a step, at most: its logits are all that is held */
struct session_spec scoring_spec(const struct windows *);
int64_t scoring_host_bytes(const struct windows *, int64_t vocab);
void scoring_work(struct work *, const struct model_config *, const struct windows *);

/* What rounds a cache beyond its type (kv_rounder.h), or NULL. */
struct kv_rounder;
struct scoring {
    struct model *model;
    const struct model_config *config;
    const struct windows *windows;
    const int32_t *tokens; /* (windows_tokens) */
    int32_t bos;           /* takes the place of each window's first token; -1: nothing does */
    struct kv_rounder *rounder;
    /* Called with logits (rows, vocab) of scored positions first ... first + rows - 1. */
    int (*take)(void *ctx, int64_t first, int32_t rows, const float *logits, struct err *);
    void *ctx;
};
int scoring_run(const struct scoring *, struct err *);

/* One position. log p = logit - log sum exp; all sums in double. */
struct verdict {
    double nll, nll_reference;  /* -log p(token), nat */
    double kl;                  /* sum of p_ref (log p_ref - log p), nat: at least 0 */
    double max_error;           /* largest |logit - reference's logit| */
    int32_t top, top_reference; /* the likeliest token; of equal ones the lowest */
};
/* false: a logit is NaN or infinite. */
bool verdict_of(const float *logits, const float *reference, int64_t vocab, int32_t token,
                struct verdict *);

#endif
