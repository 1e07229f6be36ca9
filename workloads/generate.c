/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `generate`: a whole generation, with the cache or by recomputing everything for each
 * token. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/plain.h"
#include "workloads/common/tokens.h"
#include "workloads/model/ledger.h"
#include "workloads/workload.h"

enum { MODE_CACHED, MODE_RECOMPUTE };
enum { LOGITS_LAST, LOGITS_ALL };
enum { PHASE_PREFILL, PHASE_DECODE };

struct generate_params {
    int64_t prompt, tokens, batch, end_id;
    int mode, logits;
    struct input_params in;
};
struct group { /* sequences that have not ended, by rising number */
    int32_t n, *seq;
    struct span *spans; /* (n) room for a step of theirs */
};
struct generate_self {
    struct run *run;
    struct generate_params params;
    struct model_config config;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    struct token_stream stream;
    struct group group;
    /* Of the last execution: (batch, prompt + tokens) prompt and samples, -1 beyond an end; (batch)
     * tokens sampled. */
    int32_t *text, *n_out;
    struct step last;  /* of the last execution */
    int64_t allocated; /* device bytes of session and inputs, by the allocator */
    int64_t macs;      /* executed in the last execution, where the device counts */
    uint64_t device_hash;
};

static const char *const mode_words[] = {"cached", "recompute", NULL};
static const char *const logits_words[] = {"last", "all", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct generate_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "prompt",
     .type = OPT_INT,
     PARAM(prompt),
     .def = "16",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Tokens of each prompt (P)."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "32",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Tokens generated for each prompt (n)."},
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "Sequences that are generated together."},
    {.key = "end_id",
     .type = OPT_INT,
     PARAM(end_id),
     .def = "-1",
     .min = -1,
     .max = INT32_MAX,
     .unit = "",
     .help = "The sampled id that ends a sequence before `tokens`, and counts as one; -1: none."},
    INPUT_OPTIONS(struct generate_params, in),
    {.key = "mode",
     .type = OPT_WORD,
     PARAM(mode),
     .def = "cached",
     .words = mode_words,
     .unit = "",
     .help =
         "cached: keys and values are kept; recompute: each token feeds the whole sequence again."},
    {.key = "logits",
     .type = OPT_WORD,
     PARAM(logits),
     .def = "last",
     .words = logits_words,
     .unit = "",
     .help =
         "Rows that get logits: the last of each sequence, or all that are fed (as a plain implementation does: E04)."},
    {0},
};
static const struct phase phases[] = {{"prefill", "prompt token"}, {"decode", "token"}, {0}};
static const struct mark marks[] = {{"token", PHASE_DECODE}, {0}};
static const struct metric metrics[] = {
    {"positions", "position",
     "Positions pushed through the model for each sequence: P + n - 1, or n P + n (n - 1) / 2 (E01); n as produced, the mean where sequences end apart.",
     BETTER_LOWER, true},
    {"kv_bytes", "byte",
     "Cache by formula, made for the length asked for: batch (P + n - 1) tokens in all layers; recompute: in one layer (E04, E09).",
     BETTER_LOWER, true},
    {"method_bytes", "byte",
     "What this mode keeps on the device beside the weights, by formula: cache, activations, logits, steps.",
     BETTER_LOWER, true},
    {"method_bytes_allocated", "byte", "method_bytes by the allocator: must be equal (R16, R17).",
     BETTER_LOWER, true},
    {"macs", "MAC", "Multiply-adds of the products and of attention by the ledger: half its FLOPs.",
     BETTER_LOWER, true},
    {"macs_counted", "MAC",
     "Multiply-adds that the device executed, where it counts them (ref): must be equal (E03).",
     BETTER_LOWER, true},
    {"token_entropy", "bit", "Entropy of the generated ids; 0 if one token repeats.", BETTER_NONE,
     false},
    {0},
};

static int64_t capacity_of(const struct generate_params *p) {
    return p->prompt + p->tokens - 1; /* the last sampled token is never fed back (E09) */
}

