/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `train`: one training step for real, with activation checkpoints or without. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/plain.h"
#include "workloads/common/tokens.h"
#include "workloads/common/trainer.h"
#include "workloads/model/ledger.h"

struct train_params {
    int64_t batch, tokens, segment;
};
struct train_self {
    struct run *run;
    struct train_params params;
    struct model_config config;
    struct trainer_spec spec;
    struct trainer *trainer;
    struct trainer_given given; /* of the last execution */
    double loss;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct train_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "B."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "128",
     .min = 1,
     .max = 65536,
     .unit = "tokens",
     .help = "T: positions of each sequence, each of which predicts the next token."},
    {.key = "segment",
     .type = OPT_INT,
     PARAM(segment),
     .def = "0",
     .min = 0,
     .max = 1024,
     .unit = "layers",
     .help = "K: layers between two checkpoints, at most all of them; 0: no checkpoints, all that "
             "the forward pass saves is kept."},
    {0},
};
static const struct phase phases[] = {{"forward", "token"},
                                      {"recompute", "token"},
                                      {"backward", "token"},
                                      {"optimizer", "token"},
                                      {0}};
static const struct metric metrics[] = {
    {"loss", "nat", "Cross entropy of the step, mean over all positions.", BETTER_LOWER, false},
    {"static_bytes", "byte", "Weights, gradients, AdamW's states: 16 P in f32 (E51).", BETTER_LOWER,
     true},
    {"static_bytes_allocated", "byte", "What the allocator gave for them (R16): must be equal.",
     BETTER_LOWER, true},
    {"residual_bytes", "byte", "One tensor of the residual stream, 4 B T D (E52).", BETTER_LOWER,
     true},
    {"residual_bytes_allocated", "byte", "What the allocator gave for one: must be equal.",
     BETTER_LOWER, true},
    {"attention_bytes", "byte", "One layer's softmax, 4 B n_q T^2 (E52).", BETTER_LOWER, true},
    {"attention_bytes_allocated", "byte", "What the allocator gave for it: must be equal.",
     BETTER_LOWER, true},
    {"layer_bytes", "byte", "a: what one layer saves, its entry included.", BETTER_LOWER, true},
    {"kept_bytes", "byte",
     "What the blocks keep from the forward to the backward pass: n_layers a, or ceil(n_layers / K) "
     "entries (E54).",
     BETTER_LOWER, true},
    {"kept_bytes_allocated", "byte", "Live in the account then: must be equal.", BETTER_LOWER,
     true},
    {"step_peak", "byte", "Largest live total of a step beyond the static state, by formula.",
     BETTER_LOWER, true},
    {"step_peak_allocated", "byte", "The account's: must be equal.", BETTER_LOWER, true},
    {"saved_at_peak", "byte", "Of the account's peak: what the backward pass needs.", BETTER_LOWER,
     true},
    {"logits_at_peak", "byte", "Of the account's peak: logits and their gradient.", BETTER_LOWER,
     true},
    {"temporary_at_peak", "byte", "Of the account's peak: gradients of activations.", BETTER_LOWER,
     true},
    {"checkpoint_peak", "byte",
     "E54's model of the saved tensors' peak: ceil(n_layers / K) c + K a; head, temporary tensors "
     "and logits left out.",
     BETTER_LOWER, true},
    {"flops_ratio", "",
     "FLOPs with recomputing over those without, by the ledger: what time should do where FLOPs "
     "bind.",
     BETTER_LOWER, true},
    {0},
};

static struct trainer_spec spec_of(const struct train_params *p,
                                   const struct model_config *config) {
    struct trainer_spec spec = {
        .shape = config->shape,
        .seed = (uint64_t)config->params.seed,
        .batch = p->batch,
        .tokens = p->tokens,
        .segment = p->segment < config->shape.n_layers ? p->segment : config->shape.n_layers};
    trainer_defaults(&spec);
    return spec;
}

