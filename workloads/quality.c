/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `quality`: what a type of weights or of cache does to what a model says. */
#include "workloads/common/judging.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "workloads/model/ledger.h"

enum { AUTO = -1 };
struct quality_params {
    const char *text, *text_digest, *questions;
    int64_t tokens, window, stride, unscored, greedy, continuations, prompt, answer;
    int64_t kv_bits, kv_run;
    int reference, reference_kv, chat, kv_scheme, kv_by, kv_part;
};
struct quality_self {
    struct judging judging;
    struct kv_rounder rounder;
};

/* "same", then weight_format_names; "same", then kv_type_names (a test compares). */
static const char *const reference_words[] = {"same",        "f32",         "f16",        "bf16",
                                              "int8",        "int8-tensor", "int8-group", "int4",
                                              "int4-tensor", "int4-row",    "nf4",        NULL};
static const char *const reference_kv_words[] = {"same", "f32", "f16", "bf16", "int8", NULL};
static const char *const chat_words[] = {"auto", "chatml", "plain", NULL};
static const char *const scheme_words[] = {"none", "symmetric", "affine", NULL};
static const char *const by_words[] = {"token", "channel", NULL};
enum part { PART_BOTH, PART_KEYS, PART_VALUES };
static const char *const part_words[] = {"both", "keys", "values", NULL};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct quality_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "text",
     .type = OPT_TEXT,
     PARAM(text),
     .def = JUDGED_RANDOM,
     .unit = "",
     .help =
         "What is scored: prose or reference (ours, in protocols/texts/), a path to any text, a "
         "path that ends in .ids to numbers of tokens, or random: uniform ids, which need no "
         "tokenizer."},
    {.key = "text_digest",
     .type = OPT_TEXT,
     .offset = offsetof(struct quality_params, text_digest),
     .flags = OPT_IDENTITY,
     .def = "",
     .unit = "",
     .help = "Tells texts apart: XXH64 of the bytes, filled in from text; a given one must agree."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "2048",
     .min = 2,
     .max = 1 << 24,
     .unit = "tokens",
     .help = "Of the text, from its beginning; those behind the last whole window are left out."},
    {.key = "window",
     .type = OPT_INT,
     PARAM(window),
     .def = "512",
     .min = 2,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "What the model is shown at a time, from an empty cache."},
    {.key = "stride",
     .type = OPT_INT,
     PARAM(stride),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "From one window's beginning to the next one's; 0: half a window."},
    {.key = "unscored",
     .type = OPT_INT,
     PARAM(unscored),
     .def = "-1",
     .min = -1,
     .max = 1 << 20,
     .unit = "tokens",
     .help =
         "First positions of each window that are context only; -1: as many as let no position be "
         "scored twice, none where windows do not overlap."},
    {.key = "reference",
     .type = OPT_WORD,
     PARAM(reference),
     .def = "f32",
     .words = reference_words,
     .unit = "",
     .help = "How the weights of the model are stored that stands beside this one (f32 holds "
             "whatever a file stores as it is); same: these."},
    {.key = "reference_kv",
     .type = OPT_WORD,
     PARAM(reference_kv),
     .def = "same",
     .words = reference_kv_words,
     .unit = "",
     .help = "Element type of the reference's cache; same: model.kv_type."},
    {.key = "greedy",
     .type = OPT_INT,
     PARAM(greedy),
     .def = "144",
     .min = 0,
     .max = 1 << 20,
     .unit = "positions",
     .help = "Positions of the reference's greedy continuations that are compared; 0: none."},
    {.key = "continuations",
     .type = OPT_INT,
     PARAM(continuations),
     .def = "3",
     .min = 1,
     .max = 1024,
     .unit = "sequences",
     .help = "That share `greedy` evenly; their prompts are spread over the text."},
    {.key = "prompt",
     .type = OPT_INT,
     PARAM(prompt),
     .def = "64",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "Of the text, before each continuation."},
    {.key = "questions",
     .type = OPT_TEXT,
     PARAM(questions),
     .def = JUDGING_NO_QUESTIONS,
     .unit = "",
     .help = "questions (ours, in protocols/texts/), or a path to a file of that kind; none."},
    {.key = "answer",
     .type = OPT_INT,
     PARAM(answer),
     .def = "16",
     .min = 1,
     .max = 4096,
     .unit = "tokens",
     .help = "Of an answer, at most; written greedily."},
    {.key = "chat",
     .type = OPT_WORD,
     PARAM(chat),
     .def = "auto",
     .words = chat_words,
     .unit = "",
     .help = "How a question is put: chatml, as a user's turn between <|im_start|> and <|im_end|>; "
             "plain, between 'Question:' and 'Answer:'; auto: chatml where the tokenizer has it."},
    {.key = "kv_scheme",
     .type = OPT_WORD,
     PARAM(kv_scheme),
     .def = "none",
     .words = scheme_words,
     .unit = "",
     .help = "Rounds keys and values before attention reads them (simulated: the cache stays f32), "
             "while the text is scored; none: model.kv_type alone."},
    {.key = "kv_bits",
     .type = OPT_INT,
     PARAM(kv_bits),
     .def = "8",
     .min = 2,
     .max = 16,
     .unit = "bits",
     .help = "Of a code of kv_scheme."},
    {.key = "kv_by",
     .type = OPT_WORD,
     PARAM(kv_by),
     .def = "token",
     .words = by_words,
     .unit = "",
     .help = "One scale for the channels of a token and head, or for the tokens of a channel, of "
             "those that are appended together (128 at most)."},
    {.key = "kv_run",
     .type = OPT_INT,
     PARAM(kv_run),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "values",
     .help = "Neighbouring channels, or tokens, with one scale; 0: all of them."},
    {.key = "kv_part",
     .type = OPT_WORD,
     PARAM(kv_part),
     .def = "both",
     .words = part_words,
     .unit = "",
     .help = "What kv_scheme rounds."},
    {0},
};
static const struct phase phases[] = {{"judge", "token"}, {0}};

