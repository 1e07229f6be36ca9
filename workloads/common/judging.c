/* SPDX-License-Identifier: Apache-2.0 */
/* What both models are shown, the reference's part once a run, and ours. */
#include "workloads/common/judging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/common/plain.h"
#include "workloads/model/tokenizer.h"

/* ---- bounds */

static size_t n_written(const struct judging_spec *p) {
    return (size_t)p->continuations * (size_t)p->each;
}

static int32_t n_questions(const struct judging *j) {
    return j->questions ? questions_count(j->questions) : 0;
}

static size_t reference_bytes(const struct judging_spec *p, int64_t vocab, int32_t questions) {
    return sizeof(float) * (size_t)windows_positions(&p->windows) * (size_t)vocab +
           sizeof(int32_t) * (n_written(p) + (size_t)questions * (size_t)p->answer);
}

/* One session lives at a time. */
static void most_of(const struct model_config *config, const struct session_spec *spec,
                    int64_t *most) {
    int64_t bytes[N_CLASSES] = {0};
    session_bytes(config, spec, bytes);
    bytes[MEM_STATE] += inputs_bytes(spec->cache.n_seq, 1, spec->most_rows, spec->most_out);
    for (int c = 0; c < N_CLASSES; c++)
        if (bytes[c] > most[c]) most[c] = bytes[c];
}

int64_t judging_bytes(const struct judging_spec *p, const struct model_config *config,
                      const struct model_config *reference, int64_t *bytes) {
    const struct model_config *both[] = {config, reference};
    int64_t most[N_CLASSES] = {0};
    for (int i = 0; i < 2; i++) {
        const struct session_spec scores = scoring_spec(&p->windows);
        most_of(both[i], &scores, most);
        if (p->continuations) {
            const struct session_spec writes =
                continuing_spec(p->continuations, p->prompt, p->each);
            most_of(both[i], &writes, most);
        }
        if (p->asks) {
            const struct session_spec asks =
                continuing_spec(JUDGING_TOGETHER, JUDGING_QUESTION, p->answer);
            most_of(both[i], &asks, most);
        }
    }
    for (int c = 0; c < N_CLASSES; c++) bytes[c] += most[c];
    return (int64_t)reference_bytes(p, config->shape.vocab, p->asks ? QUESTIONS_MOST : 0) +
           scoring_host_bytes(&p->windows, config->shape.vocab) +
           windows_positions(&p->windows) * (int64_t)sizeof(struct verdict) +
           (int64_t)sizeof(int32_t) *
               (windows_tokens(&p->windows) + 2 * (int64_t)n_written(p) +
                (p->asks ? QUESTIONS_MOST * ((int64_t)p->answer + JUDGING_QUESTION) : 0));
}

void judging_work(const struct judging_spec *p, const struct model_config *config,
                  struct work *work) {
    scoring_work(work, config, &p->windows);
    if (p->continuations) continuing_work(work, config, p->continuations, p->prompt, p->each);
    if (p->asks) continuing_work(work, config, JUDGING_TOGETHER, JUDGING_QUESTION / 4, p->answer);
}

/* ---- what is shown */

static int open_tokenizer(struct judging *j, struct err *err) {
    const bool words = strcmp(j->text_name, JUDGED_RANDOM) != 0 && !judged_is_ids(j->text_name);
    if (!words && !j->spec.asks) return 0;
    return tokenizer_open_path(&j->tokenizer, j->config.params.file, err);
}

/* The one token that a special name is, or -1. */
static int special(const struct tokenizer *t, const char *name, int32_t *id, struct err *err) {
    int32_t *ids = NULL;
    size_t n = 0;
    const int code = tokenizer_encode(t, name, strlen(name), TOKENIZE_SPECIAL, &ids, &n, err);
    *id = !code && n == 1 ? ids[0] : -1;
    free(ids);
    return code;
}

