/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporters to other tools' formats share. */
#include "results/foreign.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"
#include "results/stats.h"

enum { NAMES_MOST = 200 };

void foreign_open(struct foreign *f, const struct tables *ts, const char *format) {
    *f = (struct foreign){.ts = ts, .points = tables_peek(ts, "points"), .format = format};
    f->n_points = table_rows(f->points);
    summary_index_make(&f->x, (struct tables *)ts); /* it only reads; its other users write */
    f->first = must_alloc((size_t)(f->n_points + 1) * sizeof *f->first);
    f->n = must_alloc((size_t)(f->n_points + 1) * sizeof *f->n);
    const struct table *facts = tables_peek(ts, "protocol");
    int64_t rows = table_rows(facts), end;
    for (int64_t r = 0; r < rows; r = end) { /* facts of a point stand together */
        const char *scope = table_text(facts, r, "scope");
        int64_t point;
        for (end = r + 1; end < rows && !strcmp(table_text(facts, end, "scope"), scope);) end++;
        if (!parse_i64(scope, &point) || point < 0 || point >= f->n_points || f->n[point]) continue;
        f->first[point] = r;
        f->n[point] = end - r;
    }
}

int foreign_close(struct foreign *f, size_t rows, struct text *lost, struct err *err) {
    for (size_t i = 0; i < f->n_left; i++) {
        struct foreign_left *l = &f->left[i];
        text_printf(lost, "%s leaves out %" PRId64 " row%s %s: %s\n", f->format, l->n,
                    l->n == 1 ? "" : "s", l->why, l->names.data);
        text_free(&l->names);
    }
    series_free(&f->times);
    summary_index_free(&f->x);
    free(f->first);
    free(f->n);
    if (rows || !f->n_points) return 0;
    return err_set(err, ERR_INPUT, "no row of this result fits into %s", f->format);
}

/* Labels may hold anything; a sentence on a terminal may not. */
static void plain(struct text *out, const char *s) {
    for (; *s; s++) text_add(out, (unsigned char)*s < ' ' || *s == 127 ? " " : s, 1);
}

void foreign_name(const struct foreign *f, int64_t point, struct text *out) {
    const char *name = table_text(f->points, point, "case");
    const char *label = table_text(f->points, point, "label");
    plain(out, *name || *label ? name : table_text(f->points, point, "workload"));
    if (*name && *label) text_puts(out, " ");
    plain(out, label);
}

void foreign_leave(struct foreign *f, int64_t point, const char *why) {
    size_t i = 0;
    while (i < f->n_left && strcmp(f->left[i].why, why)) i++;
    if (i == sizeof f->left / sizeof *f->left) i--;
    if (i == f->n_left) f->left[f->n_left++].why = why;
    struct foreign_left *l = &f->left[i];
    if (l->names.len < NAMES_MOST) {
        if (l->n) text_puts(&l->names, ", ");
        foreign_name(f, point, &l->names);
        if (l->names.len >= NAMES_MOST) text_puts(&l->names, ", ...");
    }
    l->n++;
}

static const char *fact_at(const struct foreign *f, int64_t point, const char *key,
                           bool default_only) {
    const struct table *facts = tables_peek(f->ts, "protocol");
    for (int64_t r = f->first[point]; r < f->first[point] + f->n[point]; r++) {
        if (strcmp(table_text(facts, r, "key"), key)) continue;
        if (!default_only || !strcmp(table_text(facts, r, "origin"), "default"))
            return table_text(facts, r, "value");
    }
    return NULL;
}

/* Of the points of a long run only what differs from the defaults is kept. */
static bool abridged(const struct foreign *f, int64_t point) {
    const struct table *facts = tables_peek(f->ts, "protocol");
    for (int64_t r = f->first[point]; r < f->first[point] + f->n[point]; r++)
        if (!strcmp(table_text(facts, r, "origin"), "default")) return false;
    return true;
}

/* Then another point of the same workload says what the default is. */
const char *foreign_fact(const struct foreign *f, int64_t point, const char *key) {
    const char *value = fact_at(f, point, key, false);
    const char *workload = table_text(f->points, point, "workload");
    if (value || !strncmp(key, "test.", 5) || !abridged(f, point)) return value;
    for (int64_t p = 0; !value && p < point; p++)
        if (!strcmp(table_text(f->points, p, "workload"), workload))
            value = fact_at(f, p, key, true);
    return value;
}

int64_t foreign_int(const struct foreign *f, int64_t point, const char *key) {
    const char *value = foreign_fact(f, point, key);
    int64_t v;
    return value && parse_i64(value, &v) ? v : I64_NONE;
}

/* Why its state lets the row have no number in any format; NULL if it has. */
static const char *without_numbers(const struct foreign *f, int64_t point) {
    static const struct {
        const char *state, *why;
    } rows[] = {{"wrong", "with wrong output"},
                {"skipped", "never measured (skipped)"},
                {"oom", "out of memory (oom)"},
                {"timeout", "beyond the time limit (timeout)"},
                {"failed", "after a failure (failed)"}};
    const char *state = table_text(f->points, point, "state");
    if (rows_usable(f->ts, point)) return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(state, rows[i].state)) return rows[i].why;
    return "without a state";
}

