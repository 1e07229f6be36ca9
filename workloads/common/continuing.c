/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts one after the other in chunks, then all sequences a token a step; or what was written in
   chunks too. */
#include "workloads/common/continuing.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/ledger.h"

enum { CHUNK = 128 };

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

struct session_spec continuing_spec(int32_t n, int32_t prompt, int32_t tokens) {
    const int32_t capacity = prompt + tokens - 1, chunk = least(CHUNK, capacity);
    return (struct session_spec){
        .cache = {.n_seq = n, .capacity = capacity, .most_q = chunk, .slack = capacity},
        .most_rows = most(chunk, n),
        .most_out = most(least(chunk, tokens), n)};
}

void continuing_work(struct work *work, const struct model_config *config, int32_t n,
                     int32_t prompt, int32_t tokens) {
    struct work one = {0};
    ledger_prompt(&one, config, 1, 0, prompt, CHUNK, false);
    ledger_add(work, &one, n);
    if (tokens > 1) ledger_decode(work, config, n, prompt, tokens - 1);
    work->items += (double)n * tokens;
}

struct writer {
    const struct continuing *c;
    struct session *session;
    struct inputs *inputs;
};

static int open_writer(struct writer *w, const struct continuing *c, struct err *err) {
    int32_t prompt = 1;
    for (int32_t q = 0; q < c->n; q++) prompt = most(prompt, c->prompts[q].n);
    const struct session_spec spec = continuing_spec(c->n, prompt, c->tokens);
    *w = (struct writer){.c = c};
    int code = session_create(&w->session, c->model, c->config, &spec, err);
    return code ? code
                : inputs_create(&w->inputs, w->session, 1, spec.most_rows, spec.most_out, err);
}

static void close_writer(struct writer *w) {
    inputs_close(&w->inputs);
    session_close(&w->session);
}

/* A step of one sequence; ids, unless NULL, receives its choices at all rows (out 2) or the last.
 */
static int feed(struct writer *w, const struct span *span, int32_t *ids, struct err *err) {
    struct device *device = w->c->model->device;
    inputs_clear(w->inputs);
    int code = inputs_add(w->inputs, span, 1, err);
    if (code) return code;
    inputs_upload(w->inputs);
    code = session_run(w->session, w->inputs, 0, err);
    if (code || !ids) return code ? code : device->kind->sync(device, err);
    struct step *step = inputs_step(w->inputs, 0);
    session_select(w->session, step);
    session_next(w->session, step, ids);
    return device->kind->sync(device, err);
}

int continuing_write(const struct continuing *c, int32_t *out, struct err *err) {
    struct writer w;
    int32_t *ids = must_alloc(sizeof *ids * (size_t)c->n);
    int code = open_writer(&w, c, err);
    for (int32_t q = 0; !code && q < c->n; q++) {
        const struct prompt *p = &c->prompts[q];
        for (int32_t at = 0, rows; !code && at < p->n; at += rows) {
            rows = least(w.session->spec.cache.most_q, p->n - at);
            const bool last = at + rows == p->n;
            code = feed(
                &w,
                &(struct span){
                    .seq = q, .begin = at, .rows = rows, .tokens = p->tokens + at, .out = last},
                last ? &ids[q] : NULL, err);
        }
    }
    if (!code) session_start(w.session, ids);
    for (int32_t i = 0; !code && i < c->tokens; i++) {
        if (i) {
            code = session_step(w.session, err);
            if (!code) session_next(w.session, &w.session->decode, ids);
        }
        for (int32_t q = 0; q < c->n; q++) out[(int64_t)q * c->tokens + i] = ids[q];
    }
    if (!code) code = c->model->device->kind->sync(c->model->device, err);
    close_writer(&w);
    free(ids);
    return code;
}

int continuing_follow(const struct continuing *c, const int32_t *written, int32_t *choice,
                      struct err *err) {
    struct writer w;
    int code = open_writer(&w, c, err);
    for (int32_t q = 0; !code && q < c->n; q++) {
        const struct prompt *p = &c->prompts[q];
        const int32_t all = p->n + c->tokens - 1; /* nothing is asked behind the last one written */
        int32_t *text = must_alloc(sizeof *text * (size_t)all);
        memcpy(text, p->tokens, sizeof *text * (size_t)p->n);
        memcpy(text + p->n, written + (int64_t)q * c->tokens,
               sizeof *text * (size_t)(c->tokens - 1));
        for (int32_t at = 0, rows; !code && at < all; at += rows) {
            const bool asked = at >= p->n - 1;
            rows = least(w.session->spec.cache.most_q, (asked ? all : p->n - 1) - at);
            const struct span span = {
                .seq = q, .begin = at, .rows = rows, .tokens = text + at, .out = asked ? 2 : 0};
            code = feed(&w, &span, asked ? choice + (int64_t)q * c->tokens + at - (p->n - 1) : NULL,
                        err);
        }
        free(text);
    }
    close_writer(&w);
    return code;
}
