/* SPDX-License-Identifier: Apache-2.0 */
/* Runs what a protocol declares under [[analysis]] and [[published]]: facts to parameters, rows to
 * fits and published. */
#include "results/analysis.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"

void analysis_groups(struct tables *ts, const struct analysis_axes *axes,
                     const struct finding *none, const char *word, const void *params,
                     void (*group)(struct tables *, const char *only_case, const void *params,
                                   const struct rows_group *, const struct rounds *,
                                   const char *left_out)) {
    struct rows rows;
    struct rounds rounds;
    rows_gather(ts, none->only_case, axes->x, axes->by, &rows);
    rounds_read(ts, axes->y, &rounds);
    const char *left_out = rows.left_out.len ? rows.left_out.data : "";
    if (!rows.n_groups)
        analysis_found(ts, none, "%s: no row has a number for %s%s%s", word, axes->x,
                       *left_out ? "; left out: " : "", left_out);
    for (int32_t g = 0; g < rows.n_groups; g++)
        group(ts, none->only_case, params, &rows.groups[g], &rounds, g ? "" : left_out);
    rounds_free(&rounds);
    rows_free(&rows);
}

const struct analysis *analysis_find(const char *name) {
    for (const struct analysis *const *a = all_analyses; *a; a++)
        if (!strcmp((*a)->name, name)) return *a;
    return NULL;
}

void analysis_found(struct tables *ts, const struct finding *f, const char *fmt, ...) {
    struct table *fits = tables_get(ts, "fits");
    char sentence[1200];
    va_list args;
    va_start(args, fmt);
    text_vformat(sentence, sizeof sentence, fmt, args);
    va_end(args);
    int64_t row = table_add(fits, 1);
    table_set_text(fits, row, "analysis", f->analysis);
    table_set_text(fits, row, "case", f->only_case ? f->only_case : "");
    table_set_text(fits, row, "name", f->name);
    table_set_f64(fits, row, "value", isfinite(f->value) ? f->value : (double)NAN);
    table_set_f64(fits, row, "lo", isfinite(f->lo) ? f->lo : (double)NAN);
    table_set_f64(fits, row, "hi", isfinite(f->hi) ? f->hi : (double)NAN);
    table_set_text(fits, row, "unit", f->unit ? f->unit : "");
    table_set_text(fits, row, "verdict", f->verdict ? f->verdict : "none");
    table_set_text(fits, row, "text", sentence);
}

/* One fact of a declaration: "analysis.3.x" is number 3, key "x". */
struct declared {
    int64_t number, order;
    const char *key, *value;
};

static int by_number(const void *a, const void *b) {
    const struct declared *p = a, *q = b;
    if (p->number != q->number) return p->number < q->number ? -1 : 1;
    return p->order < q->order ? -1 : p->order > q->order;
}

/* The facts "SECTION.N.KEY" of the protocol, sorted by N; copied, since tables grow while analyses
 * write. */
static struct declared *read_declared(const struct tables *ts, const char *section,
                                      struct arena *arena, size_t *n) {
    const struct table *facts = tables_peek(ts, "protocol");
    struct declared *list = NULL;
    size_t room = 0, prefix = strlen(section);
    *n = 0;
    for (int64_t i = 0; i < table_rows(facts); i++) {
        const char *key = table_text(facts, i, "key");
        if (strncmp(key, section, prefix) || key[prefix] != '.') continue;
        if (strcmp(table_text(facts, i, "scope"), "protocol")) continue;
        char *end;
        long long number = strtoll(key + prefix + 1, &end, 10);
        if (end == key + prefix + 1 || *end != '.' || number < 0) continue;
        if (*n == room) {
            room = room ? 2 * room : 16;
            list = must_realloc(list, room * sizeof *list);
        }
        list[*n] = (struct declared){number, i, arena_text(arena, end + 1),
                                     arena_text(arena, table_text(facts, i, "value"))};
        ++*n;
    }
    if (*n) qsort(list, *n, sizeof *list, by_number);
    return list;
}

static const char *declared_get(const struct declared *d, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(d[i].key, key)) return d[i].value;
    return "";
}

/* Files may come from elsewhere: what does not parse is a row that says so, never the end of the
 * program. */
static bool read_params(struct tables *ts, const struct analysis *kind, struct finding *f,
                        const struct declared *d, size_t n, void *params, struct arena *arena) {
    struct err err = {0};
    option_defaults(kind->params, params, arena);
    for (const struct option *o = kind->params; o->key; o++)
        if (!o->def && !*declared_get(d, n, o->key)) {
            analysis_found(ts, f, "not computed: [[analysis]] %s needs the key %s", kind->name,
                           o->key);
            return false;
        }
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(d[i].key, "kind") || !strcmp(d[i].key, "case")) continue;
        const struct option *o = option_find(kind->params, d[i].key);
        if (!o) {
            analysis_found(ts, f, "not computed: [[analysis]] %s has no key %s", kind->name,
                           d[i].key);
            return false;
        }
        if (option_parse(o, d[i].value, params, arena, &err)) {
            analysis_found(ts, f, "not computed: %s: %s", d[i].key, err.text);
            return false;
        }
    }
    return true;
}

