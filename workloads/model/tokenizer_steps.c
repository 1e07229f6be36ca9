/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a stretch of text before it becomes tokens: normalizers change its characters,
 * pre-tokenizers cut it into words. Source of each rule: the library `tokenizers`, normalizers/ and
 * pre_tokenizers/. */
#include <stdlib.h>
#include <string.h>
#include <uninorm.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/tokenizer_parts.h"

/* ---- pieces -----------------------------------------------------------------------------------
 */

static void add_piece(struct pieces *p, size_t begin, size_t end) {
    if (begin == end) return;
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->items = must_realloc(p->items, p->cap * sizeof *p->items);
    }
    p->items[p->n++] = (struct piece){begin, end};
}

static void clear(struct pieces *p) {
    p->n = 0;
    p->buffer.len = 0;
}

void pieces_set(struct pieces *p, const char *text, size_t bytes) {
    clear(p);
    text_add(&p->buffer, text, bytes);
    add_piece(p, 0, bytes);
}

void pieces_free(struct pieces *p) {
    text_free(&p->buffer);
    free(p->items);
}

/* Ends a piece that began at `begin` of the buffer. */
static void end_piece(struct pieces *p, size_t begin) { add_piece(p, begin, p->buffer.len); }

/* ---- normalizers ------------------------------------------------------------------------------
 */

static bool all_below(const char *text, size_t bytes, unsigned char lead) {
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= lead) return false;
    return true;
}

static void normalize(enum form form, const char *text, size_t bytes, struct text *out) {
    const uninorm_t forms[] = {
        [FORM_NFC] = UNINORM_NFC,
        [FORM_NFD] = UNINORM_NFD,
        [FORM_NFKC] = UNINORM_NFKC,
        [FORM_NFKD] = UNINORM_NFKD,
    };
    /* Nothing below U+0300 changes by NFC, nor below U+0080 by any form. */
    if (all_below(text, bytes, form == FORM_NFC ? 0xcc : 0x80)) {
        text_add(out, text, bytes);
        return;
    }
    size_t n = 0;
    uint8_t *made = u8_normalize(forms[form], (const uint8_t *)text, bytes, NULL, &n);
    if (!made) out_of_memory(); /* the text is valid: there is no other reason */
    text_add(out, (const char *)made, n);
    free(made);
}

/* At most as much as the text may become: a few steps could make any length of it. */
static void replace(const struct encoding *e, const char *text, size_t bytes, const char *from,
                    const char *to, struct text *out) {
    const size_t n_from = strlen(from), n_to = strlen(to);
    const char *end = text + bytes, *hit;
    while (text < end && out->len <= e->most_bytes &&
           (hit = memmem(text, (size_t)(end - text), from, n_from))) {
        text_add(out, text, (size_t)(hit - text));
        text_add(out, to, n_to);
        text = hit + n_from;
    }
    text_add(out, text, (size_t)(end - text));
}

/* ---- pre-tokenizers ---------------------------------------------------------------------------
 */

struct cut { /* pieces as a split makes them, each a match or what lies between */
    struct pieces *out;
    enum behavior behavior;
    size_t first; /* of this split's pieces among all */
    bool last_was_match;
};

static void cut_add(struct cut *c, size_t begin, size_t end, bool match) {
    struct pieces *out = c->out;
    struct piece *last = out->n > c->first ? &out->items[out->n - 1] : NULL;
    const bool was = c->last_was_match;
    if (begin == end) return;
    c->last_was_match = match;
    switch (c->behavior) {
    case SPLIT_REMOVED:
        if (!match) add_piece(out, begin, end);
        return;
    case SPLIT_CONTIGUOUS:
        if (last && match == was) {
            last->end = end;
            return;
        }
        break;
    case SPLIT_WITH_PREVIOUS:
        if (last && match && !was) {
            last->end = end;
            return;
        }
        break;
    case SPLIT_WITH_NEXT: /* what is no match takes the match before it in */
        if (last && !match && was) {
            last->end = end;
            return;
        }
        break;
    case SPLIT_ISOLATED: break;
    }
    add_piece(out, begin, end);
}

