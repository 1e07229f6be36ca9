/* SPDX-License-Identifier: Apache-2.0 */
/* Typed columns in memory. Texts are interned: equal texts of all tables of a set are one copy and
 * one pointer. */
#include "results/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

struct pool { /* every text once; lives as long as the tables */
    struct arena *arena;
    const char **slot; /* open addressing; NULL is free; cap is a power of two */
    size_t used, cap;
};
struct cells {
    struct column def;
    bool ours; /* not of the schema: name, unit and help are malloc'ed */
    union {
        int64_t *i;
        double *f;
        const char **t; /* interned */
        void *any;
    } data;
};
struct table {
    const char *name;
    struct pool *pool;
    struct cells *column;
    size_t n_columns;
    int64_t rows, cap;
};
struct tables {
    struct pool pool;
    struct table *item;
    size_t n;
};

_Static_assert(sizeof(int64_t) == sizeof(double) && sizeof(char *) == 8, "cells are 8 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packed tables are little endian");

/* The program's own promise is broken: names of columns are written by us. */
static _Noreturn void broken(const char *table, const char *what) {
    fprintf(stderr, "bench: internal error: table %s has no column %s of that type\n", table, what);
    abort();
}

static void pool_grow(struct pool *p) {
    size_t cap = p->cap ? p->cap * 2 : 256;
    const char **slot = must_alloc(cap * sizeof *slot);
    for (size_t i = 0; i < p->cap; i++) {
        if (!p->slot[i]) continue;
        size_t at = (size_t)hash_bytes(p->slot[i], strlen(p->slot[i]), 0) & (cap - 1);
        while (slot[at]) at = (at + 1) & (cap - 1);
        slot[at] = p->slot[i];
    }
    free(p->slot);
    p->slot = slot;
    p->cap = cap;
}

static const char *pool_text(struct pool *p, const char *text, size_t n) {
    if (!n) return "";
    if (p->used * 2 >= p->cap) pool_grow(p);
    size_t at = (size_t)hash_bytes(text, n, 0) & (p->cap - 1);
    for (; p->slot[at]; at = (at + 1) & (p->cap - 1))
        if (!strncmp(p->slot[at], text, n) && !p->slot[at][n]) return p->slot[at];
    p->slot[at] = arena_textn(p->arena, text, n);
    p->used++;
    return p->slot[at];
}

const char *const *tables_names(size_t *n) {
    static const char *names[64];
    static size_t count; /* written with the same values by whoever comes first */
    if (!count) {
        size_t k = 0;
        for (const struct column *c = store_schema; c->table; c++) {
            if (k && !strcmp(names[k - 1], c->table)) continue;
            if (k == sizeof names / sizeof *names) broken(c->table, "(too many tables)");
            names[k++] = c->table;
        }
        count = k;
    }
    *n = count;
    return names;
}

struct tables *tables_create(void) {
    struct tables *ts = must_alloc(sizeof *ts);
    const char *const *names = tables_names(&ts->n);
    ts->pool.arena = arena_create();
    ts->item = must_alloc(ts->n * sizeof *ts->item);
    const struct column *c = store_schema;
    for (size_t i = 0; i < ts->n; i++) {
        struct table *t = &ts->item[i];
        t->name = names[i];
        t->pool = &ts->pool;
        size_t n = 0;
        while (c[n].table && !strcmp(c[n].table, t->name)) n++;
        t->column = must_alloc(n * sizeof *t->column);
        t->n_columns = n;
        for (size_t k = 0; k < n; k++) t->column[k].def = *c++;
    }
    return ts;
}

static void cells_free(struct cells *c) {
    free(c->data.any);
    if (!c->ours) return;
    free((char *)(uintptr_t)c->def.name);
    free((char *)(uintptr_t)c->def.unit);
    free((char *)(uintptr_t)c->def.help);
}

void tables_close(struct tables **tables) {
    struct tables *ts = *tables;
    if (!ts) return;
    for (size_t i = 0; i < ts->n; i++) {
        for (size_t k = 0; k < ts->item[i].n_columns; k++) cells_free(&ts->item[i].column[k]);
        free(ts->item[i].column);
    }
    free(ts->item);
    free(ts->pool.slot);
    arena_close(&ts->pool.arena);
    free(ts);
    *tables = NULL;
}

const struct table *tables_peek(const struct tables *ts, const char *name) {
    for (size_t i = 0; i < ts->n; i++)
        if (!strcmp(ts->item[i].name, name)) return &ts->item[i];
    return NULL;
}

