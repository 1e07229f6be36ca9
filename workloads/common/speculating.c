/* SPDX-License-Identifier: Apache-2.0 */
/* Plain decoding, and passes of drafts and verification, over one session of the target. */
#include "workloads/common/speculating.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "kernels/device.h"
#include "workloads/common/plain.h"
#include "workloads/common/rejection.h"
#include "workloads/model/ledger.h"

enum { STREAM_DRAWS = 1 << 30 }; /* beside the streams of prompts, which are sequence numbers */

/* ---- memory */

/* The last token is never fed back. A draft beyond it is never made: nothing lies further on. */
static int32_t capacity_of(const struct speculating_spec *p) { return p->prompt + p->tokens - 1; }

struct session_spec speculating_target(const struct speculating_spec *p) {
    return (struct session_spec){.cache = {.n_seq = p->batch,
                                           .capacity = capacity_of(p),
                                           .most_q = p->gamma + 1,
                                           .slack = p->tokens},
                                 .most_rows = p->batch * (p->gamma + 1),
                                 .most_out = p->batch * (p->gamma + 1)};
}

struct session_spec speculating_drafter(const struct speculating_spec *p) {
    struct session_spec spec = speculating_target(p);
    spec.cache.most_q = 2; /* of a pass that was accepted whole the drafter lacks one more token */
    spec.most_rows = 2 * p->batch;
    spec.most_out = p->batch;
    return spec;
}

struct session_spec speculating_alone(const struct speculating_spec *p) {
    const int32_t chunk = p->prompt > 1 ? context_chunk(p->prompt - 1) : 1;
    return (struct session_spec){
        .cache = {.n_seq = 1, .capacity = capacity_of(p), .most_q = chunk, .slack = p->tokens},
        .most_rows = chunk,
        .most_out = 1};
}

int64_t speculating_host_bytes(const struct speculating_spec *p, int64_t vocab) {
    const int64_t batch = p->batch, drawn = p->temperature > 0;
    const int64_t words = p->prompt + 2 * p->tokens + p->gamma + 8;
    const int64_t drafts = p->draft == DRAFT_MODEL ? batch * p->gamma : 0;
    return batch * words * (int64_t)sizeof(int32_t) +
           batch * p->tokens * (int64_t)sizeof(struct pass) + batch * (int64_t)sizeof(struct span) +
           drawn * vocab *
               ((drafts + 1) * (int64_t)sizeof(double) + (batch + 1) * (int64_t)sizeof(float));
}

int64_t speculating_most_marks(const struct speculating_spec *p) {
    return 1 + 2 * (int64_t)p->tokens + (int64_t)p->batch * (p->tokens + 1);
}

static void alloc_host(struct speculating *s) {
    const struct speculating_spec *p = &s->spec;
    const size_t batch = (size_t)p->batch, tokens = (size_t)p->tokens,
                 vocab = (size_t)s->config.shape.vocab;
    s->text = must_alloc(sizeof *s->text * batch * (size_t)(p->prompt + p->tokens));
    s->plain = must_alloc(sizeof *s->plain * batch * tokens);
    s->len = must_alloc(sizeof *s->len * batch);
    s->n_drafts = must_alloc(sizeof *s->n_drafts * batch);
    s->active = must_alloc(sizeof *s->active * batch);
    s->seqs = must_alloc(sizeof *s->seqs * batch);
    s->ids = must_alloc(sizeof *s->ids * batch * (size_t)(p->gamma + 1));
    s->tokens = must_alloc(sizeof *s->tokens * batch);
    s->spans = must_alloc(sizeof *s->spans * batch);
    s->passes = must_alloc(sizeof *s->passes * batch * tokens);
    s->n_passes = must_alloc(sizeof *s->n_passes * batch);
    s->last_row = must_alloc(sizeof *s->last_row * batch);
    if (!(p->temperature > 0)) return;
    if (p->draft == DRAFT_MODEL) s->p = must_alloc(sizeof *s->p * batch * (size_t)p->gamma * vocab);
    s->q = must_alloc(sizeof *s->q * vocab);
    s->row = must_alloc(sizeof *s->row * vocab);
    s->final = must_alloc(sizeof *s->final * batch * vocab);
}

