/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `decode`: one token for each of `batch` sequences that hold `context` tokens. */
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

enum { MOST_CHUNK = 256 }; /* rows of a step while contexts are filled */

struct decode_params {
    int64_t batch, context, steps;
    int input;
};
struct decode_self {
    struct run *run;
    struct decode_params params;
    struct model_config config;
    struct token_stream stream;
    struct model *model;
    struct session *session;
    int32_t *first;  /* (batch) the token that the first step feeds */
    int32_t *tokens; /* (steps, batch) sampled in the last execution */
    uint64_t device_hash;
    int64_t reused; /* contexts that an earlier visit had filled */
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct decode_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "Sequences that decode together."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "64",
     .min = 1,
     .max = 1 << 24,
     .unit = "tokens",
     .help = "Tokens that each sequence already holds in its cache."},
    {.key = "steps",
     .type = OPT_INT,
     PARAM(steps),
     .def = "1",
     .min = 1,
     .max = 65536,
     .unit = "steps",
     .help = "Decode steps of one execution; afterwards the lengths go back to `context`."},
    {.key = "input",
     .type = OPT_WORD,
     PARAM(input),
     .def = "random",
     .words = token_input_words,
     .unit = "",
     .help = TOKEN_INPUT_HELP},
    {0},
};
static const struct phase phases[] = {{"decode", "token"}, {0}};
static const struct mark marks[] = {{"token", 0}, {0}};
static const struct metric metrics[] = {
    {"kv_bytes_read", "byte",
     "KV bytes that one execution reads, by formula: resident tokens times bytes per token (E07, E09).",
     BETTER_NONE, true},
    {"kv_share", "", "KV bytes read over all bytes of the ledger.", BETTER_NONE, true},
    {"resident_tokens", "token",
     "Tokens in the cache of all sequences after an execution: batch (context + steps).",
     BETTER_NONE, true},
    {"token_entropy", "bit",
     "Entropy of the ids in the context of all sequences; log2 of their number if all differ.",
     BETTER_NONE, true},
    {0},
};

static struct session_spec spec_of(const struct decode_params *p) {
    return (struct session_spec){.cache = {.n_seq = (int32_t)p->batch,
                                           .capacity = (int32_t)(p->context + p->steps),
                                           .most_q = 1,
                                           .slack = (int32_t)p->steps},
                                 .most_rows = (int32_t)p->batch,
                                 .most_out = (int32_t)p->batch};
}

static int32_t chunk_of(const struct decode_params *p) {
    return p->context < MOST_CHUNK ? (int32_t)p->context : MOST_CHUNK;
}

/* One sequence alone: fills its context; with a chunk of 1 it is the plain path. */
static struct session_spec alone_spec(const struct decode_params *p, int32_t chunk) {
    return (struct session_spec){.cache = {.n_seq = 1,
                                           .capacity = (int32_t)(p->context + p->steps),
                                           .most_q = chunk,
                                           .slack = (int32_t)p->steps},
                                 .most_rows = chunk,
                                 .most_out = 1};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct decode_params *p = params_;
    (void)config;
    if (p->batch * (p->context + p->steps) > INT32_MAX)
        problem(problems, "workload.context", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^31 tokens", p->batch,
                p->context + p->steps);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct decode_params *p = params_;
    struct session_spec spec = spec_of(p), alone = alone_spec(p, chunk_of(p));
    int64_t filling[N_CLASSES] = {0};
    ledger_decode(&plan->work[0], config, p->batch, p->context, p->steps);
    plan->work[0].items = (double)(p->batch * p->steps);
    struct work one = {0}; /* sequence: its context, and decoding it alone */
    ledger_prompt(&one, config, 1, 0, p->context, chunk_of(p), false);
    ledger_decode(&one, config, 1, p->context, p->steps);
    ledger_add(&plan->prepare, &one, (double)p->batch);
    int64_t scales = 0;
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    session_bytes(config, &alone, filling);
    filling[MEM_STATE] += inputs_bytes(1, 1, chunk_of(p), 1);
    for (int c = 0; c < N_CLASSES; c++)
        plan->bytes[c] += filling[c]; /* lives beside the session while contexts are filled */
    plan->host_bytes = (int64_t)sizeof(int32_t) * p->batch * (p->steps + 1) +
                       cache_host_bytes(config, &spec.cache) + filling[MEM_KV] + filling[MEM_SCALE];
    plan->most_marks = p->batch * p->steps;
    plan->peak_bytes = 0;
    plan->binding_type = config->activation;
}

