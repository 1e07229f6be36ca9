/* SPDX-License-Identifier: Apache-2.0 */
/* The plain path of a trace: each request alone, its prompt in one step, then token by token. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "kernels/device.h"
#include "workloads/common/engine.h"
#include "workloads/common/plain.h"

static size_t piece_bytes(const struct engine *e, int32_t request) {
    const size_t bytes =
        plain_bytes(e->model->device, e->trace[request].output, e->config.shape.vocab);
    return (bytes + 7) / 8 * 8;
}

static int run_alone(struct engine *e, struct session *alone, struct inputs *inputs,
                     int32_t request, struct plain *plain, struct err *err) {
    const struct request *r = &e->trace[request];
    int32_t token;
    struct span span = {.rows = r->prompt, .tokens = e->text + e->text_at[request], .out = 1};
    session_set_length(alone, 0, 0);
    inputs_clear(inputs);
    int code = inputs_add(inputs, &span, 1, err);
    inputs_upload(inputs);
    if (!code) code = session_run(alone, inputs, 0, err);
    struct step *step = inputs_step(inputs, 0);
    for (int32_t i = 0; !code && i < r->output; i++) {
        session_select(alone, step);
        session_next(alone, step, &token);
        plain_record(plain, alone, step, 0, i, token, i + 1 == r->output);
        if (i + 1 == r->output) break;
        session_start(alone, &token);
        code = session_decode(alone, err);
        step = &alone->decode;
    }
    return code ? code : e->model->device->kind->sync(e->model->device, err);
}

static int run_each_alone(struct engine *e, char *at, struct err *err) {
    int32_t prompt = 1, most = 1;
    for (int32_t i = 0; i < e->n; i++) {
        if (e->trace[i].prompt > prompt) prompt = e->trace[i].prompt;
        if (request_most(&e->trace[i]) > most) most = request_most(&e->trace[i]);
    }
    const struct session_spec spec = {.cache = {.n_seq = 1, .capacity = most, .most_q = prompt},
                                      .most_rows = prompt,
                                      .most_out = 1};
    struct session *alone = NULL;
    struct inputs *inputs = NULL;
    int code = session_create(&alone, e->model, &e->config, &spec, err);
    if (!code) code = inputs_create(&inputs, alone, 1, prompt, 1, err);
    for (int32_t i = 0; !code && i < e->n; i++) {
        struct plain *plain = (struct plain *)(void *)at;
        plain_clear(plain, e->model->device, e->trace[i].output, e->config.shape.vocab);
        code = run_alone(e, alone, inputs, i, plain, err);
        at += piece_bytes(e, i);
    }
    inputs_close(&inputs);
    session_close(&alone);
    return code ? code : session_plan(e->session, err);
}

/* Prompts and outputs decide what comes out; arrivals do not. */
static uint64_t lengths_hash(const struct engine *e) {
    uint64_t hash = 0;
    for (int32_t i = 0; i < e->n; i++) {
        const int32_t lengths[2] = {e->trace[i].prompt, e->trace[i].output};
        hash = hash_bytes(lengths, sizeof lengths, hash);
    }
    return hash;
}

int engine_witness(struct engine *e, struct witness *w, struct err *err) {
    struct device *device = e->model->device;
    const struct served *served = scheduler_served(e->scheduler);
    size_t bytes = 0;
    char key[180];
    bool ready;
    void *own;
    plain_begin(w, device, "each request against running it alone");
    for (int32_t i = 0; i < e->n; i++) bytes += piece_bytes(e, i);
    snprintf(key, sizeof key, "serving %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64,
             model_hash(&e->config), e->device_hash, tokens_key(&e->stream), lengths_hash(e));
    char *at = plain_piece(e->run, key, bytes, &ready, &own);
    int code = ready ? 0 : run_each_alone(e, at, err);
    if (!code && !ready && !own) run_snapshot_ready(e->run, key);
    /* Where arrivals are spread, the clock decides who is in the last step. */
    const bool fixed = e->n && !e->trace[e->n - 1].arrival;
    for (int32_t i = 0; !code && i < e->n; i++) {
        const int32_t *written = e->text + e->text_at[i] + e->trace[i].prompt;
        if (!served[i].refused)
            plain_compare(w, (struct plain *)(void *)at, e->session, &e->last,
                          fixed ? e->last_row[i] : -1, written, 1, e->trace[i].prompt);
        at += piece_bytes(e, i);
    }
    free(own);
    return code;
}