static int load(struct speculating *s, struct session *session, struct err *err) {
    return contexts_load(&(struct contexts){s->run, session, &s->stream, s->device_hash,
                                            s->spec.prompt - 1, speculating_alone(&s->spec)},
                         err);
}

static int open_drafter(struct speculating *s, struct err *err) {
    const struct session_spec spec = speculating_drafter(&s->spec);
    struct model *model = &s->part;
    int code = 0;
    if (s->spec.own_weights) {
        code = run_model_beside(s->run, &model, err);
    } else {
        s->part = *s->model; /* the same weights, of which fewer layers are run */
        s->part.config = s->draft_config;
    }
    if (!code) code = session_create(&s->drafter, model, &s->draft_config, &spec, err);
    if (!code) code = inputs_create(&s->feed, s->drafter, 1, spec.most_rows, spec.most_out, err);
    return code ? code : load(s, s->drafter, err);
}

int speculating_open(struct speculating *s, struct err *err) {
    const struct session_spec spec = speculating_target(&s->spec);
    alloc_host(s);
    int code = tokens_open(&s->stream, &s->in, &s->config, s->run, err);
    if (!code) code = run_model(s->run, &s->model, err);
    if (code) return code;
    tokens_warn(&s->stream, s->spec.prompt, s->run);
    s->device_hash = plain_device_hash(run_device(s->run));
    for (int32_t q = 0; q < s->spec.batch; q++)
        tokens_fill(&s->stream, q, 0, s->spec.prompt, speculating_text(s, q));
    if (s->spec.runs_model) code = open_drafter(s, err);
    if (!code) code = session_create(&s->target, s->model, &s->config, &spec, err);
    if (!code) code = inputs_create(&s->verify, s->target, 1, spec.most_rows, spec.most_out, err);
    /* The target comes last: its bounds, which the device keeps, are the drafter's too. */
    return code ? code : load(s, s->target, err);
}

void speculating_close(struct speculating *s) {
    inputs_close(&s->verify);
    inputs_close(&s->feed);
    session_close(&s->target);
    session_close(&s->drafter);
    tokens_close(&s->stream);
    free(s->text);
    free(s->plain);
    free(s->len);
    free(s->n_drafts);
    free(s->active);
    free(s->seqs);
    free(s->ids);
    free(s->tokens);
    free(s->spans);
    free(s->passes);
    free(s->n_passes);
    free(s->last_row);
    free(s->p);
    free(s->q);
    free(s->row);
    free(s->final);
}

/* ---- drawing */

double speculating_random(const struct speculating *s, int32_t q, int32_t position,
                          enum speculating_use use) {
    const uint64_t key = random_key(s->stream.seed, STREAM_DRAWS + (uint64_t)q);
    return random_unit(key, (uint64_t)position * N_USES + use);
}

void speculating_softmax(struct speculating *s, const struct session *session,
                         const struct step *step, int32_t o, double *p) {
    struct device *device = session->model->device;
    const struct tensor logits = session_logits(session, step);
    device->kind->download(device, s->row, (const float *)logits.data + o * logits.stride,
                           sizeof *s->row * (size_t)logits.cols);
    rejection_softmax(s->row, logits.cols, s->spec.temperature, p);
}

static void keep_final(struct speculating *s, int32_t q) {
    const int64_t vocab = s->config.shape.vocab;
    memcpy(s->final + q * vocab, s->row, sizeof *s->row * (size_t)vocab);
}

/* ---- plain decoding */

static void rewind_to_prompt(struct speculating *s) {
    for (int32_t q = 0; q < s->spec.batch; q++) {
        session_set_length(s->target, q, s->spec.prompt - 1);
        if (s->drafter) session_set_length(s->drafter, q, s->spec.prompt - 1);
    }
}

static void start_plain(struct speculating *s) {
    for (int32_t q = 0; q < s->spec.batch; q++)
        s->tokens[q] = speculating_text(s, q)[s->spec.prompt - 1];
    session_start(s->target, s->tokens);
}

void speculating_reset(struct speculating *s) {
    rewind_to_prompt(s);
    start_plain(s);
}