/* Pushes the context of one sequence through a session of its own and keeps its KV in `to`. */
static int fill_context(struct decode_self *self, struct session *alone, int32_t seq, void *to,
                        struct err *err) {
    const int32_t context = (int32_t)self->params.context, chunk = chunk_of(&self->params);
    struct inputs *inputs = NULL;
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)context), n = 0;
    tokens_fill(&self->stream, seq, 0, context, tokens);
    session_set_length(alone, 0, 0);
    int code = inputs_create(&inputs, alone, 1, chunk, 1, err);
    for (int32_t at = 0; !code && at < context; at += n) {
        n = context - at < chunk ? context - at : chunk;
        struct span span = {.seq = 0, .begin = at, .rows = n, .tokens = tokens + at};
        inputs_clear(inputs);
        code = inputs_add(inputs, &span, 1, err);
        if (code) break;
        inputs_upload(inputs);
        code = session_run(alone, inputs, 0, err);
    }
    if (!code) code = self->model->device->kind->sync(self->model->device, err);
    if (!code) cache_save(alone->cache, 0, context, to);
    inputs_close(&inputs);
    free(tokens);
    return code;
}

static int load_contexts(struct decode_self *self, struct err *err) {
    const int32_t context = (int32_t)self->params.context;
    const size_t bytes = cache_saved_bytes(self->session->cache, context);
    struct session *alone = NULL;
    int code = 0;
    for (int32_t s = 0; !code && s < (int32_t)self->params.batch; s++) {
        char key[120];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "context %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId32 " %" PRId32,
                 model_hash(&self->config), self->device_hash, tokens_key(&self->stream), context,
                 s);
        void *piece = plain_piece(self->run, key, bytes, &ready, &own);
        if (!ready && !alone) {
            struct session_spec spec = alone_spec(&self->params, chunk_of(&self->params));
            code = session_create(&alone, self->model, &self->config, &spec, err);
        }
        if (!code && !ready) code = fill_context(self, alone, s, piece, err);
        if (!code && !ready && !own) run_snapshot_ready(self->run, key);
        if (!code) code = cache_load(self->session->cache, s, context, piece, err);
        self->reused += ready;
        free(own);
    }
    session_close(&alone);
    return code;
}

static void reset(void *s) {
    struct decode_self *self = s;
    for (int32_t i = 0; i < (int32_t)self->params.batch; i++)
        session_set_length(self->session, i, (int32_t)self->params.context);
    session_start(self->session, self->first);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct decode_self *self = s;
    self->run = run;
    self->params = *(const struct decode_params *)params_;
    self->config = *config;
    self->stream = (struct token_stream){
        .seed = run_seed(run), .vocab = config->shape.vocab, .input = self->params.input};
    tokens_warn(&self->stream, run);
    const size_t batch = (size_t)self->params.batch;
    const struct session_spec spec = spec_of(&self->params);
    self->first = must_alloc(sizeof *self->first * batch);
    self->tokens = must_alloc(sizeof *self->tokens * batch * (size_t)self->params.steps);
    int code = run_model(run, &self->model, err);
    if (code) return code;
    self->device_hash = plain_device_hash(run_device(run));
    /* The fed token is the stream's next one: no head is needed while contexts are filled. */
    for (int32_t i = 0; i < (int32_t)batch; i++)
        tokens_fill(&self->stream, i, (int32_t)self->params.context, 1, &self->first[i]);
    code = session_create(&self->session, self->model, &self->config, &spec, err);
    if (!code) code = load_contexts(self, err);
    /* Filling may have told the device other bounds than the session's. */
    if (!code) code = session_plan(self->session, err);
    return code;
}

static void execute(void *s) {
    struct decode_self *self = s;
    struct session *session = self->session;
    struct step *step = &session->decode;
    struct err err = {0};
    const int32_t batch = step->n_seq;
    for (int32_t i = 0; i < (int32_t)self->params.steps; i++) {
        if (session_step(session, &err)) {
            run_fail(self->run, "%s", err.text);
            return;
        }
        session_next(session, step, self->tokens + (int64_t)i * batch);
        for (int32_t q = 0; q < batch; q++) run_mark(self->run, 0, q, 1);
    }
}

