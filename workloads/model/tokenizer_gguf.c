/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer in a GGUF file. Sources: docs/gguf.md of the ggml project for the keys; for what a
 * pre-tokenizer's name means the model's own tokenizer.json, or llama.cpp's rule for `default`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/file_parts.h"
#include "workloads/model/tokenizer_parts.h"

enum { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_TEXT = 8 }; /* type numbers of elements */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

/* ---- arrays -----------------------------------------------------------------------------------
 */

struct scan { /* reads an array's elements one after the other */
    struct file_scan file;
    struct err *err;
};

static int take(struct scan *s, void *to, int64_t n) {
    if (n > s->file.part->size - s->file.at)
        return err_set(s->err, ERR_INPUT, "its metadata end too early");
    return file_scan(&s->file, to, n, s->err);
}

static int take_u32(struct scan *s, uint32_t *v) {
    uint8_t b[4];
    int code = take(s, b, 4);
    if (!code) *v = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return code;
}

/* Into a buffer of TOKEN_MOST_BYTES. */
static int take_text(struct scan *s, const char *what, int64_t nth, char *out, size_t *n) {
    uint32_t low, high;
    int code = take_u32(s, &low);
    if (!code) code = take_u32(s, &high);
    if (code) return code;
    if (high || low > TOKEN_MOST_BYTES)
        return err_set(s->err, ERR_INPUT, "%s %lld has %llu bytes; at most %d are read", what,
                       (long long)nth, (unsigned long long)high << 32 | low, TOKEN_MOST_BYTES);
    *n = low;
    return take(s, out, low);
}

/* The array of this key, of one of two types. NULL where there is none. */
static int array(const struct model_file *file, const char *key, uint32_t type, uint32_t or_type,
                 const struct file_value **out, struct err *err) {
    *out = model_file_value(file, key);
    if (*out &&
        ((*out)->kind != FILE_ARRAY || ((*out)->element != type && (*out)->element != or_type)))
        return err_set(err, ERR_INPUT, "%s is not an array of the right type", key);
    return 0;
}

static void scan_begin(struct scan *s, const struct model_file *file, const struct file_value *v,
                       struct err *err) {
    s->file.part = &file->parts[0];
    s->file.at = v->begin;
    s->file.begin = s->file.end = 0;
    s->err = err;
}

/* ---- the vocabulary ---------------------------------------------------------------------------
 */

static enum token_kind kind_of(uint32_t type) {
    switch (type) {
    case TYPE_UNKNOWN:
    case TYPE_CONTROL: return TOKEN_SPECIAL;
    case TYPE_USER: return TOKEN_ADDED;
    case TYPE_UNUSED: return TOKEN_ASIDE;
    case TYPE_BYTE: return TOKEN_BYTE;
    default: return TOKEN_NORMAL;
    }
}

static int set_token(struct tokenizer *t, int64_t id, char *text, size_t n, uint32_t type,
                     double score, struct err *err) {
    enum token_kind kind = kind_of(type);
    if (!utf8_valid(text, n))
        return err_set(err, ERR_INPUT, "token %lld is no UTF-8 text", (long long)id);
    if (isnan(score))
        return err_set(err, ERR_INPUT, "token %lld's score is no number", (long long)id);
    if (!n) kind = TOKEN_ASIDE;
    if (t->byte_level && kind == TOKEN_BYTE) kind = TOKEN_NORMAL;
    if (kind >= TOKEN_ADDED) {
        if (n > TOKEN_MOST_TRIED)
            return err_set(err, ERR_UNSUPPORTED,
                           "the name of special token %lld has %zu bytes; up to %d are read",
                           (long long)id, n, TOKEN_MOST_TRIED);
        added_add(&t->raw, t->arena,
                  (struct added){.name = text,
                                 .bytes = (uint32_t)n,
                                 .id = (int32_t)id,
                                 .special = kind == TOKEN_SPECIAL});
    } else if (t->byte_level) {
        char bytes[TOKEN_MOST_BYTES];
        const int64_t made = bytes_of_letters(text, n, bytes);
        if (made >= 0)
            return vocabulary_set(&t->vocabulary, id, bytes, (size_t)made, kind, score, err);
        kind = TOKEN_ASIDE;
    } else if (kind == TOKEN_NORMAL && n > PIECE_MOST_BYTES) {
        return err_set(err, ERR_UNSUPPORTED, "token %lld has %zu bytes; up to %d are read",
                       (long long)id, n, PIECE_MOST_BYTES);
    }
    return vocabulary_set(&t->vocabulary, id, text, n, kind, score, err);
}

