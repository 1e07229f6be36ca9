/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do, measured in this run, and how near to it each row comes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"
#include "results/summary_parts.h"

#define BEYOND      1.05 /* beyond a ceiling's upper bound by more is implausible */
#define CACHE_TIMES 4    /* live sets below so many last-level caches may never reach memory */

const char *summary_key(const struct tables *ts, int64_t point, const char *key, struct text *out) {
    out->len = 0;
    rows_key_text(ts, point, key, out);
    return out->len ? out->data : rows_fact(ts, key);
}

static double amount(const char *text) {
    double v;
    int64_t bytes;
    if (parse_f64(text, &v)) return v;
    return parse_bytes(text, &bytes) ? (double)bytes : (double)NAN;
}

/* "cpu isa=avx2 threads=2": what ran goes before what was asked for ("auto", 0). */
static int64_t threads_of(const struct tables *ts, int64_t point) {
    const char *at = strstr(table_text(tables_peek(ts, "points"), point, "effective"), "threads=");
    struct text key = {0};
    double v =
        at ? atof(at + strlen("threads=")) : amount(summary_key(ts, point, "device.threads", &key));
    text_free(&key);
    return v >= 1 && v < 1e6 ? (int64_t)v : I64_NONE;
}

struct ceiling_kind {
    const char *name, *type, *unit;
    int64_t bytes, threads;
    double work; /* bytes or FLOPs of one execution */
};

/* One row a visit: rates of its samples. */
static void ceiling_rows(const struct summary_index *x, int64_t point,
                         const struct ceiling_kind *kind, const struct series *times,
                         struct series *rates) {
    struct table *t = tables_get(x->ts, "ceilings");
    series_rate(times, kind->work * 1e9, rates);
    for (size_t v = 0; v < rates->n_visits; v++) {
        size_t first = rates->begin[v], n = rates->begin[v + 1] - first;
        if (!n || isnan(rates->visit_mean[v])) continue;
        int64_t row = table_add(t, 1);
        table_set_i64(t, row, "point", point);
        table_set_i64(t, row, "round", rates->round[v]);
        table_set_text(t, row, "name", kind->name);
        table_set_text(t, row, "type", kind->type);
        table_set_i64(t, row, "bytes", kind->bytes);
        table_set_i64(t, row, "threads", kind->threads);
        table_set_f64(t, row, "value", rates->visit_mean[v]);
        table_set_text(t, row, "unit", kind->unit);
        table_set_i64(t, row, "n", (int64_t)n);
        table_set_f64(t, row, "stddev", stats_stddev(rates->x + first, n));
    }
}

static void ceiling_point(const struct summary_index *x, int64_t point, struct series *times,
                          struct series *rates) {
    const struct tables *ts = x->ts;
    const struct table *points = tables_peek(ts, "points");
    struct text name = {0}, type = {0}, bytes = {0};
    struct ceiling_kind kind = {.name = summary_key(ts, point, "workload.op", &name)};
    if (!*kind.name) kind.name = "read";
    bool counts = !strcmp(kind.name, "fma") || !strcmp(kind.name, "gemm");
    double size = counts ? (double)NAN : amount(summary_key(ts, point, "workload.bytes", &bytes));
    kind.type = counts ? summary_key(ts, point, "workload.type", &type) : "";
    if (counts && (!*kind.type || !strcmp(kind.type, "auto")))
        kind.type = table_text(points, point, "binding");
    if (!strcmp(kind.name, "gemm") && !strcmp(table_text(points, point, "binding"), "int8"))
        kind.type = "int8"; /* whatever the weights: codes by codes */
    kind.unit = counts ? "FLOP/s" : "byte/s";
    kind.bytes = size >= 0 && size < 1e18 ? (int64_t)size : I64_NONE;
    kind.threads = threads_of(ts, point);
    kind.work = table_real(points, point, counts ? "flops" : "bytes");
    series_times(x, point, times);
    if (kind.work > 0) ceiling_rows(x, point, &kind, times, rates);
    text_free(&name);
    text_free(&type);
    text_free(&bytes);
}

/* Rows that belong to no point were measured beside them, and stay. */
static void ceilings_clear(struct tables *ts) {
    struct table *t = tables_get(ts, "ceilings");
    int64_t kept = 0;
    for (int64_t r = 0; r < table_rows(t); r++) {
        if (table_int(t, r, "point") != I64_NONE) continue;
        for (size_t k = 0; k < table_columns(t); k++) {
            const struct column *c = table_column_at(t, k);
            if (c->type == COL_I64) table_set_i64(t, kept, c->name, table_int(t, r, c->name));
            if (c->type == COL_F64) table_set_f64(t, kept, c->name, table_real(t, r, c->name));
            if (c->type == COL_TEXT) table_set_text(t, kept, c->name, table_text(t, r, c->name));
        }
        kept++;
    }
    table_cut(t, kept);
}

void ceilings_compute(const struct summary_index *x) {
    const struct table *points = tables_peek(x->ts, "points");
    struct series times = {0}, rates = {0};
    ceilings_clear(x->ts);
    for (int64_t p = 0; p < x->n_points; p++)
        if (!strcmp(table_text(points, p, "workload"), "ceiling") && rows_usable(x->ts, p))
            ceiling_point(x, p, &times, &rates);
    series_free(&times);
    series_free(&rates);
}

