/* SPDX-License-Identifier: Apache-2.0 */
/* Plain results kept for the run, and what a fast path is compared with. */
#include "workloads/common/plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/text.h"

bool plain_keeps_logits(const struct device *device) {
    return !(device->kind->has & DEV_BATCH_INVARIANT);
}

size_t plain_bytes(const struct device *device, int32_t steps, int64_t vocab) {
    return sizeof(struct plain) + (sizeof(float) + sizeof(int32_t)) * (size_t)steps +
           (plain_keeps_logits(device) ? sizeof(float) * (size_t)vocab : 0);
}

void plain_clear(struct plain *plain, const struct device *device, int32_t steps, int64_t vocab) {
    *plain =
        (struct plain){.steps = steps, .vocab = plain_keeps_logits(device) ? (int32_t)vocab : 0};
    for (int32_t i = 0; i < steps; i++) plain_tokens(plain)[i] = -1;
}

float *plain_margins(struct plain *plain) { return (float *)(plain + 1); }

int32_t *plain_tokens(struct plain *plain) {
    return (int32_t *)(plain_margins(plain) + plain->steps);
}

const float *plain_logits(struct plain *plain) {
    return (const float *)(plain_tokens(plain) + plain->steps);
}

/* malloc'ed */
static float *logits_row(struct session *s, const struct step *step, int32_t row) {
    struct tensor logits = session_logits(s, step);
    float *host = must_alloc(sizeof *host * (size_t)logits.cols);
    s->model->device->kind->download(s->model->device, host,
                                     (const float *)logits.data + row * logits.stride,
                                     sizeof *host * (size_t)logits.cols);
    return host;
}

static float margin_of(const float *logits, int64_t n) {
    float first = -INFINITY, second = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (logits[i] > first) {
            second = first;
            first = logits[i];
        } else if (logits[i] > second) {
            second = logits[i];
        }
    }
    return first - second;
}

void plain_record(struct plain *plain, struct session *s, const struct step *step, int32_t row,
                  int32_t i, int32_t token, bool last) {
    size_t n = (size_t)s->config.shape.vocab;
    plain_tokens(plain)[i] = token;
    plain_margins(plain)[i] = 0;
    if (!plain->vocab && !last) return; /* an exact contract needs no margins */
    float *logits = logits_row(s, step, row);
    plain_margins(plain)[i] = margin_of(logits, (int64_t)n);
    if (last) {
        plain->logits_hash = hash_bytes(logits, sizeof *logits * n, 0);
        if (plain->vocab) memcpy((float *)plain_logits(plain), logits, sizeof *logits * n);
    }
    free(logits);
}

int plain_decode(struct plain *plain, struct session *alone, int32_t first, struct err *err) {
    int code = 0;
    session_start(alone, &first);
    for (int32_t i = 0; !code && i < plain->steps; i++) {
        int32_t token;
        code = session_decode(alone, err);
        if (code) break;
        session_select(alone, &alone->decode);
        session_next(alone, &alone->decode, &token);
        plain_record(plain, alone, &alone->decode, 0, i, token, i + 1 == plain->steps);
        session_advance(alone, &alone->decode);
    }
    struct device *device = alone->model->device;
    return code ? code : device->kind->sync(device, err);
}

uint64_t plain_device_hash(struct device *device) {
    /* Where threads and pages lie may differ from worker to worker and touches no bit; a library
     * and its algorithms are known only once they ran. */
    static const char *const passed_over[] = {"device.pinning",      "device.huge_pages",
                                              "device.quota",        "device.numa",
                                              "device.gemm_library", "device.gemm_algorithms"};
    struct facts all = {0}, facts = {0};
    device->kind->describe(device, &all);
    facts_set(&facts, "device.kind", device->kind->name, "", "");
    for (size_t i = 0; i < all.n; i++) {
        bool skipped = false;
        for (size_t k = 0; k < sizeof passed_over / sizeof *passed_over; k++)
            skipped = skipped || !strcmp(all.items[i].key, passed_over[k]);
        if (!skipped) facts_set(&facts, all.items[i].key, all.items[i].value, "", "");
    }
    uint64_t hash = facts_hash(&facts);
    facts_free(&all);
    facts_free(&facts);
    return hash;
}

