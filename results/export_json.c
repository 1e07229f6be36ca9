/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON: everything but raw samples; a number that is not there is null, and a reason says
 * why. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/export.h"

static void number(struct text *out, double v) {
    char buf[40];
    text_puts(out, isfinite(v) ? format_exact(buf, sizeof buf, v) : "null");
}

static void value(struct text *out, const struct table *t, int64_t row, const struct column *c) {
    if (c->type == COL_TEXT) {
        text_json(out, table_text(t, row, c->name));
    } else if (c->type == COL_I64) {
        int64_t i = table_int(t, row, c->name);
        if (i == I64_NONE)
            text_puts(out, "null");
        else
            text_printf(out, "%" PRId64, i);
    } else {
        number(out, table_real(t, row, c->name));
    }
}

/* All columns from `first` on as members of an open object. */
static void members(struct text *out, const struct table *t, int64_t row, size_t first) {
    for (size_t k = first; k < table_columns(t); k++) {
        const struct column *c = table_column_at(t, k);
        if (k > first) text_puts(out, ", ");
        text_json(out, c->name);
        text_puts(out, ": ");
        value(out, t, row, c);
    }
}

static void array(struct text *out, const struct tables *ts, const char *name) {
    const struct table *t = tables_peek(ts, name);
    text_printf(out, ",\n  \"%s\": [", name);
    for (int64_t r = 0; r < table_rows(t); r++) {
        text_puts(out, r ? ",\n    {" : "\n    {");
        members(out, t, r, 0);
        text_puts(out, "}");
    }
    text_puts(out, table_rows(t) ? "\n  ]" : "]");
}

/* Why a metric's object has nulls. */
static void null_reason(struct text *out, const struct table *t, int64_t row) {
    struct text why = {0};
    int64_t n = table_int(t, row, "n");
    if (table_int(t, row, "n_rounds") == I64_NONE) { /* of an import */
        text_puts(out, ", \"null_reason\": \"its file gives averages only\"");
        return;
    }
    if (n == 1) text_puts(&why, "stddev: one value");
    if (n > 1 && isnan(table_real(t, row, "stddev"))) text_puts(&why, "stddev: exact");
    if (isnan(table_real(t, row, "ci_lo")))
        text_printf(&why, "%sci: %s", why.len ? "; " : "",
                    table_int(t, row, "n_rounds") < 2 ? "one round" : "exact");
    static const char *const quantiles[] = {"p90", "p95", "p99"};
    for (size_t i = 0; i < 3; i++)
        if (isnan(table_real(t, row, quantiles[i])))
            text_printf(&why, "%s%s: fewer than 10/(1-q) effective samples", why.len ? "; " : "",
                        quantiles[i]);
    if (isnan(table_real(t, row, "lag1")))
        text_printf(&why, "%slag1: no spread, too few, or no order in time", why.len ? "; " : "");
    if (isnan(table_real(t, row, "drift")))
        text_printf(&why, "%sdrift: fewer than 3 rounds", why.len ? "; " : "");
    if (why.len) {
        text_puts(out, ", \"null_reason\": ");
        text_json(out, why.data);
    }
    text_free(&why);
}

/* "metrics": an object by name; a point without numbers has an empty one, and its reason stands in
 * the point. */
static void metrics(struct text *out, const struct tables *ts, int64_t point, int64_t *at) {
    const struct table *t = tables_peek(ts, "summary");
    const int64_t *of = table_see_i64(t, "point");
    bool first = true;
    text_puts(out, ",\n     \"metrics\": {");
    while (*at < table_rows(t) && of[*at] < point) ++*at;
    for (; *at < table_rows(t) && of[*at] == point; ++*at) {
        text_puts(out, first ? "\n       " : ",\n       ");
        text_json(out, table_text(t, *at, "metric"));
        text_puts(out, ": {");
        members(out, t, *at, 2);
        null_reason(out, t, *at);
        text_puts(out, "}");
        first = false;
    }
    text_puts(out, first ? "}" : "\n     }");
}

static void points(struct text *out, const struct tables *ts) {
    const struct table *t = tables_peek(ts, "points");
    int64_t at = 0;
    text_puts(out, ",\n  \"points\": [");
    for (int64_t p = 0; p < table_rows(t); p++) {
        text_puts(out, p ? ",\n    {" : "\n    {");
        members(out, t, p, 0);
        metrics(out, ts, p, &at);
        text_puts(out, "}");
    }
    text_puts(out, table_rows(t) ? "\n  ]" : "]");
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    static const char *const arrays[] = {"protocol", "environment", "ceilings", "phases",
                                         "metrics",  "visits",      "fits",     "published"};
    const struct table *meta = tables_peek(ts, "meta");
    (void)as, (void)err;
    text_puts(out, "{\n  \"format\": 1,\n  \"meta\": {");
    for (int64_t r = 0, any = 0; r < table_rows(meta); r++) {
        const char *key = table_text(meta, r, "key");
        bool later = false; /* a key twice would be no strict JSON: the last one counts */
        for (int64_t s = r + 1; s < table_rows(meta); s++)
            later = later || !strcmp(table_text(meta, s, "key"), key);
        if (later) continue;
        text_puts(out, any ? ", " : "");
        text_json(out, key);
        text_puts(out, ": ");
        text_json(out, table_text(meta, r, "value"));
        any = 1;
    }
    text_puts(out, "}");
    points(out, ts);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) array(out, ts, arrays[i]);
    text_puts(out, "\n}\n");
    if (table_rows(tables_peek(ts, "samples")))
        text_puts(
            lost,
            "json leaves out samples, marks, warm-ups and memory events; the file has them\n");
    return 0;
}

const struct exporter exporter_json = {
    .name = "json",
    .brief = "rows with all their metrics, facts, ceilings, fits; strict, null with a reason",
    .write = write,
};
