/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing and explaining the fields of a record by its table of options. */
#include "base/option.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

#define ELLIPSIS "\xe2\x80\xa6"
static const char *const flag_words[] = {"false", "true", NULL};

const struct option *option_find(const struct option *table, const char *key) {
    for (const struct option *o = table; o && o->key; o++)
        if (!strcmp(o->key, key)) return o;
    for (const struct option *o = table; o && o->key; o++)
        if (o->was && !strcmp(o->was, key)) return o;
    return NULL;
}

static size_t word_count(const char *const *words) {
    size_t n = 0;
    while (words && words[n]) n++;
    return n;
}

static int word_index(const char *const *words, const char *text) {
    for (int i = 0; words && words[i]; i++)
        if (!strcmp(words[i], text)) return i;
    return -1;
}

struct unit { /* the last of a list has factor 1 */
    const char *name;
    int64_t factor;
};
static const struct unit byte_units[] = {
    {"TiB", (int64_t)1 << 40},
    {"GiB", (int64_t)1 << 30},
    {"MiB", (int64_t)1 << 20},
    {"KiB", (int64_t)1 << 10},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
    {"B", 1},
};
static const struct unit time_units[] = {
    {"h", 3600000000000}, {"min", 60000000000}, {"s", 1000000000},
    {"ms", 1000000},      {"us", 1000},         {"ns", 1},
};

/* The largest unit that divides the value leaves the shortest text that reads back exactly. */
static void put_quantity(struct text *out, int64_t v, const struct unit *units) {
    const struct unit *best = units;
    for (const struct unit *u = units;; u++) {
        if (v % best->factor || (v % u->factor == 0 && u->factor > best->factor) || v == 0)
            best = u;
        if (u->factor == 1) break;
    }
    text_printf(out, "%lld %s", (long long)(v / best->factor), best->name);
}

/* A share: a REAL whose unit is %, "1 %" or "0.01". */
static bool is_share(const struct option *o) {
    return o->type == OPT_REAL && o->unit && !strcmp(o->unit, "%");
}

static bool parse_share(const char *text, double *v) {
    size_t n = strlen(text);
    char digits[64];
    while (n && text[n - 1] == ' ') n--;
    if (!n || text[n - 1] != '%') return parse_f64(text, v);
    for (n--; n && text[n - 1] == ' ';) n--;
    if (n >= sizeof digits) return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    if (!parse_f64(digits, v)) return false;
    *v /= 100;
    return true;
}

/* A value of the option's type, as the user would write it; bounds, too, which are doubles. */
static void put_int(const struct option *o, int64_t v, struct text *out) {
    if (o->type == OPT_BYTES)
        put_quantity(out, v, byte_units);
    else if (o->type == OPT_TIME)
        put_quantity(out, v, time_units);
    else
        text_printf(out, "%lld", (long long)v);
}

static void put_real(double v, struct text *out) {
    char buf[40];
    text_puts(out, isfinite(v) ? format_exact(buf, sizeof buf, v) : "-");
}

static void put_bound(const struct option *o, double v, struct text *out) {
    if (is_share(o))
        text_printf(out, "%.15g %%", 100 * v);
    else if (o->type == OPT_REAL)
        put_real(v, out);
    else
        put_int(o, (int64_t)v, out);
}

/* Bounds that no integer reaches are no bounds, and shown as none. */
static bool has_bounds(const struct option *o) {
    return (o->min != 0 || o->max != 0) && o->type != OPT_WORD && o->type != OPT_TEXT &&
           o->type != OPT_FLAG;
}
static bool has_min(const struct option *o) {
    return has_bounds(o) && o->min > (o->type == OPT_REAL ? -DBL_MAX : -0x1p62);
}
static bool has_max(const struct option *o) {
    return has_bounds(o) && o->max < (o->type == OPT_REAL ? DBL_MAX : 0x1p62);
}

/* Whether v is within the bounds; else the sentence. `shown` is v as text. */
static int check_bounds(const struct option *o, double v, const char *shown, struct err *err) {
    bool low = has_min(o) && !(v >= o->min), high = has_max(o) && !(v <= o->max);
    if (!low && !high) return 0;
    struct text min = {0}, max = {0};
    if (has_min(o)) put_bound(o, o->min, &min);
    if (has_max(o)) put_bound(o, o->max, &max);
    if (has_min(o) && has_max(o))
        err_set(err, ERR_INPUT, "%s is outside %s " ELLIPSIS " %s", shown, min.data, max.data);
    else if (low)
        err_set(err, ERR_INPUT, "%s is below %s", shown, min.data);
    else
        err_set(err, ERR_INPUT, "%s is above %s", shown, max.data);
    text_free(&min);
    text_free(&max);
    return ERR_INPUT;
}

