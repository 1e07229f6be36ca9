/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `sharing`: several continuations of one prompt, in shared blocks or in copies. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "workloads/common/plain.h"
#include "workloads/common/tokens.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

enum { MODE_SHARED, MODE_SEPARATE };
enum { PHASE_PREFILL, PHASE_DECODE };

struct sharing_params {
    int64_t prompt, samples, tokens;
    int mode;
};
struct sharing_self {
    struct run *run;
    struct sharing_params params;
    struct model_config config;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    struct token_stream stream;
    int32_t *prompt; /* (samples, prompt) the same for each */
    int32_t *first;  /* (samples) what tells the branches apart: each one's first token */
    int32_t *tokens; /* (tokens, samples) sampled in the last execution */
    struct counted { /* in the last execution */
        int32_t after_prompt, refs, peak, left;
        int64_t copies;
    } counted;
    uint64_t device_hash;
};

static const char *const mode_words[] = {"shared", "separate", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct sharing_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "prompt",
     .type = OPT_INT,
     PARAM(prompt),
     .def = "40",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help = "Tokens that all branches have in common."},
    {.key = "samples",
     .type = OPT_INT,
     PARAM(samples),
     .def = "4",
     .min = 1,
     .max = 4096,
     .unit = "branches",
     .help = "Continuations of the prompt."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "20",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help =
         "Tokens that each branch adds to its cache: the first is its own, the others are what it "
         "sampled."},
    {.key = "mode",
     .type = OPT_WORD,
     PARAM(mode),
     .def = "shared",
     .words = mode_words,
     .unit = "",
     .help =
         "shared: the prompt is read once and its blocks are named by all; separate: each branch "
         "reads it and keeps it."},
    {0},
};
static const struct phase phases[] = {{"prefill", "prompt token"}, {"decode", "token"}, {0}};
static const struct mark marks[] = {{"token", PHASE_DECODE}, {0}};
static const struct metric metrics[] = {
    {"blocks", "block", "Blocks in use at most (E24).", BETTER_LOWER, true},
    {"blocks_after_prompt", "block", "Blocks in use before any branch writes.", BETTER_LOWER, true},
    {"prompt_refs", "branch", "Branches that name the prompt's first block at that time.",
     BETTER_NONE, true},
    {"copies", "block", "Blocks copied because a branch wrote into one that others read.",
     BETTER_LOWER, true},
    {"blocks_left", "block", "Blocks in use when all branches have gone: must be 0.", BETTER_LOWER,
     true},
    {"cache_bytes", "byte", "blocks times the bytes of one, in all layers.", BETTER_LOWER, true},
    {"prompt_rows", "row", "Rows fed to read the prompt.", BETTER_LOWER, true},
    {0},
};

static struct session_spec spec_of(const struct sharing_params *p) {
    const int64_t readers = p->mode == MODE_SHARED ? 1 : p->samples;
    const int64_t rows = readers * p->prompt;
    return (struct session_spec){.cache = {.n_seq = (int32_t)p->samples,
                                           .capacity = (int32_t)(p->prompt + p->tokens),
                                           .most_q = (int32_t)p->prompt},
                                 .most_rows = (int32_t)(rows > p->samples ? rows : p->samples),
                                 .most_out = (int32_t)p->samples};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct sharing_params *p = params_;
    if (config->params.layout != 1)
        problem(problems, "model.layout", NULL,
                "only blocks can be shared: model.layout = \"paged\"");
    if (p->samples * (p->prompt + p->tokens) > INT32_MAX / 4)
        problem(problems, "workload.samples", "workload.prompt",
                "%" PRId64 " branches of %" PRId64 " tokens are more than 2^29 tokens", p->samples,
                p->prompt + p->tokens);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct sharing_params *p = params_;
    const struct session_spec spec = spec_of(p);
    const int64_t readers = p->mode == MODE_SHARED ? 1 : p->samples;
    int64_t scales = 0;
    ledger_prompt(&plan->work[PHASE_PREFILL], config, readers, 0, p->prompt, 0, false);
    ledger_decode(&plan->work[PHASE_DECODE], config, p->samples, p->prompt, p->tokens);
    plan->work[PHASE_PREFILL].items = (double)(readers * p->prompt);
    plan->work[PHASE_DECODE].items = (double)(p->samples * p->tokens);
    ledger_prompt(&plan->prepare, config, p->samples, 0, p->prompt, 0, false);
    for (int64_t i = 0; i < p->samples; i++)
        ledger_decode(&plan->prepare, config, 1, p->prompt, p->tokens);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    plan->bytes[MEM_STATE] += inputs_bytes(spec.cache.n_seq, 1, spec.most_rows, spec.most_out);
    plan->host_bytes = (int64_t)sizeof(int32_t) * p->samples * (p->prompt + p->tokens + 1) +
                       cache_host_bytes(config, &spec.cache) +
                       inputs_bytes(spec.cache.n_seq, 1, spec.most_rows, spec.most_out);
    plan->most_marks = p->samples * p->tokens + 2;
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
}

