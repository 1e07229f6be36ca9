/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `next_token`: a model's distributions of next tokens, position by position, at a
 * temperature; and the device's sampling against the exact distribution. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/common/slow.h"
#include "workloads/common/softened.h"
#include "workloads/common/text_tokens.h"
#include "workloads/model/inputs.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

enum { CHUNK = 64, MOST_DRAWS = 1 << 20 };
/* Below this chance drawn tokens are not of the distribution: draws are seeded, so that a right
   device passes always or, once in a million protocols, never. */
static const double least_chance = 1e-6;

struct next_token_params {
    struct text_choice choice;
    int64_t tokens, skip, top, draws;
    double temperature;
};
struct next_token_self {
    struct run *run;
    struct next_token_params params;
    struct model_config config;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    int32_t *tokens; /* (tokens) */
    float *logits;   /* (vocab) of one position */
    double *p;       /* (vocab) at the temperature */
    int32_t *ids;    /* (draws) after the last position */
    int64_t positions, known;
    double entropy, effective, top, mass, ratio, ratio_1, bits; /* sums */
    int64_t ratios;
    struct drawn drawn;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct next_token_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "temperature",
     .type = OPT_REAL,
     PARAM(temperature),
     .def = "1",
     .min = 0.01,
     .max = 1000,
     .unit = "",
     .help = "T: what logits are divided by."},
    TEXT_OPTIONS(PARAM),
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "128",
     .min = 1,
     .max = 65536,
     .unit = "tokens",
     .help = "Tokens that are read; behind each there is a distribution of the next one."},
    {.key = "skip",
     .type = OPT_INT,
     PARAM(skip),
     .def = "16",
     .min = 0,
     .max = 65535,
     .unit = "tokens",
     .help = "The first distributions, which have little context, are not looked at."},
    {.key = "top",
     .type = OPT_INT,
     PARAM(top),
     .def = "10",
     .min = 1,
     .max = SOFTENED_MOST_K,
     .unit = "tokens",
     .help = "k of top_mass."},
    {.key = "draws",
     .type = OPT_INT,
     PARAM(draws),
     .def = "512",
     .min = 0,
     .max = MOST_DRAWS,
     .unit = "tokens",
     .help = "So many tokens are drawn by the device behind the last position, and counted against "
             "the exact distribution; 0: none."},
    {0},
};
static const struct phase phases[] = {{"read", "token"}, {0}};
static const struct metric metrics[] = {
    {"positions", "position", "Distributions that are looked at.", BETTER_NONE, true},
    {"entropy", "bit", "Of a distribution at T, on average.", BETTER_NONE, true},
    {"effective_tokens", "token",
     "2^entropy, on average: as many tokens, all as likely, would be as uncertain.", BETTER_NONE,
     true},
    {"top_share", "", "The likeliest token's probability at T, on average.", BETTER_NONE, true},
    {"top_mass", "", "The probability of the likeliest `top` tokens together, on average.",
     BETTER_NONE, true},
    {"ratio", "", "Likeliest over third likeliest at T, geometric mean (E48).", BETTER_NONE, true},
    {"power", "", "The same at T = 1 to the power 1 / T: must be equal (E48).", BETTER_NONE, true},
    {"text_bits", "bit",
     "-log2 of the probability that the text's own next token has at T, on average: cross-entropy.",
     BETTER_LOWER, true},
    {"chi_square", "", "Pearson's statistic of the drawn tokens.", BETTER_LOWER, true},
    {"cells", "cell", "Its cells: ids by falling probability, joined until each is expected often.",
     BETTER_NONE, true},
    {"chance", "", "How often chance alone gives a statistic as large.", BETTER_NONE, true},
    {0},
};

static int32_t chunk_of(const struct next_token_params *p) {
    return (int32_t)(p->tokens < CHUNK ? p->tokens : CHUNK);
}

