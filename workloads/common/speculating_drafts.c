/* SPDX-License-Identifier: Apache-2.0 */
/* Who drafts: a model step by step, a look into the text, or an oracle of a known acceptance. */
#include "base/err.h"
#include "workloads/common/lookup.h"
#include "workloads/common/rejection.h"
#include "workloads/common/speculating.h"

/* The oracle knows what plain decoding wrote, and names the next id instead in 1 - alpha of all
   positions, each independent of the others: what E44 assumes. */
static int32_t foretold(const struct speculating *s, int32_t q, int32_t position) {
    const int32_t right = s->plain[(int64_t)q * s->spec.tokens + position - s->spec.prompt];
    const bool hit = speculating_random(s, q, position, USE_DRAFT) < s->spec.alpha;
    return hit ? right : (right + 1) % (int32_t)s->config.shape.vocab;
}

/* Draft k of the n sequences in s->seqs, behind the drafter's logits of a step, into the text. */
static void choose(struct speculating *s, struct step *step, int32_t n, int32_t k) {
    const bool drawn = s->spec.temperature > 0;
    if (!drawn) session_next(s->drafter, step, s->ids);
    if (s->spec.draft == DRAFT_ORACLE) return; /* its own are there; the model is only paid for */
    for (int32_t i = 0; i < n; i++) {
        const int32_t q = s->seqs[i], position = s->len[q] + k;
        int32_t *to = &speculating_text(s, q)[position];
        if (drawn) {
            double *p = speculating_p(s, q, k);
            speculating_softmax(s, s->drafter, step, i, p);
            *to = rejection_draw(p, s->config.shape.vocab,
                                 speculating_random(s, q, position, USE_DRAFT));
        } else {
            *to = s->ids[i];
        }
    }
}

/* The drafter reads what was committed since it ran last, and drafts the first token. */
static int first_step(struct speculating *s, struct err *err) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_active; i++) {
        const int32_t q = s->active[i], from = s->drafter->len[q];
        if (!s->n_drafts[q]) continue;
        s->seqs[n] = q;
        s->spans[n++] = (struct span){.seq = q,
                                      .begin = from,
                                      .rows = s->len[q] - from,
                                      .tokens = speculating_text(s, q) + from,
                                      .out = 1};
    }
    if (!n) return 0;
    inputs_clear(s->feed);
    int code = inputs_add(s->feed, s->spans, n, err);
    if (code) return code;
    inputs_upload(s->feed);
    code = session_run(s->drafter, s->feed, 0, err);
    if (code) return code;
    struct step *step = inputs_step(s->feed, 0);
    if (!(s->spec.temperature > 0)) session_select(s->drafter, step);
    choose(s, step, n, 0);
    return 0;
}

/* Draft k from draft k - 1, of the sequences that are to have so many. */
static int next_step(struct speculating *s, int32_t k, int32_t *n, struct err *err) {
    *n = 0;
    for (int32_t i = 0; i < s->n_active; i++) {
        const int32_t q = s->active[i];
        if (s->n_drafts[q] <= k) continue;
        s->seqs[*n] = q;
        s->tokens[(*n)++] = speculating_text(s, q)[s->len[q] + k - 1];
    }
    if (!*n) return 0;
    session_narrow(s->drafter, *n, s->seqs, s->tokens);
    const int code =
        s->spec.temperature > 0 ? session_decode(s->drafter, err) : session_step(s->drafter, err);
    if (!code) choose(s, &s->drafter->decode, *n, k);
    return code;
}

int speculating_draft(struct speculating *s, struct err *err) {
    const struct speculating_spec *p = &s->spec;
    for (int32_t i = 0; i < s->n_active; i++) {
        /* The pass adds one token behind its drafts: no more of these than fit before it. */
        const int32_t q = s->active[i], room = p->prompt + p->tokens - s->len[q] - 1;
        int32_t *text = speculating_text(s, q);
        s->n_drafts[q] = p->gamma < room ? p->gamma : room;
        if (p->draft == DRAFT_NGRAM)
            s->n_drafts[q] =
                lookup_draft(text, s->len[q], p->ngram, s->n_drafts[q], text + s->len[q]);
        for (int32_t k = 0; p->draft == DRAFT_ORACLE && k < s->n_drafts[q]; k++)
            text[s->len[q] + k] = foretold(s, q, s->len[q] + k);
    }
    if (!s->drafter) return 0;
    int code = first_step(s, err);
    for (int32_t k = 1, n = 1; !code && n; k++) code = next_step(s, k, &n, err);
    return code;
}
