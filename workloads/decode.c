/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `decode`: one token for each of `batch` sequences that hold `context` tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "workloads/common/decoding.h"
#include "workloads/common/plain.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

enum { MOST_CHUNK = 256 }; /* rows of a step while contexts are filled */

struct decode_params {
    int64_t batch, context, steps;
    int input;
};
struct decode_self {
    struct decode_params params;
    struct decoding decoding;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct decode_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    DECODING_OPTIONS(PARAM),
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

static int32_t chunk_of(const struct decode_params *p) {
    return p->context < MOST_CHUNK ? (int32_t)p->context : MOST_CHUNK;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct decode_params *p = params_;
    (void)config;
    decoding_check(p->batch, p->context + p->steps, problems);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct decode_params *p = params_;
    struct session_spec spec = decoding_spec(p->batch, p->context, p->steps),
                        alone = decoding_alone(p->context, p->steps, chunk_of(p));
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
    plan->binding_type = model_binding(config);
}

/* Pushes the context of one sequence through a session of its own and keeps its KV in `to`. */
static int fill_context(struct decoding *d, struct session *alone, int32_t seq, int32_t chunk,
                        void *to, struct err *err) {
    struct inputs *inputs = NULL;
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)d->context), n = 0;
    tokens_fill(&d->stream, seq, 0, d->context, tokens);
    session_set_length(alone, 0, 0);
    int code = inputs_create(&inputs, alone, 1, chunk, 1, err);
    for (int32_t at = 0; !code && at < d->context; at += n) {
        n = d->context - at < chunk ? d->context - at : chunk;
        struct span span = {.seq = 0, .begin = at, .rows = n, .tokens = tokens + at};
        inputs_clear(inputs);
        code = inputs_add(inputs, &span, 1, err);
        if (code) break;
        inputs_upload(inputs);
        code = session_run(alone, inputs, 0, err);
    }
    if (!code) code = d->model->device->kind->sync(d->model->device, err);
    if (!code) cache_save(alone->cache, 0, d->context, to);
    inputs_close(&inputs);
    free(tokens);
    return code;
}

static int load_contexts(struct decoding *d, int32_t chunk, struct err *err) {
    const size_t bytes = cache_saved_bytes(d->session->cache, d->context);
    struct session *alone = NULL;
    int code = 0;
    for (int32_t s = 0; !code && s < d->batch; s++) {
        char key[120];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "context %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId32 " %" PRId32,
                 model_hash(&d->config), d->device_hash, tokens_key(&d->stream), d->context, s);
        void *piece = plain_piece(d->run, key, bytes, &ready, &own);
        if (!ready && !alone) {
            struct session_spec spec = decoding_alone(d->context, d->steps, chunk);
            code = session_create(&alone, d->model, &d->config, &spec, err);
        }
        if (!code && !ready) code = fill_context(d, alone, s, chunk, piece, err);
        if (!code && !ready && !own) run_snapshot_ready(d->run, key);
        if (!code) code = cache_load(d->session->cache, s, d->context, piece, err);
        free(own);
    }
    session_close(&alone);
    /* Filling may have told the device other bounds than the session's. */
    return code ? code : session_plan(d->session, err);
}

static void reset(void *s) { decoding_reset(&((struct decode_self *)s)->decoding); }

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct decode_self *self = s;
    self->params = *(const struct decode_params *)params_;
    const struct decode_params *p = &self->params;
    self->decoding = (struct decoding){
        .run = run,
        .config = *config,
        .stream = {.seed = run_seed(run), .vocab = config->shape.vocab, .input = p->input},
        .batch = (int32_t)p->batch,
        .context = (int32_t)p->context,
        .steps = (int32_t)p->steps,
        .name = "decode"};
    int code = decoding_open(&self->decoding, err);
    return code ? code : load_contexts(&self->decoding, chunk_of(p), err);
}

static void execute(void *s) {
    struct decoding *d = &((struct decode_self *)s)->decoding;
    struct step *step = &d->session->decode;
    struct err err = {0};
    for (int32_t i = 0; i < d->steps; i++) {
        if (session_step(d->session, &err)) {
            run_fail(d->run, "%s", err.text);
            return;
        }
        session_next(d->session, step, d->tokens + (int64_t)i * d->batch);
        for (int32_t q = 0; q < d->batch; q++) run_mark(d->run, 0, q, 1);
    }
}

static int witness(void *s, struct witness *w, struct err *err) {
    return decoding_witness(&((struct decode_self *)s)->decoding, w, err);
}

static void report(void *s, struct values *values) {
    struct decode_self *self = s;
    const struct decode_params *p = &self->params;
    const struct decoding *d = &self->decoding;
    struct work work = {0};
    double all = 0;
    ledger_decode(&work, &d->config, p->batch, p->context, p->steps);
    for (int c = 0; c < N_CLASSES; c++) all += work.bytes[c];
    double written = (double)(p->batch * p->steps * model_kv_bytes_per_token(&d->config, NULL));
    values_set(values, "kv_bytes_read", work.bytes[MEM_KV] - written);
    values_set(values, "kv_share", (work.bytes[MEM_KV] - written) / all);
    values_set(values, "resident_tokens", (double)(p->batch * (p->context + p->steps)));
    values_set(values, "token_entropy",
               tokens_stream_entropy(&d->stream, (int32_t)p->batch, (int32_t)p->context));
}

static void dispose(void *s) { decoding_close(&((struct decode_self *)s)->decoding); }

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