/* Decodes one sequence alone, from the KV that the session itself holds of its context. */
static int decode_alone(struct decode_self *self, struct session *alone, int32_t seq,
                        struct plain *plain, struct err *err) {
    const int32_t context = (int32_t)self->params.context;
    void *kv = must_alloc(cache_saved_bytes(self->session->cache, context));
    cache_save(self->session->cache, seq, context, kv);
    session_set_length(alone, 0, 0);
    int code = cache_load(alone->cache, 0, context, kv, err);
    free(kv);
    session_set_length(alone, 0, context);
    session_start(alone, &self->first[seq]);
    for (int32_t i = 0; !code && i < plain->steps; i++) {
        int32_t token;
        code = session_decode(alone, err);
        if (code) break;
        session_select(alone, &alone->decode);
        session_next(alone, &alone->decode, &token);
        plain_record(plain, alone, &alone->decode, 0, i, token, i + 1 == plain->steps);
        session_advance(alone, &alone->decode);
    }
    return code ? code : self->model->device->kind->sync(self->model->device, err);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct decode_self *self = s;
    struct device *device = self->model->device;
    const int32_t batch = (int32_t)self->params.batch, steps = (int32_t)self->params.steps;
    const int64_t vocab = self->config.shape.vocab;
    const size_t bytes = plain_bytes(device, steps, vocab);
    struct session *alone = NULL;
    int code = 0;
    plain_begin(w, device, "each sequence against decoding it alone");
    for (int32_t q = 0; !code && q < batch; q++) {
        char key[140];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "decode %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId32
                 " %" PRId32,
                 model_hash(&self->config), self->device_hash, tokens_key(&self->stream),
                 self->params.context, steps, q);
        struct plain *plain = plain_piece(self->run, key, bytes, &ready, &own);
        if (!ready) {
            struct session_spec spec = alone_spec(&self->params, 1);
            plain_clear(plain, device, steps, vocab);
            if (!alone) code = session_create(&alone, self->model, &self->config, &spec, err);
            if (!code) code = decode_alone(self, alone, q, plain, err);
            if (!code && !own) run_snapshot_ready(self->run, key);
        }
        if (!code)
            plain_compare(w, plain, self->session, &self->session->decode, q, self->tokens + q,
                          batch, (int32_t)self->params.context);
        free(own);
    }
    if (alone) {
        session_close(&alone);
        if (!code) code = session_plan(self->session, err);
    }
    return code;
}

static void report(void *s, struct values *values) {
    struct decode_self *self = s;
    const struct decode_params *p = &self->params;
    struct work work = {0};
    double all = 0;
    ledger_decode(&work, &self->config, p->batch, p->context, p->steps);
    for (int c = 0; c < N_CLASSES; c++) all += work.bytes[c];
    double written = (double)(p->batch * p->steps * model_kv_bytes_per_token(&self->config, NULL));
    values_set(values, "kv_bytes_read", work.bytes[MEM_KV] - written);
    values_set(values, "kv_share", (work.bytes[MEM_KV] - written) / all);
    values_set(values, "resident_tokens", (double)(p->batch * (p->context + p->steps)));
    values_set(values, "token_entropy",
               tokens_stream_entropy(&self->stream, (int32_t)p->batch, (int32_t)p->context));
}

static void dispose(void *s) {
    struct decode_self *self = s;
    session_close(&self->session);
    free(self->first);
    free(self->tokens);
}

const struct workload workload_decode = {
    .name = "decode",
    .brief = "decode steps of a batch over a filled cache: latency, throughput, the knee",
    .help =
        "Question: what does a decode step cost, and where does batching stop paying? (seeds "
        "E07, E19)\n\n"
        "Before the clock starts every sequence is really prefilled with `context` seeded "
        "tokens, different in each; that is done once a run and kept. Each execution starts "
        "from the same lengths.\n\n"
        "Inside the timing: `steps` times the forward pass of `batch` rows over all resident "
        "tokens, the head, greedy selection, and reading the sampled ids.\n\n"
        "Outside: filling, resetting lengths, the comparison.\n\n"
        "Phase: decode (item: token). Mark: token, one per sequence and step.\n\n"
        "Ledger of a step that finds S tokens in each sequence's cache. Bytes: every matrix "
        "once, whatever the batch; of the embedding one row a sequence; KV batch (S + 2) 2 "
        "n_layers n_kv d_h bytes(element): the new token is written, then all S + 1 are read; "
        "activations in their type, the residual stream and logits in f32, as they leave one op and enter the next. FLOPs: 2 a "
        "matrix element and row, and 4 n_layers n_q d_h (S + 1) a row for attention.\n\n"
        "Memory-bound until batch rows need more arithmetic than the weights' bytes allow: "
        "the knee lies near the ridge point (E26), and batch / latency ratio = throughput "
        "ratio holds exactly.\n\n"
        "Witness: tokens and logits of each sequence equal those of decoding it alone from "
        "the same cache: exact where the device computes rows independently of the batch, "
        "else close.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct decode_params),
    .self_size = sizeof(struct decode_self),
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
