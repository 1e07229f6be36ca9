/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of an imported result, row by row, and their way into a file. */
#include "results/import.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/import_parts.h"
#include "results/journal.h"
#include "results/store.h"
#include "results/summary.h"

enum { KEYS_MOST = 512 };

struct kept_key {
    const char *key, *value; /* in the arena */
    unsigned flags;
};
struct kept_point {
    const char *cell, *label, *build, *workload; /* in the arena */
    uint64_t hash;
    int64_t rounds;
    bool given;
    size_t first, n; /* its keys */
    size_t like;     /* the first point of the same format: others have other keys anyway */
};
struct import {
    struct arena *arena;
    struct tables *head, *body;
    struct kept_point *points;
    size_t n_points, points_cap;
    struct kept_key *keys;
    size_t n_keys, keys_cap;
    size_t *slots, n_slots; /* by hash of the cell: index of a point + 1; 0 is free */
    const char *from, *name, *files, *created, *origin;
    uint64_t digest; /* of all files, each seeded with that of those before */
};

struct import *import_create(void) {
    struct import *im = must_alloc(sizeof *im);
    im->arena = arena_create();
    im->head = tables_create();
    im->body = tables_create();
    im->from = im->name = im->files = im->created = "";
    im->origin = "imported";
    return im;
}

void import_close(struct import **import) {
    struct import *im = *import;
    if (!im) return;
    tables_close(&im->head);
    tables_close(&im->body);
    arena_close(&im->arena);
    free(im->points);
    free(im->keys);
    free(im->slots);
    free(im);
    *import = NULL;
}

void import_begin(struct import *im, const char *format, const char *path) {
    const char *slash = strrchr(path, '/');
    im->origin = arena_printf(im->arena, "imported from %s", format);
    if (!*im->from)
        im->from = arena_text(im->arena, format);
    else if (strcmp(im->from, format))
        im->from = "several formats";
    const char *name = slash ? slash + 1 : path;
    if (!*im->name) im->name = arena_text(im->arena, name);
    im->files = arena_printf(im->arena, "%s%s%s", im->files, *im->files ? " " : "", name);
}

void import_read(struct import *im, const char *data, size_t len) {
    im->digest = hash_bytes(data, len, im->digest);
}

void import_created(struct import *im, const char *created) {
    if (!*im->created) im->created = arena_text(im->arena, created);
}

int64_t import_rows(const struct import *im, int64_t *visits) {
    if (visits) *visits = table_rows(tables_peek(im->body, "visits"));
    return (int64_t)im->n_points;
}

/* ---- facts */

static void fact_row(struct import *im, int64_t point, const char *key, const char *value) {
    struct table *t = tables_get(im->head, "protocol");
    int64_t row = table_add(t, 1);
    char scope[24];
    snprintf(scope, sizeof scope, "%" PRId64, point);
    table_set_text(t, row, "scope", scope);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
    table_set_text(t, row, "origin", im->origin);
}

int import_environment(struct import *im, const char *key, const char *value, const char *unit,
                       bool agree, struct err *err) {
    struct table *t = tables_get(im->head, "environment");
    for (int64_t r = 0; r < table_rows(t); r++) {
        if (strcmp(table_text(t, r, "key"), key)) continue;
        if (!agree || !strcmp(table_text(t, r, "value"), value)) return 0;
        return err_set(err, ERR_INPUT,
                       "%s is '%.100s' here and '%.100s' before: what was measured on two machines "
                       "is imported apart, and compared then",
                       key, value, table_text(t, r, "value"));
    }
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
    table_set_text(t, row, "unit", unit);
    table_set_text(t, row, "origin", im->origin);
    return 0;
}

/* ---- points */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* As for our own points: the identity keys, sorted. */
static const char *cell_of(struct import *im, const struct import_test *test) {
    const char **items = must_alloc((test->n_keys + 1) * sizeof *items);
    struct text cell = {0};
    size_t n = 0;
    items[n++] = arena_printf(im->arena, "workload.name=%s", test->workload);
    for (size_t i = 0; i < test->n_keys; i++)
        if (test->keys[i].flags & IMPORT_IDENTITY)
            items[n++] =
                arena_printf(im->arena, "test.%s=%s", test->keys[i].key, test->keys[i].value);
    qsort(items, n, sizeof *items, by_text);
    for (size_t i = 0; i < n; i++) text_printf(&cell, "%s%s", i ? " " : "", items[i]);
    const char *kept = arena_text(im->arena, cell.data);
    text_free(&cell);
    free(items);
    return kept;
}

