/* SPDX-License-Identifier: Apache-2.0 */
/* The example is written by hand, not computed: it must not move when the program learns. */
#include "tests/support/result_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { LONG_VISIT = 9000 }; /* samples: more than 64 KiB a column, so that chunks are read too */

static int64_t row_of(struct tables *ts, const char *table, struct table **t) {
    *t = tables_get(ts, table);
    return table_add(*t, 1);
}

static void pair(struct tables *ts, const char *table, const char *scope, const char *key,
                 const char *value) {
    struct table *t;
    int64_t r = row_of(ts, table, &t);
    if (*scope) table_set_text(t, r, "scope", scope);
    table_set_text(t, r, "key", key);
    table_set_text(t, r, "value", value);
    if (!strcmp(table, "meta")) return;
    table_set_text(t, r, "unit", !strcmp(key, "cpu.l3_bytes") ? "byte" : "");
    table_set_text(t, r, "origin", "example.toml:3:1");
}

static void facts(struct tables *ts) {
    pair(ts, "meta", "", "tool", "bench");
    pair(ts, "meta", "", "title", "Example \xe2\x80\x94 one");
    pair(ts, "meta", "", "question", "Does it read back?");
    pair(ts, "meta", "", "complete", "yes");
    pair(ts, "protocol", "protocol", "measure.budget", "90 s");
    pair(ts, "protocol", "1", "workload.batch", "1");
    pair(ts, "environment", "", "cpu.model", "Example CPU");
    pair(ts, "environment", "", "cpu.l3_bytes", "33554432");
    struct table *t;
    int64_t r = row_of(ts, "files", &t);
    table_set_text(t, r, "path", "example.toml");
    table_set_text(t, r, "text", "title = \"Example\"\n# \xc3\xa4\n");
    table_set_text(t, r, "digest", "0123456789abcdef");
}

static void point(struct tables *ts, int64_t p, const char *label, const char *state,
                  const char *reason) {
    struct table *t;
    int64_t r = row_of(ts, "points", &t);
    table_set_i64(t, r, "point", p);
    table_set_text(t, r, "case", p ? "" : "ceilings");
    table_set_text(t, r, "label", label);
    table_set_text(t, r, "workload", p ? "decode" : "ceiling");
    table_set_text(t, r, "device", "cpu");
    table_set_text(t, r, "state", state);
    table_set_text(t, r, "reason", reason);
    table_set_f64(t, r, "flops", 1e9 * (double)(p + 1));
    table_set_f64(t, r, "bytes", 1e9);
    table_set_text(t, r, "binding", "f32");
    table_set_text(t, r, "witness", p == 1 ? "exact" : "");
    if (p) table_set_i64(t, r, "workload.batch", (int64_t)1 << (p - 1));
    if (p) table_set_text(t, r, "odd/name%", p == 1 ? HOSTILE : "");
    r = row_of(ts, "phases", &t);
    table_set_i64(t, r, "point", p);
    table_set_i64(t, r, "phase", 0);
    table_set_text(t, r, "name", p ? "decode" : "transfer");
    table_set_text(t, r, "item", p ? "token" : "byte");
    table_set_f64(t, r, "items", p ? (double)p : 1e9);
}

static void summary(struct tables *ts, int64_t p, const char *metric, const char *unit, double mean,
                    double half, int64_t n) {
    struct table *t;
    int64_t r = row_of(ts, "summary", &t);
    table_set_i64(t, r, "point", p);
    table_set_text(t, r, "metric", metric);
    table_set_text(t, r, "unit", unit);
    table_set_i64(t, r, "n", n);
    table_set_i64(t, r, "n_rounds", isnan(half) ? 1 : 2);
    table_set_f64(t, r, "mean", mean);
    table_set_f64(t, r, "median", mean);
    if (n > 1) table_set_f64(t, r, "stddev", mean / 100);
    table_set_f64(t, r, "ci_lo", mean - half);
    table_set_f64(t, r, "ci_hi", mean + half);
}

static void visit(struct tables *ts, int64_t id, int64_t p, int64_t samples) {
    struct table *t;
    int64_t r = row_of(ts, "visits", &t);
    table_set_i64(t, r, "visit", id);
    table_set_i64(t, r, "point", p);
    table_set_i64(t, r, "round", 0);
    table_set_text(t, r, "state", samples ? "ok" : "oom");
    table_set_text(t, r, "steady", "yes");
    table_set_f64(t, r, "t0", 0.125 * (double)id);
    t = tables_get(ts, "samples");
    r = table_add(t, samples);
    for (int64_t i = 0; i < samples; i++) {
        table_set_i64(t, r + i, "visit", id);
        table_set_i64(t, r + i, "order", i);
        table_set_i64(t, r + i, "batch", 1);
        table_set_i64(t, r + i, "wall_ns", 50000000 + 1000 * id + i * i % 997);
        table_set_i64(t, r + i, "labels", i % 100 ? 0 : 1);
    }
}