/* Rows of one sequence in the largest step. */
static int64_t rows_of(const struct generate_params *p) {
    return p->mode == MODE_RECOMPUTE ? capacity_of(p) : p->prompt;
}

static struct session_spec spec_of(const struct generate_params *p) {
    int64_t rows = p->batch * rows_of(p);
    return (struct session_spec){.cache = {.n_seq = (int32_t)p->batch,
                                           .capacity = (int32_t)capacity_of(p),
                                           .most_q = (int32_t)rows_of(p),
                                           .one_layer = p->mode == MODE_RECOMPUTE},
                                 .most_rows = (int32_t)rows,
                                 .most_out = (int32_t)(p->logits == LOGITS_ALL ? rows : p->batch)};
}

static void add_method_bytes(const struct generate_params *p, const struct model_config *config,
                             int64_t *bytes) {
    struct session_spec spec = spec_of(p);
    session_bytes(config, &spec, bytes);
    bytes[MEM_STATE] += inputs_bytes(spec.cache.n_seq, 1, spec.most_rows, spec.most_out);
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct generate_params *p = params_;
    input_check(&p->in, config, problems);
    if (config && p->end_id >= config->shape.vocab)
        problem(problems, "workload.end_id", "model.shape",
                "no token has id %" PRId64 ": the vocabulary has %" PRId64, p->end_id,
                config->shape.vocab);
    if (p->batch * (p->prompt + p->tokens) > INT32_MAX / 4)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^29 tokens", p->batch,
                p->prompt + p->tokens);
    if (p->mode == MODE_RECOMPUTE && ledger_positions(p->prompt, p->tokens, false) > (int64_t)1
                                                                                         << 40)
        problem(problems, "workload.tokens", "workload.mode",
                "recomputing %" PRId64 " tokens never ends", p->tokens);
}

/* Sequences that go on after `made` tokens, and the fewest tokens at which one of them ends. */
static int64_t going_on(const struct generate_params *p, const int32_t *n_out, int64_t made,
                        int64_t *until) {
    int64_t n = 0;
    *until = p->tokens;
    for (int64_t q = 0; q < p->batch; q++) {
        const int64_t length = n_out ? n_out[q] : p->tokens;
        if (length <= made) continue;
        n++;
        if (length < *until) *until = length;
    }
    return n;
}

/* The ledger of a mode: prefill, and what follows. n_out (batch): tokens of each sequence; NULL: as
 * many as were asked for. */
static void add_work(const struct generate_params *p, const struct model_config *config,
                     const int32_t *n_out, struct work *prefill, struct work *decode) {
    bool every = p->logits == LOGITS_ALL;
    int64_t n, until;
    ledger_prompt(prefill, config, p->batch, 0, p->prompt, 0, every);
    for (int64_t at = 1; (n = going_on(p, n_out, at, &until)) > 0; at = until) {
        if (p->mode == MODE_CACHED)
            ledger_decode(decode, config, n, p->prompt + at - 1, until - at);
        for (int64_t i = at; p->mode == MODE_RECOMPUTE && i < until; i++)
            ledger_prompt(decode, config, n, 0, p->prompt + i, 0, every);
    }
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct generate_params *p = params_;
    int64_t scales = 0;
    add_work(p, config, NULL, &plan->work[PHASE_PREFILL], &plan->work[PHASE_DECODE]);
    plan->work[PHASE_PREFILL].items = (double)(p->batch * p->prompt);
    plan->work[PHASE_DECODE].items = (double)(p->batch * (p->tokens - 1));
    struct generate_params plain = *p;
    plain.mode = MODE_RECOMPUTE;
    plain.logits = LOGITS_LAST;
    add_work(&plain, config, NULL, &plan->prepare, &plan->prepare);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    add_method_bytes(p, config, plan->bytes);
    const struct session_spec spec = spec_of(p);
    plan->host_bytes = (int64_t)sizeof(int32_t) * p->batch * (p->prompt + p->tokens + 2) +
                       (int64_t)sizeof(struct span) * p->batch +
                       inputs_bytes(spec.cache.n_seq, 1, spec.most_rows, spec.most_out) +
                       cache_host_bytes(config, &spec.cache);
    plan->most_marks = p->batch * p->tokens + 2;
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
}