/* ---- what the keys mean */

static int64_t stride_of(const struct quality_params *p) {
    return p->stride ? p->stride : p->window / 2;
}

static int64_t unscored_of(const struct quality_params *p) {
    const int64_t shared = p->window - stride_of(p) - 1;
    return p->unscored != AUTO ? p->unscored : shared > 0 ? shared : 0;
}

static bool asks(const struct quality_params *p) {
    return strcmp(p->questions, JUDGING_NO_QUESTIONS) != 0;
}

static struct judging_spec spec_of(const struct quality_params *p) {
    const int64_t stride = stride_of(p);
    return (struct judging_spec){.windows = {.window = (int32_t)p->window,
                                             .stride = (int32_t)stride,
                                             .unscored = (int32_t)unscored_of(p),
                                             .n = (int32_t)((p->tokens - p->window) / stride + 1)},
                                 .continuations = p->greedy ? (int32_t)p->continuations : 0,
                                 .each = p->greedy ? (int32_t)(p->greedy / p->continuations) : 0,
                                 .prompt = (int32_t)p->prompt,
                                 .answer = (int32_t)p->answer,
                                 .asks = asks(p),
                                 .own_reference = p->reference != 0};
}

static int f32_word(void) {
    int i = 0;
    while (strcmp(activation_names[i], "f32") != 0) i++;
    return i;
}

/* Of a type of its own it also computes in f32 between its ops. */
static struct model_config reference_of(const struct quality_params *p,
                                        const struct model_config *config) {
    struct model_config reference = *config;
    if (p->reference) {
        if (p->reference - 1 != reference.params.type) reference.params.group = 0;
        reference.params.type = p->reference - 1;
        reference.params.activation = f32_word();
        reference.activation = DT_F32;
    }
    if (p->reference_kv) reference.params.kv_type = p->reference_kv - 1;
    return reference;
}

/* ---- before the run */