static int check_int(const struct option *o, int64_t v, struct err *err) {
    struct text shown = {0};
    put_int(o, v, &shown);
    int code = check_bounds(o, (double)v, shown.data, err);
    text_free(&shown);
    return code;
}

static int refuse(const struct option *o, const char *text, struct err *err) {
    struct text allowed = {0};
    option_allowed(o, &allowed);
    err_set(err, ERR_INPUT, "'%s' is not allowed here; allowed: %s", text, allowed.data);
    text_free(&allowed);
    return ERR_INPUT;
}

static int refuse_word(const char *text, const char *const *words, struct err *err) {
    struct text list = {0};
    size_t n = word_count(words);
    for (size_t i = 0; i < n; i++) text_printf(&list, "%s%s", i ? ", " : "", words[i]);
    const char *near = text_nearest(text, words, n);
    err_set(err, ERR_INPUT, "'%s' is not one of %s%s%s%s", text, list.data ? list.data : "(none)",
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    text_free(&list);
    return ERR_INPUT;
}

/* "[1, 2, 4]", "1,2,4", "3". */
static int parse_ints(const struct option *o, const char *text, struct ints *out,
                      struct arena *arena, struct err *err) {
    size_t len = strlen(text), most = 1;
    char *rest = must_text(text), *p = rest + strspn(rest, " ");
    int code = 0;
    struct ints made = {NULL, 0};
    for (const char *c = text; *c; c++) most += *c == ',';
    while (len && text[len - 1] == ' ') rest[--len] = 0;
    if (*p == '[') {
        if (rest[len - 1] != ']') {
            code = refuse(o, text, err);
            goto out;
        }
        rest[len - 1] = 0;
        p++;
        p += strspn(p, " ");
        if (!*p) { /* who takes a list takes its first item */
            code = refuse(o, text, err);
            goto out;
        }
    }
    if (most > INT32_MAX / 2) {
        code = err_set(err, ERR_INPUT, "a list of more than %d integers", INT32_MAX / 2);
        goto out;
    }
    made.v = arena_alloc(arena, most * sizeof *made.v);
    for (char *item; !code && (item = strsep(&p, ",")); made.n += !code) {
        item += strspn(item, " ");
        for (size_t n = strlen(item); n && item[n - 1] == ' '; n--) item[n - 1] = 0;
        if (!parse_i64(item, &made.v[made.n]))
            code = refuse(o, text, err);
        else
            code = check_int(o, made.v[made.n], err);
    }
out:
    if (!code) *out = made;
    free(rest);
    return code;
}

static int parse_text(const char *text, const char **field, struct arena *arena, struct err *err) {
    if (!utf8_valid(text, strlen(text))) return err_set(err, ERR_INPUT, "the text is not UTF-8");
    *field = arena_text(arena, text);
    return 0;
}

int option_parse(const struct option *o, const char *text, void *params, struct arena *arena,
                 struct err *err) {
    void *field = (char *)params + o->offset;
    int64_t i = 0;
    double d = 0;
    int word, code;
    switch (o->type) {
    case OPT_INT:
    case OPT_BYTES:
    case OPT_TIME:
        if (!(o->type == OPT_INT     ? parse_i64(text, &i)
              : o->type == OPT_BYTES ? parse_bytes(text, &i)
                                     : parse_time(text, &i)))
            return refuse(o, text, err);
        code = check_int(o, i, err);
        if (!code) *(int64_t *)field = i;
        return code;
    case OPT_REAL:
        if (!(is_share(o) ? parse_share(text, &d) : parse_f64(text, &d)))
            return refuse(o, text, err);
        code = check_bounds(o, d, text, err);
        if (!code) *(double *)field = d;
        return code;
    case OPT_WORD:
        word = word_index(o->words, text);
        if (word < 0) return refuse_word(text, o->words, err);
        *(int *)field = word;
        return 0;
    case OPT_FLAG:
        word = word_index(flag_words, text);
        if (word < 0) return refuse_word(text, flag_words, err);
        *(bool *)field = word == 1;
        return 0;
    case OPT_TEXT: return parse_text(text, field, arena, err);
    case OPT_INTS: return parse_ints(o, text, field, arena, err);
    }
    return err_set(err, ERR_INTERNAL, "option '%s' has no type", o->key);
}

static void set_zero(const struct option *o, void *params) {
    void *field = (char *)params + o->offset;
    switch (o->type) {
    case OPT_INT:
    case OPT_BYTES:
    case OPT_TIME: *(int64_t *)field = 0; break;
    case OPT_REAL: *(double *)field = 0; break;
    case OPT_WORD: *(int *)field = 0; break;
    case OPT_FLAG: *(bool *)field = false; break;
    case OPT_TEXT: *(const char **)field = ""; break;
    case OPT_INTS: *(struct ints *)field = (struct ints){NULL, 0}; break;
    }
}

void option_defaults(const struct option *table, void *params, struct arena *arena) {
    for (const struct option *o = table; o && o->key; o++) {
        struct err err = {0};
        set_zero(o, params);
        if (o->def && option_parse(o, o->def, params, arena, &err)) {
            fprintf(stderr, "bench: internal error: default of option '%s': %s\n", o->key,
                    err.text);
            abort();
        }
    }
}

void option_format(const struct option *o, const void *params, struct text *out) {
    const void *field = (const char *)params + o->offset;
    const struct ints *ints = field;
    int word;
    switch (o->type) {
    case OPT_INT:
    case OPT_BYTES:
    case OPT_TIME: put_int(o, *(const int64_t *)field, out); break;
    case OPT_REAL: put_real(*(const double *)field, out); break;
    case OPT_WORD:
        word = *(const int *)field;
        text_puts(out, word >= 0 && (size_t)word < word_count(o->words) ? o->words[word] : "?");
        break;
    case OPT_FLAG: text_puts(out, flag_words[*(const bool *)field]); break;
    case OPT_TEXT: text_puts(out, *(const char *const *)field); break;
    case OPT_INTS:
        text_puts(out, "[");
        for (int32_t i = 0; i < ints->n; i++)
            text_printf(out, "%s%lld", i ? ", " : "", (long long)ints->v[i]);
        text_puts(out, "]");
        break;
    }
}

static void put_range(const struct option *o, const char *before, struct text *out) {
    if (has_min(o) && has_max(o)) {
        text_puts(out, before);
        put_bound(o, o->min, out);
        text_puts(out, " " ELLIPSIS " ");
        put_bound(o, o->max, out);
    } else if (has_min(o)) {
        text_puts(out, ", at least ");
        put_bound(o, o->min, out);
    } else if (has_max(o)) {
        text_puts(out, ", at most ");
        put_bound(o, o->max, out);
    }
}

void option_allowed(const struct option *o, struct text *out) {
    switch (o->type) {
    case OPT_INT: text_puts(out, "integer"); break;
    case OPT_REAL: text_puts(out, is_share(o) ? "share, as \"5 %\" or 0.05," : "number"); break;
    case OPT_BYTES: text_puts(out, "bytes, as \"64 MiB\""); break;
    case OPT_TIME: text_puts(out, "time, as \"90 s\""); break;
    case OPT_TEXT: text_puts(out, "text"); break;
    case OPT_FLAG: text_puts(out, "true or false"); break;
    case OPT_INTS: text_puts(out, "integers, as \"[1, 2, 4]\""); break;
    case OPT_WORD:
        text_puts(out, "one of ");
        for (size_t i = 0; i < word_count(o->words); i++)
            text_printf(out, "%s%s", i ? ", " : "", o->words[i]);
        break;
    }
    bool number = o->type == OPT_INT || o->type == OPT_REAL;
    put_range(o, number ? " " : o->type == OPT_INTS ? ", each " : ", ", out);
}

void option_help(const struct option *table, const char *prefix, struct text *out) {
    size_t key_width = 0, def_width = 0;
    for (const struct option *o = table; o && o->key; o++) {
        size_t key = utf8_width(prefix) + utf8_width(o->key);
        size_t def = utf8_width(o->def ? o->def : "(required)");
        key_width = key > key_width ? key : key_width;
        def_width = def > def_width && def <= 16 ? def : def_width;
    }
    for (const struct option *o = table; o && o->key; o++) {
        struct text words = {0};
        text_printf(out, "  %s%s", prefix, o->key);
        text_pad(out, 2 + key_width + 2);
        text_puts(out, !o->def ? "(required)" : *o->def ? o->def : "\"\"");
        text_puts(out, "  ");
        text_pad(out, 2 + key_width + 2 + def_width + 2);
        option_allowed(o, &words);
        if (o->unit && *o->unit && !is_share(o)) text_printf(&words, " %s", o->unit);
        if (o->help && *o->help) text_printf(&words, "; %s", o->help);
        text_wrap(out, 2 + key_width + 2 + def_width + 2, 100, words.data);
        text_puts(out, "\n");
        text_free(&words);
    }
}
