/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF, versions 2 and 3 (little-endian): header, metadata, table of tensors; then, aligned, their
 * bytes. Source: the format's specification, docs/gguf.md of the ggml project. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/model/file_parts.h"
#include "workloads/model/stored.h"

enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    N_GGUF
};
static const int gguf_bytes[N_GGUF] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { MOST_KEY = 65535, MOST_DEPTH = 4, LEAST_VALUE = 13, LEAST_TENSOR = 32 };
static const int64_t most_header =
    64 << 20; /* vocabularies of 2^18 words and their merges take 10 to 20 MB */

struct scan {
    struct file_scan file;
    struct arena *arena;
    struct err *err;
};

static int cut(struct scan *s, const char *what) {
    return err_set(s->err, ERR_INPUT,
                   "%s ends in the middle of %s (byte %" PRId64 " of %" PRId64 ")",
                   s->file.part->name, what, s->file.at, s->file.part->size);
}

static int room(struct scan *s, uint64_t n, const char *what) {
    if (n > (uint64_t)(s->file.part->size - s->file.at)) return cut(s, what);
    if ((int64_t)n > most_header - s->file.at)
        return err_set(s->err, ERR_INPUT, "%s: its header is longer than %" PRId64 " bytes",
                       s->file.part->name, most_header);
    return 0;
}

static int take(struct scan *s, void *to, int64_t n, const char *what) {
    const int code = room(s, (uint64_t)n, what);
    return code ? code : file_scan(&s->file, to, n, s->err);
}

/* An unsigned little-endian number of n bytes. */
static int number(struct scan *s, int n, uint64_t *v, const char *what) {
    uint8_t b[8];
    int code = take(s, b, n, what);
    *v = 0;
    for (int i = 0; i < n && !code; i++) *v |= (uint64_t)b[i] << 8 * i;
    return code;
}

static int skip(struct scan *s, uint64_t n, const char *what) {
    int code = room(s, n, what);
    if (!code) s->file.at += (int64_t)n;
    return code;
}

/* A length and that many bytes, as a name: of at most `most` bytes, without zeros. */
static int name(struct scan *s, uint64_t most, const char **text, const char *what) {
    uint64_t n;
    int code = number(s, 8, &n, what);
    if (!code) code = room(s, n, what);
    if (code) return code;
    if (n < 1 || n > most)
        return err_set(s->err, ERR_INPUT, "%s: %s has %" PRIu64 " bytes: 1 ... %" PRIu64,
                       s->file.part->name, what, n, most);
    char *made = arena_alloc(s->arena, n + 1);
    code = take(s, made, (int64_t)n, what);
    if (!code && (strlen(made) != n || !utf8_valid(made, n)))
        return err_set(s->err, ERR_INPUT, "%s: %s is no UTF-8 text", s->file.part->name, what);
    *text = made;
    return code;
}

static int skip_array(struct scan *s, int depth, uint64_t *type, uint64_t *count, int64_t *begin) {
    static const char what[] = "an array of its metadata";
    uint64_t n, inner;
    int64_t place;
    int code = number(s, 4, type, what);
    if (!code) code = number(s, 8, count, what);
    *begin = s->file.at;
    if (code) return code;
    if (*type >= N_GGUF)
        return err_set(s->err, ERR_INPUT, "%s: an array of unknown type %" PRIu64,
                       s->file.part->name, *type);
    if (*type == GGUF_ARRAY && depth >= MOST_DEPTH)
        return err_set(s->err, ERR_INPUT, "%s: arrays of arrays deeper than %d", s->file.part->name,
                       MOST_DEPTH);
    const uint64_t least = *type == GGUF_TEXT    ? 8
                           : *type == GGUF_ARRAY ? 12
                                                 : (uint64_t)gguf_bytes[*type];
    if (*count > (uint64_t)(s->file.part->size - s->file.at) / least) return cut(s, what);
    if (*type != GGUF_TEXT && *type != GGUF_ARRAY) return skip(s, *count * least, what);
    for (uint64_t i = 0; i < *count && !code; i++) {
        if (*type == GGUF_ARRAY) {
            uint64_t deeper;
            code = skip_array(s, depth + 1, &deeper, &inner, &place);
            continue;
        }
        code = number(s, 8, &n, what);
        if (!code) code = skip(s, n, what);
    }
    return code;
}

