/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `speculative`: drafts, verified by the target several at a time, against plain decoding
   in the same execution. What formulas alone say is `speculation`. */
#include <inttypes.h>
#include <math.h>

#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/speculating.h"
#include "workloads/model/ledger.h"

enum { NGRAM = 3 }; /* unless said otherwise */
struct speculative_params {
    int64_t prompt, tokens, batch, gamma, layers, ngram;
    double alpha, temperature;
    int draft, type;
    struct input_params in;
};
struct speculative_self {
    struct speculating speculating;
};

static const char *const draft_words[] = {"model", "ngram", "oracle", NULL};
/* "same", then weight_format_names (a test compares). */
static const char *const type_words[] = {"same",        "f32",         "f16",        "bf16",
                                         "int8",        "int8-tensor", "int8-group", "int4",
                                         "int4-tensor", "int4-row",    "nf4",        NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct speculative_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "prompt",
     .type = OPT_INT,
     PARAM(prompt),
     .def = "32",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Tokens of each prompt; all but the last are in the caches before the clock starts."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "48",
     .min = 1,
     .max = 65536,
     .unit = "tokens",
     .help = "Tokens that are written for each prompt, first plainly, then by speculation."},
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "Sequences that are written together."},
    {.key = "gamma",
     .type = OPT_INT,
     PARAM(gamma),
     .def = "4",
     .min = 1,
     .max = 64,
     .unit = "tokens",
     .help = "Drafts of a pass, at most: the target looks at one position more."},
    {.key = "draft",
     .type = OPT_WORD,
     PARAM(draft),
     .def = "model",
     .words = draft_words,
     .unit = "",
     .help =
         "model: the target itself in draft_type, or its first draft_layers; ngram: what followed "
         "when the last tokens stood in the text before; oracle: knows what the target will "
         "say, and is right at a share alpha of all positions."},
    {.key = "draft_type",
     .type = OPT_WORD,
     PARAM(type),
     .def = "same",
     .words = type_words,
     .unit = "",
     .help =
         "How the drafting model's matrices are stored; same: it shares the target's own. Of an "
         "oracle: the model that is run at its side for the price."},
    {.key = "draft_layers",
     .type = OPT_INT,
     PARAM(layers),
     .def = "0",
     .min = 0,
     .max = 1024,
     .unit = "layers",
     .help = "The drafting model ends behind so many layers; 0: it has all. An oracle with neither "
             "type nor layers costs nothing."},
    {.key = "ngram",
     .type = OPT_INT,
     PARAM(ngram),
     .def = "0",
     .min = 0,
     .max = 64,
     .unit = "tokens",
     .help = "The longest end of the text that is looked up; 0: 3, where draft is ngram."},
    {.key = "alpha",
     .type = OPT_REAL,
     PARAM(alpha),
     .def = "-1",
     .min = -1,
     .max = 1,
     .unit = "",
     .help = "Acceptance of the oracle, 0 ... 1; -1: for drafts that are none."},
    {.key = "temperature",
     .type = OPT_REAL,
     PARAM(temperature),
     .def = "0",
     .min = 0,
     .max = 1000,
     .unit = "",
     .help = "0: greedy; else tokens are drawn from softmax(logits / temperature)."},
    INPUT_OPTIONS(struct speculative_params, in),
    {0},
};
static const struct phase phases[] = {
    {"plain", "token"}, {"draft", "draft"}, {"verify", "token"}, {0}};
static const struct mark marks[] = {{"token", SPECULATE_VERIFY}, {0}};

static struct speculating_spec spec_of(const struct speculative_params *p) {
    const bool smaller = p->type || p->layers;
    return (struct speculating_spec){.draft = (enum draft_kind)p->draft,
                                     .batch = (int32_t)p->batch,
                                     .prompt = (int32_t)p->prompt,
                                     .tokens = (int32_t)p->tokens,
                                     .gamma = (int32_t)p->gamma,
                                     .ngram = p->ngram ? (int32_t)p->ngram : NGRAM,
                                     .alpha = p->alpha,
                                     .temperature = p->temperature,
                                     .runs_model = p->draft == DRAFT_MODEL ||
                                                   (p->draft == DRAFT_ORACLE && smaller),
                                     .own_weights = p->type != 0};
}

/* The drafting model: the target's seed, cache and types between ops. */
static struct model_config draft_of(const struct speculative_params *p,
                                    const struct model_config *config) {
    struct model_config draft = *config;
    if (p->type) {
        if (p->type - 1 != draft.params.type) draft.params.group = 0;
        draft.params.type = p->type - 1;
    }
    if (p->layers) draft.shape.n_layers = p->layers;
    return draft;
}

