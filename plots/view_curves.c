/* SPDX-License-Identifier: Apache-2.0 */
/* A metric against a swept key: points with intervals, and the fit that the analysis left in the
 * tables. */
#include "plots/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"
#include "results/summary.h"

int64_t declared_analysis(const struct tables *ts, const char *kind) {
    const struct table *facts = tables_peek(ts, "protocol");
    int64_t best = -1;
    for (int64_t i = 0; i < table_rows(facts); i++) {
        const char *key = table_text(facts, i, "key");
        int64_t number;
        char digits[24];
        if (strncmp(key, "analysis.", 9) || strcmp(table_text(facts, i, "value"), kind)) continue;
        const char *dot = strchr(key + 9, '.');
        if (!dot || strcmp(dot, ".kind") || dot - key - 9 > 20) continue;
        snprintf(digits, sizeof digits, "%.*s", (int)(dot - key - 9), key + 9);
        if (parse_i64(digits, &number) && number >= 0 && (best < 0 || number < best)) best = number;
    }
    return best;
}

int64_t curves_analysis(const struct tables *ts, const char *kind) {
    static const char *const drawn[] = {"scaling", "speedup", "levels", "curve"};
    int64_t best = -1;
    if (strcmp(kind, "scaling")) return declared_analysis(ts, kind);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        int64_t number = declared_analysis(ts, drawn[i]);
        if (number >= 0 && (best < 0 || number < best)) best = number;
    }
    return best;
}

int64_t curves_below(const struct tables *ts, int64_t above) {
    static const char *const same[] = {"kind", "case", "x", "by"};
    const char *y = declared_key(ts, above, "y");
    for (int64_t number = above + 1; above >= 0 && *declared_key(ts, number, "kind"); number++) {
        bool fits = strcmp(declared_key(ts, number, "y"), y) != 0;
        for (int i = 0; i < 4; i++)
            fits = fits &&
                   !strcmp(declared_key(ts, number, same[i]), declared_key(ts, above, same[i]));
        if (fits) return number;
    }
    return -1;
}

const char *declared_key(const struct tables *ts, int64_t number, const char *key) {
    char full[120];
    if (number < 0) return "";
    snprintf(full, sizeof full, "analysis.%lld.%.80s", (long long)number, key);
    return rows_fact(ts, full);
}

/* A fit by its name and group, of the declared case: the first row from `from` on, whose sentence
 * begins with `begins`; the number of rows if there is none. */
static int64_t fit_row(const struct tables *ts, const char *kind, const char *only_case,
                       const char *name, const char *group, const char *begins, int64_t from) {
    const struct table *fits = tables_peek(ts, "fits");
    char full[200];
    snprintf(full, sizeof full, "%s%s%.150s", name, *group ? " " : "", group);
    for (int64_t i = from; i < table_rows(fits); i++)
        if (!strcmp(table_text(fits, i, "name"), full) &&
            !strcmp(table_text(fits, i, "analysis"), kind) &&
            !strcmp(table_text(fits, i, "case"), only_case) &&
            !strncmp(table_text(fits, i, "text"), begins, strlen(begins)))
            return i;
    return table_rows(fits);
}

/* y: the metric; exponents of several metrics have one name, and what belongs to each follows it.
 */
static void read_fit(const struct tables *ts, const char *kind, const char *only_case,
                     const char *y, struct curve *c) {
    const struct table *fits = tables_peek(ts, "fits");
    const int64_t rows = table_rows(fits);
    char begins[120];
    snprintf(begins, sizeof begins, "%.100s grows as", y);
    const int64_t from =
        strcmp(kind, "scaling") ? 0 : fit_row(ts, kind, only_case, "exponent", c->name, begins, 0);
    int64_t at;
#define FIT(what, column)                                                                          \
    ((at = fit_row(ts, kind, only_case, what, c->name, "", from)) < rows                           \
         ? table_real(fits, at, column)                                                            \
         : (double)NAN)
    c->level = FIT("t_mem", "value");
    c->c0 = FIT("c0", "value");
    c->c1 = FIT("c1", "value");
    c->knee = FIT("B*", "value");
    c->knee_lo = FIT("B*", "lo");
    c->knee_hi = FIT("B*", "hi");
    c->predicted = FIT("B* predicted", "value");
    c->exponent = FIT("exponent", "value");
    c->exponent_lo = FIT("exponent", "lo");
    c->exponent_hi = FIT("exponent", "hi");
    c->prefactor = FIT("prefactor", "value");
    c->from = FIT("from", "value");
#undef FIT
}

/* For results that declare no analysis: the swept number with the longest curve of at least three
 * rows; *point is one of them. */
