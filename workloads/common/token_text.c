/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a text, made once a run; where sequences begin in them. */
#include "workloads/common/token_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/common/plain.h"
#include "workloads/model/tokenizer.h"

enum { FEW_LINES = 8, PIECE_MOST = 256 };

struct kept { /* the piece of the run's memory; then int32_t ids[room], uint8_t ends_line[room] */
    int32_t n, bos;
};
static int32_t *kept_ids(struct kept *k) { return (int32_t *)(k + 1); }
static uint8_t *kept_ends(struct kept *k, size_t room) { return (uint8_t *)(kept_ids(k) + room); }

/* ---- tokens */

static bool ends_line(const struct tokenizer *tokenizer, int32_t id) {
    char piece[PIECE_MOST];
    const size_t n = tokenizer_piece(tokenizer, id, piece, sizeof piece);
    return n && n <= sizeof piece && piece[n - 1] == '\n';
}

static int check_ids(const int32_t *ids, size_t n, int64_t vocab, struct err *err) {
    if (!n) return err_set(err, ERR_INPUT, "workload.text has no tokens");
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return err_set(err, ERR_INPUT,
                           "the tokenizer of model.file makes token %" PRId32
                           ", and the model has %" PRId64 ": its text cannot be read, its ids can "
                           "(workload.input = \"random\")",
                           ids[i], vocab);
    return 0;
}

static int tokenize(const struct model_config *config, const char *text, size_t bytes,
                    int32_t **ids, uint8_t **ends, size_t *n, int32_t *bos, struct err *err) {
    struct tokenizer *tokenizer = NULL;
    int code = tokenizer_open_path(&tokenizer, config->params.file, err);
    if (!code) code = tokenizer_encode(tokenizer, text, bytes, 0, ids, n, err);
    if (!code) code = check_ids(*ids, *n, config->shape.vocab, err);
    if (!code) code = tokenizer_begins(tokenizer, bos, err);
    if (!code && *bos >= 0) code = check_ids(bos, 1, config->shape.vocab, err);
    if (!code) {
        *ends = must_alloc(*n);
        for (size_t i = 0; i < *n; i++) (*ends)[i] = ends_line(tokenizer, (*ids)[i]);
    }
    tokenizer_close(&tokenizer);
    return code;
}

int token_text_open(struct token_text **out, const struct model_config *config, struct run *run,
                    struct err *err) {
    size_t bytes = 0, n = 0;
    const char *text = run_text(run, &bytes);
    *out = NULL;
    if (!text) return err_set(err, ERR_INTERNAL, "this run has no text");
    /* A byte is a token at most, but for what normalising makes of a few characters: a text of many
       of these is tokenized at each visit. */
    const size_t room = (bytes + 16) / 8 * 8;
    char key[100];
    bool ready;
    void *own;
    const char *path = config->params.file;
    snprintf(key, sizeof key, "text %016" PRIx64 " %016" PRIx64,
             hash_bytes(path, strlen(path), hash_bytes(text, bytes, 0)), model_key(config));
    const size_t size = sizeof(struct kept) + room * (sizeof(int32_t) + 1);
    struct kept *kept = plain_piece(run, key, size, &ready, &own);
    int code = 0;
    if (ready) {
        *out = token_text_of(kept_ids(kept), kept_ends(kept, room), kept->n, kept->bos);
    } else {
        int32_t *ids = NULL, bos = -1;
        uint8_t *ends = NULL;
        code = tokenize(config, text, bytes, &ids, &ends, &n, &bos, err);
        if (!code) *out = token_text_of(ids, ends, (int32_t)n, bos);
        if (!code && !own && n <= room) {
            *kept = (struct kept){(int32_t)n, bos};
            memcpy(kept_ids(kept), ids, n * sizeof *ids);
            memcpy(kept_ends(kept, room), ends, n);
            run_snapshot_ready(run, key);
        }
        free(ids);
        free(ends);
    }
    free(own);
    return code;
}

/* ---- places */

struct token_text *token_text_of(const int32_t *ids, const uint8_t *ends, int32_t n, int32_t bos) {
    struct token_text *t = must_alloc(sizeof *t);
    *t = (struct token_text){.n = n, .bos = bos};
    t->ids = must_alloc(sizeof *t->ids * (size_t)n);
    t->begin = must_alloc(sizeof *t->begin * (size_t)n);
    memcpy(t->ids, ids, sizeof *t->ids * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        const bool after_line = !i || ends[i - 1];
        if (after_line && !ends[i]) t->begin[t->n_begin++] = i; /* an empty line is no beginning */
    }
    if (t->n_begin < FEW_LINES) {
        free(t->begin);
        t->begin = NULL;
        t->n_begin = n;
    }
    t->key = hash_bytes(ids, sizeof *ids * (size_t)n, (uint64_t)bos + 1);
    return t;
}

void token_text_close(struct token_text **out) {
    struct token_text *t = *out;
    if (!t) return;
    free(t->ids);
    free(t->begin);
    free(t);
    *out = NULL;
}

static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

/* The step from one sequence's beginning to the next one's, of n: near to n over the golden ratio,
   so that few sequences lie far apart too, and without a common divisor, so that all are met. */
static int64_t step_of(int64_t n) {
    int64_t step = (int64_t)(0.6180339887498949 * (double)n);
    while (step > 1 && divisor(n, step) > 1) step--;
    return step > 0 ? step : 1;
}

void token_text_fill(const struct token_text *t, uint64_t seed, int32_t seq, int32_t first,
                     int32_t n, int32_t *out) {
    const uint32_t begins = (uint32_t)t->n_begin;
    const int64_t zero = (int64_t)random_below(random_key(seed, 0), 0, begins),
                  at = (zero + seq * step_of(begins)) % begins, again = seq / (int32_t)begins;
    const int64_t from = (t->begin ? t->begin[at] : at) + again - (t->bos >= 0);
    for (int32_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)first + i;
        out[i] = k || t->bos < 0 ? t->ids[(from + k) % t->n] : t->bos;
    }
}
