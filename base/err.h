/* SPDX-License-Identifier: Apache-2.0 */
/* One error value: a code and one sentence. Fallible functions return 0 or the code and take it
 * last. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err_code {
    ERR_NONE = 0,
    ERR_INPUT = 1,       /* a mistake of the user's, or a file that cannot be read: exit 2 */
    ERR_SYSTEM = 2,      /* the operating system refused: exit 2 */
    ERR_MEMORY = 3,      /* out of memory (host or device): a row state 'oom' where a visit asked */
    ERR_UNSUPPORTED = 4, /* cannot be done by this device or build: a row state 'skipped' */
    ERR_DEVICE = 5,      /* a device reported a failure: a row state 'failed' */
    ERR_TIMEOUT = 6,
    ERR_INTERRUPTED = 7, /* exit 130 */
    ERR_INTERNAL = 8,    /* a broken promise of our own */
};

struct err {
    int code;        /* enum err_code; 0 while nothing went wrong */
    char text[1000]; /* one sentence, no newline at the end; empty while code is 0 */
};

/* Writes code and sentence (printf style, cut at the buffer's end) and returns code. err may be
 * NULL. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As err_set, with ": " and the text of errno's value appended. */
int err_system(struct err *err, int errno_value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the sentence that is there already; returns err->code. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
