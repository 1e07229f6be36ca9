/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the table of points as rows of an experiment: keys, conditions, groups along an axis. */
#include "results/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/show_parts.h"
#include "results/stats.h"
#include "results/summary.h"

bool rows_usable(const struct tables *ts, int64_t point) {
    const char *state = table_text(tables_peek(ts, "points"), point, "state");
    static const char *const with_numbers[] = {"ok", "degraded", "implausible"};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(state, with_numbers[i])) return true;
    return false;
}

bool rows_flagged(const struct tables *ts, int64_t point, const char *flag) {
    return text_has_word(table_text(tables_peek(ts, "points"), point, "flags"), flag, strlen(flag));
}

static const char *fact_of(const struct tables *ts, const char *scope, const char *key) {
    const struct table *facts = tables_peek(ts, "protocol");
    int64_t n = table_rows(facts);
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(table_text(facts, i, "key"), key) &&
            !strcmp(table_text(facts, i, "scope"), scope))
            return table_text(facts, i, "value");
    return "";
}

const char *rows_fact(const struct tables *ts, const char *key) {
    return fact_of(ts, "protocol", key);
}

const char *rows_environment(const struct tables *ts, const char *key) {
    const struct table *facts = tables_peek(ts, "environment");
    int64_t n = table_rows(facts);
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(table_text(facts, i, "key"), key)) return table_text(facts, i, "value");
    return "";
}

const char *rows_short(const char *key) {
    const char *dot = strrchr(key, '.');
    if (!dot) dot = strrchr(key, ':');
    return dot ? dot + 1 : key;
}

bool rows_swept(const struct tables *ts, size_t column) {
    const char *name = table_column_at(tables_peek(ts, "points"), column)->name;
    for (const struct column *c = store_schema; c->table; c++)
        if (!strcmp(c->table, "points") && !strcmp(c->name, name)) return false;
    return true;
}

static double number_of(const char *text) {
    double v;
    int64_t whole;
    if (parse_f64(text, &v)) return v;
    if (parse_bytes(text, &whole)) return (double)whole;
    if (parse_time(text, &whole)) return (double)whole;
    return (double)NAN;
}

void rows_key_text(const struct tables *ts, int64_t point, const char *key, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    int column = table_find(points, !strcmp(key, "case") ? "case" : key);
    size_t before = out->len;
    if (column >= 0) table_cell(points, point, (size_t)column, out);
    if (out->len > before || !strcmp(key, "case")) return;
    char scope[24];
    snprintf(scope, sizeof scope, "%lld", (long long)point);
    text_puts(out, fact_of(ts, scope, key));
}

double rows_key(const struct tables *ts, int64_t point, const char *key) {
    double v = table_real(tables_peek(ts, "points"), point, key);
    if (isfinite(v)) return v;
    struct text t = {0};
    rows_key_text(ts, point, key, &t);
    v = t.data ? number_of(t.data) : (double)NAN;
    text_free(&t);
    return v;
}

/* The next "key=value" of a condition, trimmed; false at its end. */
static bool next_condition(const char **at, char key[128], char value[256]) {
    const char *s = *at + strspn(*at, " ,");
    if (!*s) return false;
    size_t all = strcspn(s, ","), k = strcspn(s, "=");
    if (k > all) k = all;
    const char *v = s + k + (k < all), *end = s + all;
    *at = end;
    while (k && s[k - 1] == ' ') k--;
    while (v < end && *v == ' ') v++;
    while (end > v && end[-1] == ' ') end--;
    snprintf(key, 128, "%.*s", (int)(k < 127 ? k : 127), s);
    size_t n = (size_t)(end - v);
    snprintf(value, 256, "%.*s", (int)(n < 255 ? n : 255), v);
    return true;
}

int rows_check(const char *where, struct err *err) {
    for (const char *s = where; *(s += strspn(s, " ,"));) {
        const size_t all = strcspn(s, ","), k = strcspn(s, "=<>!");
        if (!k || k >= all || s[k] != '=')
            return err_set(err, ERR_INPUT, "'%.*s': KEY=VALUE is needed, as workload.batch=1",
                           (int)(all < 200 ? all : 200), s);
        s += all;
    }
    return 0;
}

