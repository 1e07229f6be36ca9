/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and intervals of a judged model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/interval.h"
#include "base/text.h"
#include "workloads/common/judging.h"
#include "workloads/common/kv_rounder.h"
#include "workloads/model/tokenizer.h"

#define INTERVAL(name, unit, of)                                                                   \
    {name "_lo", unit, "The lower bound of the 95 % interval of " of ".", BETTER_NONE, false}, {   \
        name "_hi", unit, "The upper bound of the 95 % interval of " of ".", BETTER_NONE, false    \
    }
const struct metric judging_metrics[] = {
    {"weight_bits", "bit", "Bits of a weight of all matrices, scales included (E35).", BETTER_LOWER,
     true},
    {"perplexity", "", "exp of the mean -log p of the text's own tokens (E39).", BETTER_LOWER,
     false},
    INTERVAL("perplexity", "", "perplexity, by blocks of 32 positions drawn again"),
    {"kl", "nat", "Mean over the positions of sum p_ref log(p_ref / p) over the vocabulary.",
     BETTER_LOWER, false},
    INTERVAL("kl", "nat", "kl, by blocks of 32 positions drawn again"),
    {"top1", "", "Positions where both models find the same token likeliest / positions.",
     BETTER_HIGHER, false},
    INTERVAL("top1", "", "top1 (Wilson)"),
    {"greedy", "",
     "Positions of the reference's greedy continuations where the model, shown what the reference "
     "wrote before, would go on as it did / positions (E39, E43).",
     BETTER_HIGHER, false},
    INTERVAL("greedy", "", "greedy (Wilson)"),
    {"right", "", "Questions answered rightly by the rule of their file / questions.",
     BETTER_HIGHER, false},
    INTERVAL("right", "", "right (Wilson)"),
    {"ppl_ratio", "", "perplexity / reference_perplexity, over the same positions.", BETTER_LOWER,
     false},
    INTERVAL("ppl_ratio", "", "ppl_ratio: both models' blocks are drawn together"),
    {"weight_error", "", "Mean over the projections of all layers of ||w^ - w|| / ||w|| (E33).",
     BETTER_LOWER, true},
    {"reference_right", "", "The same of the reference.", BETTER_HIGHER, false},
    {"worst_weight_error", "", "The largest of the errors whose mean is weight_error.",
     BETTER_LOWER, true},
    {"embedding_error", "", "||w^ - w|| / ||w|| of the embedding, which a tied head shares.",
     BETTER_LOWER, true},
    {"first_difference", "token",
     "Tokens that the model, fed its own, writes as the reference does before the first other one: "
     "mean over the continuations.",
     BETTER_HIGHER, false},
    {"worst_kl", "nat", "kl of the position where it is largest.", BETTER_LOWER, false},
    {"reference_perplexity", "", "perplexity of the reference.", BETTER_LOWER, false},
    {"kv_bits", "bit", "Bits of a cached value, scales included.", BETTER_LOWER, true},
    {"kv_error", "", "||x^ - x|| / ||x|| of what the scheme rounded in the cache.", BETTER_LOWER,
     false},
    {"scored", "position", "Positions whose next token was scored.", BETTER_NONE, true},
    {"weights_judged", "matrix", "Matrices whose mean weight_error is.", BETTER_NONE, true},
    {0},
};

/* ---- helpers */

static void set_interval(struct values *values, const char *name, double lo, double hi) {
    char key[48];
    snprintf(key, sizeof key, "%s_lo", name);
    values_set(values, key, lo);
    snprintf(key, sizeof key, "%s_hi", name);
    values_set(values, key, hi);
}

static void set_share(struct values *values, const char *name, int64_t k, int64_t n) {
    double lo, hi;
    interval_wilson(k, n, &lo, &hi);
    values_set(values, name, n > 0 ? (double)k / (double)n : (double)NAN);
    set_interval(values, name, lo, hi);
}

/* Mean and interval of one number of each position; growth: as factors, exp of both. */
static void set_mean(const struct judging *j, struct values *values, const char *name,
                     const double *x, bool growth) {
    const int64_t n = windows_positions(&j->spec.windows);
    double sum = 0, lo, hi;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    interval_blocks(x, (size_t)n, JUDGING_BLOCK, run_seed(j->run), &lo, &hi);
    const double mean = sum / (double)n;
    values_set(values, name, growth ? exp(mean) : mean);
    set_interval(values, name, growth ? exp(lo) : lo, growth ? exp(hi) : hi);
}

/* ---- what was scored */