static int run_one(struct tables *ts, const struct declared *d, size_t n, struct arena *arena,
                   struct err *err) {
    const char *name = declared_get(d, n, "kind"), *only_case = declared_get(d, n, "case");
    const struct analysis *kind = analysis_find(name);
    struct finding f = {
        *name ? name : "analysis", only_case, *name ? name : "analysis", NAN, NAN, NAN, "", NULL};
    if (!kind) {
        analysis_found(ts, &f, "not computed: this build has no analysis named '%s'", name);
        return 0;
    }
    void *params = arena_alloc(arena, kind->params_size);
    if (!read_params(ts, kind, &f, d, n, params, arena)) return 0;
    return kind->run(params, only_case, ts, err);
}

/* "at.workload.batch" = "16" and its like, as one condition "workload.batch=16". */
static void read_where(const struct declared *d, size_t n, const char *side, struct text *where) {
    size_t len = strlen(side);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(d[i].key, side, len)) continue;
        if (!d[i].key[len]) text_printf(where, "%s%s", where->len ? ", " : "", d[i].value);
        if (d[i].key[len] != '.') continue;
        text_printf(where, "%s%s=%s", where->len ? ", " : "", d[i].key + len + 1, d[i].value);
    }
}

/* The mean of metric in the one usable row that meets the condition, else NAN and why. */
static double value_at(const struct tables *ts, const char *only_case, const char *metric,
                       const char *where, struct text *why) {
    const struct table *points = tables_peek(ts, "points");
    int64_t found = -1, count = 0;
    for (int64_t i = 0; i < table_rows(points); i++) {
        if (*only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!rows_match(ts, i, where)) continue;
        count++;
        found = i;
    }
    if (count != 1) {
        text_printf(why, "%lld rows match '%s'", (long long)count, where);
        return (double)NAN;
    }
    if (!rows_usable(ts, found)) {
        text_printf(why, "the row '%s' is %s", where, table_text(points, found, "state"));
        return (double)NAN;
    }
    double v = rows_metric(ts, found, metric);
    if (!isfinite(v)) text_printf(why, "the row '%s' has no %s", where, metric);
    return v;
}

/* Whether ours, rounded to the digits that were printed or to `unit`, is theirs. */
static bool equal_as_printed(double ours, double theirs, const char *printed, double unit) {
    const char *point = strchr(printed, '.');
    if (!(unit > 0) && point && !strpbrk(printed, "eE"))
        unit = pow(10, -(double)strspn(point + 1, "0123456789"));
    return fabs(ours - theirs) <= 0.5 * unit * (1 + 1e-9) + 1e-12 * fabs(theirs);
}

static void compare_one(struct tables *ts, const struct declared *d, size_t n) {
    const char *what = declared_get(d, n, "what"), *metric = declared_get(d, n, "metric");
    const char *kind = declared_get(d, n, "kind"), *value = declared_get(d, n, "value");
    const char *only_case = declared_get(d, n, "case");
    struct text at = {0}, over = {0}, why = {0};
    double theirs = NAN, ours, base = 1, unit = 0;
    if (!parse_f64(declared_get(d, n, "rounded"), &unit)) unit = 0;
    if (!parse_f64(value, &theirs)) theirs = NAN;
    read_where(d, n, "at", &at);
    read_where(d, n, "over", &over);
    ours = value_at(ts, only_case, metric, at.len ? at.data : "", &why);
    if (over.len) base = value_at(ts, only_case, metric, over.data, &why);
    ours = base < 0 || base > 0 ? ours / base : (double)NAN;

    const char *verdict = "beside";
    if (!isfinite(ours) || !isfinite(theirs))
        verdict = "none";
    else if (!strcmp(kind, "exact"))
        verdict = equal_as_printed(ours, theirs, value, unit) ? "equal"
                  : *declared_get(d, n, "model")              ? "beside" /* theirs is of another */
                                                              : "differs";
    struct table *published = tables_get(ts, "published");
    int64_t row = table_add(published, 1);
    table_set_text(published, row, "what", what);
    table_set_text(published, row, "metric", metric);
    table_set_text(published, row, "kind", kind);
    table_set_f64(published, row, "theirs", theirs);
    table_set_f64(published, row, "ours", isfinite(ours) ? ours : (double)NAN);
    table_set_text(published, row, "verdict", verdict);
    table_set_text(published, row, "source", declared_get(d, n, "source"));

    struct finding f = {"published", only_case, what, ours, NAN, NAN, "", NULL};
    char buf[32];
    if (!strcmp(verdict, "differs")) {
        f.verdict = "failed";
        analysis_found(ts, &f, "published as exact: %s, here %s", value,
                       format_exact(buf, sizeof buf, ours));
    } else if (!strcmp(verdict, "none")) {
        analysis_found(ts, &f, "not compared: %s",
                       why.len            ? why.data
                       : isfinite(theirs) ? "divided by zero"
                                          : "no value");
    }
    text_free(&at);
    text_free(&over);
    text_free(&why);
}

int analyses_run(struct tables *ts, struct err *err) {
    struct arena *arena = arena_create();
    struct declared *list = NULL;
    size_t n, end;
    int rc = 0;
    table_cut(tables_get(ts, "fits"), 0);
    table_cut(tables_get(ts, "published"), 0);

    list = read_declared(ts, "analysis", arena, &n);
    for (size_t i = 0; i < n && !rc; i = end) {
        for (end = i; end < n && list[end].number == list[i].number;) end++;
        rc = run_one(ts, list + i, end - i, arena, err);
    }
    free(list);
    list = read_declared(ts, "published", arena, &n);
    for (size_t i = 0; i < n && !rc; i = end) {
        for (end = i; end < n && list[end].number == list[i].number;) end++;
        compare_one(ts, list + i, end - i);
    }
    free(list);
    arena_close(&arena);
    return rc;
}