static int ask(struct judging *j, int32_t i, bool chatml, int32_t bos, struct err *err) {
    const char *question = questions_at(j->questions, i)->text;
    struct text t = {0};
    int32_t *ids = NULL, *to = j->asked_ids + (int64_t)i * JUDGING_QUESTION, at = 0;
    size_t n = 0;
    if (chatml)
        text_printf(&t, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", question);
    else
        text_printf(&t, "Question: %s\nAnswer:", question);
    int code =
        tokenizer_encode(j->tokenizer, t.data, t.len, chatml ? TOKENIZE_SPECIAL : 0, &ids, &n, err);
    if (!code && n + 1 > JUDGING_QUESTION)
        code = err_set(err, ERR_INPUT, "%s: question %" PRId32 " has %zu tokens, %d at most",
                       j->questions_name, i + 1, n, (int)JUDGING_QUESTION - 1);
    if (!code) {
        if (bos >= 0) to[at++] = bos;
        memcpy(to + at, ids, sizeof *ids * n);
        j->asked[i] = (struct prompt){to, at + (int32_t)n};
    }
    free(ids);
    text_free(&t);
    return code;
}

static int open_questions(struct judging *j, struct err *err) {
    struct text path = {0};
    int32_t begins = -1, bos = -1;
    j->ends[0] = j->ends[1] = -1;
    if (!j->spec.asks) return 0;
    judged_path(j->questions_name, &path);
    int code = questions_read(&j->questions, path.data, err);
    text_free(&path);
    if (!code) code = special(j->tokenizer, "<|im_start|>", &begins, err);
    if (!code) code = special(j->tokenizer, "<|im_end|>", &j->ends[1], err);
    if (!code) code = tokenizer_begins(j->tokenizer, &bos, err);
    if (code) return code;
    const bool known = begins >= 0 && j->ends[1] >= 0;
    if (j->chat == CHAT_CHATML && !known)
        return err_set(
            err, ERR_INPUT,
            "workload.chat = \"chatml\", and this model's tokenizer has no <|im_start|>");
    j->ends[0] = tokenizer_eos(j->tokenizer);
    const int32_t n = questions_count(j->questions);
    j->asked_ids = must_alloc(sizeof *j->asked_ids * (size_t)n * JUDGING_QUESTION);
    j->asked = must_alloc(sizeof *j->asked * (size_t)n);
    for (int32_t i = 0; !code && i < n; i++)
        code = ask(j, i, j->chat != CHAT_PLAIN && known, bos, err);
    return code;
}

/* Prompts begin at places that are spread evenly over the text. */
static void place_prompts(struct judging *j) {
    const struct judging_spec *p = &j->spec;
    j->prompts = must_alloc(sizeof *j->prompts * (size_t)(p->continuations + 1));
    for (int32_t q = 0; q < p->continuations; q++)
        j->prompts[q] = (struct prompt){
            j->text.tokens + (j->text.n - p->prompt) * q / p->continuations, p->prompt};
}

/* ---- both models */

struct judged { /* one of the two, and what it is asked for */
    struct model *model;
    const struct model_config *config;
    struct kv_rounder *rounder;
};

static int score(const struct judging *j, const struct judged *m,
                 int (*take)(void *, int64_t, int32_t, const float *, struct err *), void *ctx,
                 struct err *err) {
    return scoring_run(&(struct scoring){.model = m->model,
                                         .config = m->config,
                                         .windows = &j->spec.windows,
                                         .tokens = j->text.tokens,
                                         .bos = j->text.bos,
                                         .rounder = m->rounder,
                                         .take = take,
                                         .ctx = ctx},
                       err);
}

static struct continuing continuing_of(const struct judging *j, const struct judged *m) {
    return (struct continuing){.model = m->model,
                               .config = m->config,
                               .prompts = j->prompts,
                               .n = j->spec.continuations,
                               .tokens = j->spec.each};
}

static int answer(const struct judging *j, const struct judged *m, int32_t *said, struct err *err) {
    const int32_t all = n_questions(j);
    int code = 0;
    for (int32_t at = 0, n; !code && at < all; at += n) {
        n = all - at < JUDGING_TOGETHER ? all - at : JUDGING_TOGETHER;
        const struct continuing c = {.model = m->model,
                                     .config = m->config,
                                     .prompts = j->asked + at,
                                     .n = n,
                                     .tokens = j->spec.answer};
        code = continuing_write(&c, said + (int64_t)at * j->spec.answer, err);
    }
    return code;
}

/* ---- the reference */

static int keep(void *ctx, int64_t first, int32_t rows, const float *logits, struct err *err) {
    struct judging *j = ctx;
    const int64_t vocab = j->config.shape.vocab;
    (void)err;
    memcpy(j->logits + first * vocab, logits, sizeof *logits * (size_t)rows * (size_t)vocab);
    return 0;
}

static int run_reference(struct judging *j, struct err *err) {
    struct model *own = NULL;
    int code = 0;
    if (j->spec.own_reference) code = model_create(&own, j->model->device, &j->reference, err);
    const struct judged m = {own ? own : j->model, &j->reference, NULL};
    if (!code) code = score(j, &m, keep, j, err);
    if (!code && j->spec.continuations) {
        const struct continuing c = continuing_of(j, &m);
        code = continuing_write(&c, j->written, err);
    }
    if (!code) code = answer(j, &m, j->said, err);
    model_close(&own);
    return code ? err_prefix(err, "the reference") : 0;
}

/* All that it depends on stands in the key: schemes of one model share it. */
static int open_reference(struct judging *j, struct err *err) {
    const struct judging_spec *p = &j->spec;
    const struct windows *w = &p->windows;
    const int64_t vocab = j->config.shape.vocab;
    const size_t bytes = reference_bytes(p, vocab, n_questions(j));
    const int32_t numbers[] = {w->window, w->stride, w->unscored, w->n,          p->continuations,
                               p->each,   p->prompt, p->answer,   n_questions(j)};
    char key[160];
    bool ready;
    uint64_t shown = hash_bytes(numbers, sizeof numbers, j->text.hash);
    for (int32_t i = 0; i < n_questions(j); i++)
        shown = hash_bytes(j->asked[i].tokens, sizeof(int32_t) * (size_t)j->asked[i].n, shown);
    snprintf(key, sizeof key, "reference %016" PRIx64 " %016" PRIx64 " %016" PRIx64,
             model_hash(&j->reference), plain_device_hash(run_device(j->run)), shown);
    j->logits = plain_piece(j->run, key, bytes, &ready, &j->own);
    j->written = (int32_t *)(void *)(j->logits + windows_positions(w) * vocab);
    j->said = j->written + n_written(p);
    if (ready) return 0;
    const int code = run_reference(j, err);
    if (!code && !j->own) run_snapshot_ready(j->run, key);
    return code;
}

/* ---- ours */

static int judge(void *ctx, int64_t first, int32_t rows, const float *logits, struct err *err) {
    struct judging *j = ctx;
    const int64_t vocab = j->config.shape.vocab;
    for (int32_t i = 0; i < rows; i++) {
        const int64_t p = first + i, token = windows_target(&j->spec.windows, p);
        if (!verdict_of(logits + i * vocab, j->logits + p * vocab, vocab, j->text.tokens[token],
                        &j->verdicts[p]))
            return err_set(err, ERR_DEVICE,
                           "a logit behind token %" PRId64 " of the text is NaN or infinite",
                           token - 1);
    }
    return 0;
}

int judging_run(struct judging *j, struct err *err) {
    const struct judged m = {j->model, &j->config, j->rounder};
    const struct continuing c = continuing_of(j, &m);
    int code = score(j, &m, judge, j, err);
    if (!code && c.n) code = continuing_follow(&c, j->written, j->choice, err);
    if (!code && c.n) code = continuing_write(&c, j->free_run, err);
    return code ? code : answer(j, &m, j->our_said, err);
}

/* Texts and caches change nothing about the weights. */
static int open_weights(struct judging *j, struct err *err) {
    char key[60];
    bool ready;
    void *own;
    snprintf(key, sizeof key, "weight errors %016" PRIx64, model_key(&j->config));
    struct weight_error *kept = plain_piece(j->run, key, sizeof *kept, &ready, &own);
    const int code = ready ? 0 : weight_error_of(&j->config, kept, err);
    if (!code) j->weight = *kept;
    if (!code && !ready && !own) run_snapshot_ready(j->run, key);
    free(own);
    return code;
}

int judging_open(struct judging *j, struct err *err) {
    const struct judging_spec *p = &j->spec;
    const size_t written = n_written(p) + 1;
    int code = run_model(j->run, &j->model, err);
    if (!code) code = open_tokenizer(j, err);
    if (!code)
        code = judged_read(&j->text, j->text_name, j->text_digest, j->tokenizer, &j->config,
                           run_seed(j->run), windows_tokens(&p->windows), err);
    if (!code) code = open_questions(j, err);
    if (code) return code;
    place_prompts(j);
    j->verdicts = must_alloc(sizeof *j->verdicts * (size_t)windows_positions(&p->windows));
    j->choice = must_alloc(sizeof *j->choice * written);
    j->free_run = must_alloc(sizeof *j->free_run * written);
    j->our_said =
        must_alloc(sizeof *j->our_said * ((size_t)n_questions(j) * (size_t)p->answer + 1));
    code = open_weights(j, err);
    return code ? code : open_reference(j, err);
}

void judging_close(struct judging *j) {
    tokenizer_close(&j->tokenizer);
    judged_close(&j->text);
    questions_close(&j->questions);
    if (j->rounder) kv_rounder_close(j->rounder);
    free(j->asked_ids);
    free(j->asked);
    free(j->prompts);
    free(j->own);
    free(j->verdicts);
    free(j->choice);
    free(j->free_run);
    free(j->our_said);
}