static int read_tokens(struct tokenizer *t, const struct model_file *file, bool scored,
                       struct err *err) {
    const struct file_value *tokens, *types, *scores;
    int code = array(file, "tokenizer.ggml.tokens", GGUF_TEXT, GGUF_TEXT, &tokens, err);
    if (!code) code = array(file, "tokenizer.ggml.token_type", GGUF_I32, GGUF_U32, &types, err);
    if (!code) code = array(file, "tokenizer.ggml.scores", GGUF_F32, GGUF_F32, &scores, err);
    if (code) return code;
    if (!tokens || !tokens->count || tokens->count > TOKENS_MOST)
        return err_set(err, ERR_INPUT, "tokenizer.ggml.tokens has %lld tokens: 1 ... %d",
                       tokens ? (long long)tokens->count : 0, TOKENS_MOST);
    if (scored && !scores)
        return err_set(err, ERR_INPUT, "its metadata lack tokenizer.ggml.scores");
    if ((types && types->count != tokens->count) || (scores && scores->count != tokens->count))
        return err_set(err, ERR_INPUT,
                       "tokenizer.ggml.tokens, .token_type and .scores differ in length");
    struct scan *in = must_alloc(3 * sizeof *in); /* texts, types, scores */
    char *text = must_alloc(TOKEN_MOST_BYTES + 1);
    scan_begin(&in[0], file, tokens, err);
    if (types) scan_begin(&in[1], file, types, err);
    if (scores) scan_begin(&in[2], file, scores, err);
    for (int64_t id = 0; id < tokens->count && !code; id++) {
        uint32_t type = TYPE_NORMAL, bits = 0;
        float score;
        size_t n = 0;
        code = take_text(&in[0], "token", id, text, &n);
        if (!code && types) code = take_u32(&in[1], &type);
        if (!code && scores) code = take_u32(&in[2], &bits);
        memcpy(&score, &bits, sizeof score);
        if (!code) code = set_token(t, id, text, n, type, (double)score, err);
    }
    free(text);
    free(in);
    return code ? code : vocabulary_index(&t->vocabulary, err);
}

