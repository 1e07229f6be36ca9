/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a foreign file: strict JSON or one object a line, its format by its content, its members
 * with sentences that say where. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/import.h"
#include "results/import_parts.h"
#include "results/table.h"

enum { MOST_BYTES = 32 << 20 };

const struct importer *importer_find(const char *name) {
    for (const struct importer *const *i = all_importers; *i; i++)
        if (!strcmp((*i)->name, name)) return *i;
    return NULL;
}

/* ---- JSON */

static int broken(const char *data, const char *at, struct err *err) {
    size_t line = 1, column = 1;
    for (const char *s = data; s < at; s++) {
        column++;
        if (*s == '\n') line++, column = 1;
    }
    return err_set(err, ERR_INPUT, "line %zu, column %zu: this is no JSON", line, column);
}

static size_t blanks(const char *data, size_t len) {
    size_t n = 0;
    while (n < len && strchr(" \t\r\n", data[n]) && data[n]) n++;
    return n;
}

/* What is often given instead. */
static int no_document(const char *data, size_t len, struct err *err) {
    struct text list = {0};
    int code;
    for (const struct importer *const *i = all_importers; *i; i++)
        text_printf(&list, "%s%s", i == all_importers ? "" : ", or ", (*i)->brief);
    if (len > 4 && !memcmp(data, "\x89HDF", 4))
        code = err_set(err, ERR_INPUT, "it is a result file already (bench show)");
    else if (len > 4 && !memcmp(data, "BMRF", 4))
        code = err_set(err, ERR_INPUT, "it is a journal (bench import-journal)");
    else
        code = err_set(err, ERR_INPUT, "it is no JSON; what can be imported is %s", list.data);
    text_free(&list);
    return code;
}

/* One document, or one object a line as an array. Bytes that are no UTF-8, and zeros within, are
 * refused before: cJSON would take them. */
static int parse(const char *data, size_t len, cJSON **document, struct err *err) {
    const char *end = data, *zero = memchr(data, 0, len);
    size_t at = blanks(data, len);
    if (at == len) return err_set(err, ERR_INPUT, "it is empty");
    if (data[at] != '{' && data[at] != '[') return no_document(data, len, err);
    if (zero) return broken(data, zero, err);
    if (!utf8_valid(data, len)) return err_set(err, ERR_INPUT, "this is no UTF-8 text");
    *document = cJSON_ParseWithLengthOpts(data, len, &end, 0);
    if (!*document) return broken(data, end ? end : data, err);
    at = (size_t)(end - data);
    at += blanks(end, len - at);
    if (at == len) return 0;
    bool lines = cJSON_IsObject(*document);
    cJSON *first = *document;
    if (!lines) return broken(data, data + at, err);
    *document = cJSON_CreateArray();
    if (!*document || !cJSON_AddItemToArray(*document, first)) {
        cJSON_Delete(first);
        return err_set(err, ERR_MEMORY, "no memory for its lines");
    }
    while (at < len) {
        cJSON *next = cJSON_ParseWithLengthOpts(data + at, len - at, &end, 0);
        if (!cJSON_IsObject(next)) {
            broken(data, next || !end ? data + at : end, err);
            cJSON_Delete(next);
            return ERR_INPUT;
        }
        cJSON_AddItemToArray(*document, next);
        at = (size_t)(end - data);
        at += blanks(end, len - at);
    }
    return 0;
}

/* ---- members */

static int missing(const char *name, const char *where, const char *needed, struct err *err) {
    return err_set(err, ERR_INPUT, "%s has no %s: %s is needed", where, name, needed);
}

static int wrong(const cJSON *v, const char *name, const char *where, const char *needed,
                 struct err *err) {
    struct text is = {0};
    import_any(v, &is);
    int code = err_set(err, ERR_INPUT, "%s.%s is %.60s: %s is needed", where, name,
                       is.len              ? is.data
                       : cJSON_IsString(v) ? "empty"
                                           : "null",
                       needed);
    text_free(&is);
    return code;
}

void import_any(const cJSON *value, struct text *out) {
    char *json = NULL;
    text_add(out, "", 0);
    if (cJSON_IsString(value)) {
        text_puts(out, value->valuestring);
    } else if (cJSON_IsNumber(value)) { /* all digits that tell it from its neighbours */
        char buf[40];
        bool whole = fabs(value->valuedouble) <= 0x1p53 &&
                     !(nearbyint(value->valuedouble) < value->valuedouble) &&
                     !(nearbyint(value->valuedouble) > value->valuedouble);
        if (whole)
            text_printf(out, "%" PRId64, (int64_t)value->valuedouble);
        else
            text_puts(out, format_exact(buf, sizeof buf, value->valuedouble));
    } else if (!cJSON_IsNull(value) && (json = cJSON_PrintUnformatted(value))) {
        text_puts(out, json);
        cJSON_free(json);
    }
}

int import_text(const cJSON *object, const char *name, const char *where, const char **value,
                struct err *err) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!v) return missing(name, where, "text", err);
    if (!cJSON_IsString(v)) return wrong(v, name, where, "text", err);
    *value = v->valuestring;
    return 0;
}

int import_number(const cJSON *object, const char *name, const char *where, double *value,
                  struct err *err) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!v) return missing(name, where, "a number", err);
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
        return wrong(v, name, where, "a finite number", err);
    *value = v->valuedouble;
    return 0;
}

int import_whole(const cJSON *object, const char *name, const char *where, int64_t *value,
                 struct err *err) {
    double d = 0;
    int code = import_number(object, name, where, &d, err);
    if (code) return code;
    if (!(fabs(d) <= 0x1p53) || nearbyint(d) < d || nearbyint(d) > d)
        return wrong(cJSON_GetObjectItemCaseSensitive(object, name), name, where,
                     "a whole number of at most 2^53", err);
    *value = (int64_t)d;
    return 0;
}

/* ---- files */

static int unknown(struct err *err) {
    struct text list = {0};
    for (const struct importer *const *i = all_importers; *i; i++)
        text_printf(&list, "%s%s", i == all_importers ? "" : ", ", (*i)->name);
    int code = err_set(err, ERR_INPUT,
                       "this JSON is of no format that can be imported (there are %s)", list.data);
    text_free(&list);
    return code;
}

int import_document(struct import *im, const char *name, const char *data, size_t len,
                    const struct importer *format, struct text *lost, struct err *err) {
    cJSON *document = NULL;
    struct err own = {0};
    int code = parse(data, len, &document, &own);
    for (const struct importer *const *i = all_importers; !code && !format && *i; i++)
        if ((*i)->knows(document)) format = *i;
    if (!code && !format) code = unknown(&own);
    if (!code) {
        import_begin(im, format->name, name);
        code = format->read(document, im, lost, &own);
    }
    cJSON_Delete(document);
    return code ? err_set(err, code, "%s: %s", name, own.text) : 0;
}

int import_file(struct import *im, const char *path, const struct importer *format,
                struct text *lost, struct err *err) {
    char *data = NULL;
    size_t len = 0;
    int code = file_read(path, MOST_BYTES, &data, &len, err);
    if (!code) code = import_document(im, path, data, len, format, lost, err);
    if (!code) import_read(im, data, len);
    free(data);
    return code;
}