static int64_t text_stride(const struct generate_params *p) { return p->prompt + p->tokens; }

/* Bytes of the live set that a session makes: weights and what a device keeps for itself stand
 * apart. */
static int64_t live_bytes(struct device *device) {
    return tracker_live(device->tracker, -1) - tracker_live(device->tracker, MEM_WEIGHT) -
           tracker_live(device->tracker, MEM_WORKSPACE);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct generate_self *self = s;
    self->run = run;
    self->params = *(const struct generate_params *)params_;
    self->config = *config;
    const struct generate_params *p = &self->params;
    const struct session_spec spec = spec_of(p);
    self->text = must_alloc(sizeof *self->text * (size_t)(p->batch * text_stride(p)));
    self->n_out = must_alloc(sizeof *self->n_out * (size_t)p->batch);
    self->group.seq = must_alloc(sizeof *self->group.seq * (size_t)p->batch);
    self->group.spans = must_alloc(sizeof *self->group.spans * (size_t)p->batch);
    int code = tokens_open(&self->stream, &p->in, config, run, err);
    if (code) return code;
    tokens_warn(&self->stream, p->prompt, run);
    for (int32_t q = 0; q < (int32_t)p->batch; q++)
        tokens_fill(&self->stream, q, 0, (int32_t)p->prompt, self->text + q * text_stride(p));
    code = run_model(run, &self->model, err);
    if (code) return code;
    self->device_hash = plain_device_hash(run_device(run));
    int64_t before = live_bytes(run_device(run));
    code = session_create(&self->session, self->model, &self->config, &spec, err);
    if (!code)
        code = inputs_create(&self->inputs, self->session, 1, spec.most_rows, spec.most_out, err);
    self->allocated = live_bytes(run_device(run)) - before;
    if (!code) self->session->sampler.end_id = (int32_t)p->end_id;
    return code;
}

/* Lengths to zero, and a step of the group's first `rows` tokens into the inputs. */
static int start(struct session *session, struct inputs *inputs, const int32_t *text,
                 const struct generate_params *p, const struct group *group, int64_t rows,
                 struct err *err) {
    for (int32_t q = 0; q < session->spec.cache.n_seq; q++) session_set_length(session, q, 0);
    for (int32_t i = 0; i < group->n; i++)
        group->spans[i] = (struct span){.seq = group->seq[i],
                                        .rows = (int32_t)rows,
                                        .tokens = text + group->seq[i] * text_stride(p),
                                        .out = p->logits == LOGITS_ALL ? 2 : 1};
    inputs_clear(inputs);
    int code = inputs_add(inputs, group->spans, group->n, err);
    if (!code) inputs_upload(inputs);
    return code;
}

static void reset(void *s) {
    struct generate_self *self = s;
    const struct generate_params *p = &self->params;
    struct err err = {0};
    self->group.n = (int32_t)p->batch;
    for (int32_t q = 0; q < (int32_t)p->batch; q++) {
        self->group.seq[q] = q;
        self->n_out[q] = 0;
        for (int64_t i = p->prompt; i < text_stride(p); i++)
            self->text[q * text_stride(p) + i] = -1;
    }
    /* Cannot fail: it fitted when it was planned; execute would say so. */
    start(self->session, self->inputs, self->text, p, &self->group, p->prompt, &err);
    session_start(self->session, NULL);
}

/* The ids that were read, into column `at` of the text. */
static void keep_ids(const struct session *session, const struct group *group, int32_t *text,
                     int64_t stride, int64_t at) {
    for (int32_t i = 0; i < group->n; i++) text[group->seq[i] * stride + at] = session->ids[i];
}

/* Selects for each sequence of the group and reads the ids, into column `at` of the text too. Where
   all rows have logits, only the last row of each sequence is looked at. */