/* A product of int8 weights with floats is no ceiling of int8. */
static bool is_of_kind(const struct tables *ts, int64_t row, bool arithmetic, const char *type) {
    const struct table *t = tables_peek(ts, "ceilings");
    const char *name = table_text(t, row, "name");
    const int64_t point = table_int(t, row, "point");
    if (!arithmetic) return !strcmp(name, "read");
    if (!strcmp(name, "gemm") && !strcmp(type, "int8") && point != I64_NONE &&
        strcmp(table_text(tables_peek(ts, "points"), point, "binding"), "int8") != 0)
        return false;
    return (!strcmp(name, "fma") || !strcmp(name, "gemm")) &&
           !strcmp(table_text(t, row, "type"), type);
}

/* I64_NONE is the smallest number there is: 'unknown' gives way to anything known. */
void summary_ceiling(const struct tables *ts, const char *kind, const char *type, double *value,
                     double *upper) {
    const struct table *t = tables_peek(ts, "ceilings");
    bool arithmetic = !strcmp(kind, "arithmetic");
    int64_t bytes = I64_NONE, threads = I64_NONE, n = table_rows(t);
    *value = *upper = (double)NAN;
    for (int64_t r = 0; r < n; r++) {
        if (!is_of_kind(ts, r, arithmetic, type)) continue;
        int64_t b = arithmetic ? 0 : table_int(t, r, "bytes"), th = table_int(t, r, "threads");
        double v = table_real(t, r, "value");
        if (!(v > 0) || b < bytes || (b == bytes && th < threads)) continue;
        if (b == bytes && th == threads && v <= *value) continue;
        double count = table_real(t, r, "n"), spread = table_real(t, r, "stddev");
        *value = *upper = v;
        if (count >= 2 && spread > 0) *upper = v + stats_t95(count - 1) * spread / sqrt(count);
        bytes = b;
        threads = th;
    }
}

static double last_cache(const struct tables *ts) {
    double l3 = amount(rows_environment(ts, "cpu.l3_bytes"));
    double l2 = amount(rows_environment(ts, "cpu.l2_bytes"));
    return l3 > 0 ? l3 : l2; /* NAN: unknown, and nothing is judged */
}

static void say_beyond(struct text *reason, const char *what, double share, const char *cause) {
    text_printf(reason, "%s%s is %.0f %% of the measured ceiling: %s", reason->len ? "; " : "",
                what, 100 * share, cause);
}

static void emit_share(const struct summary_index *x, int64_t point, const char *metric,
                       double factor, const struct series *times) {
    struct series share = {0};
    series_rate(times, factor, &share);
    series_emit(x->ts, point, metric, "1", &share);
    series_free(&share);
}

void ceilings_judge(const struct summary_index *x, int64_t point, const struct series *times,
                    struct text *reason) {
    struct table *points = tables_get(x->ts, "points");
    double bytes = table_real(points, point, "bytes"), flops = table_real(points, point, "flops");
    double read, read_upper, peak, peak_upper, mean, lo, hi, drift, error;
    const char *type = table_text(points, point, "binding");
    table_set_text(points, point, "bound", "");
    if (!strcmp(table_text(points, point, "workload"), "ceiling")) return;
    if (!series_rounds(times, &mean, &lo, &hi, &drift, &error) || !(mean > 0)) return;
    summary_ceiling(x->ts, "bandwidth", "", &read, &read_upper);
    summary_ceiling(x->ts, "arithmetic", type, &peak, &peak_upper);
    bool own_type = peak > 0;
    if (!own_type) summary_ceiling(x->ts, "arithmetic", "f32", &peak, &peak_upper);
    /* The interval's bound decides, not the mean: the slowest that the rounds allow must be beyond.
     * One round has no interval, and no verdict: on a shared machine the ceiling's own visit may
     * have been the disturbed one. */
    double rate = bytes * 1e9 / mean, flop_rate = flops * 1e9 / mean;
    double least_rate = bytes * 1e9 / hi, least_flop_rate = flops * 1e9 / hi;
    if (bytes > 0 && read > 0) {
        emit_share(x, point, "mbu", bytes * 1e9 / read, times);
        bool from_memory =
            table_real(points, point, "live_bytes") > CACHE_TIMES * last_cache(x->ts);
        if (from_memory && least_rate > BEYOND * read_upper)
            say_beyond(
                reason, "bandwidth", rate / read,
                "the ledger counts bytes that were not moved, or the machine was slower when the ceiling was measured");
    }
    if (flops > 0 && peak > 0) {
        emit_share(x, point, "mfu", flops * 1e9 / peak, times);
        if (own_type && least_flop_rate > BEYOND * peak_upper)
            say_beyond(reason, "the FLOP rate", flop_rate / peak,
                       "work was left out, or the clock was lower when the ceiling was measured");
    }
    if (bytes >= 0 && flops >= 0 && bytes + flops > 0 && read > 0 && peak > 0)
        table_set_text(points, point, "bound",
                       bytes / read >= flops / peak ? "bandwidth" : "compute");
}
