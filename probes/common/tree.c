/* SPDX-License-Identifier: Apache-2.0 */
/* Strict readers of the small text files with which the kernel speaks. */
#include "probes/common/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CPUS = 65536 };

/* "ROOT/path"; false with ENAMETOOLONG. */
static bool full_path(char out[PATH_MAX], const char *root, const char *fmt, va_list args) {
    int n = snprintf(out, PATH_MAX, "%s/", root && strcmp(root, "/") ? root : "");
    if (n < 0 || n >= PATH_MAX) return errno = ENAMETOOLONG, false;
    int m = vsnprintf(out + n, (size_t)(PATH_MAX - n), fmt, args);
    if (m < 0 || m >= PATH_MAX - n) return errno = ENAMETOOLONG, false;
    return true;
}

/* O_NONBLOCK: a made-up tree may hold a FIFO, and nothing here may wait. */
static long read_path(char *out, size_t size, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    size_t n = 0;
    ssize_t got = 1;
    while (n + 1 < size && (got = read(fd, out + n, size - 1 - n)) != 0) {
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    }
    int why = errno;
    close(fd);
    if (got < 0) return errno = why, -1;
    out[n] = 0;
    return (long)n;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The first line of `text` in place, trimmed; false where it is empty or has no end. */
static bool trim_line(const char *text, char *out, size_t size) {
    size_t n = strcspn(text, "\n");
    while (n && blank(*text)) text++, n--;
    while (n && blank(text[n - 1])) n--;
    if (!n || n >= size) return false;
    memmove(out, text, n);
    out[n] = 0;
    return true;
}

long tree_read(char *out, size_t size, const char *root, const char *fmt, ...) {
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    return ok ? read_path(out, size, path) : -1;
}

static bool line_of(char *out, size_t size, const char *path) {
    long n = read_path(out, size, path);
    bool whole = n >= 0 && ((size_t)n + 1 < size || strchr(out, '\n'));
    return whole && trim_line(out, out, size);
}

bool tree_line(char *out, size_t size, const char *root, const char *fmt, ...) {
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    return ok && line_of(out, size, path);
}

bool take_number(const char **at, int64_t *v) {
    const char *p = *at;
    int64_t sum = 0;
    while (*p == ' ' || *p == '\t') p++;
    bool minus = *p == '-';
    p += minus;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, *p - '0', &sum))
            return false;
    if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' || *p == '.')
        return false;
    *v = minus ? -sum : sum;
    *at = p;
    return true;
}

bool tree_number(int64_t *v, const char *root, const char *fmt, ...) {
    char path[PATH_MAX], line[64];
    const char *at = line;
    int64_t found;
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    ok = ok && line_of(line, sizeof line, path) && take_number(&at, &found) && !*at;
    if (ok) *v = found;
    return ok;
}

static bool keyed(char *out, size_t size, const char *key, const char *path) {
    char line[8192];
    size_t n = strlen(key);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = line + n;
        if (strncmp(line, key, n)) continue;
        while (*at == ' ' || *at == '\t') at++;
        if (*at == ':') found = trim_line(at + 1, out, size);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return found;
}

bool tree_keyed(char *out, size_t size, const char *key, const char *root, const char *fmt, ...) {
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    return ok && keyed(out, size, key, path);
}

bool tree_kib(int64_t *bytes, const char *key, const char *root, const char *fmt, ...) {
    char path[PATH_MAX], line[64];
    const char *at = line;
    int64_t kib;
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    if (!ok || !keyed(line, sizeof line, key, path) || !take_number(&at, &kib)) return false;
    return kib >= 0 && !strcmp(at, " kB") && !__builtin_mul_overflow(kib, 1024, bytes);
}

bool tree_exists(const char *root, const char *fmt, ...) {
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    bool ok = full_path(path, root, fmt, args);
    va_end(args);
    return ok && access(path, F_OK) == 0;
}

int cpu_list(const char *text, void (*each)(void *ctx, int cpu), void *ctx) {
    int count = 0;
    for (const char *at = text;; at++) {
        int64_t first, last;
        if (!take_number(&at, &first)) return -1;
        last = first;
        if (*at == '-' && (at++, !take_number(&at, &last))) return -1;
        if (first < 0 || last < first || last >= MOST_CPUS) return -1;
        for (int64_t cpu = first; cpu <= last; cpu++, count++)
            if (each) each(ctx, (int)cpu);
        if (!*at) return count;
        if (*at != ',') return -1;
    }
}
