/* SPDX-License-Identifier: Apache-2.0 */
/* Prefilling of contexts, and the pieces of the run's memory that keep them. */
#include "workloads/common/contexts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernels/device.h"
#include "workloads/common/plain.h"

int64_t contexts_bytes(const struct model_config *config, const struct session_spec *alone,
                       int64_t *bytes) {
    int64_t filling[N_CLASSES] = {0};
    session_bytes(config, alone, filling);
    filling[MEM_STATE] += inputs_bytes(1, 1, alone->most_rows, 1);
    for (int c = 0; c < N_CLASSES; c++) bytes[c] += filling[c];
    return filling[MEM_KV] + filling[MEM_SCALE];
}

/* Pushes the context of one sequence through a session of its own and keeps its KV in `to`. */
static int fill_context(const struct contexts *c, struct session *alone, int32_t seq, void *to,
                        struct err *err) {
    const int32_t chunk = alone->spec.most_rows;
    struct inputs *inputs = NULL;
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)c->tokens), n = 0;
    tokens_fill(c->stream, seq, 0, c->tokens, tokens);
    session_set_length(alone, 0, 0);
    int code = inputs_create(&inputs, alone, 1, chunk, 1, err);
    for (int32_t at = 0; !code && at < c->tokens; at += n) {
        n = c->tokens - at < chunk ? c->tokens - at : chunk;
        struct span span = {.seq = 0, .begin = at, .rows = n, .tokens = tokens + at};
        inputs_clear(inputs);
        code = inputs_add(inputs, &span, 1, err);
        if (code) break;
        inputs_upload(inputs);
        code = session_run(alone, inputs, 0, err);
    }
    struct device *device = alone->model->device;
    if (!code) code = device->kind->sync(device, err);
    if (!code) cache_save(alone->cache, 0, c->tokens, to);
    inputs_close(&inputs);
    free(tokens);
    return code;
}

int contexts_load(const struct contexts *c, struct err *err) {
    struct session *session = c->session, *alone = NULL;
    if (!c->tokens) return 0;
    const size_t bytes = cache_saved_bytes(session->cache, c->tokens);
    int code = 0;
    for (int32_t s = 0; !code && s < session->spec.cache.n_seq; s++) {
        char key[120];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "context %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId32 " %" PRId32,
                 model_hash(&session->config), c->device_hash, tokens_key(c->stream), c->tokens, s);
        void *piece = plain_piece(c->run, key, bytes, &ready, &own);
        if (!ready && !alone)
            code = session_create(&alone, session->model, &session->config, &c->alone, err);
        if (!code && !ready) code = fill_context(c, alone, s, piece, err);
        if (!code && !ready && !own) run_snapshot_ready(c->run, key);
        if (!code) code = cache_load(session->cache, s, c->tokens, piece, err);
        free(own);
    }
    session_close(&alone);
    /* Filling may have told the device other bounds than the session's. */
    return code ? code : session_plan(session, err);
}