struct table *tables_get(struct tables *ts, const char *name) {
    const struct table *t = tables_peek(ts, name);
    return t ? &ts->item[t - ts->item] : NULL;
}

const char *tables_meta(const struct tables *ts, const char *key) {
    const struct table *t = tables_peek(ts, "meta");
    const char *value = "";
    for (int64_t r = 0; r < table_rows(t); r++)
        if (!strcmp(table_text(t, r, "key"), key)) value = table_text(t, r, "value");
    return value;
}

int64_t table_rows(const struct table *t) { return t->rows; }

static void cells_clear(struct cells *c, int64_t from, int64_t to) {
    for (int64_t r = from; r < to; r++) switch (c->def.type) {
        case COL_I64: c->data.i[r] = I64_NONE; break;
        case COL_F64: c->data.f[r] = NAN; break;
        case COL_TEXT: c->data.t[r] = ""; break;
        }
}

int64_t table_add(struct table *t, int64_t n) {
    int64_t first = t->rows;
    if (n < 0 || n > INT64_MAX / 32 - t->rows) broken(t->name, "(too many rows)");
    if (t->rows + n > t->cap) {
        int64_t cap = t->cap + t->cap / 2;
        t->cap = cap < t->rows + n ? t->rows + n : cap;
        if (t->cap < 4) t->cap = 4;
        for (size_t k = 0; k < t->n_columns; k++)
            t->column[k].data.any = must_realloc(t->column[k].data.any, (size_t)t->cap * 8);
    }
    for (size_t k = 0; k < t->n_columns; k++) cells_clear(&t->column[k], first, first + n);
    t->rows += n;
    return first;
}

void table_cut(struct table *t, int64_t rows) {
    if (rows >= 0 && rows < t->rows) t->rows = rows;
}

int table_find(const struct table *t, const char *name) {
    for (size_t k = 0; k < t->n_columns; k++)
        if (!strcmp(t->column[k].def.name, name)) return (int)k;
    return -1;
}

int table_column(struct table *t, const char *name, enum column_type type, const char *unit,
                 const char *help) {
    int k = table_find(t, name);
    if (k >= 0) return t->column[k].def.type == type ? 0 : ERR_INTERNAL;
    t->column = must_realloc(t->column, (t->n_columns + 1) * sizeof *t->column);
    struct cells *c = &t->column[t->n_columns++];
    *c = (struct cells){.ours = true};
    c->def = (struct column){.table = t->name,
                             .name = must_text(name),
                             .unit = must_text(unit ? unit : ""),
                             .help = must_text(help ? help : ""),
                             .type = type};
    if (t->cap) c->data.any = must_alloc((size_t)t->cap * 8);
    cells_clear(c, 0, t->rows);
    return 0;
}

size_t table_columns(const struct table *t) { return t->n_columns; }

const struct column *table_column_at(const struct table *t, size_t i) {
    return i < t->n_columns ? &t->column[i].def : NULL;
}

static const struct cells *cells_of(const struct table *t, const char *name,
                                    enum column_type type) {
    int k = table_find(t, name);
    return k >= 0 && t->column[k].def.type == type ? &t->column[k] : NULL;
}

/* An empty table has no memory yet; its columns still exist. */
static void table_touch(const struct table *t) {
    if (t->cap) return;
    struct table *own = (struct table *)(uintptr_t)t;
    table_add(own, 1);
    own->rows = 0;
}

int64_t *table_i64(struct table *t, const char *name) {
    table_touch(t);
    const struct cells *c = cells_of(t, name, COL_I64);
    return c ? c->data.i : NULL;
}

double *table_f64(struct table *t, const char *name) {
    table_touch(t);
    const struct cells *c = cells_of(t, name, COL_F64);
    return c ? c->data.f : NULL;
}

const int64_t *table_see_i64(const struct table *t, const char *name) {
    static const int64_t none = I64_NONE;
    const struct cells *c = cells_of(t, name, COL_I64);
    return !c ? NULL : c->data.i ? c->data.i : &none;
}

const double *table_see_f64(const struct table *t, const char *name) {
    static const double none = NAN;
    const struct cells *c = cells_of(t, name, COL_F64);
    return !c ? NULL : c->data.f ? c->data.f : &none;
}

static const struct cells *cells_for(struct table *t, int64_t row, const char *name,
                                     enum column_type type) {
    const struct cells *c = cells_of(t, name, type);
    if (!c || row < 0 || row >= t->rows) broken(t->name, name);
    return c;
}