/* Columns of points and facts of single points: what rows_key_text finds. */
static bool knows_key(const struct tables *ts, const char *key) {
    const struct table *facts = tables_peek(ts, "protocol");
    if (table_find(tables_peek(ts, "points"), key) >= 0) return true;
    for (int64_t i = 0; i < table_rows(facts); i++)
        if (!strcmp(table_text(facts, i, "key"), key) &&
            strcmp(table_text(facts, i, "scope"), "protocol"))
            return true;
    return false;
}

enum { MOST_KEYS = 400 };
struct key_names {
    const char *items[MOST_KEYS];
    size_t n;
};

static void add_key(struct key_names *k, const char *key) {
    for (size_t i = 0; i < k->n; i++)
        if (!strcmp(k->items[i], key)) return;
    if (k->n < MOST_KEYS) k->items[k->n++] = key;
}

static void gather_keys(const struct tables *ts, struct key_names *k) {
    const struct table *points = tables_peek(ts, "points"), *facts = tables_peek(ts, "protocol");
    add_key(k, "case");
    for (size_t c = 0; c < table_columns(points); c++)
        if (rows_swept(ts, c)) add_key(k, table_column_at(points, c)->name);
    for (int64_t i = 0; i < table_rows(facts); i++)
        if (strcmp(table_text(facts, i, "scope"), "protocol"))
            add_key(k, table_text(facts, i, "key"));
}

/* "batch" is meant for "workload.batch"; else by letters. */
static const char *nearest_key(const struct key_names *k, const char *word) {
    for (size_t i = 0; i < k->n; i++)
        if (!strcmp(rows_short(k->items[i]), word)) return k->items[i];
    return text_nearest(word, k->items, k->n);
}

static int unknown_key(const struct tables *const *files, size_t n, const char *key,
                       struct err *err) {
    struct key_names *all = must_alloc(sizeof *all);
    struct text swept = {0};
    *all = (struct key_names){.n = 0};
    for (size_t i = 0; i < n; i++) gather_keys(files[i], all);
    const struct table *points = tables_peek(files[0], "points");
    for (size_t c = 0; c < table_columns(points); c++)
        if (rows_swept(files[0], c))
            text_printf(&swept, "%s%s", swept.len ? ", " : "", table_column_at(points, c)->name);
    const char *near = nearest_key(all, key);
    const int code = err_set(err, ERR_INPUT, "no row has the key '%.60s'%s%s%s%s%.300s%s", key,
                             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                             swept.len ? " (rows differ by " : "", swept.len ? swept.data : "",
                             swept.len ? ")" : "");
    text_free(&swept);
    free(all);
    return code;
}

int rows_check_keys(const struct tables *const *files, size_t n, const char *where,
                    struct err *err) {
    char key[128], value[256];
    int code = rows_check(where, err);
    while (!code && n && next_condition(&where, key, value)) {
        bool known = false;
        for (size_t i = 0; i < n && !known; i++) known = knows_key(files[i], key);
        if (!known) code = unknown_key(files, n, key, err);
    }
    return code;
}

void rows_none(const struct tables *ts, int64_t n, const char *where, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    enum { NAMED = 3 };
    text_puts(out, "no row has ");
    show_plain(out, where);
    text_printf(out, "; there %s %lld", n == 1 ? "is" : "are", (long long)n);
    for (int64_t i = 0; i < NAMED && i < n && i < table_rows(points); i++) {
        const char *of = table_text(points, i, "case"), *label = table_text(points, i, "label");
        if (!*of && !*label) label = table_text(points, i, "workload");
        text_puts(out, i ? ", " : ": ");
        show_plain(out, of);
        if (*of && *label) text_puts(out, " ");
        show_plain(out, label);
    }
    if (n > NAMED) text_puts(out, ", ...");
}

static bool same_value(const char *a, const char *b) {
    if (!strcmp(a, b)) return true;
    double x = number_of(a), y = number_of(b);
    return isfinite(x) && isfinite(y) && !(x < y) && !(x > y);
}

bool rows_match(const struct tables *ts, int64_t point, const char *where) {
    char key[128], value[256];
    struct text t = {0};
    bool ok = true;
    while (ok && next_condition(&where, key, value)) {
        t.len = 0;
        rows_key_text(ts, point, key, &t);
        ok = same_value(t.len ? t.data : "", value);
    }
    text_free(&t);
    return ok;
}

