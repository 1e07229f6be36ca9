/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `prefill`: prompts pushed through the model, to the first token. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/plain.h"
#include "workloads/common/tokens.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

struct prefill_params {
    int64_t tokens, batch, chunk, plain_chunk;
    struct input_params in;
};
struct prefill_self {
    struct run *run;
    struct prefill_params params;
    struct model_config config;
    struct token_stream stream;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    int32_t *prompt; /* (batch, tokens) */
    int32_t *first;  /* (batch) the token that follows */
    uint64_t device_hash;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct prefill_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "128",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Tokens of each prompt."},
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "Prompts that are pushed through together."},
    {.key = "chunk",
     .type = OPT_INT,
     PARAM(chunk),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Tokens of a prompt per step; 0: all in one step."},
    {.key = "plain_chunk",
     .type = OPT_INT,
     .offset = offsetof(struct prefill_params, plain_chunk),
     .def = "16",
     .min = 1,
     .max = 65536,
     .unit = "tokens",
     .help =
         "Tokens per step of the plain path that the witness compares with: 1 is plainest and slowest."},
    INPUT_OPTIONS(struct prefill_params, in),
    {0},
};
static const struct phase phases[] = {{"prefill", "prompt token"}, {0}};
static const struct mark marks[] = {{"token", 0}, {0}};
static const struct metric metrics[] = {
    {"attention_share", "",
     "FLOPs of attention over all FLOPs of the ledger: where the quadratic term starts to show (E06).",
     BETTER_NONE, true},
    {"kv_bytes_written", "byte", "KV bytes that one execution appends, by formula (E09).",
     BETTER_NONE, true},
    {"token_entropy", "bit",
     "Entropy of the ids of all prompts; log2 of their number if all differ.", BETTER_NONE, true},
    {0},
};

static int32_t chunk_of(const struct prefill_params *p) {
    return (int32_t)(p->chunk > 0 && p->chunk < p->tokens ? p->chunk : p->tokens);
}

static int32_t n_chunks(int64_t tokens, int64_t chunk) {
    return (int32_t)((tokens + chunk - 1) / chunk);
}

static struct session_spec spec_of(const struct prefill_params *p, int64_t batch, int64_t chunk) {
    return (struct session_spec){.cache = {.n_seq = (int32_t)batch,
                                           .capacity = (int32_t)p->tokens,
                                           .most_q = (int32_t)chunk},
                                 .most_rows = (int32_t)(batch * chunk),
                                 .most_out = (int32_t)batch};
}

static int64_t plain_chunk_of(const struct prefill_params *p) {
    return p->plain_chunk < p->tokens ? p->plain_chunk : p->tokens;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct prefill_params *p = params_;
    input_check(&p->in, config, problems);
    if (p->batch * p->tokens > INT32_MAX)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " prompts of %" PRId64 " tokens are more than 2^31 rows", p->batch,
                p->tokens);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct prefill_params *p = params_;
    struct session_spec spec = spec_of(p, p->batch, chunk_of(p));
    int64_t scales = 0;
    ledger_prompt(&plan->work[0], config, p->batch, 0, p->tokens, chunk_of(p), false);
    plan->work[0].items = (double)(p->batch * p->tokens);
    struct work one = {0}; /* prompt alone */
    ledger_prompt(&one, config, 1, 0, p->tokens, plain_chunk_of(p), false);
    ledger_add(&plan->prepare, &one, (double)p->batch);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    const int64_t input = inputs_bytes((int32_t)p->batch, n_chunks(p->tokens, chunk_of(p)),
                                       (int32_t)(p->batch * p->tokens), (int32_t)p->batch);
    plan->bytes[MEM_STATE] += input;
    plan->host_bytes = (int64_t)sizeof(int32_t) * p->batch * (p->tokens + 1) + input +
                       cache_host_bytes(config, &spec.cache);
    plan->most_marks = p->batch;
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
}

static void reset(void *s) {
    struct prefill_self *self = s;
    for (int32_t i = 0; i < (int32_t)self->params.batch; i++)
        session_set_length(self->session, i, 0);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct prefill_self *self = s;
    self->run = run;
    self->params = *(const struct prefill_params *)params_;
    self->config = *config;
    const struct prefill_params *p = &self->params;
    const struct session_spec spec = spec_of(p, p->batch, chunk_of(p));
    self->prompt = must_alloc(sizeof *self->prompt * (size_t)(p->batch * p->tokens));
    self->first = must_alloc(sizeof *self->first * (size_t)p->batch);
    int code = tokens_open(&self->stream, &p->in, config, run, err);
    if (code) return code;
    tokens_warn(&self->stream, p->tokens, run);
    for (int32_t q = 0; q < (int32_t)p->batch; q++)
        tokens_fill(&self->stream, q, 0, (int32_t)p->tokens, self->prompt + q * p->tokens);
    code = run_model(run, &self->model, err);
    if (code) return code;
    self->device_hash = plain_device_hash(run_device(run));
    code = session_create(&self->session, self->model, &self->config, &spec, err);
    if (!code)
        code = inputs_create(&self->inputs, self->session, n_chunks(p->tokens, chunk_of(p)),
                             (int32_t)(p->batch * p->tokens), (int32_t)p->batch, err);
    if (!code)
        code = inputs_prompt(self->inputs, self->prompt, (int32_t)p->tokens, 0, (int32_t)p->tokens,
                             chunk_of(p), false, err);
    if (!code) inputs_upload(self->inputs);
    return code;
}

