/* SPDX-License-Identifier: Apache-2.0 */
/* What speculation brought, and what it should have brought: acceptance by position, tokens of a
   pass, costs, and the seeds' formulas at these. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/interval.h"
#include "workloads/common/speculating.h"
#include "workloads/model/theory.h"

enum { POSITIONS = 8, BEST_MOST = 32 };

#define AT(n)                                                                                      \
    {                                                                                              \
        "acceptance_" #n, "",                                                                      \
            "The same of the drafts at place " #n                                                  \
            " of their pass; none where no pass came so far.",                                     \
            BETTER_HIGHER, false                                                                   \
    }
const struct metric speculating_metrics[] = {
    {"speedup", "",
     "Time of plain decoding over that of drafting and verifying, in the same executions.",
     BETTER_HIGHER, false},
    {"predicted", "",
     "E / (gamma c + 1) at the measured acceptance, drafts a pass and draft_cost (E45): a pass of "
     "the target costs as much as a step.",
     BETTER_HIGHER, false},
    {"explained", "",
     "E / (gamma c + v): the same with the measured verify_cost. What is left of the difference is "
     "that acceptances of neighbours depend on each other.",
     BETTER_HIGHER, false},
    {"acceptance", "",
     "alpha: accepted drafts over those that were looked at; what follows a refused one is not.",
     BETTER_HIGHER, false},
    {"acceptance_low", "", "Lower bound of its 95 % interval (Wilson), as if all were independent.",
     BETTER_NONE, false},
    {"acceptance_high", "", "Upper bound.", BETTER_NONE, false},
    {"tokens_per_pass", "token",
     "Committed tokens over passes of the target, of one sequence: accepted drafts and one.",
     BETTER_HIGHER, false},
    {"formula_tokens_per_pass", "token",
     "E: (1 - alpha^(g + 1)) / (1 - alpha) at the measured acceptance, mean over the passes with "
     "their g drafts (E44).",
     BETTER_NONE, false},
    {"draft_cost", "",
     "c: time of drafting over the longest pass's drafts, over the time of a plain step.",
     BETTER_LOWER, false},
    {"verify_cost", "",
     "v: time of a verification, what it decides included, over the time of a plain step.",
     BETTER_LOWER, false},
    {"break_even", "",
     "Acceptance at which the speed-up by E45 is 1 at this draft_cost; 1: it cannot win.",
     BETTER_LOWER, false},
    {"break_even_cost", "",
     "Draft cost at which it is 1 at this acceptance: (E - 1) / drafts a pass.", BETTER_HIGHER,
     false},
    {"best_gamma", "token",
     "Drafts of a pass, up to 32, with the highest speed-up by E45 here; 0: do not speculate.",
     BETTER_NONE, false},
    {"drafts_per_pass", "token",
     "Drafts over passes: fewer than gamma where nothing matches, and at the end.", BETTER_NONE,
     false},
    {"undrafted", "", "Share of the passes that had no draft: plain steps.", BETTER_NONE, false},
    AT(1),
    AT(2),
    AT(3),
    AT(4),
    AT(5),
    AT(6),
    AT(7),
    AT(8),
    {"token_entropy", "bit",
     "Of all ids that were written; a low one is text that goes in circles, which is easy to draft.",
     BETTER_NONE, false},
    {0},
};

struct tally {
    double passes, tokens, drafts, tested, accepted, undrafted;
    double tested_at[POSITIONS], accepted_at[POSITIONS];
    double steps, longest; /* passes of the batch; of each of them the drafts of the longest */
};

static void add_sequence(const struct speculating *s, int32_t q, struct tally *t, int32_t *most) {
    for (int32_t i = 0; i < s->n_passes[q]; i++) {
        const struct pass *pass = &s->passes[(int64_t)q * s->spec.tokens + i];
        const int32_t tested = pass->accepted + (pass->accepted < pass->drafted);
        t->passes++;
        t->tokens += pass->accepted + 1;
        t->drafts += pass->drafted;
        t->tested += tested;
        t->accepted += pass->accepted;
        t->undrafted += !pass->drafted;
        for (int32_t k = 0; k < tested && k < POSITIONS; k++) {
            t->tested_at[k]++;
            t->accepted_at[k] += k < pass->accepted;
        }
        if (pass->drafted > most[i]) most[i] = pass->drafted;
    }
    if (s->n_passes[q] > t->steps) t->steps = s->n_passes[q];
}

