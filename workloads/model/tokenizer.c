/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids: added tokens are found in it, what lies between them goes through the normalizer and
 * the pre-tokenizer, words become tokens; and back. */
#include "workloads/model/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/file.h"
#include "workloads/model/tokenizer_parts.h"

/* ---- opening ----------------------------------------------------------------------------------
 */

int steps_add(struct steps *steps, struct step s, struct err *err) {
    if (steps->n >= STEPS_MOST) {
        pattern_close(&s.pattern);
        return err_set(err, ERR_UNSUPPORTED, "its tokenizer has more than %d steps", STEPS_MOST);
    }
    steps->items[steps->n++] = s;
    return 0;
}

int tokenizer_split(struct tokenizer *t, const char *source, unsigned flags, enum behavior behavior,
                    bool invert, struct err *err) {
    struct step s = {.kind = STEP_SPLIT, .behavior = behavior, .invert = invert};
    int code = pattern_open(&s.pattern, source, flags, err);
    return code ? code : steps_add(&t->splitter, s, err);
}

static void find_bytes(struct tokenizer *t) {
    struct vocabulary *v = &t->vocabulary;
    for (int b = 0; b < 256; b++) {
        char name[8] = {(char)b};
        size_t n = 1;
        if (!t->byte_level && !t->byte_fallback) continue;
        if (t->byte_fallback) n = (size_t)snprintf(name, sizeof name, "<0x%02X>", b);
        v->byte[b] = vocabulary_find(v, name, n);
        if (v->byte[b] >= 0 && t->byte_fallback) v->tokens[v->byte[b]].kind = TOKEN_BYTE;
    }
}

int tokenizer_finish(struct tokenizer *t, struct err *err) {
    struct vocabulary *v = &t->vocabulary;
    if (!v->n) return err_set(err, ERR_INPUT, "its vocabulary is empty");
    find_bytes(t);
    added_sort(&t->raw);
    added_sort(&t->normalized);
    return t->unigram ? vocabulary_sort(v, err) : vocabulary_index_merges(v, err);
}

/* More ids than the model has rows would be read beyond its embedding. */
static int check_rows(const struct tokenizer *t, const struct model_file *file, struct err *err) {
    const struct file_tensor *rows = model_file_tensor(file, "token_embd.weight");
    if (!rows) rows = model_file_tensor(file, "model.embed_tokens.weight");
    if (!rows || rows->rows >= t->vocabulary.n_ids) return 0;
    return err_set(err, ERR_INPUT, "its vocabulary has %lld tokens, and its embedding %lld rows",
                   (long long)t->vocabulary.n_ids, (long long)rows->rows);
}

int tokenizer_open(struct tokenizer **out, const struct model_file *file, struct err *err) {
    struct tokenizer *t = must_alloc(sizeof *t);
    t->arena = arena_create();
    t->bos = t->eos = -1;
    vocabulary_init(&t->vocabulary, t->arena);
    int code = model_file_is_gguf(file) ? tokenizer_read_gguf(t, file, err)
                                        : tokenizer_read_json(t, file, err);
    if (!code) code = check_rows(t, file, err);
    if (code) err_prefix(err, "%s", model_file_name(file));
    *out = t;
    if (code) tokenizer_close(out);
    return code;
}

int tokenizer_open_path(struct tokenizer **out, const char *path, struct err *err) {
    struct model_file *file = NULL;
    *out = NULL;
    int code = model_file_open(&file, path, err);
    if (!code) code = tokenizer_open(out, file, err);
    model_file_close(&file);
    return code;
}

static void close_steps(struct steps *steps) {
    for (size_t i = 0; i < steps->n; i++) pattern_close(&steps->items[i].pattern);
}

void tokenizer_close(struct tokenizer **out) {
    struct tokenizer *t = *out;
    if (!t) return;
    close_steps(&t->normalizer);
    close_steps(&t->splitter);
    free(t->raw.items);
    free(t->normalized.items);
    vocabulary_free(&t->vocabulary);
    arena_close(&t->arena);
    free(t);
    *out = NULL;
}