/* The prompt of `readers` sequences, as one step. */
static int add_prompts(struct inputs *inputs, const struct sharing_self *self, int32_t readers,
                       struct err *err) {
    const int32_t prompt = (int32_t)self->params.prompt;
    struct span *spans = must_alloc(sizeof *spans * (size_t)readers);
    for (int32_t q = 0; q < readers; q++)
        spans[q] = (struct span){
            .seq = q, .rows = prompt, .tokens = self->prompt + (int64_t)q * prompt, .out = 1};
    inputs_clear(inputs);
    const int code = inputs_add(inputs, spans, readers, err);
    if (!code) inputs_upload(inputs);
    free(spans);
    return code;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct sharing_self *self = s;
    self->run = run;
    self->params = *(const struct sharing_params *)params_;
    self->config = *config;
    const struct sharing_params *p = &self->params;
    const struct session_spec spec = spec_of(p);
    const int32_t n = (int32_t)p->samples, prompt = (int32_t)p->prompt;
    self->stream = (struct token_stream){.seed = run_seed(run), .vocab = config->shape.vocab};
    self->prompt = must_alloc(sizeof *self->prompt * (size_t)n * (size_t)prompt);
    self->first = must_alloc(sizeof *self->first * (size_t)n);
    self->tokens = must_alloc(sizeof *self->tokens * (size_t)n * (size_t)p->tokens);
    for (int32_t q = 0; q < n; q++) {
        tokens_fill(&self->stream, 0, 0, prompt, self->prompt + (int64_t)q * prompt);
        tokens_fill(&self->stream, q, prompt, 1, &self->first[q]);
    }
    int code = run_model(run, &self->model, err);
    if (code) return code;
    self->device_hash = plain_device_hash(run_device(run));
    code = session_create(&self->session, self->model, &self->config, &spec, err);
    if (!code)
        code = inputs_create(&self->inputs, self->session, 1, spec.most_rows, spec.most_out, err);
    return code;
}

static void reset(void *s) {
    struct sharing_self *self = s;
    const int32_t n = (int32_t)self->params.samples;
    struct err err = {0};
    for (int32_t q = 0; q < n; q++) session_set_length(self->session, q, 0);
    self->session->cache->blocks->peak = 0;
    self->session->cache->blocks->copies = 0;
    /* Cannot fail: it fitted when it was planned; execute would say so. */
    add_prompts(self->inputs, self, self->params.mode == MODE_SHARED ? 1 : n, &err);
}

static int decode(struct sharing_self *self, struct err *err) {
    struct session *session = self->session;
    const int32_t n = (int32_t)self->params.samples;
    session_start(session, self->first);
    for (int64_t i = 0; i < self->params.tokens; i++) {
        int code = session_step(session, err);
        if (code) return code;
        session_next(session, &session->decode, self->tokens + i * n);
        for (int32_t q = 0; q < n; q++) run_mark(self->run, 0, q, 1);
    }
    return 0;
}

static void execute(void *s) {
    struct sharing_self *self = s;
    const struct blocks *blocks = self->session->cache->blocks;
    struct counted *c = &self->counted;
    struct err err = {0};
    run_phase(self->run, PHASE_PREFILL);
    int code = session_run(self->session, self->inputs, 0, &err);
    for (int32_t q = 1; !code && self->params.mode == MODE_SHARED && q < blocks->n_seq; q++)
        session_share(self->session, 0, q);
    c->after_prompt = blocks_used(blocks);
    c->refs = blocks->refs[blocks->table[0]];
    run_phase(self->run, PHASE_DECODE);
    if (!code) code = decode(self, &err);
    c->peak = blocks->peak;
    c->copies = blocks->copies;
    if (code) run_fail(self->run, "%s", err.text);
}