static int split(const struct step *s, struct encoding *e) {
    struct pieces *in = &e->now, *out = &e->next;
    out->n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const size_t base = in->items[i].begin, bytes = in->items[i].end - base;
        struct cut c = {out, s->behavior, out->n, false};
        size_t at = 0, begin = 0, end = 0;
        int found = 1;
        while (at < bytes && found > 0) {
            found = pattern_find(s->pattern, e, in->buffer.data + base, bytes, at, &begin, &end);
            if (found < 0) return e->err->code;
            if (!found) begin = end = bytes;
            cut_add(&c, base + at, base + begin, s->invert);
            cut_add(&c, base + begin, base + end, !s->invert);
            at = end;
        }
    }
    struct piece *items = in->items; /* the buffer stays */
    const size_t cap = in->cap;
    in->items = out->items;
    in->n = out->n;
    in->cap = out->cap;
    out->items = items;
    out->cap = cap;
    return 0;
}

static bool begins_with(const struct pieces *p, size_t i, const char *word) {
    const size_t n = strlen(word);
    return p->items[i].end - p->items[i].begin >= n &&
           !memcmp(p->buffer.data + p->items[i].begin, word, n);
}

/* Words begin where a space stood; the space's stand-in belongs to the word after it. */
static void metaspace(const struct step *s, struct encoding *e, unsigned stretch) {
    const struct pieces *in = &e->now;
    struct pieces *out = &e->next;
    const size_t width = strlen(s->text);
    for (size_t i = 0; i < in->n; i++) {
        const char *text = in->buffer.data + in->items[i].begin;
        const size_t bytes = in->items[i].end - in->items[i].begin;
        size_t begin = out->buffer.len;
        const bool goes_on = !i && (stretch & STRETCH_GOES_ON),
                   first = !i && (stretch & STRETCH_FIRST);
        if (!goes_on && *text != ' ' && !begins_with(in, i, s->text) &&
            (s->scheme == PREFIX_ALWAYS || (s->scheme == PREFIX_FIRST && first)))
            text_add(&out->buffer, s->text, width);
        replace(e, text, bytes, " ", s->text, &out->buffer);
        if (s->split)
            for (size_t at = begin + 1; at + width <= out->buffer.len; at++)
                if (!memcmp(out->buffer.data + at, s->text, width)) {
                    add_piece(out, begin, at);
                    begin = at;
                }
        end_piece(out, begin);
    }
}

static void prefix(struct encoding *e, unsigned stretch) {
    const struct pieces *in = &e->now;
    struct pieces *out = &e->next;
    for (size_t i = 0; i < in->n; i++) {
        const size_t begin = out->buffer.len;
        if (!begins_with(in, i, " ") && (i || !(stretch & STRETCH_GOES_ON)))
            text_puts(&out->buffer, " ");
        text_add(&out->buffer, in->buffer.data + in->items[i].begin,
                 in->items[i].end - in->items[i].begin);
        end_piece(out, begin);
    }
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static void change(const struct step *s, struct encoding *e, unsigned stretch) {
    const struct pieces *in = &e->now;
    struct pieces *out = &e->next;
    const char *text = in->buffer.data;
    clear(out);
    switch (s->kind) {
    case STEP_METASPACE: metaspace(s, e, stretch); return;
    case STEP_PREFIX: prefix(e, stretch); return;
    case STEP_NORMALIZE: normalize(s->form, text, in->buffer.len, &out->buffer); break;
    case STEP_REPLACE: replace(e, text, in->buffer.len, s->text, s->to, &out->buffer); break;
    case STEP_PREPEND:
        if (!(stretch & STRETCH_GOES_ON)) text_puts(&out->buffer, s->text);
        text_add(&out->buffer, text, in->buffer.len);
        break;
    case STEP_SPLIT: return; /* does not come here */
    }
    end_piece(out, 0);
}

int steps_apply(const struct steps *steps, struct encoding *e, unsigned stretch) {
    for (size_t i = 0; i < steps->n && e->now.n; i++) {
        if (steps->items[i].kind == STEP_SPLIT) {
            int code = split(&steps->items[i], e);
            if (code) return code;
            continue;
        }
        change(&steps->items[i], e, stretch);
        if (e->next.buffer.len > e->most_bytes)
            return err_set(e->err, ERR_INPUT,
                           "the normalizer of this tokenizer makes more than %zu "
                           "bytes of this text",
                           e->most_bytes);
        const struct pieces kept = e->now;
        e->now = e->next;
        e->next = kept;
    }
    return 0;
}
