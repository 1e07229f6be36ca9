/* SPDX-License-Identifier: Apache-2.0 */
/* The growing buffer, UTF-8, nearest names, JSON strings and hashes. */
#include "base/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL /* no library for one function */
#include <xxhash.h>

#include "base/arena.h"

static locale_t c_locale;

static void locale_make(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) abort(); /* cannot be: "C" is built into every C library */
}

locale_t text_locale(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, locale_make);
    return c_locale;
}

int text_vformat(char *buf, size_t size, const char *fmt, va_list args) {
    locale_t old = uselocale(text_locale());
    int n = vsnprintf(buf, size, fmt, args);
    uselocale(old);
    if (n < 0 && size) buf[0] = 0;
    return n;
}

/* Room for n more bytes and a zero. */
static void text_reserve(struct text *t, size_t n) {
    size_t need = n > SIZE_MAX / 4 || t->len > SIZE_MAX / 4 ? SIZE_MAX : t->len + n + 1;
    if (need <= t->cap) return;
    size_t cap = t->cap ? t->cap : 64;
    while (cap < need && cap < SIZE_MAX / 2) cap *= 2;
    t->cap = cap < need ? need : cap;
    t->data = must_realloc(t->data, t->cap);
}

void text_add(struct text *t, const char *bytes, size_t n) {
    text_reserve(t, n);
    if (n) memcpy(t->data + t->len, bytes, n);
    t->len += n;
    t->data[t->len] = 0;
}

void text_puts(struct text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_printf(struct text *t, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = text_vformat(NULL, 0, fmt, args);
    if (n >= 0) {
        text_reserve(t, (size_t)n);
        text_vformat(t->data + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void text_pad(struct text *t, size_t column) {
    if (!t->data) text_add(t, "", 0);
    const char *newline = t->len ? memrchr(t->data, '\n', t->len) : NULL;
    size_t width = utf8_width(newline ? newline + 1 : t->data);
    for (; width < column; width++) text_add(t, " ", 1);
}

void text_wrap(struct text *out, size_t column, size_t page, const char *words) {
    const char *newline = out->len ? memrchr(out->data, '\n', out->len) : NULL;
    size_t at = out->len ? utf8_width(newline ? newline + 1 : out->data) : 0;
    for (const char *p = words + strspn(words, " \n"); *p; p += strspn(p, " \n")) {
        size_t n = strcspn(p, " \n");
        struct text word = {0};
        text_add(&word, p, n);
        size_t width = utf8_width(word.data);
        if (at > column && at + 1 + width > page) {
            text_puts(out, "\n");
            at = 0;
        } else if (at > column) {
            text_puts(out, " ");
            at++;
        }
        if (at < column) {
            text_pad(out, column);
            at = column;
        }
        text_add(out, word.data, word.len);
        at += width;
        text_free(&word);
        p += n;
    }
}

void text_notes(struct text *out, size_t page, const char *const *notes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        text_wrap(out, 2, page, notes[i]);
        text_puts(out, "\n");
    }
}

void text_free(struct text *t) {
    free(t->data);
    *t = (struct text){0};
}

char *text_take(struct text *t) {
    if (!t->data) text_add(t, "", 0);
    char *data = t->data;
    *t = (struct text){0};
    return data;
}

size_t utf8_width(const char *s) {
    size_t width = 0;
    for (; *s; s++) width += ((unsigned char)*s & 0xc0) != 0x80;
    return width;
}

/* Length of the well-formed sequence at s (RFC 3629: no surrogates, nothing overlong, at most
 * U+10FFFF), or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t n) {
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < len) return 0;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    if (s[0] == 0xe0) low = 0xa0;
    if (s[0] == 0xed) high = 0x9f;
    if (s[0] == 0xf0) low = 0x90;
    if (s[0] == 0xf4) high = 0x8f;
    if (s[1] < low || s[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return len;
}

bool utf8_valid(const char *bytes, size_t n) {
    for (size_t i = 0, len; i < n; i += len) {
        len = utf8_sequence((const unsigned char *)bytes + i, n - i);
        if (!len) return false;
    }
    return true;
}

enum { WORD_MOST = 63 }; /* longer words have no neighbours */

static size_t min3(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours ("warmpu"): optimal string alignment.
 */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m) {
    size_t d[WORD_MOST + 1][WORD_MOST + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t j = 0; j <= m; j++) d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replace);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

const char *text_nearest(const char *word, const char *const *names, size_t n) {
    size_t len = strlen(word), best = 2 + len / 3;
    if (len > WORD_MOST) return NULL;
    if (best > len) best = len; /* something of the word must be left */
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t name_len = names[i] ? strlen(names[i]) : WORD_MOST + 1;
        if (name_len > WORD_MOST) continue;
        size_t distance = edit_distance(word, len, names[i], name_len);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

void text_json(struct text *t, const char *s) {
    text_add(t, "\"", 1);
    size_t n = strlen(s);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        size_t len = utf8_sequence((const unsigned char *)s + i, n - i);
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c == '\n')
            text_add(t, "\\n", 2);
        else if (c == '\t')
            text_add(t, "\\t", 2);
        else if (c < 0x20 || c == 0x7f)
            text_printf(t, "\\u%04x", (unsigned)c);
        else if (len)
            text_add(t, s + i, len);
        else
            text_puts(
                t,
                "\\ufffd"); /* a byte that is no UTF-8 would make the whole document unreadable */
        i += len ? len : 1;
    }
    text_add(t, "\"", 1);
}

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed) {
    return XXH64(n ? bytes : "", n, seed);
}

char *hash_text(char out[17], uint64_t hash) {
    snprintf(out, 17, "%016" PRIx64, hash);
    return out;
}

void text_shell(struct text *t, const char *word) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        text_puts(t, word);
        return;
    }
    text_puts(t, "'");
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            text_puts(t, "'\\''"); /* ends the quotes, an escaped quote, begins them again */
        else
            text_add(t, c, 1);
    }
    text_puts(t, "'");
}

bool text_has_word(const char *list, const char *word, size_t len) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && !memcmp(at, word, n)) return true;
        at += n;
        while (*at == ' ') at++;
    }
    return false;
}