static void execute(void *s) {
    struct prefill_self *self = s;
    struct err err = {0};
    const int32_t n = inputs_steps(self->inputs);
    struct step *last = inputs_step(self->inputs, n - 1);
    for (int32_t i = 0; i < n; i++) {
        if (session_run(self->session, self->inputs, i, &err)) {
            run_fail(self->run, "%s", err.text);
            return;
        }
    }
    session_select(self->session, last);
    session_next(self->session, last, self->first);
    for (int32_t q = 0; q < (int32_t)self->params.batch; q++) run_mark(self->run, 0, q, 1);
}

/* One prompt alone, in small chunks. */
static int prefill_alone(struct prefill_self *self, struct session *alone, int32_t seq,
                         struct plain *plain, struct err *err) {
    const struct prefill_params *p = &self->params;
    const int32_t chunk = (int32_t)plain_chunk_of(p), n = n_chunks(p->tokens, chunk);
    struct inputs *inputs = NULL;
    session_set_length(alone, 0, 0);
    int code = inputs_create(&inputs, alone, n, (int32_t)p->tokens, 1, err);
    if (!code)
        code = inputs_prompt(inputs, self->prompt + seq * p->tokens, (int32_t)p->tokens, 0,
                             (int32_t)p->tokens, chunk, false, err);
    if (!code) inputs_upload(inputs);
    for (int32_t i = 0; !code && i < n; i++) code = session_run(alone, inputs, i, err);
    if (!code) {
        int32_t token;
        struct step *last = inputs_step(inputs, n - 1);
        session_select(alone, last);
        session_next(alone, last, &token);
        plain_record(plain, alone, last, 0, 0, token, true);
        code = self->model->device->kind->sync(self->model->device, err);
    }
    inputs_close(&inputs);
    return code;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct prefill_self *self = s;
    const struct prefill_params *p = &self->params;
    struct device *device = self->model->device;
    struct step *last = inputs_step(self->inputs, inputs_steps(self->inputs) - 1);
    const size_t bytes = plain_bytes(device, 1, self->config.shape.vocab);
    struct session *alone = NULL;
    int code = 0;
    char note[100];
    snprintf(note, sizeof note, "each prompt against pushing it through alone, %d tokens a step",
             (int)plain_chunk_of(p));
    plain_begin(w, device, note);
    for (int32_t q = 0; !code && q < (int32_t)p->batch; q++) {
        char key[140];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "prefill %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId64
                 " %" PRId32,
                 model_hash(&self->config), self->device_hash, tokens_key(&self->stream), p->tokens,
                 plain_chunk_of(p), q);
        struct plain *plain = plain_piece(self->run, key, bytes, &ready, &own);
        if (!ready) {
            struct session_spec spec = spec_of(p, 1, plain_chunk_of(p));
            plain_clear(plain, device, 1, self->config.shape.vocab);
            if (!alone) code = session_create(&alone, self->model, &self->config, &spec, err);
            if (!code) code = prefill_alone(self, alone, q, plain, err);
            if (!code && !own) run_snapshot_ready(self->run, key);
        }
        if (!code)
            plain_compare(w, plain, self->session, last, q, self->first + q, 1, (int32_t)p->tokens);
        free(own);
    }
    if (alone) {
        session_close(&alone);
        if (!code) code = session_plan(self->session, err);
    }
    return code;
}

static void report(void *s, struct values *values) {
    struct prefill_self *self = s;
    const struct prefill_params *p = &self->params;
    const struct model_shape *shape = &self->config.shape;
    struct work work = {0};
    ledger_prompt(&work, &self->config, p->batch, 0, p->tokens, chunk_of(p), false);
    double pairs =
        (double)p->batch * (double)ledger_pairs(p->tokens, p->tokens, self->config.params.window);
    values_set(values, "attention_share",
               (double)shape->n_layers * 4 * (double)(shape->n_q * shape->d_h) * pairs /
                   work.flops);
    values_set(values, "kv_bytes_written",
               (double)(p->batch * p->tokens * model_kv_bytes_per_token(&self->config, NULL)));
    values_set(values, "token_entropy",
               tokens_stream_entropy(&self->stream, (int32_t)p->batch, (int32_t)p->tokens));
}

static void dispose(void *s) {
    struct prefill_self *self = s;
    inputs_close(&self->inputs);
    session_close(&self->session);
    tokens_close(&self->stream);
    free(self->prompt);
    free(self->first);
}

const struct workload workload_prefill = {
    .name = "prefill",
    .brief = "prompts to the first token: time to first token, tokens per second while reading",
    .help = "Question: what does reading a prompt cost, in all and per token? (seeds E05, E06, "
            "E08)\n\n"
            "Inside the timing: the forward pass over `tokens` rows of each of `batch` prompts "
            "with an empty cache, in one step or in chunks, the head on the last row of each, "
            "greedy selection, and reading the first ids.\n\n"
            "Outside: making the prompts (`input`: different in each sequence), emptying the "
            "cache, the comparison.\n\n"
            "Phase: prefill (item: prompt token). Mark: token, the first of each sequence: its "
            "time is TTFT without queueing.\n\n"
            "Ledger: 2 FLOPs a weight and row (the head's only for last rows), 4 n_q d_h a causal "
            "pair (row, position) and layer; weights once a step, KV appended and read once a "
            "step.\n\n"
            "Time per token falls with the prompt until arithmetic binds, and rises where "
            "attention's quadratic term shows.\n\n"
            "Witness: first token and its logits equal those of the prompt pushed through alone "
            "in chunks of `plain_chunk`: exact where the device computes rows independently of "
            "each other, else close.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct prefill_params),
    .self_size = sizeof(struct prefill_self),
    .metrics = metrics,
    .phases = phases,
    .marks = marks,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
