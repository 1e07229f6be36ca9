/* SPDX-License-Identifier: Apache-2.0 */
/* Tables made up from known laws, for tests of analyses, plots and summaries. */
#include "tests/support/synthetic.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

void synthetic_fact(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "protocol");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "scope", "protocol");
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

void synthetic_environment(struct tables *ts, const char *key, const char *value,
                           const char *unit) {
    struct table *t = tables_get(ts, "environment");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
    table_set_text(t, row, "unit", unit);
}

int64_t synthetic_point(struct tables *ts, const char *case_name, const char *label, double flops,
                        double bytes) {
    struct table *t = tables_get(ts, "points");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", row);
    table_set_text(t, row, "case", case_name);
    table_set_text(t, row, "label", label);
    table_set_text(t, row, "cell", label);
    table_set_text(t, row, "workload", "decode");
    table_set_text(t, row, "device", "fake");
    table_set_text(t, row, "state", "ok");
    table_set_text(t, row, "binding", "f32");
    table_set_f64(t, row, "flops", flops);
    table_set_f64(t, row, "bytes", bytes);
    return row;
}

void synthetic_key(struct tables *ts, int64_t point, const char *key, int64_t value) {
    table_column(tables_get(ts, "points"), key, COL_I64, "", "");
    table_set_i64(tables_get(ts, "points"), point, key, value);
}

void synthetic_word(struct tables *ts, int64_t point, const char *key, const char *value) {
    table_column(tables_get(ts, "points"), key, COL_TEXT, "", "");
    table_set_text(tables_get(ts, "points"), point, key, value);
}

int64_t synthetic_visit(struct tables *ts, int64_t point, int64_t round, double ms, int samples,
                        double noise, uint64_t seed) {
    struct table *v = tables_get(ts, "visits"), *s = tables_get(ts, "samples");
    int64_t visit = table_add(v, 1), first = table_add(s, samples);
    uint64_t key = random_key(seed, (uint64_t)(point * 1000 + round));
    table_set_i64(v, visit, "visit", visit);
    table_set_i64(v, visit, "point", point);
    table_set_i64(v, visit, "round", round);
    table_set_i64(v, visit, "control", 0);
    table_set_i64(v, visit, "worker", round);
    table_set_i64(v, visit, "samples", samples);
    table_set_i64(v, visit, "batch", 1);
    table_set_f64(v, visit, "t0", (double)visit);
    table_set_text(v, visit, "steady", "yes");
    table_set_text(v, visit, "state", "ok");
    for (int i = 0; i < samples; i++) {
        double ns = ms * 1e6 * (1 + noise * random_normal(key, (uint64_t)i + 1));
        table_set_i64(s, first + i, "visit", visit);
        table_set_i64(s, first + i, "order", i);
        table_set_i64(s, first + i, "batch", 1);
        table_set_i64(s, first + i, "wall_ns", (int64_t)llround(ns));
        table_set_i64(s, first + i, "labels", 0);
    }
    return visit;
}

void synthetic_rounds(struct tables *ts, int64_t point, int rounds, double ms, double spread,
                      uint64_t seed) {
    uint64_t key = random_key(seed, 77777 + (uint64_t)point);
    for (int r = 0; r < rounds; r++)
        synthetic_visit(ts, point, r, ms * (1 + spread * random_normal(key, (uint64_t)r)), 10,
                        spread / 2, seed);
}

void synthetic_phase(struct tables *ts, int64_t point, const char *name, double items, double flops,
                     double bytes) {
    struct table *t = tables_get(ts, "phases");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point);
    table_set_i64(t, row, "phase", 0);
    table_set_text(t, row, "name", name);
    table_set_text(t, row, "item", "token");
    table_set_f64(t, row, "items", items);
    table_set_f64(t, row, "flops", flops);
    table_set_f64(t, row, "bytes", bytes);
    table_set_i64(t, row, "marks", 0);
}

void synthetic_parts(struct tables *ts, int64_t point, const char *const *names,
                     const double *shares, int n) {
    struct table *phases = tables_get(ts, "phases"), *marks = tables_get(ts, "marks");
    const struct table *samples = tables_peek(ts, "samples"), *visits = tables_peek(ts, "visits");
    for (int k = 0; k < n; k++) {
        int64_t row = table_add(phases, 1);
        table_set_i64(phases, row, "point", point);
        table_set_i64(phases, row, "phase", k);
        table_set_text(phases, row, "name", names[k]);
        table_set_text(phases, row, "item", "row");
        table_set_f64(phases, row, "items", 0);
        table_set_i64(phases, row, "marks", 0);
    }
    for (int64_t i = 0; i < table_rows(samples); i++) {
        const int64_t visit = table_int(samples, i, "visit");
        double ns = 0;
        if (table_int(visits, visit, "point") != point) continue;
        for (int k = 0; k < n; k++) {
            int64_t row = table_add(marks, 1);
            table_set_i64(marks, row, "visit", visit);
            table_set_i64(marks, row, "sample", table_int(samples, i, "order"));
            table_set_i64(marks, row, "mark", -1 - k);
            table_set_i64(marks, row, "who", -1);
            table_set_i64(marks, row, "n", 0);
            table_set_i64(marks, row, "t_ns", (int64_t)ns);
            ns += shares[k] * (double)table_int(samples, i, "wall_ns");
        }
    }
}

void synthetic_ceiling(struct tables *ts, const char *name, const char *type, const char *unit,
                       int64_t bytes, double value, int rounds) {
    struct table *t = tables_get(ts, "ceilings");
    for (int r = 0; r < rounds; r++) {
        int64_t row = table_add(t, 1);
        table_set_i64(t, row, "round", r); /* of no point: a summary keeps it */
        table_set_text(t, row, "name", name);
        table_set_text(t, row, "type", type);
        table_set_i64(t, row, "bytes", bytes);
        table_set_i64(t, row, "threads", 2);
        table_set_f64(t, row, "value", value * (1 - 0.01 * r));
        table_set_text(t, row, "unit", unit);
        table_set_i64(t, row, "n", 20);
        table_set_f64(t, row, "stddev", value * 0.01);
    }
}

int64_t synthetic_fit(const struct tables *ts, const char *analysis, const char *name) {
    const struct table *t = tables_peek(ts, "fits");
    for (int64_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_text(t, i, "analysis"), analysis) &&
            !strcmp(table_text(t, i, "name"), name))
            return i;
    return -1;
}

double synthetic_value(const struct tables *ts, const char *analysis, const char *name) {
    int64_t row = synthetic_fit(ts, analysis, name);
    return row < 0 ? (double)NAN : table_real(tables_peek(ts, "fits"), row, "value");
}

const char *synthetic_verdict(const struct tables *ts, const char *analysis, const char *name) {
    int64_t row = synthetic_fit(ts, analysis, name);
    return row < 0 ? "absent" : table_text(tables_peek(ts, "fits"), row, "verdict");
}