static size_t slot_of(const struct import *im, const char *cell, uint64_t hash) {
    size_t at = (size_t)hash & (im->n_slots - 1);
    while (im->slots[at]) {
        const struct kept_point *p = &im->points[im->slots[at] - 1];
        if (p->hash == hash && !strcmp(p->cell, cell)) break;
        at = (at + 1) & (im->n_slots - 1);
    }
    return at;
}

static void slots_grow(struct import *im) {
    if (im->n_slots > 2 * im->n_points) return;
    free(im->slots);
    im->n_slots = im->n_slots ? 4 * im->n_slots : 64;
    im->slots = must_alloc(im->n_slots * sizeof *im->slots);
    for (size_t i = 0; i < im->n_points; i++)
        im->slots[slot_of(im, im->points[i].cell, im->points[i].hash)] = i + 1;
}

static void keep_keys(struct import *im, const struct import_test *test, struct kept_point *p) {
    p->first = im->n_keys;
    p->n = test->n_keys < KEYS_MOST ? test->n_keys : KEYS_MOST;
    if (im->n_keys + p->n > im->keys_cap) {
        im->keys_cap = 2 * (im->n_keys + p->n);
        im->keys = must_realloc(im->keys, im->keys_cap * sizeof *im->keys);
    }
    for (size_t i = 0; i < p->n; i++)
        im->keys[im->n_keys++] =
            (struct kept_key){arena_text(im->arena, test->keys[i].key),
                              arena_text(im->arena, test->keys[i].value), test->keys[i].flags};
}

static int64_t new_point(struct import *im, const struct import_test *test, const char *cell,
                         uint64_t hash) {
    struct table *t = tables_get(im->head, "points");
    int64_t row = table_add(t, 1);
    char hex[17], key[160];
    if (im->n_points == im->points_cap) {
        im->points_cap = im->points_cap ? 2 * im->points_cap : 64;
        im->points = must_realloc(im->points, im->points_cap * sizeof *im->points);
    }
    struct kept_point *p = &im->points[im->n_points++], *before = p > im->points ? p - 1 : NULL;
    *p = (struct kept_point){.cell = cell,
                             .label = arena_text(im->arena, test->label),
                             .build = arena_text(im->arena, test->build),
                             .workload = arena_text(im->arena, test->workload),
                             .hash = hash};
    if (before && !strcmp(before->workload, p->workload)) p->like = before->like;
    while (strcmp(im->points[p->like].workload, p->workload)) p->like++;
    keep_keys(im, test, p);
    table_set_i64(t, row, "point", row);
    table_set_text(t, row, "case", test->case_name);
    table_set_text(t, row, "cell", cell);
    table_set_text(t, row, "hash", hash_text(hex, hash));
    table_set_text(t, row, "workload", test->workload);
    table_set_text(t, row, "effective", test->effective);
    table_set_text(t, row, "state", "ok");
    for (size_t i = 0; i < test->n_keys; i++) {
        snprintf(key, sizeof key, "test.%s", test->keys[i].key);
        fact_row(im, row, key, test->keys[i].value);
    }
    return row;
}

int import_point(struct import *im, const struct import_test *test, int64_t *point,
                 struct err *err) {
    const char *cell = cell_of(im, test);
    uint64_t hash = hash_bytes(cell, strlen(cell), 0);
    slots_grow(im);
    size_t slot = slot_of(im, cell, hash);
    if (!im->slots[slot]) {
        *point = new_point(im, test, cell, hash);
        im->slots[slot] = im->n_points;
        return 0;
    }
    *point = (int64_t)im->slots[slot] - 1;
    const struct kept_point *p = &im->points[*point];
    if (!strcmp(p->build, test->build)) return 0;
    *point = I64_NONE;
    return err_set(err, ERR_INPUT,
                   "'%.100s' is of build %.60s here and of %.60s before: two builds are imported "
                   "apart, and compared then",
                   test->label, test->build, p->build);
}

void import_phase(struct import *im, int64_t point, const char *name, const char *item,
                  double items) {
    struct table *t = tables_get(im->head, "phases");
    int64_t rows = table_rows(t);
    if (rows && table_int(t, rows - 1, "point") >= point) return; /* a further round of it */
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point);
    table_set_i64(t, row, "phase", 0);
    table_set_text(t, row, "name", name);
    table_set_text(t, row, "item", item);
    table_set_f64(t, row, "items", items);
    table_set_i64(t, row, "marks", 0);
}