static struct session_spec spec_of(const struct next_token_params *p) {
    const int32_t chunk = chunk_of(p);
    return (struct session_spec){
        .cache = {.n_seq = 1, .capacity = (int32_t)p->tokens, .most_q = chunk},
        .most_rows = chunk,
        .most_out = chunk};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct next_token_params *p = params_;
    if (p->skip >= p->tokens)
        problem(problems, "workload.skip", "workload.tokens",
                "of %" PRId64 " distributions at least one must be looked at", p->tokens);
    text_tokens_check(&p->choice, config, problems);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct next_token_params *p = params_;
    const struct session_spec spec = spec_of(p);
    const int64_t vocab = config->shape.vocab;
    int64_t scales = 0;
    ledger_prompt(&plan->work[0], config, 1, 0, p->tokens, chunk_of(p), true);
    plan->work[0].items = (double)p->tokens;
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    plan->bytes[MEM_STATE] += inputs_bytes(1, 1, spec.most_rows, spec.most_out) +
                              (int64_t)step_bytes(1, chunk_of(p), chunk_of(p));
    plan->host_bytes = (int64_t)sizeof(float) * (p->tokens + p->draws + vocab) +
                       5 * (int64_t)sizeof(double) * vocab + cache_host_bytes(config, &spec.cache);
    plan->peak_bytes = -1;
    plan->binding_type = model_binding(config);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct next_token_self *self = s;
    self->run = run;
    self->params = *(const struct next_token_params *)params_;
    self->config = *config;
    const struct next_token_params *p = &self->params;
    const struct session_spec spec = spec_of(p);
    const size_t vocab = (size_t)config->shape.vocab;
    if (!slow_applies(run_device(run)))
        return err_set(err, ERR_UNSUPPORTED, "%s computes nothing: there are no distributions",
                       run_device(run)->kind->name);
    self->tokens = must_alloc(sizeof *self->tokens * (size_t)p->tokens);
    self->logits = must_alloc(sizeof *self->logits * vocab);
    self->p = must_alloc(sizeof *self->p * vocab);
    self->ids = must_alloc(sizeof *self->ids * (size_t)(p->draws + CHUNK));
    int code =
        text_tokens(&p->choice, config, run_seed(run), (int32_t)p->tokens, self->tokens, err);
    if (!code) code = run_model(run, &self->model, err);
    if (!code) code = session_create(&self->session, self->model, config, &spec, err);
    if (!code)
        code = inputs_create(&self->inputs, self->session, 1, spec.most_rows, spec.most_out, err);
    return code;
}

static void reset(void *s) {
    struct next_token_self *self = s;
    session_set_length(self->session, 0, 0);
    self->positions = self->known = self->ratios = 0;
    self->entropy = self->effective = self->top = self->mass = 0;
    self->ratio = self->ratio_1 = self->bits = 0;
}

static void add_position(struct next_token_self *self, int64_t position) {
    const struct next_token_params *p = &self->params;
    struct softened s;
    softened_of(self->logits, (int32_t)self->config.shape.vocab, p->temperature, (int32_t)p->top,
                self->p, &s);
    self->positions++;
    self->entropy += s.entropy;
    self->effective += exp2(s.entropy);
    self->top += s.top;
    self->mass += s.mass;
    if (isfinite(s.log_ratio)) { /* else the third vanished: both sides leave it out */
        self->ratios++;
        self->ratio += s.log_ratio;
        self->ratio_1 += s.log_ratio_1;
    }
    if (position + 1 == p->tokens) return;
    self->known++;
    self->bits += softened_bits(&s, self->logits[self->tokens[position + 1]], p->temperature);
}

/* Tokens behind the last position, whose row of logits is `row`: by the device's own select, all
   from that one row. */
static int draw(struct next_token_self *self, const struct step *last, int32_t row,
                struct err *err) {
    struct device *device = self->model->device;
    const struct next_token_params *p = &self->params;
    const struct sampler sampler = {.temperature = (float)p->temperature, .end_id = -1};
    const int32_t most = chunk_of(p);
    const size_t bytes = step_bytes(1, most, most);
    struct tensor logits = tensor_row(session_logits(self->session, last), row);
    struct step step, host;
    void *memory = device_alloc(device, bytes, MEM_STATE, "draws"), *copy = must_alloc(bytes);
    int code = memory ? 0 : err_set(err, ERR_MEMORY, "no memory for draws (%zu bytes)", bytes);
    for (int64_t at = 0; !code && at < p->draws; at += most) {
        const int32_t n = (int32_t)(p->draws - at < most ? p->draws - at : most);
        step_place(&step, memory, 1, most, most);
        step_place(&host, copy, 1, most, most);
        for (int32_t i = 0; i < most; i++) {
            host.pos[i] = (int32_t)at + i;
            host.out_row[i] = i;
        }
        host.rng[0] = random_key(run_seed(self->run), 17);
        host.q_begin[1] = most;
        host.kv_len[0] = host.alive[0] = 1;
        device->kind->upload(device, memory, copy, bytes);
        step.n_row = step.n_out = n;
        step.most_q = step.most_kv = most;
        logits.rows = n;
        logits.stride = 0; /* one row, n times */
        device->ops->select(device, &step, &logits, &sampler);
        device->kind->download(device, self->ids + at, step.next, sizeof *self->ids * (size_t)n);
        code = device->kind->sync(device, err);
    }
    device_free(device, memory);
    free(copy);
    return code;
}

