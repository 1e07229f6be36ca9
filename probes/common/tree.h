/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc and /sys: short files below a root, which tests replace by a made-up tree. Whatever
 * is absent or malformed is false, never a number. */
#ifndef PROBES_COMMON_TREE_H
#define PROBES_COMMON_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The self of every probe that reads files begins with this: NULL is the machine itself. */
struct tree {
    const char *root;
};

/* All of them take the root (NULL: "/") and a path below it in printf style. */
/* The file, as far as it fits, zero-terminated; its length, or -1 (errno says why). */
long tree_read(char *out, size_t size, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Its first line without the white space around it; false where that is empty or does not fit. */
bool tree_line(char *out, size_t size, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A file that is one whole number. */
bool tree_number(int64_t *, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What stands behind "key:" at the start of a line, white space trimmed; first one that is not
 * empty. */
bool tree_keyed(char *out, size_t size, const char *key, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* A keyed line "key: 1234 kB", in bytes; false with any other unit. */
bool tree_kib(int64_t *bytes, const char *key, const char *root, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool tree_exists(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads a decimal number (a minus sign is allowed) and the blanks before it; moves *at behind it.
 * False, *at unchanged, where none stands there, it does not fit or another letter follows
 * directly. */
bool take_number(const char **at, int64_t *v);
/* A list of CPUs as the kernel writes it, "0-3,8": calls each in order; their count, or -1 where
 * the text is none. each may be NULL. */
int cpu_list(const char *text, void (*each)(void *ctx, int cpu), void *ctx);

#endif