static const char *longest_sweep(const struct tables *ts, int64_t *point) {
    const struct table *points = tables_peek(ts, "points");
    const char *best = "";
    int32_t most = 2;
    for (size_t c = 0; c < table_columns(points); c++) {
        const struct column *column = table_column_at(points, c);
        struct rows rows;
        if (!rows_swept(ts, c) || column->type == COL_TEXT) continue;
        rows_gather(ts, "", column->name, "", &rows);
        for (int32_t g = 0; g < rows.n_groups; g++) {
            int32_t timed = 0;
            for (int32_t i = 0; i < rows.groups[g].n; i++)
                timed += isfinite(rows_metric(ts, rows.groups[g].point[i], "time"));
            if (timed > most) most = timed, best = column->name, *point = rows.groups[g].point[0];
        }
        rows_free(&rows);
    }
    return best;
}

/* A bare number as the name of a curve says nothing: "2" becomes "threads 2". */
static const char *telling_name(const struct tables *ts, const struct rows_group *g,
                                struct arena *arena) {
    const struct table *points = tables_peek(ts, "points");
    struct text value = {0};
    const char *name = arena_text(arena, g->name);
    double v;
    if (!parse_f64(g->name, &v)) return name;
    for (size_t c = 0; c < table_columns(points); c++) {
        const char *key = table_column_at(points, c)->name;
        if (!rows_swept(ts, c)) continue;
        value.len = 0;
        rows_key_text(ts, g->point[0], key, &value);
        if (!value.len || strcmp(value.data, g->name)) continue;
        name = arena_printf(arena, "%s %s", rows_short(key), g->name);
        break;
    }
    text_free(&value);
    return name;
}

static double *numbers(struct arena *arena, int32_t n) {
    return arena_alloc(arena, (size_t)n * sizeof(double));
}

static void read_points(const struct tables *ts, const struct rows_group *g, const char *y,
                        bool rate, struct curve *c, struct arena *arena) {
    c->x = numbers(arena, g->n), c->y = numbers(arena, g->n);
    c->lo = numbers(arena, g->n), c->hi = numbers(arena, g->n);
    c->t = numbers(arena, g->n), c->t_lo = numbers(arena, g->n), c->t_hi = numbers(arena, g->n);
    for (int32_t i = 0; i < g->n; i++) {
        double v = rows_metric(ts, g->point[i], y), x = g->x[i];
        double lo = summary_get(ts, g->point[i], y, "ci_lo");
        double hi = summary_get(ts, g->point[i], y, "ci_hi");
        if (!isfinite(v)) continue;
        int32_t k = c->n++;
        c->x[k] = x;
        c->y[k] = v;
        c->lo[k] = isfinite(lo) ? lo : v;
        c->hi[k] = isfinite(hi) ? hi : v;
        /* A rate of x items a step and the time of a step say the same. */
        c->t[k] = rate ? 1e3 * x / v : v;
        c->t_lo[k] = rate ? 1e3 * x / c->hi[k] : c->lo[k];
        c->t_hi[k] = rate && c->lo[k] > 0 ? 1e3 * x / c->lo[k] : rate ? c->t[k] : c->hi[k];
    }
}

/* For a knee the metric is drawn as throughput, whichever of the two was declared. */
static void to_throughput(struct curve *c) {
    for (int32_t i = 0; i < c->n; i++) {
        c->y[i] = 1e3 * c->x[i] / c->t[i];
        c->lo[i] = 1e3 * c->x[i] / c->t_hi[i];
        c->hi[i] = c->t_lo[i] > 0 ? 1e3 * c->x[i] / c->t_lo[i] : c->y[i];
    }
}

/* Speed over that of the first row; what more x would bring at best stands beside it. */
static void to_speedup(struct curves *v, bool rate) {
    for (int32_t g = 0; g < v->n; g++) {
        struct curve *c = &v->curve[g];
        const double base = c->y[0];
        for (int32_t i = 0; i < c->n; i++) {
            const double lo = c->lo[i], hi = c->hi[i];
            c->y[i] = rate ? c->y[i] / base : base / c->y[i];
            c->lo[i] = rate ? lo / base : base / hi;
            c->hi[i] = rate ? hi / base : base / lo;
        }
    }
    struct curve *ideal = &v->curve[v->n];
    *ideal = v->curve[0];
    for (int32_t g = 1; g < v->n; g++)
        if (v->curve[g].n > ideal->n) *ideal = v->curve[g];
    const double *x = ideal->x;
    *ideal = (struct curve){.name = "in proportion", .n = ideal->n};
    ideal->x = numbers(v->arena, ideal->n), ideal->y = numbers(v->arena, ideal->n);
    ideal->lo = ideal->hi = ideal->y;
    ideal->t = ideal->t_lo = ideal->t_hi = ideal->y;
    ideal->exponent = ideal->prefactor = ideal->from = ideal->knee = (double)NAN;
    for (int32_t i = 0; i < ideal->n; i++) ideal->x[i] = x[i], ideal->y[i] = x[i] / x[0];
    v->n++;
}

