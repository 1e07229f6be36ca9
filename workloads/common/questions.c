/* SPDX-License-Identifier: Apache-2.0 */
/* Questions from their file; whole words in what was said. */
#include "workloads/common/questions.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

struct questions {
    struct arena *arena;
    struct question *items;
    const char **answers; /* of all, in order */
    int32_t n, n_answers;
    uint64_t hash;
};

static char *trimmed(char *s) {
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1])) s[--n] = 0;
    return s;
}

static int read_line(struct questions *q, char *line, const char *path, int number,
                     struct err *err) {
    char *words = trimmed(line);
    if (!*words || *words == '#') return 0;
    const char mark = *words;
    char *rest = trimmed(words + 1);
    if (mark != '?' && mark != '=')
        return err_set(err, ERR_INPUT,
                       "%s:%d: a line begins with '?' (a question), '=' (an answer to it) or '#'",
                       path, number);
    if (!*rest) return err_set(err, ERR_INPUT, "%s:%d: nothing follows '%c'", path, number, mark);
    struct question *last = q->n ? &q->items[q->n - 1] : NULL;
    if (mark == '=') {
        if (!last)
            return err_set(err, ERR_INPUT, "%s:%d: an answer before the first question", path,
                           number);
        q->answers[q->n_answers++] = rest;
        last->n++;
        return 0;
    }
    if (last && !last->n)
        return err_set(err, ERR_INPUT, "%s:%d: the question before it has no answer", path, number);
    if (q->n == QUESTIONS_MOST)
        return err_set(err, ERR_INPUT, "%s:%d: more than %d questions", path, number,
                       (int)QUESTIONS_MOST);
    q->items[q->n++] = (struct question){.text = rest, .answers = q->answers + q->n_answers};
    return 0;
}

int questions_read(struct questions **out, const char *path, struct err *err) {
    char *text = NULL;
    size_t len = 0;
    *out = NULL;
    int code = file_read(path, QUESTIONS_MOST_BYTES, &text, &len, err);
    if (code) return code;
    struct questions *q = must_alloc(sizeof *q);
    q->arena = arena_create();
    q->hash = hash_bytes(text, len, 0);
    if (memchr(text, 0, len)) code = err_set(err, ERR_INPUT, "%s: not a text", path);
    size_t lines = 2;
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    q->items = arena_alloc(q->arena, lines * sizeof *q->items);
    q->answers = arena_alloc(q->arena, lines * sizeof *q->answers);
    char *copy = arena_textn(q->arena, text, len);
    for (int number = 1; !code && copy; number++) {
        char *line = strsep(&copy, "\n");
        code = read_line(q, line, path, number, err);
    }
    if (!code && !q->n) code = err_set(err, ERR_INPUT, "%s: no line begins with '?'", path);
    if (!code && !q->items[q->n - 1].n)
        code = err_set(err, ERR_INPUT, "%s: the last question has no answer", path);
    free(text);
    *out = q;
    if (code) questions_close(out);
    return code;
}

void questions_close(struct questions **q) {
    if (!*q) return;
    arena_close(&(*q)->arena);
    free(*q);
    *q = NULL;
}

int32_t questions_count(const struct questions *q) { return q->n; }
const struct question *questions_at(const struct questions *q, int32_t i) { return &q->items[i]; }
uint64_t questions_hash(const struct questions *q) { return q->hash; }

/* ---- the rule */

static unsigned char folded(char c) {
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool in_word(char c) {
    const unsigned char u = folded(c);
    return (u >= 'a' && u <= 'z') || (u >= '0' && u <= '9');
}

static bool holds(const char *said, size_t n, const char *answer) {
    const size_t length = strlen(answer);
    for (size_t at = 0; length && at + length <= n; at++) {
        size_t i = 0;
        while (i < length && folded(said[at + i]) == folded(answer[i])) i++;
        if (i < length) continue;
        const bool begins = !at || !in_word(said[at - 1]) || !in_word(answer[0]);
        const bool ends =
            at + length == n || !in_word(said[at + length]) || !in_word(answer[length - 1]);
        if (begins && ends) return true;
    }
    return false;
}

bool question_answered(const struct question *q, const char *said, size_t n) {
    for (int32_t i = 0; i < q->n; i++)
        if (holds(said, n, q->answers[i])) return true;
    return false;
}