static int text_value(struct scan *s, struct file_value *v) {
    static const char what[] = "a text of its metadata";
    uint64_t n;
    int code = number(s, 8, &n, what);
    if (!code) code = room(s, n, what);
    if (code) return code;
    v->kind = FILE_TEXT;
    v->count = (int64_t)n;
    v->begin = s->file.at;
    v->text = "";
    if (n > FILE_MOST_TEXT) return skip(s, n, what);
    char *text = arena_alloc(s->arena, n + 1);
    v->text = text;
    return take(s, text, (int64_t)n, what);
}

/* What the f32 was written for: the shortest decimal that reads back as it, so that 1e-5 is 1e-5.
 */
static double shortest(float f) {
    double v = (double)f;
    for (int digits = 6; digits < 9 && isfinite(f); digits++) {
        struct text decimal = {0};
        text_printf(&decimal, "%.*g", digits, (double)f);
        const bool read = parse_f64(decimal.data, &v) && (float)v == f;
        text_free(&decimal);
        if (read) return v;
    }
    return (double)f;
}

static void scalar(struct file_value *v, uint64_t type, uint64_t bits) {
    v->kind = type == GGUF_BOOL ? FILE_FLAG : FILE_INT;
    switch (type) {
    case GGUF_I8: v->integer = (int64_t)(bits & 127) - (int64_t)(bits & 128); break;
    case GGUF_I16: v->integer = (int16_t)bits; break;
    case GGUF_I32: v->integer = (int32_t)bits; break;
    case GGUF_F32: {
        const uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        v->kind = FILE_REAL;
        v->real = shortest(f);
        return;
    }
    case GGUF_F64:
        v->kind = FILE_REAL;
        memcpy(&v->real, &bits, sizeof bits);
        return;
    default: v->integer = (int64_t)bits;
    }
    v->real = (double)v->integer;
    if (type == GGUF_U64 && bits > INT64_MAX) {
        v->kind = FILE_REAL;
        v->real = (double)bits;
    }
}

static int read_value(struct model_file *file, struct scan *s) {
    uint64_t type, bits, count;
    struct file_value value = {0};
    int code = name(s, MOST_KEY, &value.key, "a key of its metadata");
    if (!code) code = number(s, 4, &type, "its metadata");
    if (code) return code;
    if (type >= N_GGUF)
        return err_set(s->err, ERR_INPUT, "%s: '%.80s' has the unknown type %" PRIu64,
                       s->file.part->name, value.key, type);
    if (type == GGUF_TEXT) {
        code = text_value(s, &value);
    } else if (type == GGUF_ARRAY) {
        uint64_t element = 0;
        value.kind = FILE_ARRAY;
        code = skip_array(s, 1, &element, &count, &value.begin);
        value.element = (uint32_t)element;
        value.count = code ? 0 : (int64_t)count;
    } else {
        code = number(s, gguf_bytes[type], &bits, "its metadata");
        if (!code) scalar(&value, type, bits);
    }
    if (code) return code;
    struct file_value *kept = file_add_value(file, s->err);
    if (!kept) return ERR_INPUT;
    *kept = value;
    return 0;
}

struct entry { /* of the table; placed once it is known where the bytes begin */
    struct file_tensor tensor;
    uint64_t dims[4], offset;
};

