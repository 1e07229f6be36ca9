/* SPDX-License-Identifier: Apache-2.0 */
/* One row per key drives TOML, --set, --help, the generated documents and the record in the result
 * file. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct text;

enum option_type {            /* the field at `offset` */
                   OPT_INT,   /* int64_t */
                   OPT_REAL,  /* double; with the unit "%" a share: "5 %" is 0.05 */
                   OPT_BYTES, /* int64_t; text with a unit: "64 MiB" */
                   OPT_TIME,  /* int64_t ns; text with a unit: "90 s" */
                   OPT_WORD,  /* int: index in words */
                   OPT_TEXT,  /* const char *, in the arena; never NULL ("" where empty) */
                   OPT_FLAG,  /* bool; "true" or "false" */
                   OPT_INTS,  /* struct ints; "[1, 2, 4]" or "3" */
};
enum {                   /* flags */
       OPT_SWEEP = 1,    /* may be an axis */
       OPT_IDENTITY = 2, /* decides which rows are the same cell */
};
struct ints {
    int64_t *v; /* (n), in the arena */
    int32_t n;
};
struct option {            /* a table ends with a row whose key is NULL */
    const char *key, *was; /* `was`: a former name (or NULL), so that old files replay */
    enum option_type type;
    unsigned flags;
    size_t offset;   /* offsetof(struct NAME_params, field) */
    const char *def; /* text, read by the same parser as the user's; NULL: required */
    double min, max; /* inclusive, for INT, REAL, BYTES (bytes), TIME (ns), each of INTS; both 0:
                        unbounded */
    const char *const *words; /* OPT_WORD: NULL-terminated */
    const char *unit, *help;  /* unit: "tokens", "" ; help: one sentence */
};

const struct option *option_find(const struct option *table,
                                 const char *key); /* by key, then by was; or NULL */
/* Reads text into the field. On a mistake the sentence says what was found and what is allowed (no
 * file and line). */
int option_parse(const struct option *, const char *text, void *params, struct arena *,
                 struct err *);
/* Sets every field to its default; required ones are zeroed. Never fails: a bad default is an
 * internal error (abort). */
void option_defaults(const struct option *table, void *params, struct arena *);
/* The canonical text of the field; option_parse reads it back. */
void option_format(const struct option *, const void *params, struct text *);
/* "integer 1 ... 4096", "one of bf16, f16, f32", "time, as \"90 s\"": what is allowed. */
void option_allowed(const struct option *, struct text *);
/* Help lines of a table: key, default, what is allowed, help; each key behind `prefix`
 * ("workload."). */
void option_help(const struct option *table, const char *prefix, struct text *);

#endif
