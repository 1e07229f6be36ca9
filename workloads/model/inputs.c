/* SPDX-License-Identifier: Apache-2.0 */
/* Steps made on the host beforehand, so that nothing is built or copied inside the timing. */
#include "workloads/model/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

struct inputs {
    struct session *session;
    struct step *steps, *host; /* (most_steps) arrays in device memory, and their copies */
    int32_t n_steps, most_steps;
    char *memory, *copy;
    size_t used, size;
    struct span *spans; /* (n_seq) of one step, for prompts */
};

size_t step_bytes(int32_t n_seq, int32_t n_row, int32_t n_out) {
    /* rng; token, pos, seq; q_begin, kv_len, alive; out_row, next */
    size_t words = 3 * (size_t)n_row + 3 * (size_t)n_seq + 1 + 2 * (size_t)n_out;
    return (sizeof(uint64_t) * (size_t)n_seq + sizeof(int32_t) * words + 7) / 8 * 8;
}

void step_place(struct step *step, void *memory, int32_t n_seq, int32_t n_row, int32_t n_out) {
    *step = (struct step){.n_seq = n_seq, .n_row = n_row, .n_out = n_out, .rng = memory};
    int32_t *at = (int32_t *)(step->rng + n_seq);
    int32_t **arrays[] = {&step->token,  &step->pos,   &step->seq,     &step->q_begin,
                          &step->kv_len, &step->alive, &step->out_row, &step->next};
    int32_t lengths[] = {n_row, n_row, n_row, n_seq + 1, n_seq, n_seq, n_out, n_out};
    for (int i = 0; i < 8; i++) {
        *arrays[i] = at;
        at += lengths[i];
    }
}

int attention_supported(struct device *device, const struct model_config *config, struct err *err) {
    const struct weight_format *format = model_weight_format(&config->params);
    const struct op_case op_case = {.weight = format->type,
                                    .scale = format->scale,
                                    .group = model_group(&config->params),
                                    .activation = config->activation,
                                    .kv = model_kv_type(&config->params),
                                    .paged = config->params.layout == 1,
                                    .window = config->params.window > 0};
    const char *reason = "";
    if (device->kind->supports(device, OP_ATTENTION, &op_case, &reason)) return 0;
    return err_set(err, ERR_UNSUPPORTED, "attention is not supported by %s: %s", device->kind->name,
                   reason);
}

struct step_bounds attention_bounds(const struct model_config *config, int64_t n_seq,
                                    int64_t tokens, int64_t context) {
    const struct model_shape *shape = &config->shape;
    return (struct step_bounds){.n_seq = (int32_t)n_seq,
                                .n_row = (int32_t)(n_seq * tokens),
                                .n_out = 1,
                                .most_q = (int32_t)tokens,
                                .most_kv = (int32_t)context,
                                .n_q = (int32_t)shape->n_q,
                                .n_kv = (int32_t)shape->n_kv,
                                .d_h = (int32_t)shape->d_h,
                                .d_model = (int32_t)shape->d_model,
                                .d_ff = (int32_t)shape->d_ff,
                                .vocab = 2,
                                .activation = config->activation};
}

int step_at_end(struct device *device, struct step *step, void **memory, int32_t n_seq,
                int32_t tokens, int32_t context, struct err *err) {
    const int32_t rows = n_seq * tokens;
    const size_t bytes = step_bytes(n_seq, rows, 0);
    struct step host;
    *memory = device_alloc(device, bytes, MEM_STATE, "step");
    if (!*memory) return err_set(err, ERR_MEMORY, "no memory for a step of %d rows", (int)rows);
    void *copy = must_alloc(bytes);
    step_place(step, *memory, n_seq, rows, 0);
    step_place(&host, copy, n_seq, rows, 0);
    step->most_q = tokens;
    step->most_kv = context;
    for (int32_t s = 0; s < n_seq; s++) {
        host.q_begin[s] = s * tokens;
        host.kv_len[s] = context;
        host.alive[s] = 1;
        for (int32_t i = 0; i < tokens; i++) {
            host.pos[host.q_begin[s] + i] = context - tokens + i;
            host.seq[host.q_begin[s] + i] = s;
        }
    }
    host.q_begin[n_seq] = rows;
    device->kind->upload(device, *memory, copy, bytes);
    free(copy);
    return 0;
}

int64_t inputs_bytes(int32_t n_seq, int32_t n_steps, int32_t n_rows, int32_t n_out) {
    /* Each step may be rounded up to 8 bytes; a single one is known exactly. */
    if (n_steps == 1) return (int64_t)step_bytes(n_seq, n_rows, n_out);
    return n_steps * (int64_t)step_bytes(n_seq, 0, 0) +
           (int64_t)sizeof(int32_t) * (3 * (int64_t)n_rows + 2 * (int64_t)n_out) +
           8 * (int64_t)n_steps;
}