void table_set_i64(struct table *t, int64_t row, const char *name, int64_t v) {
    cells_for(t, row, name, COL_I64)->data.i[row] = v;
}

void table_set_f64(struct table *t, int64_t row, const char *name, double v) {
    cells_for(t, row, name, COL_F64)->data.f[row] = v;
}

void table_set_text(struct table *t, int64_t row, const char *name, const char *v) {
    const struct cells *c = cells_for(t, row, name, COL_TEXT);
    size_t n = v ? strlen(v) : 0;
    if (utf8_valid(v, n)) {
        c->data.t[row] = pool_text(t->pool, v, n);
        return;
    }
    /* Readers expect UTF-8: bytes that are none (from /proc, say) become '?'. */
    char *copy = must_text(v);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)copy[i] >= 0x80) copy[i] = '?';
    c->data.t[row] = pool_text(t->pool, copy, n);
    free(copy);
}

static const struct cells *cells_at(const struct table *t, int64_t row, const char *name) {
    int k = table_find(t, name);
    return k >= 0 && row >= 0 && row < t->rows ? &t->column[k] : NULL;
}

int64_t table_int(const struct table *t, int64_t row, const char *name) {
    const struct cells *c = cells_at(t, row, name);
    return c && c->def.type == COL_I64 ? c->data.i[row] : I64_NONE;
}

double table_real(const struct table *t, int64_t row, const char *name) {
    const struct cells *c = cells_at(t, row, name);
    if (c && c->def.type == COL_F64) return c->data.f[row];
    if (c && c->def.type == COL_I64 && c->data.i[row] != I64_NONE) return (double)c->data.i[row];
    return NAN;
}

const char *table_text(const struct table *t, int64_t row, const char *name) {
    const struct cells *c = cells_at(t, row, name);
    return c && c->def.type == COL_TEXT ? c->data.t[row] : "";
}

void table_cell(const struct table *t, int64_t row, size_t column, struct text *out) {
    if (column >= t->n_columns || row < 0 || row >= t->rows) return;
    const struct cells *c = &t->column[column];
    char number[40];
    switch (c->def.type) {
    case COL_I64:
        if (c->data.i[row] != I64_NONE) text_printf(out, "%" PRId64, c->data.i[row]);
        break;
    case COL_F64: text_puts(out, format_exact(number, sizeof number, c->data.f[row])); break;
    case COL_TEXT: text_puts(out, c->data.t[row]); break;
    }
}

/* ---- packing: "bt1\0", then for each table that has rows or columns of its own:
   text name, u64 rows, u32 columns; each column: text name, u8 type, u8 own; own: text unit, text
   help; the cells. text = u32 length and bytes. */

static const char pack_magic[4] = "bt1";
enum { PACK_COLUMNS_MOST = 4096 };

static void pack_u32(struct text *out, uint32_t v) { text_add(out, (const char *)&v, sizeof v); }
static void pack_u64(struct text *out, uint64_t v) { text_add(out, (const char *)&v, sizeof v); }
static void pack_text(struct text *out, const char *s) {
    size_t n = strlen(s);
    pack_u32(out, (uint32_t)n);
    text_add(out, s, n);
}

static void pack_column(struct text *out, const struct table *t, const struct cells *c) {
    pack_text(out, c->def.name);
    char kind[2] = {(char)c->def.type, c->ours};
    text_add(out, kind, sizeof kind);
    if (c->ours) {
        pack_text(out, c->def.unit);
        pack_text(out, c->def.help);
    }
    if (c->def.type == COL_TEXT)
        for (int64_t r = 0; r < t->rows; r++) pack_text(out, c->data.t[r]);
    else if (t->rows)
        text_add(out, c->data.any, (size_t)t->rows * 8);
}

void tables_pack(const struct tables *ts, struct text *out) {
    text_add(out, pack_magic, sizeof pack_magic);
    for (size_t i = 0; i < ts->n; i++) {
        const struct table *t = &ts->item[i];
        bool own = t->n_columns && t->column[t->n_columns - 1].ours;
        if (!t->rows && !own) continue;
        pack_text(out, t->name);
        pack_u64(out, (uint64_t)t->rows);
        pack_u32(out, (uint32_t)t->n_columns);
        for (size_t k = 0; k < t->n_columns; k++) pack_column(out, t, &t->column[k]);
    }
}