static void sample(struct session *session, struct step *step, const struct group *group,
                   int32_t *text, int64_t stride, int64_t at) {
    const int32_t rows = step->n_out / group->n;
    if (rows == 1) {
        session_select(session, step);
        session_next(session, step, session->ids);
    }
    for (int32_t i = 0; rows > 1 && i < group->n; i++) {
        const int32_t o = (i + 1) * rows - 1;
        struct step one = step_out(step, o);
        session_select_row(session, &one, o);
        session_next(session, &one, &session->ids[i]);
    }
    keep_ids(session, group, text, stride, at);
}

/* Marks what was sampled. Sequences that met the end token leave the group, their ids the list of
 * what is fed next; whether any did. The ids are on the host anyway: nothing is waited for. */
static bool commit(struct generate_self *self) {
    struct group *group = &self->group;
    int32_t *ids = self->session->ids, left = 0;
    for (int32_t i = 0; i < group->n; i++) {
        const int32_t q = group->seq[i];
        run_mark(self->run, 0, q, 1);
        self->n_out[q]++;
        if (ids[i] == (int32_t)self->params.end_id) continue;
        group->seq[left] = q;
        ids[left++] = ids[i];
    }
    const bool ended = left < group->n;
    group->n = left;
    return ended;
}

/* Where all rows have logits, the last row of each sequence goes on. */
static void advance(struct session *session, const struct step *from, int32_t n_seq) {
    const int32_t rows = from->n_out / n_seq;
    if (rows == 1) session_advance(session, from);
    for (int32_t i = 0; rows > 1 && i < n_seq; i++) {
        struct step one = step_out(from, (i + 1) * rows - 1);
        session_advance(session, &one);
    }
}

static int continue_cached(struct generate_self *self, bool ended, struct err *err) {
    struct session *session = self->session;
    const struct generate_params *p = &self->params;
    const struct step *prompt = inputs_step(self->inputs, 0);
    self->last = *prompt;
    for (int64_t i = 1; i < p->tokens && self->group.n; i++) {
        if (ended)
            session_narrow(session, self->group.n, self->group.seq, session->ids);
        else if (i == 1)
            advance(session, prompt, self->group.n);
        int code = session_step(session, err);
        if (code) return code;
        session_next(session, &session->decode, session->ids);
        keep_ids(session, &self->group, self->text, text_stride(p), p->prompt + i);
        self->last = session->decode;
        ended = commit(self);
    }
    return 0;
}

static int continue_recompute(struct generate_self *self, struct err *err) {
    struct session *session = self->session;
    const struct generate_params *p = &self->params;
    struct step *step = inputs_step(self->inputs, 0);
    for (int64_t i = 1; i < p->tokens && self->group.n; i++) {
        int code = start(session, self->inputs, self->text, p, &self->group, p->prompt + i, err);
        if (!code) code = session_run(session, self->inputs, 0, err);
        if (code) return code;
        sample(session, step, &self->group, self->text, text_stride(p), p->prompt + i);
        commit(self);
    }
    self->last = *step;
    return 0;
}

static int64_t counted(const struct generate_self *self) {
    const struct op_counts *counts = self->model->device->counts;
    return counts ? counts->linear + counts->attention : 0;
}

static void execute(void *s) {
    struct generate_self *self = s;
    const struct generate_params *p = &self->params;
    const int64_t before = counted(self);
    struct err err = {0};
    run_phase(self->run, PHASE_PREFILL);
    int code = session_run(self->session, self->inputs, 0, &err);
    if (!code) {
        sample(self->session, inputs_step(self->inputs, 0), &self->group, self->text,
               text_stride(p), p->prompt);
        const bool ended = commit(self);
        run_phase(self->run, PHASE_DECODE);
        code = p->mode == MODE_CACHED ? continue_cached(self, ended, &err)
                                      : continue_recompute(self, &err);
    }
    if (code) run_fail(self->run, "%s", err.text);
    self->macs = counted(self) - before;
}