static void check_draft(const struct speculative_params *p, const struct model_config *config,
                        struct problems *problems) {
    if (p->draft == DRAFT_NGRAM && p->type)
        problem(problems, "workload.draft_type", "workload.draft",
                "drafts by ngram come from no model, and have no type of weights");
    if (p->draft == DRAFT_NGRAM && p->layers)
        problem(problems, "workload.draft_layers", "workload.draft",
                "drafts by ngram come from no model, and have no layers");
    if (p->draft != DRAFT_NGRAM && p->ngram)
        problem(problems, "workload.ngram", "workload.draft",
                "only drafts by ngram look the text up; draft = \"ngram\" does");
    if (p->draft != DRAFT_ORACLE && p->alpha != -1)
        problem(problems, "workload.alpha", "workload.draft",
                "only an oracle's acceptance is declared, that of others is measured; "
                "draft = \"oracle\" has one");
    if (p->draft == DRAFT_ORACLE && !(p->alpha >= 0))
        problem(problems, "workload.alpha", "workload.draft",
                "an oracle needs the share of positions at which it is right, 0 ... 1");
    if (p->draft == DRAFT_ORACLE && p->temperature > 0)
        problem(
            problems, "workload.temperature", "workload.draft",
            "an oracle knows what is likeliest, and not what will be drawn: its temperature is 0");
    if (config && p->layers > config->shape.n_layers)
        problem(problems, "workload.draft_layers", "model.shape",
                "the target has only %" PRId64 " layers to draft with", config->shape.n_layers);
    if (!config || !p->type) return;
    const struct model_config draft = draft_of(p, config);
    if (quant_input_refused(model_weight_format(&draft.params)->type, model_input(&draft.params),
                            0))
        problem(
            problems, "workload.draft_type", "model.activation",
            "int8 inputs are multiplied with int8 and int4 weights, and those of %s are neither",
            model_weight_format(&draft.params)->name);
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct speculative_params *p = params_;
    const int64_t whole = p->prompt + p->tokens;
    input_check(&p->in, config, problems);
    check_draft(p, config, problems);
    if (p->batch * whole > INT32_MAX / 4)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^29 tokens", p->batch,
                whole);
    if (p->draft == DRAFT_NGRAM && (double)p->batch * (double)p->tokens * (double)whole > 1e11)
        problem(problems, "workload.tokens", "workload.draft",
                "looking up %" PRId64 " tokens for each of %" PRId64 " never ends", whole,
                p->batch * p->tokens);
}

/* As if nothing were accepted, which is the most to do. Each step as the mean of first and last. */
static void plan_work(const struct speculating_spec *p, const struct model_config *config,
                      const struct model_config *draft, struct work *work) {
    struct work pass = {0}, step = {0};
    const int64_t rows = p->gamma < p->tokens ? p->gamma + 1 : p->tokens;
    const int64_t last = (int64_t)p->prompt + p->tokens - 1;
    const double passes = p->tokens, half = passes / 2;
    ledger_decode(&work[SPECULATE_PLAIN], config, p->batch, p->prompt - 1, p->tokens);
    work[SPECULATE_PLAIN].items = p->batch * passes;
    ledger_step_alike(&pass, config, p->batch, rows, p->prompt - 1 + rows, p->batch * rows);
    ledger_step_alike(&pass, config, p->batch, rows, last, p->batch * rows);
    ledger_add(&work[SPECULATE_VERIFY], &pass, half);
    work[SPECULATE_VERIFY].items = p->batch * passes;
    work[SPECULATE_DRAFT].items = p->batch * passes * p->gamma;
    if (!p->runs_model) return;
    ledger_step_alike(&step, draft, p->batch, 1, p->prompt, p->batch);
    ledger_step_alike(&step, draft, p->batch, 1, last, p->batch);
    ledger_add(&work[SPECULATE_DRAFT], &step, half * p->gamma);
}

static void plan_prepare(const struct speculating_spec *p, const struct model_config *config,
                         struct work *work) {
    struct work one = {0};
    if (p->prompt > 1)
        ledger_prompt(&one, config, 1, 0, p->prompt - 1, context_chunk(p->prompt - 1), false);
    ledger_decode(&one, config, 1, p->prompt - 1, p->tokens);
    ledger_add(work, &one, p->batch);
}

static void add_session(const struct model_config *config, const struct session_spec *spec,
                        struct plan *plan) {
    session_bytes(config, spec, plan->bytes);
    plan->bytes[MEM_STATE] += inputs_bytes(spec->cache.n_seq, 1, spec->most_rows, spec->most_out);
    plan->host_bytes += cache_host_bytes(config, &spec->cache);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct speculative_params *p = params_;
    const struct speculating_spec spec = spec_of(p);
    const struct model_config draft = draft_of(p, config);
    const struct session_spec target = speculating_target(&spec),
                              drafter = speculating_drafter(&spec),
                              alone = speculating_alone(&spec);
    int64_t scales = 0;
    plan_work(&spec, config, &draft, plan->work);
    plan_prepare(&spec, config, &plan->prepare);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    if (spec.own_weights) {
        plan->bytes[MEM_WEIGHT] += model_weight_bytes(&draft, &scales);
        plan->bytes[MEM_SCALE] += scales;
    }
    add_session(config, &target, plan);
    if (spec.runs_model) add_session(&draft, &drafter, plan);
    plan->host_bytes += speculating_host_bytes(&spec, config->shape.vocab) +
                        contexts_bytes(config, &alone, plan->bytes);
    plan->most_marks = speculating_most_marks(&spec);
    plan->peak_bytes = 0;
    plan->binding_type = model_binding(config);
}