const char *tokenizer_family(const struct tokenizer *t) { return t->family; }
int64_t tokenizer_vocab(const struct tokenizer *t) { return t->vocabulary.n_ids; }
int32_t tokenizer_bos(const struct tokenizer *t) { return t->bos; }
int32_t tokenizer_eos(const struct tokenizer *t) { return t->eos; }

/* ---- text to ids ------------------------------------------------------------------------------
 */

typedef int (*then)(struct encoding *, const char *text, size_t bytes, unsigned stretch);

/* How many bytes of white space end, or begin, a text. */
static size_t space_before(const char *text, size_t bytes) {
    size_t n = 0;
    for (size_t at = bytes; at > 0;) {
        uint32_t c;
        size_t begin = at - 1;
        while (begin > 0 && at - begin < 4 && (text[begin] & 0xc0) == 0x80) begin--;
        if (utf8_next(text + begin, at - begin, &c) != at - begin || !utf8_is_space(c)) break;
        n += at - begin;
        at = begin;
    }
    return n;
}
static size_t space_after(const char *text, size_t bytes) {
    size_t at = 0, n;
    uint32_t c;
    while ((n = utf8_next(text + at, bytes - at, &c)) && utf8_is_space(c)) at += n;
    return at;
}

/* The names of a set become their tokens, what lies between goes on to `go_on`. A special token's
 * name that is not asked for is passed over as a whole, as the reference does. */
static int find_added(struct encoding *e, const struct added_set *set, const char *text,
                      size_t bytes, unsigned stretch, then go_on) {
    size_t done = 0, at = 0;
    int code = 0;
    if (!set->n) return go_on(e, text, bytes, stretch);
    while (at < bytes && !code) {
        const struct added *a = added_find(set, text + at, bytes - at);
        if (!a || (a->special && !(e->flags & TOKENIZE_SPECIAL))) {
            at += a ? a->bytes : 1;
            continue;
        }
        size_t begin = at, end = at + a->bytes;
        at = end; /* white space that belongs to this one may begin the next: as in the reference */
        if (a->strip_left && begin > done) begin -= space_before(text + done, begin - done);
        if (a->strip_right) end += space_after(text + end, bytes - end);
        if (begin > done) code = go_on(e, text + done, begin - done, done ? 0 : stretch);
        encoding_push(e, a->id);
        done = end;
    }
    if (!code && done < bytes) code = go_on(e, text + done, bytes - done, done ? 0 : stretch);
    return code;
}

static int words(struct encoding *e, unsigned stretch) {
    const struct tokenizer *t = e->tokenizer;
    int code = steps_apply(&t->splitter, e, stretch);
    for (size_t i = 0; i < e->now.n && !code; i++) {
        const struct piece *p = &e->now.items[i];
        (t->unigram ? unigram_word : merge_word)(e, e->now.buffer.data + p->begin,
                                                 p->end - p->begin);
    }
    return code;
}

static int set_words(struct encoding *e, const char *text, size_t bytes, unsigned stretch) {
    pieces_set(&e->now, text, bytes);
    return words(e, stretch);
}

static int valid(struct encoding *e, const char *text, size_t bytes, unsigned stretch) {
    const struct tokenizer *t = e->tokenizer;
    pieces_set(&e->now, text, bytes);
    int code = steps_apply(&t->normalizer, e, stretch);
    if (code || !t->normalized.n) return code ? code : words(e, stretch);
    struct text whole = {0};
    text_add(&whole, e->now.buffer.data, e->now.buffer.len);
    code = find_added(e, &t->normalized, whole.data, whole.len, stretch, set_words);
    text_free(&whole);
    return code;
}

static int invalid(struct encoding *e, unsigned char byte) {
    const int32_t id = e->tokenizer->vocabulary.byte[byte];
    if (id < 0) return valid(e, "\xef\xbf\xbd", 3, STRETCH_GOES_ON);
    encoding_push(e, id);
    return 0;
}