static bool names(const char *where, const char *wanted) {
    char key[128], value[256];
    while (next_condition(&where, key, value))
        if (!strcmp(key, wanted)) return true;
    return false;
}

static bool same_cell(const struct tables *ts, int64_t a, int64_t b, size_t column) {
    const struct table *points = tables_peek(ts, "points");
    struct text x = {0}, y = {0};
    table_cell(points, a, column, &x);
    table_cell(points, b, column, &y);
    bool same = same_value(x.len ? x.data : "", y.len ? y.data : "");
    text_free(&x);
    text_free(&y);
    return same;
}

bool rows_pair(const struct tables *ts, int64_t a, int64_t b, const char *where_a,
               const char *where_b) {
    const struct table *points = tables_peek(ts, "points");
    if (!names(where_a, "case") && !names(where_b, "case") &&
        strcmp(table_text(points, a, "case"), table_text(points, b, "case")))
        return false;
    for (size_t c = 0; c < table_columns(points); c++) {
        const char *key = table_column_at(points, c)->name;
        if (!rows_swept(ts, c) || names(where_a, key) || names(where_b, key)) continue;
        if (!same_cell(ts, a, b, c)) return false;
    }
    return true;
}

struct member {
    int64_t point;
    double x;
    const char *key; /* texts of the group's keys */
};

static int by_x(const void *a, const void *b) {
    const struct member *p = a, *q = b;
    if (p->x < q->x || p->x > q->x) return p->x < q->x ? -1 : 1;
    return p->point < q->point ? -1 : p->point > q->point;
}

/* x of every point: a swept column where there is one, else facts, in one pass over them; else a
 * metric: error against bits. */
static double *read_axis(const struct tables *ts, const char *x, struct arena *arena) {
    const struct table *points = tables_peek(ts, "points"), *facts = tables_peek(ts, "protocol");
    int64_t n = table_rows(points);
    double *v = arena_alloc(arena, (size_t)(n + 1) * sizeof *v);
    bool missing = false;
    for (int64_t i = 0; i < n; i++) {
        v[i] = table_real(points, i, x);
        missing |= !isfinite(v[i]);
    }
    for (int64_t i = 0; missing && i < table_rows(facts); i++) {
        int64_t point;
        if (strcmp(table_text(facts, i, "key"), x)) continue;
        if (!parse_i64(table_text(facts, i, "scope"), &point) || point < 0 || point >= n) continue;
        if (!isfinite(v[point])) v[point] = number_of(table_text(facts, i, "value"));
    }
    for (int64_t i = 0; missing && i < n; i++)
        if (!isfinite(v[i])) v[i] = rows_metric(ts, i, x);
    return v;
}

/* A swept column tells groups apart if two points with the same x and case differ in it. */
static bool tells_apart(const struct tables *ts, size_t column, const struct member *m, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (!(m[i].x > m[i - 1].x) && !same_cell(ts, m[i - 1].point, m[i].point, column))
            return true;
    return false;
}

