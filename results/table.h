/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of typed columns in memory: what a visit sends, the journal carries, HDF5 holds and every
 * reader works on. */
#ifndef RESULTS_TABLE_H
#define RESULTS_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct text;

enum column_type { COL_I64, COL_F64, COL_TEXT };
#define I64_NONE INT64_MIN /* 'no number' of an int64 column */

struct column { /* the schema: one row per column of every table; makes journal, HDF5,
                   docs/format.md and exports */
    const char *table, *name, *unit, *help;
    enum column_type type;
};
extern const struct column store_schema[]; /* ends with table NULL; schema.c */

struct table;  /* opaque: equally long columns */
struct tables; /* one of each table of the schema */

struct tables *tables_create(void); /* all tables of the schema, empty */
void tables_close(struct tables **);
struct table *tables_get(struct tables *, const char *table); /* NULL if unknown */
const struct table *tables_peek(const struct tables *, const char *table);
const char *const *tables_names(size_t *n); /* in schema order */
const char *tables_meta(
    const struct tables *,
    const char *key); /* value of table meta, the last one given; "" if absent */

int64_t table_rows(const struct table *);
int64_t table_add(
    struct table *,
    int64_t n); /* appends n rows of I64_NONE, NAN, ""; returns the first one's index */
void table_cut(struct table *,
               int64_t rows); /* keeps the first rows only; table_cut(t, 0) empties */
/* Further columns beside the schema's, for swept keys ("workload.batch") and probe channels; if the
   name exists with the same type nothing happens. Existing rows get 'none'. 0 or ERR_INTERNAL when
   the type differs. */
int table_column(struct table *, const char *name, enum column_type, const char *unit,
                 const char *help);
size_t table_columns(const struct table *);
const struct column *table_column_at(const struct table *, size_t i);
int table_find(const struct table *, const char *name); /* index, or -1 */

/* Whole columns, valid until the next table_add or table_column on this table. NULL if absent or of
 * another type. */
int64_t *table_i64(struct table *, const char *name);
double *table_f64(struct table *, const char *name);
const int64_t *table_see_i64(const struct table *, const char *name);
const double *table_see_f64(const struct table *, const char *name);

/* Single cells. Setting an unknown column is an internal error (abort): names are ours. */
void table_set_i64(struct table *, int64_t row, const char *name, int64_t v);
void table_set_f64(struct table *, int64_t row, const char *name, double v);
void table_set_text(struct table *, int64_t row, const char *name, const char *v); /* copies */
int64_t table_int(const struct table *, int64_t row, const char *name); /* I64_NONE if absent */
double table_real(const struct table *, int64_t row,
                  const char *name); /* also of an int64 column; NAN if absent */
const char *table_text(const struct table *, int64_t row,
                       const char *name); /* "" if absent; never NULL */
/* Any cell as text ("" for none), for tables and exports. */
void table_cell(const struct table *, int64_t row, size_t column, struct text *);

/* All tables to bytes and back; unpack appends to what is there (dynamic columns are made) and
 * trusts nothing. */
void tables_pack(const struct tables *, struct text *);
int tables_unpack(struct tables *, const char *data, size_t len, struct err *);

#endif
