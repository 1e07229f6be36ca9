/* SPDX-License-Identifier: Apache-2.0 */
/* TOML 1.0 to a flat list of values with places; toml.cpp is the only file that includes toml++. */
#ifndef HARNESS_TOML_H
#define HARNESS_TOML_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
struct arena;
struct err;
enum toml_kind { TOML_STRING, TOML_INT, TOML_REAL, TOML_BOOL, TOML_ARRAY, TOML_TABLE, TOML_OTHER };
struct toml_entry {
    const char *path;    /* dotted, with [i] for arrays of tables: "sweep[0].workload.batch" */
    enum toml_kind kind; /* TOML_TABLE: a table as such (also an element of an array of tables),
                            before its keys */
    const char *text;    /* scalars: as the user's option parser reads it; arrays: "[1, 2, 4]" */
    const char *const *items; /* TOML_ARRAY of scalars: each element's text (n_items) */
    size_t n_items;
    int line, col;                   /* of the value (of each table: its header) */
    int key_line, key_col;           /* of the key */
    const int *item_line, *item_col; /* (n_items) places of an array's elements */
};
#define TOML_MOST_BYTES (256 * 1024)
#define TOML_MOST_KEYS  8
/* Document order. Size, nesting depth and key segments are bounded before parsing. The sentence of
   a syntax error starts with "name:line:col: ". */
int toml_read(const char *text, size_t len, const char *name, struct arena *, struct toml_entry **,
              size_t *n, struct err *);
#ifdef __cplusplus
}
#endif
#endif