static void name_groups(const struct tables *ts, const char *x, const char *by, struct member *m,
                        size_t n, struct arena *arena) {
    const struct table *points = tables_peek(ts, "points");
    size_t columns = table_columns(points), n_keys = 0;
    const char **keys = arena_alloc(arena, (columns + 130) * sizeof *keys);
    if (*by) {
        char *list = arena_text(arena, by), *save = NULL;
        for (char *k = strtok_r(list, ", ", &save); k && n_keys < 128;
             k = strtok_r(NULL, ", ", &save))
            keys[n_keys++] = k;
    } else {
        for (size_t i = 1; i < n; i++)
            if (strcmp(table_text(points, m[0].point, "case"),
                       table_text(points, m[i].point, "case"))) {
                keys[n_keys++] = "case";
                break;
            }
        for (size_t c = 0; c < columns; c++) {
            const char *key = table_column_at(points, c)->name;
            if (rows_swept(ts, c) && strcmp(key, x) && tells_apart(ts, c, m, n))
                keys[n_keys++] = key;
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct text t = {0};
        for (size_t k = 0; k < n_keys; k++) {
            struct text one = {0};
            rows_key_text(ts, m[i].point, keys[k], &one);
            /* The format's own group goes without saying. */
            if (one.len && !strcmp(keys[k], "model.group") && !strcmp(one.data, "0")) one.len = 0;
            if (one.len) text_printf(&t, "%s%s", t.len ? " " : "", one.data);
            text_free(&one);
        }
        m[i].key = arena_text(arena, t.data ? t.data : "");
        text_free(&t);
    }
}

static int by_group(const void *a, const void *b) {
    const struct member *p = a, *q = b;
    int c = strcmp(p->key, q->key);
    return c ? c : by_x(a, b);
}

static int by_declaration(const void *a, const void *b) {
    const struct rows_group *p = a, *q = b;
    int64_t x = INT64_MAX, y = INT64_MAX;
    for (int32_t i = 0; i < p->n; i++) x = p->point[i] < x ? p->point[i] : x;
    for (int32_t i = 0; i < q->n; i++) y = q->point[i] < y ? q->point[i] : y;
    return x < y ? -1 : x > y;
}

/* Groups are slices of two arrays over the sorted members. */
static void cut_groups(struct rows *rows, struct member *m, size_t n) {
    int64_t *point = arena_alloc(rows->arena, n * sizeof *point);
    double *x = arena_alloc(rows->arena, n * sizeof *x);
    rows->groups = arena_alloc(rows->arena, n * sizeof *rows->groups);
    qsort(m, n, sizeof *m, by_group);
    for (size_t i = 0; i < n; i++) {
        if (!i || strcmp(m[i].key, m[i - 1].key))
            rows->groups[rows->n_groups++] = (struct rows_group){m[i].key, 0, point + i, x + i};
        struct rows_group *g = &rows->groups[rows->n_groups - 1];
        if (g->n && !(m[i].x > g->x[g->n - 1]))
            continue; /* the same cell twice: the first counts */
        g->point[g->n] = m[i].point;
        g->x[g->n++] = m[i].x;
    }
    qsort(rows->groups, (size_t)rows->n_groups, sizeof *rows->groups, by_declaration);
    if (rows->n_groups == 1) rows->groups[0].name = "";
}

static void leave_out(struct rows *rows, const struct tables *ts, int64_t point, const char *why) {
    const char *label = table_text(tables_peek(ts, "points"), point, "label");
    if (rows->left_out.len > 300) {
        if (rows->left_out.data[rows->left_out.len - 1] != '.') text_puts(&rows->left_out, ", ...");
        return;
    }
    text_printf(&rows->left_out, "%s%s (%s)", rows->left_out.len ? ", " : "",
                *label ? label : "row", *why ? why : "no state");
}

void rows_gather(const struct tables *ts, const char *only_case, const char *x, const char *by,
                 struct rows *rows) {
    const struct table *points = tables_peek(ts, "points");
    int64_t n = table_rows(points);
    size_t kept = 0;
    *rows = (struct rows){arena_create(), NULL, 0, {0}};
    double *axis = read_axis(ts, x, rows->arena);
    struct member *m = arena_alloc(rows->arena, (size_t)(n + 1) * sizeof *m);
    for (int64_t i = 0; i < n; i++) {
        if (only_case && *only_case && strcmp(only_case, table_text(points, i, "case"))) continue;
        if (!isfinite(axis[i])) continue;
        if (!rows_usable(ts, i))
            leave_out(rows, ts, i, table_text(points, i, "state"));
        else if (rows_flagged(ts, i, "saturated"))
            leave_out(rows, ts, i, "saturated");
        else
            m[kept++] = (struct member){i, axis[i], ""};
    }
    if (!kept) return;
    qsort(m, kept, sizeof *m, by_x);
    name_groups(ts, x, by, m, kept, rows->arena);
    cut_groups(rows, m, kept);
}

void rows_free(struct rows *rows) {
    arena_close(&rows->arena);
    text_free(&rows->left_out);
    *rows = (struct rows){0};
}

double rows_metric(const struct tables *ts, int64_t point, const char *metric) {
    double v = summary_get(ts, point, metric, "mean");
    return isfinite(v) ? v : table_real(tables_peek(ts, "points"), point, metric);
}

/* "speed:decode_rate", of the row of another case, is of the same kind as "decode_rate". */
static const char *own_name(const char *metric) {
    const char *colon = strchr(metric, ':');
    return colon ? colon + 1 : metric;
}

const char *rows_unit(const struct tables *ts, const char *metric) {
    metric = own_name(metric);
    const struct table *summary = tables_peek(ts, "summary"), *points = tables_peek(ts, "points");
    for (int64_t i = 0; i < table_rows(summary); i++)
        if (!strcmp(table_text(summary, i, "metric"), metric))
            return table_text(summary, i, "unit");
    const struct table *metrics = tables_peek(ts, "metrics");
    for (int64_t i = 0; i < table_rows(metrics); i++)
        if (!strcmp(table_text(metrics, i, "name"), metric)) return table_text(metrics, i, "unit");
    int column = table_find(points, metric);
    return column < 0 ? "" : table_column_at(points, (size_t)column)->unit;
}

bool rows_exact(const struct tables *ts, const char *metric) {
    metric = own_name(metric);
    const struct table *metrics = tables_peek(ts, "metrics");
    for (int64_t i = 0; i < table_rows(metrics); i++)
        if (!strcmp(table_text(metrics, i, "name"), metric))
            return table_int(metrics, i, "exact") == 1;
    return table_find(tables_peek(ts, "points"), metric) >= 0; /* the ledger's columns */
}

bool rows_is_rate(const char *unit) {
    size_t n = strlen(unit);
    return n > 2 && !strcmp(unit + n - 2, "/s");
}

double rows_peak(const struct tables *ts, int64_t point, const char **type) {
    double peak, upper;
    *type = table_text(tables_peek(ts, "points"), point, "binding");
    summary_ceiling(ts, "arithmetic", *type, &peak, &upper);
    if (peak > 0) return peak;
    summary_ceiling(ts, "arithmetic", "f32", &peak, &upper);
    if (peak > 0) *type = "f32";
    return peak;
}

char *rows_number(char buf[32], double v, int digits) {
    if (fabs(v) < 1e7 && fabs(v - round(v)) <= 1e-9 * fabs(v))
        snprintf(buf, 32, "%.0f", v);
    else
        format_number(buf, 32, v, digits);
    return buf;
}

void rows_log_interval(const double *logs, size_t n, double *value, double *lo, double *hi) {
    double a = (double)NAN, b = (double)NAN;
    *value = exp(stats_mean(logs, n));
    if (n >= 2) stats_t_interval(logs, n, &a, &b);
    *lo = exp(a);
    *hi = exp(b);
}

void rows_label(const struct tables *ts, int64_t point, const char *without, struct text *t) {
    const char *label = table_text(tables_peek(ts, "points"), point, "label");
    t->len = 0;
    text_add(t, "", 0);
    while (*label) {
        const size_t n = strcspn(label, " ");
        bool said = false;
        for (const char *at = without; *at;) {
            at += strspn(at, ", ");
            const size_t whole = strcspn(at, ", ");
            const char *word = at;
            for (size_t i = 0; i < whole && at[i] != '='; i++)
                if (at[i] == '.') word = at + i + 1;
            said = said || (whole - (size_t)(word - at) == n && !memcmp(word, label, n));
            at += whole;
        }
        if (!said) text_printf(t, "%s%.*s", t->len ? " " : "", (int)n, label);
        label += n;
        label += strspn(label, " ");
    }
}

double rows_cache_bytes(const struct tables *ts, int64_t point, int level) {
    const char *ran = table_text(tables_peek(ts, "points"), point, "effective");
    char key[32];
    double v;
    if (strncmp(ran, "cpu", 3) && strncmp(ran, "ref", 3)) return 0;
    snprintf(key, sizeof key, "cpu.l%d_bytes", level);
    return parse_f64(rows_environment(ts, key), &v) && v > 0 ? v : 0;
}

int64_t rows_threads(const struct tables *ts, int64_t point) {
    const char *at = strstr(table_text(tables_peek(ts, "points"), point, "effective"), "threads=");
    char digits[16];
    int64_t n = 0;
    if (!at) return 1;
    at += strlen("threads=");
    snprintf(digits, sizeof digits, "%.*s", (int)strspn(at, "0123456789"), at);
    return parse_i64(digits, &n) && n > 0 ? n : 1;
}