int inputs_create(struct inputs **out, struct session *session, int32_t n_steps, int32_t n_rows,
                  int32_t n_out, struct err *err) {
    *out = NULL;
    struct inputs *inputs = must_alloc(sizeof *inputs);
    inputs->session = session;
    inputs->most_steps = n_steps;
    inputs->size = (size_t)inputs_bytes(session->spec.cache.n_seq, n_steps, n_rows, n_out);
    inputs->steps = must_alloc(sizeof *inputs->steps * (size_t)n_steps);
    inputs->host = must_alloc(sizeof *inputs->host * (size_t)n_steps);
    inputs->spans = must_alloc(sizeof *inputs->spans * (size_t)session->spec.cache.n_seq);
    inputs->copy = must_alloc(inputs->size);
    inputs->memory = device_alloc(session->model->device, inputs->size, MEM_STATE, "input steps");
    if (!inputs->memory) {
        err_set(err, ERR_MEMORY, "no memory for input steps (%zu bytes)", inputs->size);
        inputs_close(&inputs);
        return ERR_MEMORY;
    }
    *out = inputs;
    return 0;
}

void inputs_close(struct inputs **out) {
    struct inputs *inputs = *out;
    if (!inputs) return;
    device_free(inputs->session->model->device, inputs->memory);
    free(inputs->copy);
    free(inputs->steps);
    free(inputs->host);
    free(inputs->spans);
    free(inputs);
    *out = NULL;
}

void inputs_clear(struct inputs *inputs) {
    inputs->n_steps = 0;
    inputs->used = 0;
}

static void add_span(struct step *host, const struct span *span, int32_t row, int32_t *out) {
    for (int32_t i = 0; i < span->rows; i++) {
        host->token[row + i] = span->tokens[i];
        host->pos[row + i] = span->begin + i;
        host->seq[row + i] = span->seq;
        if (span->out == 2 || (span->out == 1 && i == span->rows - 1))
            host->out_row[(*out)++] = row + i;
    }
    host->kv_len[span->seq] = span->begin + span->rows;
}

int inputs_add(struct inputs *inputs, const struct span *spans, int32_t n, struct err *err) {
    const struct session_spec *spec = &inputs->session->spec;
    int32_t n_seq = spec->cache.n_seq, rows = 0, outs = 0, most_q = 0;
    for (int32_t i = 0; i < n; i++) {
        rows += spans[i].rows;
        outs += spans[i].out == 2 ? spans[i].rows : spans[i].out;
        if (spans[i].rows > most_q) most_q = spans[i].rows;
    }
    size_t bytes = step_bytes(n_seq, rows, outs);
    if (inputs->n_steps == inputs->most_steps || inputs->used + bytes > inputs->size ||
        rows > spec->most_rows || outs > spec->most_out || most_q > spec->cache.most_q)
        return err_set(
            err, ERR_INTERNAL,
            "a step of %d rows (%d out, %d of one sequence) does not fit what was planned",
            (int)rows, (int)outs, (int)most_q);
    struct step *step = &inputs->steps[inputs->n_steps], *host = &inputs->host[inputs->n_steps++];
    step_place(step, inputs->memory + inputs->used, n_seq, rows, outs);
    step_place(host, inputs->copy + inputs->used, n_seq, rows, outs);
    inputs->used += bytes;
    /* A sequence without rows keeps its length: that of the step before, or of the session. */
    const int32_t *before = inputs->n_steps > 1 ? host[-1].kv_len : inputs->session->len;
    memcpy(host->kv_len, before, sizeof *before * (size_t)n_seq);
    int32_t row = 0, out = 0, seq = 0;
    for (int32_t i = 0; i < n; i++) {
        while (seq <= spans[i].seq) host->q_begin[seq++] = row;
        add_span(host, &spans[i], row, &out);
        row += spans[i].rows;
    }
    while (seq <= n_seq) host->q_begin[seq++] = row;
    for (int32_t s = 0; s < n_seq; s++) {
        host->alive[s] = 1;
        host->rng[s] = 0;
        if (host->kv_len[s] > step->most_kv) step->most_kv = host->kv_len[s];
    }
    step->most_q = most_q;
    return 0;
}

int inputs_prompt(struct inputs *inputs, const int32_t *tokens, int32_t stride, int32_t begin,
                  int32_t rows, int32_t chunk, bool every_row, struct err *err) {
    int32_t n_seq = inputs->session->spec.cache.n_seq, n = 0;
    if (chunk <= 0 || chunk > rows) chunk = rows;
    for (int32_t at = 0; at < rows; at += n) {
        n = rows - at < chunk ? rows - at : chunk;
        for (int32_t s = 0; s < n_seq; s++)
            inputs->spans[s] = (struct span){.seq = s,
                                             .begin = begin + at,
                                             .rows = n,
                                             .tokens = tokens + (int64_t)s * stride + at,
                                             .out = every_row ? 2 : at + n == rows};
        int code = inputs_add(inputs, inputs->spans, n_seq, err);
        if (code) return code;
    }
    return 0;
}

void inputs_upload(struct inputs *inputs) {
    struct device *device = inputs->session->model->device;
    device->kind->upload(device, inputs->memory, inputs->copy, inputs->used);
}

int32_t inputs_steps(const struct inputs *inputs) { return inputs->n_steps; }

struct step *inputs_step(struct inputs *inputs, int32_t i) {
    return &inputs->steps[i];
}

const int32_t *inputs_kv_len(const struct inputs *inputs, int32_t i) {
    return inputs->host[i].kv_len;
}