static struct tally tally_of(const struct speculating *s) {
    struct tally t = {0};
    int32_t *most = must_alloc(sizeof *most * (size_t)s->spec.tokens);
    for (int32_t q = 0; q < s->spec.batch; q++) add_sequence(s, q, &t, most);
    for (int32_t i = 0; i < s->spec.tokens; i++) t.longest += most[i];
    free(most);
    return t;
}

/* E44, mean over the passes with the drafts that each had. */
static double formula_tokens(const struct speculating *s, double alpha, double passes) {
    double sum = 0;
    for (int32_t q = 0; q < s->spec.batch; q++)
        for (int32_t i = 0; i < s->n_passes[q]; i++)
            sum += speculation_tokens(alpha, s->passes[(int64_t)q * s->spec.tokens + i].drafted);
    return sum / passes;
}

static double over(double a, double b) { return b > 0 ? a / b : (double)NAN; }

static void report_costs(const struct speculating *s, const struct tally *t, double alpha,
                         struct values *v) {
    const struct speculating_times *times = &s->times;
    const double n = (double)times->executions, step = over(times->plain, n * s->spec.tokens);
    const double c = over(over(times->draft, n * t->longest), step),
                 verify = over(over(times->verify, n * t->steps), step);
    const double drafts = over(t->drafts, t->passes),
                 expected = t->tested > 0 ? formula_tokens(s, alpha, t->passes) : 1;
    const double paid = drafts > 0 ? drafts * c : 0;
    values_set(v, "speedup", over(times->plain, times->draft + times->verify));
    values_set(v, "predicted", expected / (paid + 1));
    values_set(v, "explained", expected / (paid + verify));
    values_set(v, "formula_tokens_per_pass", expected);
    values_set(v, "draft_cost", c);
    values_set(v, "verify_cost", verify);
    values_set(v, "break_even",
               isfinite(c) ? speculation_break_even(s->spec.gamma, c) : (double)NAN);
    values_set(v, "break_even_cost", over(expected - 1, drafts));
    values_set(v, "best_gamma",
               isfinite(c) && t->tested > 0 ? (double)speculation_best(alpha, c, BEST_MOST)
                                            : (double)NAN);
}

void speculating_report(const struct speculating *s, struct values *v) {
    const struct tally t = tally_of(s);
    const double alpha = over(t.accepted, t.tested);
    const size_t words = (size_t)s->spec.batch * (size_t)s->spec.tokens;
    double low, high;
    char name[24];
    interval_wilson((int64_t)t.accepted, (int64_t)t.tested, &low, &high);
    values_set(v, "acceptance", alpha);
    values_set(v, "acceptance_low", low);
    values_set(v, "acceptance_high", high);
    values_set(v, "tokens_per_pass", over(t.tokens, t.passes));
    values_set(v, "drafts_per_pass", over(t.drafts, t.passes));
    values_set(v, "undrafted", over(t.undrafted, t.passes));
    report_costs(s, &t, alpha, v);
    for (int k = 0; k < POSITIONS; k++) {
        snprintf(name, sizeof name, "acceptance_%d", k + 1);
        values_set(v, name, over(t.accepted_at[k], t.tested_at[k]));
    }
    int32_t *ids = must_alloc(sizeof *ids * words);
    for (int32_t q = 0; q < s->spec.batch; q++)
        memcpy(ids + (int64_t)q * s->spec.tokens, speculating_text(s, q) + s->spec.prompt,
               sizeof *ids * (size_t)s->spec.tokens);
    values_set(v, "token_entropy", tokens_entropy(ids, (int64_t)words));
    free(ids);
}