/* The path that the witness compares with: without checkpoints, or with one at every layer. */
static int64_t other_segment(const struct trainer_spec *spec) { return spec->segment ? 0 : 1; }

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct train_params *p = params_;
    const struct weight_format *format = model_weight_format(&config->params);
    if (p->batch * p->tokens > 1 << 24)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^24 rows", p->batch,
                p->tokens);
    if (format->type != DT_F32)
        problem(problems, "model.type", NULL,
                "training keeps weights in f32, not %s: model.type = \"f32\"", format->name);
    if (config->params.window)
        problem(problems, "model.window", NULL, "training attends to all tokens: model.window = 0");
    if (config->shape.rope_scaling)
        problem(problems, "shape.rope_scaling", NULL,
                "training turns by plain rotary angles: shape.rope_scaling = \"none\"");
    if (config->shape.d_h > 1024)
        problem(problems, "shape.d_h", NULL, "heads of %" PRId64 " values; at most 1024",
                config->shape.d_h);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct train_params *p = params_;
    const struct trainer_spec spec = spec_of(p, config);
    struct trainer_spec other = spec;
    struct trainer_memory memory, beside;
    struct work work[MAX_PHASES] = {0};
    const int64_t n = config->shape.n_layers, rows = p->batch * p->tokens;
    other.segment = other_segment(&spec);
    trainer_memory(&spec, &memory);
    trainer_memory(&other, &beside);
    trainer_work(&spec, plan->work);
    trainer_work(&other, work);
    for (int i = 0; phases[i].name; i++)
        ledger_add(&plan->prepare, &work[i], 1); /* the witness's */
    const struct trainer_memory *most = beside.step_peak > memory.step_peak ? &beside : &memory;
    for (int c = 0; c < N_CLASSES; c++) plan->bytes[c] = most->at_peak[c];
    plan->bytes[MEM_WEIGHT] = plan->bytes[MEM_OTHER] = 4 * memory.parameters;
    plan->bytes[MEM_STATE] = 8 * memory.parameters + 12 * rows;
    plan->host_bytes = 4 * memory.parameters + 4 * p->batch * (p->tokens + 1);
    plan->most_marks = 3 + (spec.segment ? 2 * ((n + spec.segment - 1) / spec.segment) : 0);
    plan->peak_bytes = memory.step_peak;
    plan->binding_type = DT_F32;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct train_self *self = s;
    const struct train_params *p = &self->params;
    self->run = run;
    self->params = *(const struct train_params *)params_;
    self->config = *config;
    self->spec = spec_of(p, config);
    const struct token_stream stream = {.seed = run_seed(run), .vocab = config->shape.vocab};
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)(p->batch * (p->tokens + 1)));
    for (int32_t q = 0; q < (int32_t)p->batch; q++)
        tokens_fill(&stream, q, 0, (int32_t)p->tokens + 1, tokens + q * (p->tokens + 1));
    const int code = trainer_open(&self->trainer, run_device(run), &self->spec, tokens, err);
    free(tokens);
    return code;
}

static void reset(void *s) { trainer_restart(((struct train_self *)s)->trainer); }

static void on_phase(void *ctx, int phase) { run_phase(ctx, phase); }

static void execute(void *s) {
    struct train_self *self = s;
    struct err err = {0};
    if (trainer_step(self->trainer, on_phase, self->run, &err)) run_fail(self->run, "%s", err.text);
    self->given = trainer_given(self->trainer);
}

/* The step of another segment, from the same beginning. */
static int other_hash(struct train_self *self, uint64_t *hash, struct err *err) {
    trainer_set_segment(self->trainer, other_segment(&self->spec));
    trainer_restart(self->trainer);
    const int code = trainer_step(self->trainer, NULL, NULL, err);
    *hash = trainer_hash(self->trainer);
    trainer_set_segment(self->trainer, self->spec.segment);
    return code;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct train_self *self = s;
    const struct train_params *p = &self->params;
    char key[120];
    uint64_t local, *plain;
    bool ready = false;
    int code = 0;
    self->loss = trainer_loss(self->trainer);
    *w = (struct witness){.contract = CONTRACT_EXACT,
                          .compared = model_parameters(&self->config.shape),
                          .first_difference = -1,
                          .max_error = NAN,
                          .hash = trainer_hash(self->trainer)};
    snprintf(key, sizeof key, "train %" PRId64 " %" PRId64 " %d %" PRIx64 " %" PRIx64, p->batch,
             p->tokens, self->spec.segment > 0, model_hash(&self->config),
             plain_device_hash(run_device(self->run)));
    plain = run_snapshot(self->run, key, sizeof *plain, &ready);
    if (!plain) plain = &local;
    if (!ready) code = other_hash(self, plain, err);
    if (code) return code;
    if (!ready && plain != &local) run_snapshot_ready(self->run, key);
    w->plain_hash = *plain;
    w->holds = w->identical = w->hash == w->plain_hash;
    snprintf(w->note, sizeof w->note, "losses, gradients, weights, moments against %s",
             self->spec.segment ? "a step without checkpoints" : "one that checkpoints each layer");
    return 0;
}