static void check_windows(const struct quality_params *p, struct problems *problems) {
    const int64_t stride = stride_of(p), unscored = unscored_of(p);
    if (p->window > p->tokens)
        problem(problems, "workload.window", "workload.tokens",
                "a window of %" PRId64 " tokens is longer than the %" PRId64 " of the text",
                p->window, p->tokens);
    if (stride > p->window)
        problem(problems, "workload.stride", "workload.window",
                "windows of %" PRId64 " tokens every %" PRId64 " would leave tokens out", p->window,
                stride);
    if (unscored > p->window - 2)
        problem(problems, "workload.unscored", "workload.window",
                "of a window of %" PRId64 " tokens %" PRId64
                " positions have a next token, and one of them at least is to be scored",
                p->window, p->window - 1);
    else if (unscored < p->window - stride - 1)
        problem(problems, "workload.unscored", "workload.stride",
                "windows share %" PRId64 " tokens: fewer than %" PRId64
                " unscored positions score some tokens twice",
                p->window - stride, p->window - stride - 1);
}

static void check_texts(const struct quality_params *p, const struct model_config *config,
                        struct problems *problems) {
    const bool words = strcmp(p->text, JUDGED_RANDOM) != 0 && !judged_is_ids(p->text);
    const bool file = config && model_from_file(&config->params);
    struct err err = {0};
    if (words && !file)
        problem(problems, "workload.text", "model.file",
                "a text needs a tokenizer, which only the file of a model has: model.file; "
                "text = \"random\" needs none");
    if (judged_check(p->text, &err)) problem(problems, "workload.text", NULL, "%s", err.text);
    if (!asks(p)) return;
    if (!file)
        problem(problems, "workload.questions", "model.file",
                "questions need a tokenizer, which only the file of a model has: model.file");
    struct text path = {0};
    struct questions *questions = NULL;
    judged_path(p->questions, &path);
    if (judged_check(p->questions, &err) || questions_read(&questions, path.data, &err))
        problem(problems, "workload.questions", NULL, "%s", err.text);
    questions_close(&questions);
    text_free(&path);
}

static void check_rounder(const struct quality_params *p, const struct model_config *config,
                          struct problems *problems) {
    if (!p->kv_scheme) {
        if (p->kv_part || p->kv_by || p->kv_run)
            problem(problems,
                    p->kv_part ? "workload.kv_part"
                    : p->kv_by ? "workload.kv_by"
                               : "workload.kv_run",
                    "workload.kv_scheme", "nothing is rounded: kv_scheme is none");
        return;
    }
    if (config && (model_kv_type(&config->params) != DT_F32 || config->params.layout ||
                   config->params.window))
        problem(problems, "workload.kv_scheme", "model.kv_type",
                "a scheme rounds what a contiguous f32 cache without a window keeps: "
                "model.kv_type = \"f32\"");
    if (p->greedy || asks(p))
        problem(problems, "workload.kv_scheme",
                p->greedy ? "workload.greedy" : "workload.questions",
                "a scheme is applied to the text that is scored alone: greedy = 0, questions = "
                "\"none\"");
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct quality_params *p = params_;
    check_windows(p, problems);
    check_texts(p, config, problems);
    check_rounder(p, config, problems);
    if (p->greedy && p->greedy % p->continuations)
        problem(problems, "workload.greedy", "workload.continuations",
                "%" PRId64 " positions are not shared evenly by %" PRId64 " continuations",
                p->greedy, p->continuations);
    if (p->greedy && p->prompt > p->tokens)
        problem(problems, "workload.prompt", "workload.tokens",
                "a prompt of %" PRId64 " tokens is longer than the text", p->prompt);
    if (!config || !p->reference) return;
    const struct model_config reference = reference_of(p, config);
    if (reference.params.group && !model_group(&reference.params))
        problem(problems, "workload.reference", "model.group", "%s has no groups",
                reference_words[p->reference]);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct quality_params *p = params_;
    const struct judging_spec spec = spec_of(p);
    const struct model_config reference = reference_of(p, config);
    int64_t scales = 0;
    judging_work(&spec, config, &plan->work[0]);
    judging_work(&spec, &reference, &plan->prepare);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    if (spec.own_reference) {
        plan->bytes[MEM_WEIGHT] += model_weight_bytes(&reference, &scales);
        plan->bytes[MEM_SCALE] += scales;
    }
    plan->host_bytes = judging_bytes(&spec, config, &reference, plan->bytes);
    plan->peak_bytes = -1;
    plan->binding_type = model_binding(config);
}