/* The plain path: one sequence alone, everything recomputed for every token. */
static int recompute_alone(struct generate_self *self, int32_t seq, struct plain *plain,
                           struct err *err) {
    struct generate_params p = self->params;
    p.batch = 1;
    p.mode = MODE_RECOMPUTE;
    p.logits = LOGITS_LAST;
    const struct session_spec spec = spec_of(&p);
    const size_t prompt_bytes = sizeof(int32_t) * (size_t)p.prompt;
    int32_t first = 0;
    struct span span;
    const struct group group = {.n = 1, .seq = &first, .spans = &span};
    struct session *alone = NULL;
    struct inputs *inputs = NULL;
    int32_t *text = must_alloc(sizeof *text * (size_t)text_stride(&p));
    memcpy(text, self->text + seq * text_stride(&p), prompt_bytes);
    int code = session_create(&alone, self->model, &self->config, &spec, err);
    if (!code) code = inputs_create(&inputs, alone, 1, spec.most_rows, spec.most_out, err);
    if (!code) alone->sampler = self->session->sampler;
    for (int64_t i = 0; !code && i < p.tokens; i++) {
        code = start(alone, inputs, text, &p, &group, p.prompt + i, err);
        if (!code) code = session_run(alone, inputs, 0, err);
        if (code) break;
        struct step *step = inputs_step(inputs, 0);
        sample(alone, step, &group, text, text_stride(&p), p.prompt + i);
        const int32_t token = text[p.prompt + i];
        const bool last = token == (int32_t)p.end_id || i + 1 == p.tokens;
        plain_record(plain, alone, step, 0, (int32_t)i, token, last);
        if (last) break;
    }
    if (!code) code = self->model->device->kind->sync(self->model->device, err);
    inputs_close(&inputs);
    session_close(&alone);
    free(text);
    return code;
}

/* The longest sequences of the last execution: tokens, and how many they are. */
static int32_t longest(const struct generate_self *self, int32_t *n) {
    int32_t most = 0;
    *n = 0;
    for (int64_t q = 0; q < self->params.batch; q++) {
        if (self->n_out[q] > most) {
            most = self->n_out[q];
            *n = 0;
        }
        *n += self->n_out[q] == most;
    }
    return most;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct generate_self *self = s;
    const struct generate_params *p = &self->params;
    struct device *device = self->model->device;
    const size_t bytes = plain_bytes(device, (int32_t)p->tokens, self->config.shape.vocab);
    int32_t n_last,
        seen = 0; /* sequences that took part in the last step: their logits are there */
    const int32_t most = longest(self, &n_last), rows = self->last.n_out / n_last;
    int code = 0;
    bool replan = false;
    plain_begin(w, device, "each sequence against recomputing it alone for every token");
    for (int32_t q = 0; !code && q < (int32_t)p->batch; q++) {
        char key[140];
        bool ready;
        void *own;
        snprintf(key, sizeof key,
                 "generate %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId64
                 " %" PRId64 " %" PRId32,
                 model_hash(&self->config), self->device_hash, tokens_key(&self->stream), p->prompt,
                 p->tokens, p->end_id, q);
        struct plain *plain = plain_piece(self->run, key, bytes, &ready, &own);
        if (!ready) {
            plain_clear(plain, device, (int32_t)p->tokens, self->config.shape.vocab);
            code = recompute_alone(self, q, plain, err);
            if (!code && !own) run_snapshot_ready(self->run, key);
            replan = true;
        }
        seen += self->n_out[q] == most;
        if (!code)
            plain_compare(w, plain, self->session, &self->last,
                          self->n_out[q] == most ? seen * rows - 1 : -1,
                          self->text + q * text_stride(p) + p->prompt, 1, (int32_t)p->prompt);
        free(own);
    }
    if (!code && replan) code = session_plan(self->session, err);
    return code;
}

