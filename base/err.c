/* SPDX-License-Identifier: Apache-2.0 */
/* Writing, extending and prefixing the one sentence of an error. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int err_set(struct err *err, int code, const char *fmt, ...) {
    if (!err) return code;
    err->code = code;
    va_list args;
    va_start(args, fmt);
    text_vformat(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return code;
}

int err_system(struct err *err, int errno_value, const char *fmt, ...) {
    if (!err) return ERR_SYSTEM;
    err->code = ERR_SYSTEM;
    va_list args;
    va_start(args, fmt);
    text_vformat(err->text, sizeof err->text, fmt, args);
    va_end(args);
    size_t len = strlen(err->text);
    snprintf(err->text + len, sizeof err->text - len, ": %s",
             strerror_l(errno_value, text_locale()));
    return ERR_SYSTEM;
}

int err_prefix(struct err *err, const char *fmt, ...) {
    if (!err) return ERR_NONE; /* the code is lost with the sentence: callers hold it already */
    char sentence[sizeof err->text];
    memcpy(sentence, err->text, sizeof sentence);
    va_list args;
    va_start(args, fmt);
    text_vformat(err->text, sizeof err->text, fmt, args);
    va_end(args);
    size_t len = strlen(err->text);
    snprintf(err->text + len, sizeof err->text - len, ": %s", sentence);
    return err->code;
}