static int read_merges(struct tokenizer *t, const struct model_file *file, struct err *err) {
    const struct file_value *merges;
    int code = array(file, "tokenizer.ggml.merges", GGUF_TEXT, GGUF_TEXT, &merges, err);
    if (code) return code;
    if (!merges) return err_set(err, ERR_INPUT, "its metadata lack tokenizer.ggml.merges");
    struct scan *in = must_alloc(sizeof *in);
    char *text = must_alloc(TOKEN_MOST_BYTES + 1), *bytes = must_alloc(TOKEN_MOST_BYTES + 1);
    scan_begin(in, file, merges, err);
    for (int64_t i = 0; i < merges->count && !code; i++) {
        size_t n = 0;
        code = take_text(in, "merge", i, text, &n);
        if (code) break;
        const char *space = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
        const int64_t left = space ? bytes_of_letters(text, (size_t)(space - text), bytes) : -1;
        const int64_t right =
            left > 0 ? bytes_of_letters(space + 1, (size_t)(text + n - space - 1), bytes + left)
                     : -1;
        if (right < 0)
            code = err_set(err, ERR_INPUT, "merge %lld does not name two tokens", (long long)i);
        else
            code = vocabulary_merge(&t->vocabulary, bytes, (size_t)left, bytes + left,
                                    (size_t)right, err);
    }
    free(bytes);
    free(text);
    free(in);
    return code;
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static int token_id(const struct model_file *file, const char *key, int64_t n, int32_t otherwise,
                    int32_t *id, struct err *err) {
    const struct file_value *v = model_file_value(file, key);
    *id = otherwise < n ? otherwise : -1;
    if (!v) return 0;
    if (v->kind != FILE_INT || v->integer < 0 || v->integer >= n)
        return err_set(err, ERR_INPUT, "%s is not among its %lld tokens", key, (long long)n);
    *id = (int32_t)v->integer;
    return 0;
}

static bool flag(const struct model_file *file, const char *key, bool otherwise) {
    const struct file_value *v = model_file_value(file, key);
    return v && v->kind == FILE_FLAG ? v->integer != 0 : otherwise;
}

static int read_ends(struct tokenizer *t, const struct model_file *file, bool sentencepiece,
                     bool add_bos, struct err *err) {
    const int64_t n = t->vocabulary.n_ids;
    int code =
        token_id(file, "tokenizer.ggml.bos_token_id", n, sentencepiece ? 1 : -1, &t->bos, err);
    if (!code)
        code =
            token_id(file, "tokenizer.ggml.eos_token_id", n, sentencepiece ? 2 : -1, &t->eos, err);
    if (!code && sentencepiece)
        code = token_id(file, "tokenizer.ggml.unknown_token_id", n, 0, &t->vocabulary.unknown, err);
    if (code) return code;
    if (flag(file, "tokenizer.ggml.add_bos_token", add_bos)) {
        if (t->bos < 0)
            return err_set(err, ERR_INPUT, "it begins texts with a token that it lacks");
        t->begin[t->n_begin++] = t->bos;
    }
    if (flag(file, "tokenizer.ggml.add_eos_token", false)) {
        if (t->eos < 0) return err_set(err, ERR_INPUT, "it ends texts with a token that it lacks");
        t->end[t->n_end++] = t->eos;
    }
    return 0;
}

/* ---- families ---------------------------------------------------------------------------------
 */

/* Only those whose rule is known for sure: the name is all that the file says. */
static const struct family {
    const char *names;       /* separated by spaces */
    const char *patterns[5]; /* one after the other */
    bool nfc, begins, whole_words;
} families[] = {
    {"smollm starcoder refact codeshell", {pattern_digit, pattern_gpt2}, false, false, false},
    {"gpt-2 phi-2", {pattern_gpt2}, false, false, false},
    {"llama-bpe llama3 llama-v3", {pattern_llama3}, false, true, true},
    {"dbrx smaug-bpe", {pattern_llama3}, false, false, false},
    {"qwen2", {pattern_qwen2}, true, false, false},
    {"tekken", {pattern_tekken}, false, true, true},
    {"default",
     {pattern_default, pattern_gpt2, pattern_digits, pattern_three_digits},
     false,
     false,
     false},
};

static int read_byte_level(struct tokenizer *t, const struct model_file *file, struct err *err) {
    const struct file_value *v = model_file_value(file, "tokenizer.ggml.pre");
    const char *name = v && v->kind == FILE_TEXT ? v->text : "default";
    const struct family *family = NULL;
    int code = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (text_has_word(families[i].names, name, strlen(name))) family = &families[i];
    if (!family || !*name)
        return err_set(
            err, ERR_UNSUPPORTED,
            "its pre-tokenizer is '%.40s'; known are smollm, starcoder, refact, codeshell, "
            "gpt-2, phi-2, llama-bpe, dbrx, smaug-bpe, qwen2, tekken and default (it runs "
            "on token ids all the same)",
            name);
    snprintf(t->family, sizeof t->family, "bpe %.50s", name);
    t->byte_level = t->vocabulary.letters = true;
    t->whole_words = family->whole_words;
    if (family->nfc)
        code =
            steps_add(&t->normalizer, (struct step){.kind = STEP_NORMALIZE, .form = FORM_NFC}, err);
    for (int i = 0; family->patterns[i] && !code; i++)
        code = tokenizer_split(t, family->patterns[i], PATTERN_FAST, SPLIT_ISOLATED, false, err);
    if (!code) code = read_tokens(t, file, false, err);
    if (!code) code = read_merges(t, file, err);
    if (!code) code = read_ends(t, file, false, family->begins, err);
    return code;
}

static int read_sentencepiece(struct tokenizer *t, const struct model_file *file, struct err *err) {
    int code = 0;
    snprintf(t->family, sizeof t->family, "sentencepiece bpe");
    t->space = "\xe2\x96\x81"; /* U+2581 */
    t->byte_fallback = t->fuse_unknown = true;
    if (flag(file, "tokenizer.ggml.add_space_prefix", true)) {
        t->prefixed = PREFIX_ALWAYS;
        code =
            steps_add(&t->normalizer, (struct step){.kind = STEP_PREPEND, .text = t->space}, err);
    }
    if (!code)
        code = steps_add(&t->normalizer,
                         (struct step){.kind = STEP_REPLACE, .text = " ", .to = t->space}, err);
    if (!code) code = read_tokens(t, file, true, err);
    if (!code) code = vocabulary_merges_of_scores(&t->vocabulary, err);
    if (!code) code = read_ends(t, file, true, true, err);
    return code;
}

int tokenizer_read_gguf(struct tokenizer *t, const struct model_file *file, struct err *err) {
    const struct file_value *v = model_file_value(file, "tokenizer.ggml.model");
    const char *model = v && v->kind == FILE_TEXT ? v->text : "";
    const bool sentencepiece = !strcmp(model, "llama");
    if (!*model)
        return err_set(err, ERR_UNSUPPORTED, "it brings no tokenizer; it runs on token ids only");
    if (!sentencepiece && strcmp(model, "gpt2") != 0)
        return err_set(
            err, ERR_UNSUPPORTED,
            "its tokenizer is of the family '%.40s'; known are gpt2 (byte-level BPE) and "
            "llama (SentencePiece's BPE); it runs on token ids all the same",
            model);
    int code = sentencepiece ? read_sentencepiece(t, file, err) : read_byte_level(t, file, err);
    return code ? code : tokenizer_finish(t, err);
}