/* A branch that shares with nobody. */
static int decode_alone(struct sharing_self *self, int32_t seq, struct plain *plain,
                        struct err *err) {
    const struct sharing_params *p = &self->params;
    struct sharing_params one = *p;
    one.samples = 1;
    const struct session_spec spec = spec_of(&one);
    struct session *alone = NULL;
    struct inputs *inputs = NULL;
    int code = session_create(&alone, self->model, &self->config, &spec, err);
    if (!code) code = inputs_create(&inputs, alone, 1, spec.most_rows, spec.most_out, err);
    if (!code) code = add_prompts(inputs, self, 1, err);
    if (!code) code = session_run(alone, inputs, 0, err);
    if (!code) code = plain_decode(plain, alone, self->first[seq], err);
    inputs_close(&inputs);
    session_close(&alone);
    return code;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct sharing_self *self = s;
    const struct sharing_params *p = &self->params;
    struct device *device = self->model->device;
    const int64_t vocab = self->config.shape.vocab;
    const size_t bytes = plain_bytes(device, (int32_t)p->tokens, vocab);
    bool others = false;
    int code = 0;
    plain_begin(w, device, "each branch against reading the prompt and going on alone");
    for (int32_t q = 0; !code && q < (int32_t)p->samples; q++) {
        char key[180];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "sharing %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId64
                 " %" PRId32,
                 model_hash(&self->config), self->device_hash, tokens_key(&self->stream), p->prompt,
                 p->tokens, q);
        struct plain *plain = plain_piece(self->run, key, bytes, &ready, &own);
        if (!ready) {
            plain_clear(plain, device, (int32_t)p->tokens, vocab);
            code = decode_alone(self, q, plain, err);
            others = true;
            if (!code && !own) run_snapshot_ready(self->run, key);
        }
        if (!code)
            plain_compare(w, plain, self->session, &self->session->decode, q, self->tokens + q,
                          (int32_t)p->samples, (int32_t)p->prompt);
        free(own);
    }
    return code || !others ? code : session_plan(self->session, err);
}

static void report(void *s, struct values *values) {
    struct sharing_self *self = s;
    const struct sharing_params *p = &self->params;
    const struct counted *c = &self->counted;
    int64_t scales, bytes = model_kv_bytes_per_token(&self->config, &scales);
    const int64_t readers = p->mode == MODE_SHARED ? 1 : p->samples;
    for (int32_t q = 0; q < (int32_t)p->samples; q++) session_set_length(self->session, q, 0);
    values_set(values, "blocks", c->peak);
    values_set(values, "blocks_after_prompt", c->after_prompt);
    values_set(values, "prompt_refs", c->refs);
    values_set(values, "copies", (double)c->copies);
    values_set(values, "blocks_left", blocks_used(self->session->cache->blocks));
    values_set(values, "cache_bytes",
               (double)(c->peak * self->config.params.block * (bytes + scales)));
    values_set(values, "prompt_rows", (double)(readers * p->prompt));
}

static void dispose(void *s) {
    struct sharing_self *self = s;
    inputs_close(&self->inputs);
    session_close(&self->session);
    free(self->prompt);
    free(self->first);
    free(self->tokens);
}

const struct workload workload_sharing = {
    .name = "sharing",
    .brief = "several continuations of one prompt, in shared blocks or each with its own",
    .help =
        "Question: what do continuations of one prompt save by sharing its blocks? (seed E24)\n\n"
        "Inside the timing: reading the prompt (once, or once for each branch), then `tokens` decode "
        "steps of all branches; copying a block when a branch writes into one that others read.\n\n"
        "Outside: giving the blocks back, the comparison.\n\n"
        "Phases: prefill (item: prompt token), decode (item: token). Mark: token.\n\n"
        "Blocks: shared, the prompt's whole blocks are counted once; its last one, if it is not full, "
        "is copied by every branch but the last one that writes; separate, samples times "
        "ceil((prompt + tokens) / block).\n\n"
        "Witness: tokens and last logits of each branch equal those of reading the prompt and going on "
        "alone.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct sharing_params),
    .self_size = sizeof(struct sharing_self),
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
