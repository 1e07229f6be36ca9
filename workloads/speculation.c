/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `speculation`: what drafts gain, by formula and by passes that are drawn. */
#include <math.h>

#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

struct speculation_params {
    double acceptance, cost;
    int64_t draft, passes, seed;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct speculation_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "acceptance",
     .type = OPT_REAL,
     PARAM(acceptance),
     .def = "0.8",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "alpha: chance that a drafted token is the target's own, each independent of the "
             "others."},
    {.key = "draft",
     .type = OPT_INT,
     PARAM(draft),
     .def = "4",
     .min = 0,
     .max = 4096,
     .unit = "tokens",
     .help = "gamma: tokens drafted for each pass of the target; 0: no speculation."},
    {.key = "cost",
     .type = OPT_REAL,
     PARAM(cost),
     .def = "0.1",
     .min = 0,
     .max = 1000,
     .unit = "",
     .help = "c: time of a drafted token over that of a step of the target."},
    {.key = "passes",
     .type = OPT_INT,
     PARAM(passes),
     .def = "100000",
     .min = 0,
     .max = 10000000,
     .unit = "passes",
     .help = "Passes that are drawn beside the formula; 0: none."},
    {.key = "seed",
     .type = OPT_INT,
     PARAM(seed),
     .def = "1",
     .min = 0,
     .max = 0x1p53,
     .unit = "",
     .help = "Of the draws."},
    {0},
};
enum { DRAFT_MOST = 32 };
static const struct phase phases[] = {{"pass", "token"}, {0}};
static const struct metric metrics[] = {
    {"tokens_per_pass", "token",
     "(1 - alpha^(gamma + 1)) / (1 - alpha), the target's own token among them (E44).",
     BETTER_HIGHER, true},
    {"drawn_tokens_per_pass", "token",
     "The mean over `passes` drawn ones: accepted drafts up to the first that is refused, and one.",
     BETTER_HIGHER, true},
    {"speedup", "", "tokens_per_pass / (gamma c + 1): below 1, speculation loses (E45).",
     BETTER_HIGHER, true},
    {"forward_passes", "", "Drafts and the verification: gamma + 1.", BETTER_LOWER, true},
    {"break_even", "",
     "Acceptance at which the speed-up is 1; 1: it cannot win; none without drafts.", BETTER_LOWER,
     true},
    {"break_even_cost", "",
     "Draft cost at which it is 1: (tokens_per_pass - 1) / gamma; none without drafts.",
     BETTER_HIGHER, true},
    {"best_draft", "token", "Draft length up to 32 with the highest speed-up; 0: do not speculate.",
     BETTER_NONE, true},
    {"best_speedup", "", "The speed-up with that length.", BETTER_HIGHER, true},
    {"drawn_error", "",
     "(drawn - tokens_per_pass) over the standard error of the drawn mean: within 4 but for one in "
     "16,000; 0 where nothing varies.",
     BETTER_NONE, true},
    {0},
};

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct speculation_params *p = params_;
    (void)config;
    if ((double)p->passes * (double)(p->draft + 1) > 1e8)
        problem(problems, "workload.passes", "workload.draft",
                "%lld passes of %lld drafts are more than 1e8 draws", (long long)p->passes,
                (long long)p->draft);
}

static void draw(const struct speculation_params *p, double expected, struct values *v) {
    const uint64_t key = random_key((uint64_t)p->seed, 1);
    double sum = 0, squares = 0, n = (double)p->passes;
    uint64_t at = 0;
    for (int64_t i = 0; i < p->passes; i++) {
        double tokens = 1;
        for (int64_t k = 0; k < p->draft && random_unit(key, at++) < p->acceptance; k++) tokens++;
        sum += tokens;
        squares += tokens * tokens;
    }
    const double mean = sum / n, variance = fmax(squares / n - mean * mean, 0);
    values_set(v, "drawn_tokens_per_pass", mean);
    values_set(v, "drawn_error", variance > 0 ? (mean - expected) / sqrt(variance / n) : 0);
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct speculation_params *p = params_;
    const double tokens = speculation_tokens(p->acceptance, p->draft);
    const int64_t best = speculation_best(p->acceptance, p->cost, DRAFT_MOST);
    (void)config;
    values_set(v, "tokens_per_pass", tokens);
    values_set(v, "speedup", speculation_speedup(p->acceptance, p->draft, p->cost));
    values_set(v, "forward_passes", (double)p->draft + 1);
    values_set(v, "break_even", speculation_break_even(p->draft, p->cost));
    values_set(v, "break_even_cost", speculation_cost(p->acceptance, p->draft, 1));
    values_set(v, "best_draft", (double)best);
    values_set(v, "best_speedup", speculation_speedup(p->acceptance, best, p->cost));
    if (p->passes) draw(p, tokens, v);
}

const struct workload workload_speculation = {
    .name = "speculation",
    .brief = "what speculative decoding gains at an acceptance rate and a draft cost: theory",
    .help =
        "Question: when does drafting tokens pay, and how many? (seeds E44, E45)\n\n"
        "Theory: no model runs. alpha and c come from measurements of one's own traffic (R30).\n\n"
        "Formulas: tokens of a pass E = 1 + alpha + ... + alpha^gamma; a pass costs gamma c + 1 steps "
        "of the target, so the speed-up is E / (gamma c + 1). Beside them, seeded passes are drawn: "
        "drafts are accepted up to the first refusal, and the target adds one token.\n\n"
        "Left out: acceptances of neighbouring tokens are not independent, and a pass over gamma + 1 "
        "rows costs more than a step once arithmetic binds.\n",
    .flags = WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct speculation_params),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .compute = compute,
};
