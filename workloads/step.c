/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `step`: one decode step, whole or part by part: where its time goes. */
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "base/option.h"
#include "workloads/common/decoding.h"
#include "workloads/common/fill.h"
#include "workloads/model/ledger.h"

enum { SPLIT_WHOLE, SPLIT_PARTS };
enum { PHASE_STEP, PHASE_PARTS }; /* the parts follow, in their order */
_Static_assert(PHASE_PARTS + N_PARTS < MAX_PHASES, "each part is a phase, and the list ends");

struct step_params {
    int64_t batch, context;
    int split;
};
struct step_self {
    struct step_params params;
    struct decoding decoding;
    char name[60];
};

static const char *const split_words[] = {"whole", "parts", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct step_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    DECODING_OPTIONS(PARAM),
    {.key = "split",
     .type = OPT_WORD,
     PARAM(split),
     .def = "parts",
     .words = split_words,
     .unit = "",
     .help = "whole: as `decode` does it; parts: with a wait and a clock reading between any two "
             "parts, so that each has a time."},
    {0},
};
static const struct phase phases[] = {{"step", "token"},
                                      {"embed", "row"},
                                      {"norm", "row"},
                                      {"qkv", "row"},
                                      {"rope", "row"},
                                      {"attention", "row"},
                                      {"out", "row"},
                                      {"mlp", "row"},
                                      {"head", "row"},
                                      {"select", "token"},
                                      {0}};
static const struct metric metrics[] = {
    {"kv_share", "", "KV bytes over all bytes of the ledger.", BETTER_NONE, true},
    {0},
};

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct step_params *p = params_;
    (void)config;
    decoding_check(p->batch, p->context + 1, problems);
}

static void parts_of(const struct step_params *p, const struct model_config *config,
                     struct work *parts) {
    const struct ledger_part sequences = {.n_seq = p->batch, .rows = 1, .kv_len = p->context + 1};
    ledger_step_parts(parts, config, &sequences, 1, p->batch);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct step_params *p = params_;
    const struct session_spec spec = decoding_spec(p->batch, p->context, 1),
                              alone = decoding_alone(p->context, 1, 1);
    struct work parts[N_PARTS] = {0};
    int64_t scales = 0;
    parts_of(p, config, parts);
    for (int i = 0; i < N_PARTS; i++)
        ledger_add(&plan->work[p->split == SPLIT_WHOLE ? PHASE_STEP : PHASE_PARTS + i], &parts[i],
                   1);
    if (p->split == SPLIT_WHOLE) plan->work[PHASE_STEP].items = (double)p->batch;
    ledger_decode(&plan->prepare, config, 1, p->context, 1);
    ledger_add(&plan->prepare, &plan->prepare, (double)(p->batch - 1));
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    session_bytes(config, &alone, plan->bytes); /* the witness's */
    plan->host_bytes =
        (int64_t)sizeof(int32_t) * p->batch * 2 + cache_host_bytes(config, &spec.cache);
    plan->most_marks = p->split == SPLIT_WHOLE ? 1 : 7 * config->shape.n_layers + 3;
    plan->binding_type = model_binding(config);
}

static void on_part(void *ctx, enum step_part part) { run_phase(ctx, PHASE_PARTS + (int)part); }

static void reset(void *s) { decoding_reset(&((struct step_self *)s)->decoding); }

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct step_self *self = s;
    self->params = *(const struct step_params *)params_;
    const struct step_params *p = &self->params;
    struct decoding *d = &self->decoding;
    /* Which values a sequence finds depends on where its slots lie. */
    snprintf(self->name, sizeof self->name, "step %" PRId64 " %d %" PRId64, p->batch,
             config->params.layout, config->params.block);
    *d = (struct decoding){.run = run,
                           .config = *config,
                           .in = {.input = TOKENS_RANDOM, .text = "", .text_digest = ""},
                           .batch = (int32_t)p->batch,
                           .context = (int32_t)p->context,
                           .steps = 1,
                           .name = self->name};
    int code = decoding_open(d, err);
    for (int32_t i = 0; !code && i < d->batch; i++)
        code = cache_reserve(d->session->cache, i, d->context, d->context + 1, err);
    if (code) return code;
    cache_publish(d->session->cache);
    fill_cache(d->session->cache, run_seed(run));
    if (p->split == SPLIT_WHOLE) return 0;
    d->session->on_part = on_part;
    d->session->part_ctx = run;
    return 0;
}

static void execute(void *s) {
    struct step_self *self = s;
    struct decoding *d = &self->decoding;
    struct session *session = d->session;
    struct err err = {0};
    const bool whole = self->params.split == SPLIT_WHOLE;
    if (whole) run_phase(d->run, PHASE_STEP);
    if (whole ? session_step(session, &err) : session_decode(session, &err)) {
        run_fail(d->run, "%s", err.text);
        return;
    }
    if (!whole) {
        session_select(session, &session->decode);
        session_advance(session, &session->decode);
    }
    session_next(session, &session->decode, d->tokens);
}

static int witness(void *s, struct witness *w, struct err *err) {
    return decoding_witness(&((struct step_self *)s)->decoding, w, err);
}

static void report(void *s, struct values *values) {
    struct step_self *self = s;
    struct work parts[N_PARTS] = {0};
    double kv = 0, all = 0;
    parts_of(&self->params, &self->decoding.config, parts);
    for (int i = 0; i < N_PARTS; i++) {
        kv += parts[i].bytes[MEM_KV];
        for (int c = 0; c < N_CLASSES; c++) all += parts[i].bytes[c];
    }
    values_set(values, "kv_share", kv / all);
}

static void dispose(void *s) { decoding_close(&((struct step_self *)s)->decoding); }

const struct workload workload_step = {
    .name = "step",
    .brief = "one decode step part by part: where its time goes",
    .help =
        "Question: which part of a decode step takes how much of its time, and what does the "
        "context change?\n\n"
        "Parts, over all layers: embed; norm (both RMSNorms with the additions to the residual "
        "stream); qkv (one product); rope (rotation, keys and values into the cache); attention; "
        "out; mlp (gate and up with SwiGLU, down); head (last norm, logits); select (sampling, the "
        "next inputs, ids to the host).\n\n"
        "split = parts: the device is waited for and the clock read before each part (about 50 ns "
        "on a host; on a GPU a wait costs more than a short kernel, and recorded steps are not "
        "used). split = whole: the same step undivided, as `decode` times it. The analysis "
        "`parts` lays the two side by side: where the parts do not sum to the whole within the "
        "interval, it says so.\n\n"
        "Inside the timing: the forward pass of `batch` rows, its ids read, and the waits that "
        "`split` asks for.\n\n"
        "Outside: before the clock starts the caches are filled with seeded values, different everywhere, "
        "instead of by a prompt: what they hold does not matter to the time, and long contexts "
        "cost no prefill.\n\n"
        "Ledger: as of `decode`, by part.\n\n"
        "Witness: tokens and logits of each sequence equal those of decoding it alone, undivided, "
        "from the same cache: exact where the device computes rows independently of the batch, "
        "else close.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct step_params),
    .self_size = sizeof(struct step_self),
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