static void report(void *s, struct values *values) {
    struct generate_self *self = s;
    const struct generate_params *p = &self->params;
    int64_t bytes[N_CLASSES] = {0}, sum = 0, kv[N_CLASSES] = {0}, n = 0, early = 0;
    int64_t positions = 0;
    struct session_spec spec = spec_of(p);
    add_method_bytes(p, &self->config, bytes);
    for (int c = 0; c < N_CLASSES; c++) sum += bytes[c];
    cache_bytes(&self->config, &spec.cache, kv);
    values_set(values, "kv_bytes", (double)kv[MEM_KV]);
    values_set(values, "method_bytes", (double)sum);
    values_set(values, "method_bytes_allocated", (double)self->allocated);
    int32_t *generated = must_alloc(sizeof *generated * (size_t)(p->batch * p->tokens));
    for (int64_t q = 0; q < p->batch; q++) {
        memcpy(generated + n, self->text + q * text_stride(p) + p->prompt,
               sizeof *generated * (size_t)self->n_out[q]);
        n += self->n_out[q];
        early += self->n_out[q] < p->tokens;
        positions += ledger_positions(p->prompt, self->n_out[q], p->mode == MODE_CACHED);
    }
    values_set(values, "positions", (double)positions / (double)p->batch);
    struct work prefill = {0}, decode = {0};
    add_work(p, &self->config, self->n_out, &prefill, &decode);
    values_set(values, "macs", (prefill.flops + decode.flops) / 2);
    values_set(values, "macs_counted",
               self->model->device->counts ? (double)self->macs : (double)NAN);
    values_set(values, "token_entropy", tokens_entropy(generated, n));
    free(generated);
    if (early)
        run_flag(self->run, "ended_early",
                 "%" PRId64 " of %" PRId64 " sequences ended before %" PRId64 " tokens: %" PRId64
                 " tokens were produced, not %" PRId64,
                 early, p->batch, p->tokens, n, p->batch * p->tokens);
}

static bool worked(const void *s, struct work *work) {
    const struct generate_self *self = s;
    const struct generate_params *p = &self->params;
    int64_t n = 0;
    for (int64_t q = 0; q < p->batch; q++) n += self->n_out[q];
    add_work(p, &self->config, self->n_out, &work[PHASE_PREFILL], &work[PHASE_DECODE]);
    work[PHASE_PREFILL].items = (double)(p->batch * p->prompt);
    work[PHASE_DECODE].items = (double)(n - p->batch);
    return n < p->batch * p->tokens;
}

static void dispose(void *s) {
    struct generate_self *self = s;
    inputs_close(&self->inputs);
    session_close(&self->session);
    tokens_close(&self->stream);
    free(self->text);
    free(self->n_out);
    free(self->group.seq);
    free(self->group.spans);
}

const struct workload workload_generate = {
    .name = "generate",
    .brief =
        "a whole generation, with the KV cache or by recomputing: the same tokens at what price",
    .help =
        "Question: what does the KV cache save, in time and in memory, and does it change a "
        "single token? (seeds E01-E04)\n\n"
        "Inside the timing: from the prompt's first row to the last of `tokens` sampled ids, "
        "greedy, ids read after each step. A sequence that samples `end_id` ends: it has no row "
        "in later steps, and when all have ended the execution is over; rates and the ledger "
        "count what was produced. cached: one pass over the prompt, then one row a "
        "step. recompute: every step feeds the whole sequence again and keeps nothing "
        "(building that step's arrays is inside).\n\n"
        "Outside: the prompts, emptying the cache, the comparison.\n\n"
        "Phases: prefill (item: prompt token), to the first id; decode (item: token), the "
        "other n - 1. Mark: token.\n\n"
        "Formulas: positions P + n - 1 against n P + n (n - 1) / 2 (E01).\n\n"
        "Memory of a mode beside the weights = cache + activations + logits + step arrays: "
        "cached has n_layers of cache and P rows of activations, recompute one layer of cache "
        "(its keys and values do not outlive the layer) and P + n - 1 rows. logits = last "
        "gives recompute the benefit of needing one row of logits only; logits = all is what "
        "a plain implementation does, and there the logits make most of recompute's peak "
        "(E04).\n\n"
        "Witness: tokens and last logits of each sequence equal those of recomputing it "
        "alone: exact where the device computes rows independently of each other, else close.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct generate_params),
    .self_size = sizeof(struct generate_self),
    .metrics = metrics,
    .phases = phases,
    .marks = marks,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .worked = worked,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