/* ---- numbers */

bool import_has(const struct import *im, int64_t point) {
    return im->points[point].rounds || im->points[point].given;
}

static int twice(const struct import *im, int64_t point, struct err *err) {
    return err_set(err, ERR_INPUT,
                   "'%.100s' comes twice, and not both times with its single times: averages are "
                   "not merged, import them apart",
                   im->points[point].label);
}

int import_visit(struct import *im, int64_t point, int64_t executions, int64_t *visit,
                 struct err *err) {
    struct table *t = tables_get(im->body, "visits");
    if (im->points[point].given) return twice(im, point, err);
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", row);
    table_set_i64(t, row, "point", point);
    table_set_i64(t, row, "round", im->points[point].rounds++);
    table_set_i64(t, row, "control", 0);
    table_set_i64(t, row, "samples", 0);
    table_set_i64(t, row, "batch", executions);
    table_set_text(t, row, "state", "ok");
    *visit = row;
    return 0;
}

void import_failure(struct import *im, int64_t visit, const char *reason) {
    struct table *t = tables_get(im->body, "visits");
    table_set_text(t, visit, "state", "failed");
    table_set_text(t, visit, "reason", reason);
}

void import_sample(struct import *im, int64_t visit, int64_t order, int64_t ns) {
    struct table *t = tables_get(im->body, "samples");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", visit);
    table_set_i64(t, row, "order", order);
    table_set_i64(t, row, "batch", 1);
    table_set_i64(t, row, "wall_ns", ns);
    table_set_i64(t, row, "labels", 0);
    table_set_i64(tables_get(im->body, "visits"), visit, "samples", order + 1);
}

/* Declared once, so that its unit is known. */
static void declare(struct import *im, const char *metric, const char *unit, const char *better,
                    const char *help) {
    struct table *t = tables_get(im->head, "metrics");
    for (int64_t r = 0; r < table_rows(t); r++)
        if (!strcmp(table_text(t, r, "name"), metric)) return;
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "name", metric);
    table_set_text(t, row, "unit", unit);
    table_set_text(t, row, "better", better);
    table_set_i64(t, row, "exact", 0);
    table_set_text(t, row, "help", help);
}

static void declare_own(struct import *im) {
    static const char *const better[] = {"none", "lower", "higher"};
    if (table_rows(tables_peek(im->head, "metrics"))) return;
    for (const struct metric *m = summary_metrics; m->name; m++)
        declare(im, m->name, m->unit, better[m->better], m->help);
}

void import_value(struct import *im, int64_t visit, const char *metric, const char *unit,
                  double value) {
    struct table *t = tables_get(im->body, "values");
    declare_own(im);
    declare(im, metric, unit, "none", im->origin);
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", visit);
    table_set_text(t, row, "metric", metric);
    table_set_f64(t, row, "value", value);
}

int import_given(struct import *im, int64_t point, const struct import_given *g, size_t n,
                 struct err *err) {
    struct table *t = tables_get(im->head, "given");
    if (import_has(im, point)) return twice(im, point, err);
    im->points[point].given = true;
    declare_own(im);
    for (size_t i = 0; i < n; i++) {
        declare(im, g[i].metric, g[i].unit, "none", im->origin);
        int64_t row = table_add(t, 1);
        table_set_i64(t, row, "point", point);
        table_set_text(t, row, "metric", g[i].metric);
        table_set_text(t, row, "unit", g[i].unit);
        table_set_i64(t, row, "n", g[i].n);
        table_set_f64(t, row, "mean", g[i].mean);
        table_set_f64(t, row, "stddev", g[i].stddev);
        table_set_f64(t, row, "median", g[i].median);
    }
    return 0;
}

/* ---- the file */

static const struct kept_key *key_of(const struct import *im, size_t point, const char *key) {
    const struct kept_point *p = &im->points[point];
    for (size_t i = p->first; i < p->first + p->n; i++)
        if (!strcmp(im->keys[i].key, key)) return &im->keys[i];
    return NULL;
}

static bool same_key(const struct kept_key *a, const struct kept_key *b) {
    return a && b ? !strcmp(a->value, b->value) : a == b;
}