/* Drafting weights of its own are a second model. */
static bool beside(const void *params_, const struct model_config *config,
                   struct model_config *other) {
    const struct speculative_params *p = params_;
    const struct speculating_spec spec = spec_of(p);
    if (!spec.own_weights || !spec.runs_model) return false;
    *other = draft_of(p, config);
    return true;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct speculative_self *self = s;
    const struct speculative_params *p = params_;
    self->speculating = (struct speculating){.run = run,
                                             .config = *config,
                                             .draft_config = draft_of(p, config),
                                             .in = p->in,
                                             .spec = spec_of(p)};
    return speculating_open(&self->speculating, err);
}

static void reset(void *s) { speculating_reset(&((struct speculative_self *)s)->speculating); }

static void execute(void *s) { speculating_execute(&((struct speculative_self *)s)->speculating); }

static bool worked(const void *s, struct work *work) {
    speculating_work(&((const struct speculative_self *)s)->speculating, work);
    return true;
}

static int witness(void *s, struct witness *w, struct err *err) {
    return speculating_witness(&((struct speculative_self *)s)->speculating, w, err);
}

static void report(void *s, struct values *values) {
    speculating_report(&((struct speculative_self *)s)->speculating, values);
}

static void dispose(void *s) { speculating_close(&((struct speculative_self *)s)->speculating); }

const struct workload workload_speculative = {
    .name = "speculative",
    .brief = "speculative decoding by a real draft-and-verify loop, against plain decoding",
    .help =
        "Question: does drafting pay here, at which acceptance and which cost, and does the seeds' "
        "formula say so beforehand? (seeds E43-E46, R30)\n\n"
        "An execution writes `tokens` tokens for each prompt twice: plainly, a token a step, then by "
        "passes. In a pass a draft proposes up to `gamma` tokens; the target computes the logits of "
        "all of them and of the position behind in one step of gamma + 1 rows a sequence; the "
        "longest agreeing beginning is kept, and one token of the target's own. Both caches go back "
        "to what was kept. speedup is the ratio of the two halves of the same executions, so that a "
        "machine that slows down does so to both.\n\n"
        "Drafts. model: the same weights in another type (of the same seed or file; realistic: what "
        "quantizing loses is what is refused), packed once a worker, or the target's first layers, "
        "which share its weights. ngram: prompt lookup, no model. oracle: right at a declared share of "
        "positions, independently, as the formulas assume; with draft_type or draft_layers that model "
        "is run at its side, so that the drafts cost what it costs.\n\n"
        "A model's file that reads text writes on from a text (`input`, `text`): what is accepted "
        "depends on which. Seeded weights are random: they react to rounding more than trained ones "
        "do, the first layers of such a model agree less with all of it, what a smaller model of its "
        "own training would propose they cannot say, and their text hardly repeats itself "
        "(token_entropy), so that little is found when it is looked up. Their acceptances are their "
        "own; how time follows from them is not.\n\n"
        "temperature > 0: a draft x from p stays with chance min(1, q(x) / p(x)), else the token is "
        "drawn from (q - p) above 0 (E46): each token is distributed as the target's. Softmax and "
        "draws happen on the host, in both halves.\n\n"
        "Inside the timing: building each pass's inputs, drafting, the forward passes, selection, "
        "the decision. Outside: prompts, which are really prefilled in both models once a run.\n\n"
        "Phases: plain (item: token), draft (item: draft), verify (item: token). Mark: token, with "
        "the number that a pass commits. `time` is both halves.\n\n"
        "Formulas: E = 1 + alpha + ... + alpha^gamma tokens a pass (E44), speed-up E / (gamma c + 1) "
        "(E45). --dry-run shows the work as if nothing were accepted; a result what was done.\n\n"
        "Witness: greedily, all tokens of both halves and the last logits equal those of each "
        "sequence alone: exact where the device computes rows independently of the batch, else "
        "close. Drawn: the logits of each sequence's last token equal those after the same tokens "
        "fed alone, one at a time.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct speculative_params),
    .self_size = sizeof(struct speculative_self),
    .metrics = speculating_metrics,
    .phases = phases,
    .marks = marks,
    .check = check,
    .beside = beside,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .worked = worked,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
