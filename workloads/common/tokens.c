/* SPDX-License-Identifier: Apache-2.0 */
/* Token streams that are distinct per sequence, where they come from, and how rich they are. */
#include "workloads/common/tokens.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/problems.h"
#include "base/random.h"
#include "workloads/common/token_text.h"
#include "workloads/model/model.h"
#include "workloads/workload.h"

const char *const token_input_words[] = {"auto", "text", "random", "constant", NULL};

void input_check(const struct input_params *p, const struct model_config *config,
                 struct problems *problems) {
    if (p->input != TOKENS_TEXT || *p->text_digest) return;
    problem(problems, "workload.input", "model.file",
            config && model_from_file(&config->params)
                ? "model.file has no tokenizer that is understood here"
                : "seeded weights read no text: model.file names a model that does");
}

int tokens_open(struct token_stream *stream, const struct input_params *p,
                const struct model_config *config, struct run *run, struct err *err) {
    struct token_text *text = NULL;
    *stream = (struct token_stream){
        .seed = run_seed(run), .vocab = config->shape.vocab, .input = p->input};
    const int code = *p->text_digest ? token_text_open(&text, config, run, err) : 0;
    stream->text = text;
    return code;
}

void tokens_close(struct token_stream *stream) {
    struct token_text *text = (struct token_text *)(uintptr_t)stream->text; /* opened as such */
    token_text_close(&text);
    stream->text = NULL;
}

void tokens_fill(const struct token_stream *stream, int32_t seq, int32_t first, int32_t n,
                 int32_t *out) {
    const bool constant = stream->input == TOKENS_CONSTANT;
    if (stream->text) {
        token_text_fill(stream->text, stream->seed, seq, first, n, out);
        return;
    }
    const uint64_t key = random_key(stream->seed, constant ? 0 : (uint64_t)seq);
    for (int32_t i = 0; i < n; i++)
        out[i] = (int32_t)random_below(key, constant ? 0 : (uint64_t)first + (uint64_t)i,
                                       (uint32_t)stream->vocab);
}

uint64_t tokens_key(const struct token_stream *stream) {
    if (stream->text) return random_key(stream->seed, stream->text->key);
    return stream->input == TOKENS_CONSTANT ? random_key(stream->seed, UINT64_MAX) : stream->seed;
}

void tokens_warn(const struct token_stream *stream, int64_t most, struct run *run) {
    if (stream->text && most > stream->text->n)
        run_flag(run, "text_repeats",
                 "the text has %d tokens and a sequence takes %" PRId64 ": it begins again",
                 (int)stream->text->n, most);
    if (stream->input != TOKENS_CONSTANT) return;
    run_flag(run, "constant_input",
             "one token is fed everywhere: caches, power and routing see less than with real text");
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

double tokens_entropy(int32_t *tokens, int64_t n) {
    double bits = 0;
    qsort(tokens, (size_t)n, sizeof *tokens, ascending);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && tokens[end] == tokens[i];) end++;
        double p = (double)(end - i) / (double)n;
        bits -= p * log2(p);
    }
    return bits + 0.0; /* never -0 */
}

double tokens_stream_entropy(const struct token_stream *stream, int32_t n_seq, int32_t n) {
    const int32_t most = 1 << 20; /* enough to tell */
    if (n > most) n = most;
    if ((int64_t)n_seq * n > most) n_seq = most / n;
    int32_t *all = must_alloc(sizeof *all * (size_t)n_seq * (size_t)n);
    for (int32_t s = 0; s < n_seq; s++) tokens_fill(stream, s, 0, n, all + (int64_t)s * n);
    double bits = tokens_entropy(all, (int64_t)n_seq * n);
    free(all);
    return bits;
}