/* Sizes of caches on an axis of bytes: one core's. */
static void read_marks(const struct tables *ts, int64_t point, const char *x, struct curves *v) {
    const struct table *points = tables_peek(ts, "points");
    const int column = table_find(points, x);
    if (column < 0 || strcmp(table_column_at(points, (size_t)column)->unit, "byte")) return;
    for (int level = 1; level <= 3; level++) {
        char size[40];
        const double bytes = rows_cache_bytes(ts, point, level);
        if (!(bytes > 0)) continue;
        snprintf(size, sizeof size, bytes < 1 << 20 ? "%.4g KiB" : "%.4g MiB",
                 bytes / (bytes < 1 << 20 ? 1 << 10 : 1 << 20));
        v->mark[v->n_marks].name = arena_printf(v->arena, "L%d %s", level, size);
        v->mark[v->n_marks++].x = bytes;
    }
}

static double *gather(const struct curves *v, int which, size_t *n) {
    size_t all = 0;
    for (int32_t g = 0; g < v->n; g++) all += (size_t)v->curve[g].n;
    double *out = arena_alloc(v->arena, (3 * all + 1) * sizeof *out);
    *n = 0;
    for (int32_t g = 0; g < v->n; g++) {
        const struct curve *c = &v->curve[g];
        const double *from[3][3] = {
            {c->x, NULL, NULL}, {c->y, c->lo, c->hi}, {c->t, c->t_lo, c->t_hi}};
        for (int k = 0; k < 3; k++)
            for (int32_t i = 0; from[which][k] && i < c->n; i++)
                if (from[which][k][i] > 0 || k == 0) out[(*n)++] = from[which][k][i];
    }
    return out;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fit_axes(struct curves *v, bool knee) {
    size_t n;
    double *x = gather(v, 0, &n);
    qsort(x, n, sizeof *x, by_value);
    axis_fit(&v->x, x, n, axis_wants_log(x, n), false);
    axis_ticks_at(&v->x, x, n);
    double *y = gather(v, 1, &n);
    bool log = axis_wants_log(y, n) || (knee && v->x.log); /* its slopes are straight then */
    axis_fit(&v->y, y, n, log, !log);
    double *t = gather(v, 2, &n);
    log = axis_wants_log(t, n) || (knee && v->y.log);
    axis_fit(&v->t, t, n, log, !log);
}

/* Single points: ticks where a reader looks for them, and what spans two decades by its decades. */
static void fit_points(struct curves *v) {
    size_t n, positive = 0;
    double *x = gather(v, 0, &n);
    axis_fit(&v->x, x, n, false, true);
    double *y = gather(v, 1, &n), least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(y[i] > 0)) continue;
        positive++;
        least = fmin(least, y[i]);
        most = fmax(most, y[i]);
    }
    const bool log = positive > 1 && most > 100 * least;
    axis_fit(&v->y, y, n, log, !log);
}

/* Times of many seconds or few microseconds in a unit whose ticks can be read; milliseconds in
 * between. */
static double time_unit(const struct curves *v, bool of_y, const char **unit) {
    double most = 0;
    for (int32_t g = 0; g < v->n; g++)
        for (int32_t i = 0; i < v->curve[g].n; i++)
            most = fmax(most, of_y ? v->curve[g].y[i] : v->curve[g].t[i]);
    *unit = most >= 1e4 ? "s" : most < 0.1 ? "\xc2\xb5s" : "ms";
    return most >= 1e4 ? 1e-3 : most < 0.1 ? 1e3 : 1;
}

static void scale_times(struct curves *v) {
    double t = time_unit(v, false, &v->t_unit), y = 1;
    if (!strcmp(v->y_unit, "ms")) y = time_unit(v, true, &v->y_unit);
    for (int32_t g = 0; g < v->n; g++) {
        struct curve *c = &v->curve[g];
        for (int32_t i = 0; i < c->n; i++) {
            c->t[i] *= t, c->t_lo[i] *= t, c->t_hi[i] *= t;
            c->y[i] *= y, c->lo[i] *= y, c->hi[i] *= y;
        }
        c->level *= t, c->c0 *= t, c->c1 *= t;
        c->prefactor *= y;
    }
}

/* "kv bytes", but n_kv and d_h, which are symbols. */
static const char *spaced(struct arena *arena, const char *name) {
    char *copy = arena_text(arena, name);
    for (char *c = copy; *c; c++)
        if (*c == '_' && !(c == copy + 1 && strchr("nd", *copy))) *c = ' ';
    return copy;
}