static int decode_plainly(struct speculating *s, struct err *err) {
    const struct speculating_spec *p = &s->spec;
    struct session *session = s->target;
    int code = 0;
    for (int32_t i = 0; !code && i < p->tokens; i++) {
        if (p->temperature > 0) {
            if (i) session_start(session, s->ids);
            code = session_decode(session, err);
            for (int32_t q = 0; !code && q < p->batch; q++) {
                speculating_softmax(s, session, &session->decode, q, s->q);
                s->ids[q] = rejection_draw(s->q, s->config.shape.vocab,
                                           speculating_random(s, q, p->prompt + i, USE_TOKEN));
            }
        } else {
            code = session_step(session, err);
            if (!code) session_next(session, &session->decode, s->ids);
        }
        for (int32_t q = 0; !code && q < p->batch; q++)
            s->plain[(int64_t)q * p->tokens + i] = s->ids[q];
    }
    return code;
}

/* ---- verification */

/* Tokens of a pass that are accepted of sequence q, and the one that follows them: greedily, the
   target's own ids from row `row` on. */
static int32_t accept_equal(const struct speculating *s, int32_t q, int32_t row, int32_t *next) {
    const int32_t *drafts = speculating_text(s, q) + s->len[q];
    int32_t n = 0;
    while (n < s->n_drafts[q] && drafts[n] == s->ids[row + n]) n++;
    *next = s->ids[row + n];
    return n;
}

/* By the rule of rejection.h. A draft by lookup or an oracle was certain: p is 1 at its token. */
static int32_t accept_drawn(struct speculating *s, const struct step *step, int32_t q, int32_t row,
                            int32_t *next) {
    const int64_t vocab = s->config.shape.vocab;
    const int32_t *drafts = speculating_text(s, q) + s->len[q];
    int32_t n = 0;
    for (;; n++) {
        speculating_softmax(s, s->target, step, row + n, s->q);
        if (n == s->n_drafts[q]) break;
        const int32_t x = drafts[n];
        const double *p = s->p ? speculating_p(s, q, n) : NULL;
        const double keeps = rejection_keeps(p ? p[x] : 1, s->q[x]);
        if (speculating_random(s, q, s->len[q] + n, USE_ACCEPT) < keeps) continue;
        if (p)
            rejection_residual(p, s->q, vocab, s->q);
        else
            s->q[x] = 0; /* (q - p) above 0 is all of q but x */
        break;
    }
    *next = rejection_draw(s->q, vocab, speculating_random(s, q, s->len[q] + n, USE_TOKEN));
    return n;
}

/* Accepted drafts lie in the text already; what the caches hold beyond them is forgotten. */
static void commit(struct speculating *s, int32_t q, int32_t accepted, int32_t next) {
    const int32_t known = s->len[q];
    s->passes[(int64_t)q * s->spec.tokens + s->n_passes[q]++] =
        (struct pass){known, s->n_drafts[q], accepted};
    speculating_text(s, q)[known + accepted] = next;
    s->len[q] = known + accepted + 1;
    session_set_length(s->target, q, known + accepted);
    if (s->drafter && s->drafter->len[q] > known + accepted)
        session_set_length(s->drafter, q, known + accepted);
    run_mark(s->run, 0, q, accepted + 1);
}

static int verify(struct speculating *s, struct err *err) {
    const int32_t whole = s->spec.prompt + s->spec.tokens, n = s->n_active;
    for (int32_t i = 0; i < n; i++) {
        const int32_t q = s->active[i];
        s->spans[i] = (struct span){.seq = q,
                                    .begin = s->len[q] - 1,
                                    .rows = s->n_drafts[q] + 1,
                                    .tokens = speculating_text(s, q) + s->len[q] - 1,
                                    .out = 2};
    }
    inputs_clear(s->verify);
    int code = inputs_add(s->verify, s->spans, n, err);
    if (code) return code;
    inputs_upload(s->verify);
    code = session_run(s->target, s->verify, 0, err);
    if (code) return code;
    struct step *step = inputs_step(s->verify, 0);
    const bool drawn = s->spec.temperature > 0;
    if (!drawn) {
        session_select(s->target, step);
        session_next(s->target, step, s->ids);
    }
    int32_t row = 0, left = 0;
    for (int32_t q = 0; q < s->spec.batch; q++) s->last_row[q] = -1;
    for (int32_t i = 0; i < n; i++) {
        const int32_t q = s->active[i], rows = s->n_drafts[q] + 1;
        int32_t next;
        const int32_t accepted =
            drawn ? accept_drawn(s, step, q, row, &next) : accept_equal(s, q, row, &next);
        s->last_row[q] = row + accepted;
        commit(s, q, accepted, next);
        row += rows;
        if (s->len[q] < whole)
            s->active[left++] = q;
        else if (drawn)
            keep_final(s, q);
    }
    s->n_active = left;
    s->last = *step;
    return 0;
}