static double all_flops(const struct trainer_spec *spec) {
    struct work work[MAX_PHASES] = {0};
    double sum = 0;
    trainer_work(spec, work);
    for (int i = 0; phases[i].name; i++) sum += work[i].flops;
    return sum;
}

static void report(void *s, struct values *values) {
    const struct train_self *self = s;
    const struct trainer_given *given = &self->given;
    struct trainer_spec plain = self->spec;
    struct trainer_memory m;
    plain.segment = 0;
    trainer_memory(&self->spec, &m);
    values_set(values, "loss", self->loss);
    values_set(values, "static_bytes", 16 * (double)m.parameters);
    values_set(values, "static_bytes_allocated",
               (double)(given->parameters + given->gradients + given->optimizer));
    values_set(values, "residual_bytes", (double)m.entry);
    values_set(values, "residual_bytes_allocated", (double)given->entry);
    values_set(values, "attention_bytes", (double)m.attention);
    values_set(values, "attention_bytes_allocated", (double)given->attention);
    values_set(values, "layer_bytes", (double)(m.entry + m.layer));
    values_set(values, "kept_bytes", (double)m.kept);
    values_set(values, "kept_bytes_allocated", (double)given->kept);
    values_set(values, "step_peak", (double)m.step_peak);
    values_set(values, "step_peak_allocated", (double)given->step_peak);
    values_set(values, "saved_at_peak", (double)given->at_peak[MEM_ACTIVATION]);
    values_set(values, "logits_at_peak", (double)given->at_peak[MEM_LOGITS]);
    values_set(values, "temporary_at_peak", (double)given->at_peak[MEM_WORKSPACE]);
    values_set(values, "checkpoint_peak", m.model);
    values_set(values, "flops_ratio", all_flops(&self->spec) / all_flops(&plain));
}

static void dispose(void *s) { trainer_close(&((struct train_self *)s)->trainer); }

const struct workload workload_train = {
    .name = "train",
    .brief = "one training step: its phases, its memory by class, with checkpoints or without",
    .help =
        "Question: what does a training step keep and cost, and what do activation checkpoints save "
        "in memory and take in time? (seeds E51, E52, E54)\n\n"
        "Inside the timing: the forward pass of the built-in transformer over B sequences of T "
        "tokens, cross entropy of each next token, the backward pass, AdamW; all in f32, one op "
        "after the other, each result in memory. Memory of activations is allocated and given back "
        "inside, zeroed, as the account shows it.\n\n"
        "Outside: weights (the model's own synthetic ones), tokens (seeded), setting weights and "
        "moments back: each execution is the first step.\n\n"
        "Saved by a layer, in values: entry, normed input twice, residual stream after attention: 4 "
        "B T D; queries, keys, values: B T (n_q + 2 n_kv) d_h; softmax B n_q T^2 and what it "
        "yields, B T n_q d_h; gate, up and their product: 3 B T d_ff; two reciprocal roots: 2 B "
        "T.\n\n"
        "With K the forward pass keeps the entry of every K-th layer and gives all else back; "
        "the backward pass runs a segment's forward pass again, from its entry, but not its last "
        "product, whose result nobody needs.\n\n"
        "Ledger: 2 FLOPs a multiply-add of products and attention (causal pairs only); backward "
        "twice the forward; bytes of each operand once as it enters or leaves an op; AdamW reads "
        "weight, gradient and two moments and writes three of them: 28 P bytes.\n\n"
        "Phases: forward (item: token), recompute, backward, optimizer.\n\n"
        "Witness: losses, gradients, weights and moments have the same bits with and without "
        "checkpoints.\n",
    .flags = WORK_MODEL | WORK_ALLOCATES,
    .params = params,
    .params_size = sizeof(struct train_params),
    .self_size = sizeof(struct train_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