void *plain_piece(struct run *run, const char *key, size_t bytes, bool *ready, void **own) {
    void *piece = run_snapshot(run, key, bytes, ready);
    *own = NULL;
    if (piece) return piece;
    *ready = false;
    *own = must_alloc(bytes);
    return *own;
}

enum contract plain_contract(const struct device *device) {
    return device->kind->has & DEV_BATCH_INVARIANT ? CONTRACT_EXACT : CONTRACT_CLOSE;
}

double plain_tolerance(const struct model_config *config) {
    /* Where weights are not f32, a device may also round the activations that enter a product to 16
     * bits. */
    bool exact_inputs = model_weight_format(&config->params)->type == DT_F32 &&
                        model_kv_type(&config->params) == DT_F32;
    return exact_inputs ? 2e-3 : 0.1;
}

void plain_begin(struct witness *w, const struct device *device, const char *note) {
    *w = (struct witness){.contract = plain_contract(device),
                          .holds = true,
                          .identical = true,
                          .first_difference = -1,
                          .max_error = NAN};
    snprintf(w->note, sizeof w->note, "%s", note);
}

static void differs(struct witness *w, int64_t position) {
    w->identical = false;
    if (w->first_difference < 0 || position < w->first_difference) w->first_difference = position;
}

void plain_compare(struct witness *w, struct plain *plain, struct session *s,
                   const struct step *step, int32_t row, const int32_t *tokens, int32_t stride,
                   int32_t position) {
    const int32_t *expected = plain_tokens(plain);
    const double tolerance = plain_tolerance(&s->config);
    const size_t bytes = sizeof *expected * (size_t)plain->steps;
    int32_t *fast = must_alloc(bytes);
    bool forked = false; /* from here on other tokens are fed */
    int32_t made = 0;    /* steps until the sequence's end */
    for (int32_t i = 0; i < plain->steps; i++) {
        fast[i] = tokens[(int64_t)i * stride];
        if (forked || (fast[i] < 0 && expected[i] < 0)) continue;
        made = i + 1;
        w->compared++;
        if (fast[i] == expected[i]) continue;
        differs(w, position + i);
        forked = true;
        if (w->contract == CONTRACT_EXACT || (double)plain_margins(plain)[i] > tolerance)
            w->holds = false;
    }
    w->hash = hash_bytes(fast, bytes, w->hash);
    w->plain_hash = hash_bytes(expected, bytes, w->plain_hash);
    free(fast);
    if (row < 0) return;
    w->plain_hash = hash_bytes(&plain->logits_hash, sizeof plain->logits_hash, w->plain_hash);
    float *logits = logits_row(s, step, row);
    uint64_t hash = hash_bytes(logits, sizeof *logits * (size_t)s->config.shape.vocab, 0);
    w->hash = hash_bytes(&hash, sizeof hash, w->hash);
    if (!forked && hash != plain->logits_hash) {
        differs(w, position + made - 1);
        if (w->contract == CONTRACT_EXACT) w->holds = false;
        double most = 0;
        for (int32_t i = 0; i < plain->vocab; i++) {
            double error = fabs((double)logits[i] - (double)plain_logits(plain)[i]);
            if (!(error <= most) && !isnan(most)) most = error; /* a NaN stays */
        }
        if (plain->vocab && !(most <= tolerance)) w->holds = false;
        if (plain->vocab && !(most <= w->max_error)) w->max_error = most;
    } else if (!forked && isnan(w->max_error)) {
        w->max_error = 0;
    }
    free(logits);
}