/* One step of at most CHUNK tokens from `at` on. */
static int read_chunk(struct next_token_self *self, int32_t at, struct err *err) {
    struct device *device = self->model->device;
    const struct next_token_params *p = &self->params;
    const int32_t left = (int32_t)p->tokens - at, n = left < CHUNK ? left : CHUNK;
    const struct span span = {.begin = at, .rows = n, .tokens = self->tokens + at, .out = 2};
    inputs_clear(self->inputs);
    int code = inputs_add(self->inputs, &span, 1, err);
    if (code) return code;
    inputs_upload(self->inputs);
    code = session_run(self->session, self->inputs, 0, err);
    if (!code) code = device->kind->sync(device, err);
    const struct step *step = inputs_step(self->inputs, 0);
    const struct tensor logits = session_logits(self->session, step);
    for (int32_t i = 0; !code && i < n; i++) {
        if (at + i < p->skip) continue;
        tensor_download(device, &logits, i, self->logits);
        add_position(self, at + i);
    }
    if (!code && n == left && p->draws > 0) code = draw(self, step, n - 1, err);
    return code;
}

static void execute(void *s) {
    struct next_token_self *self = s;
    const struct next_token_params *p = &self->params;
    struct err err = {0};
    for (int32_t at = 0; at < (int32_t)p->tokens; at += CHUNK)
        if (read_chunk(self, at, &err)) {
            run_fail(self->run, "%s", err.text);
            return;
        }
    if (!isfinite(self->entropy)) run_fail(self->run, "a position has no finite logit");
    /* Once more behind the last position, at the temperature as a sampler has it: a float. */
    struct softened last;
    softened_of(self->logits, (int32_t)self->config.shape.vocab, (double)(float)p->temperature, 1,
                self->p, &last);
    drawn_of(self->p, (int32_t)self->config.shape.vocab, self->ids, (int32_t)p->draws,
             &self->drawn);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct next_token_self *self = s;
    const int64_t draws = self->params.draws;
    (void)err;
    *w = (struct witness){.contract = draws > 0 ? CONTRACT_CLOSE : CONTRACT_NONE,
                          .holds = true,
                          .compared = draws,
                          .first_difference = -1,
                          .max_error = NAN,
                          .hash = hash_bytes(self->ids, sizeof *self->ids * (size_t)draws, 1)};
    if (draws < 1) return 0;
    w->holds = self->drawn.chance >= least_chance;
    snprintf(w->note, sizeof w->note, "drawn tokens against the exact distribution: chance %.2g",
             self->drawn.chance);
    return 0;
}

static void report(void *s, struct values *values) {
    const struct next_token_self *self = s;
    const double n = (double)self->positions, none = (double)NAN;
    const double ratios = self->ratios ? (double)self->ratios : none;
    const bool drew = self->params.draws > 0;
    values_set(values, "positions", n);
    values_set(values, "entropy", self->entropy / n);
    values_set(values, "effective_tokens", self->effective / n);
    values_set(values, "top_share", self->top / n);
    values_set(values, "top_mass", self->mass / n);
    values_set(values, "ratio", exp(self->ratio / ratios));
    values_set(values, "power", exp(self->ratio_1 / ratios / self->params.temperature));
    values_set(values, "text_bits", self->known ? self->bits / (double)self->known : none);
    values_set(values, "chi_square", drew ? self->drawn.statistic : none);
    values_set(values, "cells", drew ? self->drawn.cells : none);
    values_set(values, "chance", drew ? self->drawn.chance : none);
}

static void dispose(void *s) {
    struct next_token_self *self = s;
    inputs_close(&self->inputs);
    session_close(&self->session);
    free(self->tokens);
    free(self->logits);
    free(self->p);
    free(self->ids);
}

const struct workload workload_next_token = {
    .name = "next_token",
    .brief = "a model's distributions of next tokens at a temperature, and sampling from them",
    .help =
        "Question: how much do a model's real distributions leave open, and what does temperature "
        "make of them? (seed E48)\n\n"
        "The tokens of a text, or drawn ones, go through the model once, untimed. Behind each of "
        "them, from `skip` on, softmax(logits / T) is computed in double over the whole "
        "vocabulary.\n\n"
        "Formulas: entropy H = -sum p log2 p, effective tokens 2^H, the likeliest token's share, "
        "the mass of the likeliest `top`; the ratio of the first to the third, which T turns into "
        "its 1 / T-th power whatever the rest is: ratio and power must be equal. text_bits is the "
        "cross-entropy of the text at T: a model that is neither too sure nor too timid has it "
        "lowest at T = 1.\n\n"
        "Sampling: behind the last position the device's own select draws `draws` tokens; they are "
        "counted in cells of falling probability and compared with the exact distribution by "
        "Pearson's chi square.\n\n"
        "Witness: the chance of such a statistic is at least one in a million; draws are seeded.\n\n"
        "Synthetic weights have distributions too, but they say nothing about language.\n",
    .flags = WORK_MODEL | WORK_ONCE | WORK_ALLOCATES,
    .params = params,
    .params_size = sizeof(struct next_token_params),
    .self_size = sizeof(struct next_token_self),
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