/* ---- an execution */

static int64_t enter(struct speculating *s, int phase) {
    run_phase(s->run, phase);
    return run_now(s->run);
}

static int speculate(struct speculating *s, struct speculating_times *t, struct err *err) {
    int64_t begin = enter(s, SPECULATE_DRAFT);
    int code = 0;
    for (int32_t q = 0; q < s->spec.batch; q++) {
        run_arrived(s->run, q, begin);
        s->active[q] = q;
        s->len[q] = s->spec.prompt;
        s->n_passes[q] = 0;
    }
    s->n_active = s->spec.batch;
    while (!code && s->n_active) {
        code = speculating_draft(s, err);
        const int64_t middle = enter(s, SPECULATE_VERIFY);
        if (!code) code = verify(s, err);
        const int64_t end = s->n_active && !code ? enter(s, SPECULATE_DRAFT) : run_now(s->run);
        t->draft += (double)(middle - begin);
        t->verify += (double)(end - middle);
        begin = end;
    }
    return code;
}

void speculating_execute(struct speculating *s) {
    struct err err = {0};
    struct speculating_times t = {0};
    const int64_t begin = enter(s, SPECULATE_PLAIN);
    int code = decode_plainly(s, &err);
    if (!code) {
        rewind_to_prompt(s);
        t.plain = (double)(run_now(s->run) - begin);
        code = speculate(s, &t, &err);
    }
    if (code) {
        run_fail(s->run, "%s", err.text);
        return;
    }
    if (s->executions++ == 1) s->times = (struct speculating_times){0}; /* the cold one goes */
    s->times.plain += t.plain;
    s->times.draft += t.draft;
    s->times.verify += t.verify;
    s->times.executions++;
}

/* ---- the ledger of what was done */

static const struct pass *pass_of(const struct speculating *s, int32_t q, int32_t i) {
    return i < s->n_passes[q] ? &s->passes[(int64_t)q * s->spec.tokens + i] : NULL;
}

/* Rows that the drafter's first step feeds: one more after a pass that was accepted whole. */
static int32_t fed_first(const struct speculating *s, int32_t q, int32_t i) {
    const struct pass *before = i ? pass_of(s, q, i - 1) : NULL;
    return before && before->drafted && before->accepted == before->drafted ? 2 : 1;
}

static int32_t add_pass(const struct speculating *s, int32_t i, struct work *work,
                        struct ledger_part *parts) {
    int32_t n = 0, rows = 0, most = 0;
    for (int32_t q = 0; q < s->spec.batch; q++) {
        const struct pass *pass = pass_of(s, q, i);
        if (!pass) continue;
        parts[n++] = (struct ledger_part){1, pass->drafted + 1, pass->known + pass->drafted};
        rows += pass->drafted + 1;
        if (pass->drafted > most) most = pass->drafted;
        work[SPECULATE_DRAFT].items += pass->drafted;
        work[SPECULATE_VERIFY].items += pass->accepted + 1;
    }
    if (n) ledger_step(&work[SPECULATE_VERIFY], &s->config, parts, n, rows);
    for (int32_t k = 0; s->drafter && k < most; k++) {
        int32_t m = 0;
        for (int32_t q = 0; q < s->spec.batch; q++) {
            const struct pass *pass = pass_of(s, q, i);
            if (pass && pass->drafted > k)
                parts[m++] = (struct ledger_part){1, k ? 1 : fed_first(s, q, i), pass->known + k};
        }
        ledger_step(&work[SPECULATE_DRAFT], &s->draft_config, parts, m, m);
    }
    return n;
}

void speculating_work(const struct speculating *s, struct work *work) {
    const struct speculating_spec *p = &s->spec;
    struct ledger_part *parts = must_alloc(sizeof *parts * (size_t)p->batch);
    ledger_decode(&work[SPECULATE_PLAIN], &s->config, p->batch, p->prompt - 1, p->tokens);
    work[SPECULATE_PLAIN].items = (double)p->batch * p->tokens;
    for (int32_t i = 0; add_pass(s, i, work, parts); i++) continue;
    free(parts);
}