static int read_entry(struct scan *s, struct entry *e) {
    static const char what[] = "its table of tensors";
    uint64_t n_dims, type;
    const char *called;
    int code = name(s, FILE_MOST_NAME, &e->tensor.name, "a tensor's name");
    if (!code) code = number(s, 4, &n_dims, what);
    if (code) return code;
    if (n_dims < 1 || n_dims > 4)
        return err_set(s->err, ERR_INPUT, "%s: tensor '%.80s' has %" PRIu64 " dimensions: 1 ... 4",
                       s->file.part->name, e->tensor.name, n_dims);
    e->tensor.n_dims = (int)n_dims;
    for (uint64_t i = 0; i < n_dims && !code; i++) code = number(s, 8, &e->dims[i], what);
    if (!code) code = number(s, 4, &type, what);
    if (!code) code = number(s, 8, &e->offset, what);
    if (code) return code;
    e->tensor.stored = stored_of_gguf((uint32_t)type, &called);
    if (e->tensor.stored < 0)
        return err_set(s->err, ERR_INPUT,
                       "%s: tensor '%.80s' is stored as %s (type %" PRIu64 "); read are %s",
                       s->file.part->name, e->tensor.name, called ? called : "something unknown",
                       type, STORED_READ_GGUF);
    return 0;
}

static int alignment_of(const struct model_file *file, const struct scan *s, int64_t *alignment) {
    *alignment = 32;
    for (size_t i = 0; i < file->n_values; i++) { /* not yet sorted */
        const struct file_value *v = &file->values[i];
        if (strcmp(v->key, "general.alignment") != 0) continue;
        if (v->kind != FILE_INT || v->integer < 1 || v->integer > 1 << 20 ||
            (v->integer & (v->integer - 1)))
            return err_set(s->err, ERR_INPUT,
                           "%s: general.alignment must be a power of two up to 2^20",
                           s->file.part->name);
        *alignment = v->integer;
    }
    return 0;
}

static int read_head(struct scan *s, uint64_t *n_tensors, uint64_t *n_values) {
    uint64_t version;
    int code = skip(s, 4, "its header");
    if (!code) code = number(s, 4, &version, "its header");
    if (code) return code;
    if (version && !(version & 0xffff))
        return err_set(s->err, ERR_INPUT,
                       "%s is a big-endian GGUF file; little-endian ones are read",
                       s->file.part->name);
    if (version < 2 || version > 3)
        return err_set(s->err, ERR_INPUT, "%s is GGUF version %" PRIu64 "; read are 2 and 3",
                       s->file.part->name, version);
    code = number(s, 8, n_tensors, "its header");
    if (!code) code = number(s, 8, n_values, "its header");
    if (code) return code;
    const uint64_t left = (uint64_t)(s->file.part->size - s->file.at);
    if (*n_tensors > FILE_MOST_TENSORS || *n_tensors > left / LEAST_TENSOR ||
        *n_values > FILE_MOST_VALUES || *n_values > left / LEAST_VALUE)
        return err_set(s->err, ERR_INPUT,
                       "%s says that it has %" PRIu64 " tensors and %" PRIu64
                       " metadata entries: more than its %" PRId64 " bytes hold or %d are read",
                       s->file.part->name, *n_tensors, *n_values, s->file.part->size,
                       FILE_MOST_TENSORS);
    return 0;
}

int file_open_gguf(struct model_file *file, struct err *err) {
    struct scan *s = must_alloc(sizeof *s);
    struct entry *entries = NULL;
    uint64_t n_tensors = 0, n_values = 0;
    int64_t alignment = 32;
    s->file.part = &file->parts[0];
    s->arena = file->arena;
    s->err = err;
    int code = read_head(s, &n_tensors, &n_values);
    for (uint64_t i = 0; i < n_values && !code; i++) code = read_value(file, s);
    if (!code) code = alignment_of(file, s, &alignment);
    if (!code) entries = must_alloc((n_tensors + 1) * sizeof *entries);
    for (uint64_t i = 0; i < n_tensors && !code; i++) code = read_entry(s, &entries[i]);
    const int64_t base = (s->file.at + alignment - 1) / alignment * alignment;
    for (uint64_t i = 0; i < n_tensors && !code; i++) {
        if (entries[i].offset % (uint64_t)alignment != 0)
            code = err_set(
                err, ERR_INPUT, "%s: tensor '%.80s' begins at %" PRIu64 ", no multiple of %" PRId64,
                s->file.part->name, entries[i].tensor.name, entries[i].offset, alignment);
        else
            code = file_add_tensor(file, entries[i].tensor, entries[i].dims, base,
                                   entries[i].offset, err);
    }
    free(entries);
    free(s);
    return code;
}
