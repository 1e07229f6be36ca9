/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping facts in order, carrying them as lines of text, and hashing what they say. */
#include "base/facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

enum {
    FACTS_MOST = 10000
}; /* of one packed text: finding a key is linear, and input may be hostile */

static struct fact *find(const struct facts *facts, const char *key) {
    for (size_t i = 0; i < facts->n; i++)
        if (!strcmp(facts->items[i].key, key)) return &facts->items[i];
    return NULL;
}

static void fact_free(struct fact *fact) {
    free((char *)fact->key);
    free((char *)fact->value);
    free((char *)fact->unit);
    free((char *)fact->origin);
}

static const char *copy(const char *text) { return must_text(text ? text : ""); }

void facts_set(struct facts *facts, const char *key, const char *value, const char *unit,
               const char *origin) {
    /* Copied before the old one is freed: a caller may pass its own texts back. */
    struct fact made = {copy(key), copy(value), copy(unit), copy(origin)};
    struct fact *fact = find(facts, made.key);
    if (fact) {
        fact_free(fact);
    } else {
        if (facts->n == facts->cap) {
            facts->cap = facts->cap ? facts->cap * 2 : 32;
            facts->items = must_realloc(facts->items, facts->cap * sizeof *facts->items);
        }
        fact = &facts->items[facts->n++];
    }
    *fact = made;
}

void facts_printf(struct facts *facts, const char *key, const char *unit, const char *origin,
                  const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = text_vformat(NULL, 0, fmt, args);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *value = must_alloc(size);
    text_vformat(value, size, fmt, again);
    va_end(again);
    va_end(args);
    facts_set(facts, key, value, unit, origin);
    free(value);
}

const struct fact *facts_find(const struct facts *facts, const char *key) {
    return find(facts, key);
}

const char *facts_get(const struct facts *facts, const char *key, const char *otherwise) {
    const struct fact *fact = find(facts, key);
    return fact ? fact->value : otherwise;
}

void facts_copy(struct facts *to, const struct facts *from) {
    if (to == from) return;
    for (size_t i = 0; i < from->n; i++) {
        const struct fact *f = &from->items[i];
        facts_set(to, f->key, f->value, f->unit, f->origin);
    }
}

void facts_free(struct facts *facts) {
    for (size_t i = 0; i < facts->n; i++) fact_free(&facts->items[i]);
    free(facts->items);
    *facts = (struct facts){0};
}

static void pack_field(struct text *out, const char *s, char end) {
    for (; *s; s++) {
        switch (*s) {
        case '\\': text_add(out, "\\\\", 2); break;
        case '\t': text_add(out, "\\t", 2); break;
        case '\n': text_add(out, "\\n", 2); break;
        default: text_add(out, s, 1);
        }
    }
    text_add(out, &end, 1);
}

void facts_pack(struct text *out, const struct facts *facts) {
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        pack_field(out, f->key, '\t');
        pack_field(out, f->value, '\t');
        pack_field(out, f->unit, '\t');
        pack_field(out, f->origin, '\n');
    }
}

/* Reads up to `end` into out; returns the byte behind it, or NULL with a mistake. */
static const char *unpack_field(const char *p, const char *limit, char end, struct text *out,
                                const char **mistake) {
    out->len = 0;
    text_add(out, "", 0);
    for (; p < limit; p++) {
        if (*p == end) return p + 1;
        char c = *p;
        if (c == '\t' || c == '\n' || c == 0) break;
        if (c == '\\') {
            p++;
            c = p == limit ? 0 : *p == '\\' ? '\\' : *p == 't' ? '\t' : *p == 'n' ? '\n' : 0;
            if (!c) {
                *mistake = "an unknown escape";
                return NULL;
            }
        }
        text_add(out, &c, 1);
    }
    *mistake = "not four fields and a newline";
    return NULL;
}

int facts_unpack(struct facts *facts, const char *data, size_t len, struct err *err) {
    static const char ends[4] = {'\t', '\t', '\t', '\n'};
    struct text field[4] = {{0}};
    const char *p = data, *limit = data + len, *mistake = NULL;
    size_t line = 0;
    while (p < limit && !mistake) {
        line++;
        for (int i = 0; i < 4 && p; i++) p = unpack_field(p, limit, ends[i], &field[i], &mistake);
        if (mistake) break;
        if (!field[0].len)
            mistake = "an empty key";
        else if (line > FACTS_MOST)
            mistake = "more facts than are allowed";
        else
            facts_set(facts, field[0].data, field[1].data, field[2].data, field[3].data);
    }
    for (int i = 0; i < 4; i++) text_free(&field[i]);
    return mistake ? err_set(err, ERR_INPUT, "packed facts, line %zu: %s", line, mistake) : 0;
}

uint64_t facts_hash(const struct facts *facts) {
    uint64_t sum = facts->n;
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        uint64_t key = hash_bytes(f->key, strlen(f->key), 0);
        sum += hash_bytes(f->value, strlen(f->value), key); /* a sum does not know the order */
    }
    return hash_bytes(&sum, sizeof sum, 0);
}