static const char *known_tokens(const struct foreign_test *t) {
    const int64_t most = (int64_t)1 << 40;
    if (t->n_prompt < 0 || t->n_gen < 0 || t->n_depth < 0 || t->batch < 1 || t->n_prompt > most ||
        t->n_gen > most || t->batch > most || t->n_prompt + t->n_gen < 1)
        return "whose tokens the file does not say";
    return NULL;
}

static const char *test_of(const struct foreign *f, int64_t point, struct foreign_test *t) {
    const char *workload = table_text(f->points, point, "workload");
    *t = (struct foreign_test){.batch = 1};
    if (!strcmp(workload, "llama-bench")) {
        t->n_prompt = foreign_int(f, point, "test.n_prompt");
        t->n_gen = foreign_int(f, point, "test.n_gen");
        t->n_depth = foreign_int(f, point, "test.n_depth");
        if (t->n_depth == I64_NONE) t->n_depth = 0; /* files before there was a depth */
        return known_tokens(t);
    }
    t->batch = foreign_int(f, point, "workload.batch");
    if (!strcmp(workload, "prefill")) {
        t->n_prompt = foreign_int(f, point, "workload.tokens");
    } else if (!strcmp(workload, "decode")) {
        t->n_gen = foreign_int(f, point, "workload.steps");
        t->n_depth = foreign_int(f, point, "workload.context");
    } else if (!strcmp(workload, "step")) {
        const char *split = foreign_fact(f, point, "workload.split");
        if (!split || strcmp(split, "whole")) return "with waits between the parts of a step";
        t->n_gen = 1;
        t->n_depth = foreign_int(f, point, "workload.context");
    } else if (!strcmp(workload, "generate")) {
        const char *mode = foreign_fact(f, point, "workload.mode");
        int64_t tokens = foreign_int(f, point, "workload.tokens");
        if (!mode || strcmp(mode, "cached")) t->odd = "with everything recomputed for each token";
        if (rows_flagged(f->ts, point, "ended_early")) t->odd = "with an early end token";
        t->n_prompt = foreign_int(f, point, "workload.prompt");
        t->n_gen = tokens == I64_NONE ? tokens : tokens - 1; /* the first comes with the prompt */
    } else {
        return "with no language model";
    }
    return known_tokens(t);
}

bool foreign_usable(struct foreign *f, int64_t point) {
    const char *why = without_numbers(f, point);
    if (why) foreign_leave(f, point, why);
    return !why;
}

bool foreign_test(struct foreign *f, int64_t point, struct foreign_test *t) {
    if (!foreign_usable(f, point)) return false;
    const char *why = test_of(f, point, t);
    if (why) foreign_leave(f, point, why);
    return !why;
}

bool foreign_ran(const struct foreign *f, int64_t point, const char *kind) {
    const char *ran = table_text(f->points, point, "effective");
    if (!*ran) ran = table_text(f->points, point, "device");
    size_t n = strcspn(ran, " ");
    return n == strlen(kind) && !strncmp(ran, kind, n);
}

size_t foreign_times(struct foreign *f, int64_t point) {
    series_times(&f->x, point, &f->times);
    return f->times.n;
}

bool foreign_requests(struct foreign *f, int64_t point, struct foreign_requests *r) {
    const struct table *samples = tables_peek(f->ts, "samples");
    struct foreign_test test;
    int64_t n;
    r->n = 0;
    if (!foreign_test(f, point, &test)) return false;
    const char *why = NULL;
    if (!test.n_prompt)
        why = "with no prompt";
    else if (!series_tokens(&f->x, point, r->tokens) || !r->tokens[TOKEN_E2E].n)
        why = "without times of tokens";
    else if (foreign_batched(f, point))
        why = "whose samples hold several executions";
    if (why) {
        foreign_leave(f, point, why);
        return false;
    }
    r->n = r->tokens[TOKEN_E2E].n;
    r->n_prompt = test.n_prompt;
    r->seconds = 0;
    r->failed = 0;
    foreign_times(f, point);
    for (size_t i = 0; i < f->times.n; i++) r->seconds += f->times.x[i] * 1e-9;
    const struct summary_visit *v = summary_visits(&f->x, point, &n);
    for (; n; n--, v++)
        for (int64_t i = v->first; v->counts && i < v->first + v->n; i++) {
            int64_t labels = table_int(samples, i, "labels");
            if (labels != I64_NONE && (labels & 8)) r->failed += test.batch;
        }
    return true;
}

void foreign_requests_free(struct foreign_requests *r) {
    for (int i = 0; i < N_TOKEN_METRICS; i++) series_free(&r->tokens[i]);
}

bool foreign_batched(const struct foreign *f, int64_t point) {
    const struct table *samples = tables_peek(f->ts, "samples");
    int64_t n;
    const struct summary_visit *v = summary_visits(&f->x, point, &n);
    for (; n; n--, v++)
        for (int64_t i = v->first; v->counts && i < v->first + v->n; i++)
            if (table_int(samples, i, "batch") > 1) return true;
    return false;
}

void foreign_number(struct text *out, double v) {
    char buf[40];
    text_puts(out, isfinite(v) ? format_exact(buf, sizeof buf, v) : "null");
}

void foreign_whole(struct text *out, int64_t v) {
    if (v == I64_NONE)
        text_puts(out, "null");
    else
        text_printf(out, "%" PRId64, v);
}

double foreign_quantile(double *x, size_t n, double q) {
    if (!n || !stats_quantile_known(n, fmax(q, 1 - q))) return (double)NAN;
    return stats_quantile(x, n, q);
}
