/* SPDX-License-Identifier: Apache-2.0 */
/* What speculation must not change: greedily, any token; where tokens are drawn, the logits that
   each sequence's last one was drawn from. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "kernels/device.h"
#include "workloads/common/plain.h"
#include "workloads/common/speculating.h"

static const int32_t *written(const struct speculating *s, int32_t q) {
    return speculating_text(s, q) + s->spec.prompt;
}

/* One sequence alone, at its prompt, from the KV that the target's session holds of it. */
static int begin_alone(struct speculating *s, struct session **alone, int32_t q, struct err *err) {
    const int32_t context = s->spec.prompt - 1;
    if (!*alone) {
        struct session_spec spec = speculating_alone(&s->spec);
        spec.cache.most_q = spec.most_rows = 1;
        const int code = session_create(alone, s->model, &s->config, &spec, err);
        if (code) return code;
    }
    session_set_length(*alone, 0, 0);
    if (!context) return 0;
    void *kv = must_alloc(cache_saved_bytes(s->target->cache, context));
    cache_save(s->target->cache, q, context, kv);
    const int code = cache_load((*alone)->cache, 0, context, kv, err);
    free(kv);
    session_set_length(*alone, 0, context);
    return code;
}

/* Feeds the prompt's last token and all that was written but the last: out (vocab), the logits. */
static int feed_alone(struct speculating *s, struct session *alone, int32_t q, float *out,
                      struct err *err) {
    struct device *device = s->model->device;
    const struct tensor logits = session_logits(alone, &alone->decode);
    int code = 0;
    for (int32_t i = 0; !code && i < s->spec.tokens; i++) {
        session_start(alone, written(s, q) + i - 1);
        code = session_decode(alone, err);
    }
    if (!code) code = device->kind->sync(device, err);
    if (!code) device->kind->download(device, out, logits.data, sizeof *out * (size_t)logits.cols);
    return code;
}

static void compare_logits(struct witness *w, const struct speculating *s, int32_t q,
                           const float *alone) {
    const int64_t vocab = s->config.shape.vocab;
    const float *final = s->final + q * vocab;
    const size_t bytes = sizeof *final * (size_t)vocab;
    const double tolerance = plain_tolerance(&s->config);
    w->compared += s->spec.tokens;
    w->hash = hash_bytes(final, bytes, w->hash);
    w->plain_hash = hash_bytes(alone, bytes, w->plain_hash);
    if (isnan(w->max_error)) w->max_error = 0;
    if (!memcmp(final, alone, bytes)) return;
    const int64_t last = s->spec.prompt + s->spec.tokens - 1;
    w->identical = false;
    if (w->first_difference < 0 || last < w->first_difference) w->first_difference = last;
    for (int64_t i = 0; i < vocab; i++) {
        const double error = fabs((double) final[i] - (double)alone[i]);
        if (!(error <= w->max_error)) w->max_error = error;
    }
    if (w->contract == CONTRACT_EXACT || !(w->max_error <= tolerance)) w->holds = false;
}

/* The key of what one sequence alone yields. */
static void name_piece(const struct speculating *s, int32_t q, char *key, size_t size) {
    const struct speculating_spec *p = &s->spec;
    const size_t bytes = sizeof(int32_t) * (size_t)p->tokens;
    const uint64_t fed = p->temperature > 0 ? hash_bytes(written(s, q), bytes, 1) : 0;
    snprintf(key, size,
             "speculative %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId32
             " %" PRId32 " %" PRId32,
             model_hash(&s->config), s->device_hash, tokens_key(&s->stream), fed, p->prompt,
             p->tokens, q);
}

static int one_drawn(struct speculating *s, struct session **alone, int32_t q, struct witness *w,
                     struct err *err) {
    char key[190];
    bool ready;
    void *own;
    name_piece(s, q, key, sizeof key);
    float *logits =
        plain_piece(s->run, key, sizeof *logits * (size_t)s->config.shape.vocab, &ready, &own);
    int code = ready ? 0 : begin_alone(s, alone, q, err);
    if (!code && !ready) code = feed_alone(s, *alone, q, logits, err);
    if (!code && !ready && !own) run_snapshot_ready(s->run, key);
    if (!code) compare_logits(w, s, q, logits);
    free(own);
    return code;
}

static int one_greedy(struct speculating *s, struct session **alone, int32_t q, struct witness *w,
                      struct err *err) {
    struct device *device = s->model->device;
    const int32_t tokens = s->spec.tokens;
    const int64_t vocab = s->config.shape.vocab;
    char key[190];
    bool ready;
    void *own;
    name_piece(s, q, key, sizeof key);
    struct plain *plain =
        plain_piece(s->run, key, plain_bytes(device, tokens, vocab), &ready, &own);
    int code = 0;
    if (!ready) {
        plain_clear(plain, device, tokens, vocab);
        code = begin_alone(s, alone, q, err);
        if (!code) code = plain_decode(plain, *alone, written(s, q)[-1], err);
        if (!code && !own) run_snapshot_ready(s->run, key);
    }
    if (!code) {
        plain_compare(w, plain, s->target, &s->last, s->last_row[q], written(s, q), 1,
                      s->spec.prompt);
        const int64_t compared = w->compared; /* the same tokens once more, of the other half */
        plain_compare(w, plain, s->target, &s->last, -1, s->plain + (int64_t)q * tokens, 1,
                      s->spec.prompt);
        w->compared = compared;
    }
    free(own);
    return code;
}

int speculating_witness(struct speculating *s, struct witness *w, struct err *err) {
    const bool drawn = s->spec.temperature > 0;
    struct session *alone = NULL;
    int code = 0;
    plain_begin(w, s->model->device,
                drawn ? "last logits of each sequence against feeding it the same tokens alone"
                      : "each sequence, both ways, against decoding it alone");
    for (int32_t q = 0; !code && q < s->spec.batch; q++)
        code = (drawn ? one_drawn : one_greedy)(s, &alone, q, w, err);
    if (alone) {
        session_close(&alone);
        if (!code) code = session_plan(s->target, err);
    }
    return code;
}