static void report_positions(const struct judging *j, struct values *values) {
    const int64_t n = windows_positions(&j->spec.windows);
    double *x = must_alloc(sizeof *x * (size_t)n), sum = 0, worst = 0;
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++) x[i] = j->verdicts[i].nll;
    set_mean(j, values, "perplexity", x, true);
    for (int64_t i = 0; i < n; i++) x[i] = j->verdicts[i].nll - j->verdicts[i].nll_reference;
    set_mean(j, values, "ppl_ratio", x, true);
    for (int64_t i = 0; i < n; i++) x[i] = j->verdicts[i].kl;
    set_mean(j, values, "kl", x, false);
    for (int64_t i = 0; i < n; i++) {
        const struct verdict *v = &j->verdicts[i];
        sum += v->nll_reference;
        worst = fmax(worst, v->kl);
        same += v->top == v->top_reference;
    }
    set_share(values, "top1", same, n);
    values_set(values, "worst_kl", worst);
    values_set(values, "reference_perplexity", exp(sum / (double)n));
    values_set(values, "scored", (double)n);
    free(x);
}

static void report_continuations(const struct judging *j, struct values *values) {
    const struct judging_spec *p = &j->spec;
    const int64_t n = (int64_t)p->continuations * p->each;
    int64_t same = 0, before = 0;
    if (!n) return;
    for (int64_t i = 0; i < n; i++) same += j->choice[i] == j->written[i];
    for (int32_t q = 0; q < p->continuations; q++)
        for (int32_t i = 0; i < p->each; i++, before++)
            if (j->free_run[q * p->each + i] != j->written[q * p->each + i]) break;
    set_share(values, "greedy", same, n);
    values_set(values, "first_difference", (double)before / p->continuations);
}

/* ---- questions */

/* The bytes of an answer up to its end. */
static void spell(const struct judging *j, const int32_t *said, struct text *t) {
    char piece[512];
    for (int32_t i = 0; i < j->spec.answer; i++) {
        if (said[i] == j->ends[0] || said[i] == j->ends[1]) break;
        const size_t n = tokenizer_piece(j->tokenizer, said[i], piece, sizeof piece);
        text_add(t, piece, n < sizeof piece ? n : sizeof piece);
    }
}

int32_t judging_right(const struct judging *j, const int32_t *said) {
    int32_t right = 0;
    for (int32_t i = 0; j->questions && i < questions_count(j->questions); i++) {
        struct text t = {0};
        spell(j, said + (int64_t)i * j->spec.answer, &t);
        right += t.len && question_answered(questions_at(j->questions, i), t.data, t.len);
        text_free(&t);
    }
    return right;
}

static void report_questions(const struct judging *j, struct values *values) {
    if (!j->questions) return;
    const int32_t n = questions_count(j->questions);
    set_share(values, "right", judging_right(j, j->our_said), n);
    values_set(values, "reference_right", (double)judging_right(j, j->said) / n);
}

/* ---- caches */

/* Bits of keys and values on average; a scheme's scales have 16 bits, its zero points 8. */
static double kv_bits(const struct judging *j) {
    const struct model_shape *s = &j->config.shape;
    const struct kv_rounder *r = j->rounder;
    const double plain = dtype_bits(model_kv_type(&j->config.params));
    if (r) {
        const double coded = code_bits(&r->spec, SCORING_CHUNK, s->d_h, 16, 8);
        return ((r->keys ? coded : plain) + (r->values ? coded : plain)) / 2;
    }
    int64_t scales = 0;
    const int64_t bytes = model_kv_bytes_per_token(&j->config, &scales);
    return 8 * (double)(bytes + scales) /
           (2 * (double)s->n_layers * (double)s->n_kv * (double)s->d_h);
}

void judging_report(const struct judging *j, struct values *values) {
    values_set(values, "weight_bits", j->weight.bits);
    values_set(values, "weight_error", j->weight.mean);
    values_set(values, "worst_weight_error", j->weight.worst);
    values_set(values, "embedding_error", j->weight.embedding);
    values_set(values, "weights_judged", (double)j->weight.matrices);
    report_positions(j, values);
    report_continuations(j, values);
    report_questions(j, values);
    values_set(values, "kv_bits", kv_bits(j));
    if (j->rounder) values_set(values, "kv_error", code_relative(&j->rounder->sums));
}

void judging_witness(const struct judging *j, struct witness *w) {
    const int64_t n = windows_positions(&j->spec.windows);
    *w = (struct witness){.contract = CONTRACT_LOSSY,
                          .holds = true,
                          .identical = true,
                          .compared = n,
                          .first_difference = -1};
    for (int64_t i = 0; i < n; i++) {
        const struct verdict *v = &j->verdicts[i];
        w->max_error = fmax(w->max_error, v->max_error);
        w->identical &= !(v->max_error > 0);
        if (w->first_difference < 0 && v->top != v->top_reference) w->first_difference = i;
        w->hash = hash_bytes(&v->top, sizeof v->top, w->hash);
        w->plain_hash = hash_bytes(&v->top_reference, sizeof v->top_reference, w->plain_hash);
    }
    snprintf(w->note, sizeof w->note,
             "likeliest tokens and logits of %lld positions against the reference's", (long long)n);
}