/* A key in which rows differ becomes a column, and part of the label where that does not say it. */
static void axis(struct import *im, const char *key, struct text *labels) {
    struct table *t = tables_get(im->head, "points");
    char name[160];
    bool whole = true, differs = false;
    int64_t v;
    for (size_t p = 0; p < im->n_points; p++) {
        const struct kept_key *k = key_of(im, p, key);
        differs = differs || !same_key(k, key_of(im, im->points[p].like, key));
        whole = whole && (!k || ((k->flags & IMPORT_WHOLE) && parse_i64(k->value, &v)));
    }
    if (!differs) return;
    snprintf(name, sizeof name, "test.%s", key);
    if (table_column(t, name, whole ? COL_I64 : COL_TEXT, "", "differs among the imported rows"))
        return;
    for (size_t p = 0; p < im->n_points; p++) {
        const struct kept_key *k = key_of(im, p, key);
        if (!k) continue;
        if (whole && parse_i64(k->value, &v))
            table_set_i64(t, (int64_t)p, name, v);
        else if (!whole)
            table_set_text(t, (int64_t)p, name, k->value);
        if (!(k->flags & IMPORT_NAMED)) text_printf(&labels[p], " %s=%s", k->key, k->value);
    }
}

static void axes(struct import *im) {
    struct table *t = tables_get(im->head, "points");
    struct text *labels = must_alloc((im->n_points + 1) * sizeof *labels);
    const char *seen[KEYS_MOST];
    size_t n_seen = 0;
    for (size_t p = 0; p < im->n_points; p++) text_puts(&labels[p], im->points[p].label);
    for (size_t i = 0; i < im->n_keys && n_seen < KEYS_MOST; i++) {
        bool again = !(im->keys[i].flags & IMPORT_AXIS);
        for (size_t k = 0; k < n_seen && !again; k++) again = !strcmp(seen[k], im->keys[i].key);
        if (again) continue;
        seen[n_seen++] = im->keys[i].key;
        axis(im, im->keys[i].key, labels);
    }
    for (size_t p = 0; p < im->n_points; p++) {
        table_set_text(t, (int64_t)p, "label", labels[p].data);
        text_free(&labels[p]);
    }
    free(labels);
}

static void meta(struct import *im, const char *key, const char *value) {
    struct table *t = tables_get(im->head, "meta");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static void all_meta(struct import *im, const char *tool_version) {
    const char *dot = strrchr(im->name, '.');
    char digest[17];
    meta(im, "tool", "bench");
    meta(im, "tool_version", tool_version);
    meta(im, "created", im->created);
    meta(im, "protocol_name",
         arena_textn(im->arena, im->name,
                     dot && dot > im->name ? (size_t)(dot - im->name) : strlen(im->name)));
    meta(im, "title", arena_printf(im->arena, "Imported from %s", im->from));
    meta(im, "imported_from", im->from);
    meta(im, "imported_files", im->files);
    meta(im, "imported_digest", hash_text(digest, im->digest));
    meta(im, "quick", "no");
    meta(im, "complete", "yes");
    meta(im, "why_ended", im->origin);
}

void import_tables(struct import *im, const char *tool_version, struct tables *all) {
    struct text packed = {0};
    declare_own(im);
    axes(im);
    all_meta(im, tool_version);
    tables_pack(im->head, &packed);
    tables_unpack(all, packed.data, packed.len, NULL);
    packed.len = 0;
    tables_pack(im->body, &packed);
    tables_unpack(all, packed.data, packed.len, NULL);
    text_free(&packed);
}

int import_store(struct import *im, const char *path, const char *tool_version, struct err *err) {
    struct journal *journal = NULL;
    struct tables *all = NULL;
    if (!im->n_points)
        return err_set(err, ERR_INPUT, "%s%sthere is no row to import", im->name,
                       *im->name ? ": " : "");
    char *aside = arena_printf(im->arena, "%s.tmp-%ld.journal", path, (long)getpid());
    struct err own = {0};
    int code = journal_create(&journal, aside, &own);
    if (code) { /* the sentence names the file aside */
        const char *why = strrchr(own.text, ':');
        return err_set(err, code, "cannot write %s%s", path, why ? why : "");
    }
    all = tables_create();
    import_tables(im, tool_version, all);
    code = journal_append(journal, JOURNAL_HEAD, all, err);
    tables_close(&all);
    journal_close(&journal);
    if (!code) code = store_build(aside, path, err);
    unlink(aside);
    return code;
}