/* Any bytes: stretches of UTF-8, and single bytes that are none. */
static int stretches(struct encoding *e, const char *text, size_t bytes, unsigned stretch) {
    size_t done = 0, at = 0;
    int code = 0;
    while (at < bytes && !code) {
        uint32_t c;
        const size_t n = utf8_next(text + at, bytes - at, &c);
        at += n;
        if (n && at < bytes) continue;
        if (at > done) code = valid(e, text + done, at - done, stretch);
        if (!n && !code) code = invalid(e, (unsigned char)text[at++]);
        stretch = STRETCH_GOES_ON;
        done = at;
    }
    return code;
}

void encoding_free(struct encoding *e) {
    pieces_free(&e->now);
    pieces_free(&e->next);
    free(e->symbols);
    free(e->heap);
    free(e->arrivals);
    free(e->ids);
    match_free(e->match);
}

int tokenizer_run(const struct tokenizer *t, const char *text, size_t bytes, unsigned flags,
                  struct encoding *e, struct err *err) {
    enum { MOST_BYTES = 1 << 30, STEPS_A_BYTE = 500, STEPS_ANYWAY = 1000000, GROWS_BY = 32 };
    *e = (struct encoding){.tokenizer = t, .flags = flags, .err = err};
    if (bytes > MOST_BYTES)
        return err_set(err, ERR_INPUT, "a text of %zu bytes; up to %d are tokenized", bytes,
                       MOST_BYTES);
    e->budget = STEPS_ANYWAY + STEPS_A_BYTE * (uint64_t)bytes;
    e->most_bytes = STEPS_ANYWAY + GROWS_BY * bytes;
    for (int i = 0; i < t->n_begin && flags & TOKENIZE_BOS; i++) encoding_push(e, t->begin[i]);
    int code = find_added(e, &t->raw, text, bytes, STRETCH_FIRST, stretches);
    for (int i = 0; i < t->n_end && flags & TOKENIZE_BOS; i++) encoding_push(e, t->end[i]);
    return code;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t bytes, unsigned flags,
                     int32_t **ids, size_t *n, struct err *err) {
    struct encoding e;
    int code = tokenizer_run(t, text, bytes, flags, &e, err);
    *ids = NULL;
    *n = 0;
    if (!code) {
        *ids = e.ids ? e.ids : must_alloc(sizeof **ids);
        *n = e.n;
        e.ids = NULL;
    }
    encoding_free(&e);
    return code;
}

int tokenizer_begins(const struct tokenizer *t, int32_t *id, struct err *err) {
    int32_t *ids = NULL;
    size_t n = 0;
    const int code = tokenizer_encode(t, "", 0, TOKENIZE_BOS, &ids, &n, err);
    *id = !code && n && ids[0] == t->bos ? ids[0] : -1;
    free(ids);
    return code;
}

/* ---- ids to text ------------------------------------------------------------------------------
 */

size_t tokenizer_piece(const struct tokenizer *t, int32_t id, char *out, size_t cap) {
    if (id < 0 || id >= t->vocabulary.n_ids) return 0;
    const struct token *token = &t->vocabulary.tokens[id];
    const size_t width = t->space ? strlen(t->space) : 0;
    size_t n = 0;
    unsigned byte = 0;
    if (token->kind == TOKEN_BYTE && sscanf(token->text, "<0x%2X>", &byte) == 1) {
        if (cap) out[0] = (char)byte;
        return 1;
    }
    const bool spaces = width && token->kind < TOKEN_ADDED;
    for (size_t at = 0; at < token->bytes; n++) {
        const bool space =
            spaces && token->bytes - at >= width && !memcmp(token->text + at, t->space, width);
        if (n < cap) out[n] = space ? ' ' : token->text[at];
        at += space ? width : 1;
    }
    return n;
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, struct text *out) {
    bool begins = true; /* a stretch of text */
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = tokenizer_piece(t, ids[i], NULL, 0);
        char *piece = must_alloc(bytes + 1);
        tokenizer_piece(t, ids[i], piece, bytes);
        const bool added = bytes && t->vocabulary.tokens[ids[i]].kind >= TOKEN_ADDED;
        const size_t from = begins && !added && t->prefixed && *piece == ' ';
        text_add(out, piece + from, bytes - from);
        if (bytes) begins = added && (t->prefixed == PREFIX_ALWAYS || (begins && !i));
        free(piece);
    }
}
