/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `decode`: one token for each of `batch` sequences that hold `context` tokens. */
#include "base/err.h"
#include "base/option.h"
#include "workloads/common/contexts.h"
#include "workloads/common/decoding.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

struct decode_params {
    int64_t batch, context, steps;
    struct input_params in;
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
    INPUT_OPTIONS(struct decode_params, in),
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

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct decode_params *p = params_;
    input_check(&p->in, config, problems);
    decoding_check(p->batch, p->context + p->steps, problems);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct decode_params *p = params_;
    struct session_spec spec = decoding_spec(p->batch, p->context, p->steps),
                        alone = decoding_alone(p->context, p->steps, context_chunk(p->context));
    ledger_decode(&plan->work[0], config, p->batch, p->context, p->steps);
    plan->work[0].items = (double)(p->batch * p->steps);
    struct work one = {0}; /* sequence: its context, and decoding it alone */
    ledger_prompt(&one, config, 1, 0, p->context, context_chunk(p->context), false);
    ledger_decode(&one, config, 1, p->context, p->steps);
    ledger_add(&plan->prepare, &one, (double)p->batch);
    int64_t scales = 0;
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    plan->host_bytes = (int64_t)sizeof(int32_t) * p->batch * (p->steps + 1) +
                       cache_host_bytes(config, &spec.cache) +
                       contexts_bytes(config, &alone, plan->bytes);
    plan->most_marks = p->batch * p->steps;
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
}

static void reset(void *s) { decoding_reset(&((struct decode_self *)s)->decoding); }

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct decode_self *self = s;
    self->params = *(const struct decode_params *)params_;
    const struct decode_params *p = &self->params;
    self->decoding = (struct decoding){.run = run,
                                       .config = *config,
                                       .in = p->in,
                                       .batch = (int32_t)p->batch,
                                       .context = (int32_t)p->context,
                                       .steps = (int32_t)p->steps,
                                       .name = "decode"};
    int code = decoding_open(&self->decoding, err);
    if (code) return code;
    const struct decoding *d = &self->decoding;
    return contexts_load(
        &(struct contexts){run, d->session, &d->stream, d->device_hash, d->context,
                           decoding_alone(p->context, p->steps, context_chunk(p->context))},
        err);
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
        "Before the clock starts every sequence is really prefilled with `context` tokens, "
        "different in each: seeded ones, or those of a text where the model is a file that reads it "
        "(`input`); that is done once a run and kept. Each execution starts from the same "
        "lengths.\n\n"
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