struct reader {
    const char *at, *end;
    struct err *err;
};

static int read_bytes(struct reader *in, void *to, size_t n) {
    if ((size_t)(in->end - in->at) < n)
        return err_set(in->err, ERR_INPUT, "packed tables end too early");
    memcpy(to, in->at, n);
    in->at += n;
    return 0;
}

/* The text lies in the input, not zero-terminated. */
static int read_text(struct reader *in, const char **text, size_t *n) {
    uint32_t len = 0;
    if (read_bytes(in, &len, sizeof len)) return ERR_INPUT;
    if ((size_t)(in->end - in->at) < len)
        return err_set(in->err, ERR_INPUT, "packed tables end within a text");
    if (memchr(in->at, 0, len) || !utf8_valid(in->at, len))
        return err_set(in->err, ERR_INPUT, "a text of the packed tables is not UTF-8");
    *text = in->at;
    *n = len;
    in->at += len;
    return 0;
}

/* An interned, zero-terminated copy. */
static int read_name(struct reader *in, struct pool *pool, const char **name) {
    const char *text;
    size_t n;
    if (read_text(in, &text, &n)) return ERR_INPUT;
    *name = pool_text(pool, text, n);
    return 0;
}

static int read_cells(struct reader *in, struct table *t, struct cells *c, int64_t first,
                      int64_t rows) {
    if (!rows) return 0;
    if (c->def.type != COL_TEXT)
        return read_bytes(in, (char *)c->data.any + first * 8, (size_t)rows * 8);
    const char *text;
    size_t n;
    for (int64_t r = first; r < first + rows; r++) {
        if (read_text(in, &text, &n)) return ERR_INPUT;
        c->data.t[r] = pool_text(t->pool, text, n);
    }
    return 0;
}

static int read_column(struct reader *in, struct table *t, int64_t first, int64_t rows) {
    const char *name, *unit = "", *help = "";
    unsigned char kind[2];
    if (read_name(in, t->pool, &name) || read_bytes(in, kind, sizeof kind)) return ERR_INPUT;
    if (!*name || kind[0] > COL_TEXT)
        return err_set(in->err, ERR_INPUT, "a packed column of %s has no name or type", t->name);
    if (kind[1] && (read_name(in, t->pool, &unit) || read_name(in, t->pool, &help)))
        return ERR_INPUT;
    int k = table_find(t, name);
    if (k < 0) {
        /* Each new column costs memory for rows that are there already: bounded. */
        if (t->n_columns >= PACK_COLUMNS_MOST || first > ((int64_t)1 << 27))
            return err_set(in->err, ERR_INPUT, "table %s has too many columns", t->name);
        table_column(t, name, (enum column_type)kind[0], unit, help);
        k = (int)t->n_columns - 1;
    }
    if (t->column[k].def.type != (enum column_type)kind[0])
        return err_set(in->err, ERR_INPUT, "column %s/%s has another type", t->name, name);
    return read_cells(in, t, &t->column[k], first, rows);
}

static int read_table(struct reader *in, struct tables *ts) {
    const char *name;
    uint64_t rows = 0;
    uint32_t columns = 0;
    if (read_name(in, &ts->pool, &name) || read_bytes(in, &rows, sizeof rows) ||
        read_bytes(in, &columns, sizeof columns))
        return ERR_INPUT;
    struct table *t = tables_get(ts, name);
    if (!t) return err_set(in->err, ERR_INPUT, "'%.60s' is no table of this format", name);
    if (columns > PACK_COLUMNS_MOST || (rows && !columns) ||
        rows > (uint64_t)(in->end - in->at) / 4)
        return err_set(in->err, ERR_INPUT, "table %s claims more rows than there are bytes", name);
    int64_t first = table_add(t, (int64_t)rows);
    for (uint32_t k = 0; k < columns; k++)
        if (read_column(in, t, first, (int64_t)rows)) {
            table_cut(t, first);
            return ERR_INPUT;
        }
    return 0;
}

int tables_unpack(struct tables *ts, const char *data, size_t len, struct err *err) {
    struct reader in = {data, data + len, err};
    char magic[sizeof pack_magic];
    if (read_bytes(&in, magic, sizeof magic)) return ERR_INPUT;
    if (memcmp(magic, pack_magic, sizeof magic))
        return err_set(err, ERR_INPUT, "these are no packed tables, or of another version");
    while (in.at < in.end)
        if (read_table(&in, ts)) return ERR_INPUT;
    return 0;
}