/* ---- the run */

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct quality_self *self = s;
    const struct quality_params *p = params_;
    self->rounder =
        (struct kv_rounder){.spec = {.scheme = p->kv_scheme == 2 ? CODE_AFFINE : CODE_SYMMETRIC,
                                     .bits = (int)p->kv_bits,
                                     .by = p->kv_by ? BY_COLUMN : BY_ROW,
                                     .run = p->kv_run},
                            .keys = p->kv_part != PART_VALUES,
                            .values = p->kv_part != PART_KEYS};
    self->judging = (struct judging){.run = run,
                                     .config = *config,
                                     .reference = reference_of(p, config),
                                     .spec = spec_of(p),
                                     .text_name = p->text,
                                     .text_digest = p->text_digest,
                                     .questions_name = p->questions,
                                     .chat = p->chat,
                                     .rounder = p->kv_scheme ? &self->rounder : NULL};
    return judging_open(&self->judging, err);
}

static void execute(void *s) {
    struct judging *judging = &((struct quality_self *)s)->judging;
    struct err err = {0};
    if (judging_run(judging, &err)) run_fail(judging->run, "%s", err.text);
}

static int witness(void *s, struct witness *w, struct err *err) {
    (void)err;
    judging_witness(&((struct quality_self *)s)->judging, w);
    return 0;
}

static void report(void *s, struct values *values) {
    judging_report(&((struct quality_self *)s)->judging, values);
}

static void dispose(void *s) { judging_close(&((struct quality_self *)s)->judging); }

const struct workload workload_quality = {
    .name = "quality",
    .brief = "what a type of weights or cache does to perplexity, choices and answers",
    .help =
        "Question: what does a lossy type cost in quality, beside the same model in a better one? "
        "(seeds E33, E39, E43, R24-R27, R37)\n\n"
        "Both models are shown the same tokens. A text is scored in windows of `window` tokens, each "
        "from an empty cache, its first `unscored` positions as context only. perplexity = exp(mean "
        "-log p of the token that follows); window 512, stride 512, unscored 256 is what llama.cpp's "
        "perplexity does. Perplexities are comparable between models with one tokenizer on one text "
        "only (R25): ppl_ratio, of the same positions, is what to look at.\n\n"
        "kl, top1: the whole distribution of each position against the reference's; the most "
        "sensitive two, since every position counts. greedy: E39's third measure and the "
        "acceptance of E43. right: 16 questions tell a broken model from a working one, "
        "and nothing finer (R26). Greedy is greedy: no penalties (R27).\n\n"
        "Intervals, 95 %: Wilson's for shares; for means over positions a bootstrap over blocks of 32 "
        "neighbours, in pairs for the ratio. Positions of a text depend on each other, so Wilson's "
        "are somewhat too narrow.\n\n"
        "Nothing is timed: a `decode` case over the same types gives the speed, and the analysis "
        "`tradeoff` puts both into one table and one picture.\n\n"
        "Once a run: the reference's logits of all scored positions, which are kept (4 bytes times "
        "vocabulary times positions), its continuations and its answers.\n\n"
        "kv_scheme rounds keys and values of the real model with the schemes of `kv_quantize`.\n\n"
        "Phase: judge (item: token). Witness: lossy, reported only.\n",
    .flags = WORK_MODEL | WORK_ONCE | WORK_ALLOCATES,
    .params = params,
    .params_size = sizeof(struct quality_params),
    .self_size = sizeof(struct quality_self),
    .metrics = judging_metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
