/* SPDX-License-Identifier: Apache-2.0 */
/* Windows through the ordinary forward pass; verdicts over whole rows of logits. */
#include "workloads/common/scoring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/common/kv_rounder.h"
#include "workloads/model/ledger.h"

/* ---- windows */

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

struct session_spec scoring_spec(const struct windows *w) {
    const int32_t rows = least(SCORING_CHUNK, w->window - 1);
    return (struct session_spec){.cache = {.n_seq = 1, .capacity = w->window - 1, .most_q = rows},
                                 .most_rows = rows,
                                 .most_out = least(SCORING_CHUNK, windows_scored(w))};
}

int64_t scoring_host_bytes(const struct windows *w, int64_t vocab) {
    return (int64_t)sizeof(float) * scoring_spec(w).most_out * vocab +
           (int64_t)sizeof(int32_t) * w->window;
}

/* Rows of the chunk that begins at position `at`: none holds both scored and unscored ones, so that
   the head is computed only where it is asked for. */
static int32_t chunk_rows(const struct windows *w, int32_t at) {
    const int32_t end = at < w->unscored ? w->unscored : w->window - 1;
    return least(SCORING_CHUNK, end - at);
}

void scoring_work(struct work *work, const struct model_config *config, const struct windows *w) {
    struct work one = {0};
    for (int32_t at = 0, rows; at < w->window - 1; at += rows) {
        rows = chunk_rows(w, at);
        ledger_step_alike(&one, config, 1, rows, at + rows, at < w->unscored ? 0 : rows);
    }
    ledger_add(work, &one, w->n);
    work->items += (double)windows_positions(w);
}

static int run_window(const struct scoring *s, struct session *session, struct inputs *inputs,
                      int32_t number, int32_t *tokens, float *logits, struct err *err) {
    const struct windows *w = s->windows;
    struct device *device = s->model->device;
    memcpy(tokens, s->tokens + (int64_t)number * w->stride, sizeof *tokens * (size_t)w->window);
    if (s->bos >= 0) tokens[0] = s->bos;
    session_set_length(session, 0, 0);
    int code = 0;
    for (int32_t at = 0, rows; !code && at < w->window - 1; at += rows) {
        rows = chunk_rows(w, at);
        const bool scored = at >= w->unscored;
        const struct span span = {
            .begin = at, .rows = rows, .tokens = tokens + at, .out = scored ? 2 : 0};
        inputs_clear(inputs);
        code = inputs_add(inputs, &span, 1, err);
        if (code) return code;
        inputs_upload(inputs);
        if (s->rounder) kv_rounder_step(s->rounder, at, rows);
        code = session_run(session, inputs, 0, err);
        if (!code) code = device->kind->sync(device, err);
        if (code || !scored) continue;
        const struct tensor t = session_logits(session, inputs_step(inputs, 0));
        device->kind->download(device, logits, t.data,
                               sizeof *logits * (size_t)rows * (size_t)t.cols);
        code = s->take(s->ctx, (int64_t)number * windows_scored(w) + at - w->unscored, rows, logits,
                       err);
    }
    return code;
}

int scoring_run(const struct scoring *s, struct err *err) {
    const struct session_spec spec = scoring_spec(s->windows);
    struct session *session = NULL;
    struct inputs *inputs = NULL;
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)s->windows->window);
    float *logits =
        must_alloc(sizeof *logits * (size_t)spec.most_out * (size_t)s->config->shape.vocab);
    int code = session_create(&session, s->model, s->config, &spec, err);
    if (!code) code = inputs_create(&inputs, session, 1, spec.most_rows, spec.most_out, err);
    if (!code && s->rounder) kv_rounder_attach(s->rounder, session);
    for (int32_t i = 0; !code && i < s->windows->n; i++)
        code = run_window(s, session, inputs, i, tokens, logits, err);
    inputs_close(&inputs);
    session_close(&session);
    free(tokens);
    free(logits);
    return code;
}

/* ---- verdicts */

/* log sum exp about the largest; false: something is no number. */
static bool log_sum(const float *x, int64_t n, int32_t *top, double *sum) {
    bool finite = true;
    *top = 0;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
        if (x[i] > x[*top]) *top = (int32_t)i;
    }
    if (!finite) return false;
    const double most = (double)x[*top];
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += exp((double)x[i] - most);
    *sum = most + log(s);
    return true;
}

bool verdict_of(const float *logits, const float *reference, int64_t vocab, int32_t token,
                struct verdict *v) {
    double sum, sum_reference, kl = 0, worst = 0;
    if (!log_sum(logits, vocab, &v->top, &sum) ||
        !log_sum(reference, vocab, &v->top_reference, &sum_reference))
        return false;
    for (int64_t i = 0; i < vocab; i++) {
        const double log_p = (double)reference[i] - sum_reference;
        kl += exp(log_p) * (log_p - ((double)logits[i] - sum));
        worst = fmax(worst, fabs((double)logits[i] - (double)reference[i]));
    }
    v->nll = sum - (double)logits[token];
    v->nll_reference = sum_reference - (double)reference[token];
    v->kl = fmax(kl, 0); /* Gibbs: what is below is rounding */
    v->max_error = worst;
    return true;
}
