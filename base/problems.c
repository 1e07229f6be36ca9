/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering mistakes with their places, and printing them in the order of the file. */
#include "base/problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/facts.h"
#include "base/text.h"

struct place { /* "file:line:col"; line 0: no place of a file, `file` is then the whole origin */
    char *file;
    int64_t line, col;
};
struct mistake {
    struct place place;
    char *line;    /* all that is printed, without the allowed line */
    char *allowed; /* or NULL */
    uint64_t hash; /* of line and allowed: every point of a sweep repeats the same mistakes */
    size_t order;
};
struct problems {
    struct mistake *items;
    size_t n, cap;
    const struct facts *scope; /* borrowed, or NULL */
};

struct problems *problems_create(void) {
    return must_alloc(sizeof(struct problems));
}

void problems_close(struct problems **p) {
    if (!*p) return;
    for (size_t i = 0; i < (*p)->n; i++) {
        free((*p)->items[i].place.file);
        free((*p)->items[i].line);
        free((*p)->items[i].allowed);
    }
    free((*p)->items);
    free(*p);
    *p = NULL;
}

void problems_scope(struct problems *p, const struct facts *facts) { p->scope = facts; }

size_t problems_count(const struct problems *p) { return p->n; }

/* Cuts ":digits" off the end of s; 0 if there is none. */
static int64_t cut_number(char *s) {
    char *colon = strrchr(s, ':');
    int64_t v;
    if (!colon || colon == s || colon[1] < '0' || colon[1] > '9' || !parse_i64(colon + 1, &v))
        return 0;
    *colon = 0;
    return v;
}

static struct place place_parse(const char *origin) {
    struct place place = {must_text(origin), 0, 0};
    int64_t last = cut_number(place.file), before = last > 0 ? cut_number(place.file) : 0;
    place.line = before > 0 ? before : last;
    place.col = before > 0 ? last : 0;
    return place;
}

/* Keeps the mistake unless it is there already; takes place, line and allowed. */
static void keep(struct problems *p, struct place place, char *line, char *allowed) {
    uint64_t hash = hash_bytes(line, strlen(line), allowed ? 1 : 0);
    for (size_t i = 0; i < p->n; i++) {
        const struct mistake *m = &p->items[i];
        if (m->hash == hash && !strcmp(m->line, line) &&
            !strcmp(m->allowed ? m->allowed : "", allowed ? allowed : "")) {
            free(place.file);
            free(line);
            free(allowed);
            return;
        }
    }
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->items = must_realloc(p->items, p->cap * sizeof *p->items);
    }
    p->items[p->n] = (struct mistake){place, line, allowed, hash, p->n};
    p->n++;
}

static char *format(const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = text_vformat(NULL, 0, fmt, args);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *s = must_alloc(size);
    text_vformat(s, size, fmt, again);
    va_end(again);
    return s;
}

static bool is_key_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

/* Where `key` stands in the sentence as a whole word, or NULL. */
static const char *find_key(const char *sentence, const char *key) {
    size_t n = strlen(key);
    for (const char *p = sentence; n && (p = strstr(p, key)); p += n) {
        bool dot_ends = p[n] == '.' && !is_key_byte(p[n + 1]); /* "... and model.file." */
        if ((p == sentence || !is_key_byte(p[-1])) && (!is_key_byte(p[n]) || dot_ends)) return p;
    }
    return NULL;
}

static const char *origin_of(const struct problems *p, const char *key) {
    const struct fact *fact = p->scope && key ? facts_find(p->scope, key) : NULL;
    return fact ? fact->origin : "";
}

/* Names the other key and its line: behind its name if the sentence has it, else at the end. */
static void put_sentence(const struct problems *p, const char *sentence, const char *other,
                         const struct place *here, struct text *out) {
    if (!other) {
        text_puts(out, sentence);
        return;
    }
    struct place place = place_parse(origin_of(p, other));
    struct text where = {0};
    text_add(&where, "", 0);
    if (place.line && here->line && strcmp(place.file, here->file))
        text_printf(&where, "%s:%lld", place.file, (long long)place.line);
    else if (place.line)
        text_printf(&where, "line %lld", (long long)place.line);
    else if (!strcmp(place.file, "--set"))
        text_puts(&where, "--set");
    const char *named = find_key(sentence, other);
    if (named) {
        size_t before = (size_t)(named - sentence) + strlen(other);
        text_add(out, sentence, before);
        if (where.len) text_printf(out, " (%s)", where.data);
        text_puts(out, sentence + before);
    } else {
        text_printf(out, "%s (with %s%s%s)", sentence, other, where.len ? ", " : "", where.data);
    }
    text_free(&where);
    free(place.file);
}

void problem(struct problems *p, const char *key, const char *other, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *sentence = format(fmt, args);
    va_end(args);
    struct place place = place_parse(origin_of(p, key));
    struct text line = {0};
    if (place.line)
        text_printf(&line, "%s:%lld:%lld: ", place.file, (long long)place.line,
                    (long long)(place.col ? place.col : 1));
    else if (!strcmp(place.file, "--set"))
        text_puts(&line, "--set ");
    /* "model.shape and model.file exclude each other" needs no "model.shape:" before it. */
    if (key && *key && find_key(sentence, key) != sentence) text_printf(&line, "%s: ", key);
    put_sentence(p, sentence, other, &place, &line);
    free(sentence);
    keep(p, place, text_take(&line), NULL);
}

void problem_at(struct problems *p, const char *place_text, const char *allowed, const char *fmt,
                ...) {
    va_list args;
    va_start(args, fmt);
    char *sentence = format(fmt, args);
    va_end(args);
    struct text line = {0};
    if (place_text && *place_text) text_printf(&line, "%s: ", place_text);
    text_puts(&line, sentence);
    free(sentence);
    keep(p, place_parse(place_text ? place_text : ""), text_take(&line),
         allowed ? must_text(allowed) : NULL);
}

static int by_place(const void *x, const void *y) {
    const struct mistake *a = x, *b = y;
    if (!a->place.line != !b->place.line)
        return a->place.line ? -1 : 1; /* what stands in no file comes last */
    int file = a->place.line ? strcmp(a->place.file, b->place.file) : 0;
    if (file) return file;
    if (a->place.line != b->place.line) return a->place.line < b->place.line ? -1 : 1;
    if (a->place.col != b->place.col) return a->place.col < b->place.col ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

void problems_print(const struct problems *p, struct text *out) {
    if (!p->n) return;
    struct mistake *sorted = must_alloc(p->n * sizeof *sorted);
    memcpy(sorted, p->items, p->n * sizeof *sorted);
    qsort(sorted, p->n, sizeof *sorted, by_place);
    for (size_t i = 0; i < p->n; i++) {
        text_printf(out, "%s\n", sorted[i].line);
        if (sorted[i].allowed) text_printf(out, "    %s\n", sorted[i].allowed);
    }
    free(sorted);
    text_printf(out, "%zu mistake%s; nothing was measured\n", p->n, p->n == 1 ? "" : "s");
}
