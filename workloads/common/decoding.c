/* SPDX-License-Identifier: Apache-2.0 */
/* A session that decodes, and the plain path of each of its sequences. */
#include "workloads/common/decoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "workloads/common/plain.h"

void decoding_check(int64_t batch, int64_t tokens, struct problems *problems) {
    if (batch * tokens > INT32_MAX)
        problem(problems, "workload.context", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^31 tokens", batch,
                tokens);
}

struct session_spec decoding_spec(int64_t batch, int64_t context, int64_t steps) {
    return (struct session_spec){.cache = {.n_seq = (int32_t)batch,
                                           .capacity = (int32_t)(context + steps),
                                           .most_q = 1,
                                           .slack = (int32_t)steps},
                                 .most_rows = (int32_t)batch,
                                 .most_out = (int32_t)batch};
}

struct session_spec decoding_alone(int64_t context, int64_t steps, int64_t chunk) {
    return (struct session_spec){.cache = {.n_seq = 1,
                                           .capacity = (int32_t)(context + steps),
                                           .most_q = (int32_t)chunk,
                                           .slack = (int32_t)steps},
                                 .most_rows = (int32_t)chunk,
                                 .most_out = 1};
}

int decoding_open(struct decoding *d, struct err *err) {
    const struct session_spec spec = decoding_spec(d->batch, d->context, d->steps);
    d->first = must_alloc(sizeof *d->first * (size_t)d->batch);
    d->tokens = must_alloc(sizeof *d->tokens * (size_t)d->batch * (size_t)d->steps);
    int code = tokens_open(&d->stream, &d->in, &d->config, d->run, err);
    if (!code) code = run_model(d->run, &d->model, err);
    if (code) return code;
    tokens_warn(&d->stream, (int64_t)d->context + 1, d->run);
    d->device_hash = plain_device_hash(run_device(d->run));
    for (int32_t i = 0; i < d->batch; i++) tokens_fill(&d->stream, i, d->context, 1, &d->first[i]);
    return session_create(&d->session, d->model, &d->config, &spec, err);
}

void decoding_close(struct decoding *d) {
    session_close(&d->session);
    tokens_close(&d->stream);
    free(d->first);
    free(d->tokens);
}

void decoding_reset(struct decoding *d) {
    for (int32_t i = 0; i < d->batch; i++) session_set_length(d->session, i, d->context);
    session_start(d->session, d->first);
}

static int decode_alone(struct decoding *d, struct session *alone, int32_t seq, struct plain *plain,
                        struct err *err) {
    void *kv = must_alloc(cache_saved_bytes(d->session->cache, d->context));
    cache_save(d->session->cache, seq, d->context, kv);
    session_set_length(alone, 0, 0);
    int code = cache_load(alone->cache, 0, d->context, kv, err);
    free(kv);
    session_set_length(alone, 0, d->context);
    return code ? code : plain_decode(plain, alone, d->first[seq], err);
}

int decoding_witness(struct decoding *d, struct witness *w, struct err *err) {
    struct device *device = d->model->device;
    const int64_t vocab = d->config.shape.vocab;
    const size_t bytes = plain_bytes(device, d->steps, vocab);
    struct session *alone = NULL;
    int code = 0;
    plain_begin(w, device, "each sequence against decoding it alone");
    for (int32_t q = 0; !code && q < d->batch; q++) {
        char key[180];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "%s %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId32 " %" PRId32 " %" PRId32,
                 d->name, model_hash(&d->config), d->device_hash, tokens_key(&d->stream),
                 d->context, d->steps, q);
        struct plain *plain = plain_piece(d->run, key, bytes, &ready, &own);
        if (!ready) {
            const struct session_spec spec = decoding_alone(d->context, d->steps, 1);
            plain_clear(plain, device, d->steps, vocab);
            if (!alone) code = session_create(&alone, d->model, &d->config, &spec, err);
            if (!code) code = decode_alone(d, alone, q, plain, err);
            if (!code && !own) run_snapshot_ready(d->run, key);
        }
        if (!code)
            plain_compare(w, plain, d->session, &d->session->decode, q, d->tokens + q, d->batch,
                          d->context);
        free(own);
    }
    if (alone) {
        session_close(&alone);
        if (!code) code = session_plan(d->session, err);
    }
    return code;
}