/* Another metric of the same rows, which stands beside curve number of - 1. */
static bool read_beside(const struct tables *ts, const struct rows_group *g, const char *metric,
                        int32_t of, struct curve *c, struct arena *arena) {
    *c = (struct curve){.name = "", .of = of};
    c->exponent = c->prefactor = c->from = c->knee = (double)NAN;
    if (*metric) read_points(ts, g, metric, false, c, arena);
    return c->n > 0;
}

/* The first of them says what they are. */
static void add_beside(struct curves *v, const struct curve *beside, int32_t n,
                       const char *metric) {
    for (int32_t i = 0; i < n; i++) {
        v->curve[v->n] = beside[i];
        if (!i) v->curve[v->n].name = spaced(v->arena, metric);
        v->n++;
    }
}

int curves_read(const struct tables *ts, const char *kind, struct curves *v, struct err *err) {
    return curves_read_of(ts, kind, curves_analysis(ts, kind), v, err);
}

int curves_read_of(const struct tables *ts, const char *kind, int64_t number, struct curves *v,
                   struct err *err) {
    const char *analysis = declared_key(ts, number, "kind");
    const bool speedup = !strcmp(analysis, "speedup");
    bool knee = !strcmp(kind, "knee");
    const char *x = declared_key(ts, number, "x"), *y = declared_key(ts, number, "y");
    const char *only_case = declared_key(ts, number, "case");
    struct rows rows;
    int64_t drawn = 0;
    *v = (struct curves){.arena = arena_create()};
    int64_t point = -1;
    if (speedup && !*x) x = "device.threads";
    if (!strcmp(analysis, "levels")) {
        if (!*x) x = "workload.bytes";
        if (!*y) y = "bandwidth";
    }
    if (!*x) x = longest_sweep(ts, &point);
    /* Ceilings by working set: each level of cache is a step of the bandwidth. */
    const struct table *points = tables_peek(ts, "points");
    bool ceiling = point >= 0 && !strcmp(table_text(points, point, "workload"), "ceiling") &&
                   isfinite(rows_metric(ts, point, "bandwidth"));
    if (ceiling) only_case = table_text(points, point, "case");
    if (!*y) y = ceiling ? "bandwidth" : "time";
    if (!*x)
        return err_set(err, ERR_UNSUPPORTED, "no %s plot: no key is swept over three rows", kind);
    rows_gather(ts, only_case, x, declared_key(ts, number, "by"), &rows);
    const char *unit = rows_unit(ts, y);
    bool rate = rows_is_rate(unit);
    const char *metric = strcmp(analysis, "curve") ? "" : declared_key(ts, number, "beside");
    v->curve = arena_alloc(v->arena, (size_t)(2 * rows.n_groups + 2) * sizeof *v->curve);
    struct curve *beside = arena_alloc(v->arena, (size_t)(rows.n_groups + 1) * sizeof *beside);
    int32_t n_beside = 0;
    for (int32_t g = 0; g < rows.n_groups; g++) {
        struct curve *c = &v->curve[v->n];
        *c = (struct curve){.name = arena_text(v->arena, rows.groups[g].name)};
        read_points(ts, &rows.groups[g], y, rate, c, v->arena);
        if (!c->n) continue;
        if (knee) to_throughput(c);
        read_fit(ts, kind, only_case, y, c);
        c->name = telling_name(ts, &rows.groups[g], v->arena);
        drawn += c->n;
        v->n++;
        n_beside += read_beside(ts, &rows.groups[g], metric, v->n, &beside[n_beside], v->arena);
    }
    add_beside(v, beside, n_beside, metric);
    if (rows.n_groups) read_marks(ts, rows.groups[0].point[0], x, v);
    v->x_name = spaced(v->arena, rows_short(x));
    v->y_name = knee ? "throughput" : spaced(v->arena, y);
    v->y_unit = arena_text(v->arena, unit);
    if (knee && !rate) v->y_unit = arena_printf(v->arena, "%s/s", v->x_name);
    v->left_out = rows.left_out;
    rows.left_out = (struct text){0};
    rows_free(&rows);
    if (drawn < 2)
        return err_set(err, ERR_UNSUPPORTED, "no %s plot: %lld rows have %s against %s%s%.200s",
                       kind, (long long)drawn, y, x, v->left_out.len ? "; left out: " : "",
                       v->left_out.len ? v->left_out.data : "");
    if (speedup) {
        to_speedup(v, rate);
        v->y_name = "speedup";
        v->y_unit = "";
    }
    scale_times(v);
    fit_axes(v, knee);
    if (!strcmp(kind, "tradeoff")) fit_points(v);
    return 0;
}

void curves_free(struct curves *v) {
    if (v->arena) arena_close(&v->arena);
    text_free(&v->left_out);
}