static void events(struct tables *ts) {
    struct table *t;
    int64_t r = row_of(ts, "warmup", &t);
    table_set_i64(t, r, "visit", 1);
    table_set_i64(t, r, "wall_ns", 60000000);
    r = row_of(ts, "marks", &t);
    table_set_i64(t, r, "visit", 1);
    table_set_i64(t, r, "mark", -1);
    table_set_i64(t, r, "t_ns", 17);
    r = row_of(ts, "values", &t);
    table_set_i64(t, r, "visit", 1);
    table_set_text(t, r, "metric", "kv_bytes");
    table_set_f64(t, r, "value", 12582912);
    r = row_of(ts, "memory", &t);
    table_set_i64(t, r, "bytes", -4096);
    table_set_text(t, r, "class", "kv");
    r = row_of(ts, "ranges", &t);
    table_set_text(t, r, "name", "layer 0");
    r = row_of(ts, "ceilings", &t);
    table_set_text(t, r, "name", "read");
    table_set_f64(t, r, "value", 2e10);
    table_set_text(t, r, "unit", "byte/s");
    table_set_i64(t, r, "n", 10);
    table_set_f64(t, r, "stddev", 1e8);
    r = row_of(ts, "metrics", &t);
    table_set_text(t, r, "workload", "decode");
    table_set_text(t, r, "name", "kv_bytes");
    table_set_text(t, r, "unit", "byte");
    table_set_i64(t, r, "exact", 1);
    r = row_of(ts, "fits", &t);
    table_set_text(t, r, "analysis", "knee");
    table_set_text(t, r, "name", "B*");
    table_set_f64(t, r, "value", 9.25);
    table_set_text(t, r, "verdict", "ok");
    table_set_text(t, r, "text", "bandwidth \xe2\x86\x92 compute");
    r = row_of(ts, "published", &t);
    table_set_text(t, r, "what", "throughput, batch 16 over 1");
    table_set_text(t, r, "kind", "measured");
    table_set_f64(t, r, "theirs", 6);
    table_set_text(t, r, "verdict", "none");
}

struct tables *result_example(void) {
    struct tables *ts = tables_create();
    struct table *points = tables_get(ts, "points");
    table_column(points, "workload.batch", COL_I64, "sequences", "swept key");
    table_column(points, "odd/name%", COL_TEXT, "", "swept key");
    facts(ts);
    point(ts, 0, "op=read", "ok", "");
    point(ts, 1, "batch=1", "ok", "");
    point(ts, 2, "batch=2", "degraded", HOSTILE);
    point(ts, 3, "batch=4", "oom", "26.03 GB asked, 24.1 GB there");
    for (int64_t p = 0; p < 4; p++) visit(ts, p, p, p == 3 ? 0 : p == 1 ? LONG_VISIT : 3);
    summary(ts, 0, "time", "ms", 50, 0.5, 3);
    summary(ts, 1, "time", "ms", 50.001, 0.8, LONG_VISIT);
    summary(ts, 1, "decode_rate", "token/s", 19.999, 0.3, LONG_VISIT);
    summary(ts, 1, "mbu", "1", 0.93, 0.01, LONG_VISIT);
    summary(ts, 1, "kv_bytes", "byte", 12582912, (double)NAN, 1);
    summary(ts, 2, "time", "ms", 51, (double)NAN, 3);
    summary(ts, 2, "decode_rate", "token/s", 39.2, (double)NAN, 3);
    events(ts);
    return ts;
}

static void cell_same(const struct table *s, const struct table *t, int64_t r,
                      const struct column *c) {
    double x = table_real(s, r, c->name), y = table_real(t, r, c->name);
    bool same = table_int(s, r, c->name) == table_int(t, r, c->name) &&
                (isnan(x) ? isnan(y) : !(x < y) && !(x > y)) &&
                !strcmp(table_text(s, r, c->name), table_text(t, r, c->name));
    if (!same) fail_msg("%s/%s differs in row %lld", c->table, c->name, (long long)r);
}

void tables_same(const struct tables *a, const struct tables *b) {
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; i < n; i++) {
        const struct table *s = tables_peek(a, names[i]), *t = tables_peek(b, names[i]);
        bool meta = !strcmp(names[i], "meta"); /* attributes have no order of their own */
        if (table_rows(s) != table_rows(t))
            fail_msg("%s has %lld and %lld rows", names[i], (long long)table_rows(s),
                     (long long)table_rows(t));
        for (int64_t r = 0; meta && r < table_rows(s); r++)
            assert_string_equal(table_text(s, r, "value"), tables_meta(b, table_text(s, r, "key")));
        for (size_t k = 0; !meta && k < table_columns(s); k++) {
            const struct column *c = table_column_at(s, k);
            int at = table_find(t, c->name);
            if (at < 0) fail_msg("%s has no column %s", names[i], c->name);
            const struct column *d = table_column_at(t, (size_t)at);
            assert_int_equal(c->type, d->type);
            assert_string_equal(c->unit, d->unit);
            for (int64_t r = 0; r < table_rows(s); r++) cell_same(s, t, r, c);
        }
    }
}
