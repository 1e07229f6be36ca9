/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a growing buffer, nearest names, numbers with units; the same under every locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing byte buffer; zero-initialise to start empty; data is always zero-terminated once
 * anything was added. */
struct text {
    char *data;
    size_t len, cap;
};
void text_add(struct text *, const char *bytes, size_t n);
void text_puts(struct text *, const char *s);
void text_printf(struct text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_pad(
    struct text *,
    size_t column); /* spaces up to this display column of the current line (UTF-8 aware) */
/* Adds words at `column`, on a new line where one would reach beyond `page`. */
void text_wrap(struct text *, size_t column, size_t page, const char *words);
/* n sentences below a table, each on lines of its own from column 2 on. */
void text_notes(struct text *, size_t page, const char *const *notes, size_t n);
void text_free(struct text *);
/* vsnprintf and the locale under which all our numbers are written and read: C, whatever the user's
 * is. */
int text_vformat(char *buf, size_t size, const char *fmt, va_list)
    __attribute__((format(printf, 3, 0)));
locale_t text_locale(void);
char *text_take(
    struct text *); /* hands over the (non-NULL) malloc'ed string and empties the buffer */

size_t utf8_width(const char *s); /* code points: what a column of a table needs */
bool utf8_valid(const char *bytes, size_t n);
/* Whether a space-separated list holds the word of len bytes. */
bool text_has_word(const char *list, const char *word, size_t len);
/* The closest of n names by edit distance, or NULL if none is near (distance <= 1 + length/3, and
 * below length). */
const char *text_nearest(const char *word, const char *const *names, size_t n);

/* Whole-text parsers; true if the whole of s is a number of that kind. Decimal point is '.',
 * whatever the locale. */
bool parse_i64(const char *s,
               int64_t *out); /* optional sign; digits, '_' allowed between digits; 0x hex */
bool parse_f64(const char *s, double *out);   /* finite only */
bool parse_u64(const char *s, uint64_t *out); /* decimal or 0x hex */
/* "64", "4096 B", "1.5 GB" (SI), "2 GiB" (binary): bytes; unit is required unless the number is 0
 * or whole */
bool parse_bytes(const char *s, int64_t *bytes);
/* "90 s", "250 ms", "10 us", "5 ns", "2 min", "1 h": nanoseconds; a unit is required unless it is 0
 */
bool parse_time(const char *s, int64_t *ns);

/* Formatters write at most size bytes and return buf. All follow measurement.md: no inf, no nan,
 * '-' for NAN. */
char *format_bytes_si(char *buf, size_t size, double bytes);  /* "26.03 GB" */
char *format_bytes_iec(char *buf, size_t size, double bytes); /* "24.24 GiB" */
char *format_time(char *buf, size_t size,
                  double ns); /* "53.1 ms": three or four significant digits */
char *format_number(char *buf, size_t size, double v,
                    int digits); /* significant digits; exponent from 1e15 and below 1e-5 */
char *format_exact(char *buf, size_t size,
                   double v); /* shortest text that reads back the same double; "" for NAN */
char *format_thousands(char *buf, size_t size, int64_t v); /* 1,234,567 */
/* "53.1 +- 0.8" with a real plus-minus sign: the decimals follow the half width (two digits of it
   where they start below 3.55, else one: 1.1, 0.8); half NAN: no half */
char *format_interval(char *buf, size_t size, double mean, double half);

/* A whole file into memory (malloc'ed, zero-terminated); more than limit bytes is ERR_INPUT. */
struct err;
int file_read(const char *path, size_t limit, char **data, size_t *len, struct err *);
/* Writes aside (path.tmp-PID), fsyncs, renames, fsyncs the folder: path is never half-written. */
int file_write(const char *path, const void *data, size_t len, struct err *);
bool file_exists(const char *path);
int make_dirs(const char *path, struct err *); /* like mkdir -p */

/* A path or word as a shell takes it: quoted only where it must be. */
void text_shell(struct text *, const char *word);
/* JSON string escaping: appends "..." with quotes. */
void text_json(struct text *, const char *s);
/* XXH64 of bytes, as 16 hex digits. */
uint64_t hash_bytes(const void *, size_t n, uint64_t seed);
char *hash_text(char out[17], uint64_t hash);

#endif
