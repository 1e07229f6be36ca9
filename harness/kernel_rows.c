/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/kernel_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/range.h"
#include "probes/common/kernel_trace.h"
#include "results/table.h"

enum { DEEPEST = 64 };

struct sweep { /* over the ranges, forward in time */
    const struct range_event **by_begin;
    size_t n, next;
    const struct range_event *open[DEEPEST];
    int depth;
};

static int by_begin(const void *a, const void *b) {
    const struct range_event *x = *(const struct range_event *const *)a,
                             *y = *(const struct range_event *const *)b;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->depth - y->depth; /* the outer one first */
}

/* The innermost range open at t_ns, which must not go back; "" if none. */
static const char *range_at(struct sweep *s, int64_t t_ns) {
    while (s->next < s->n && s->by_begin[s->next]->begin_ns <= t_ns) {
        const struct range_event *e = s->by_begin[s->next++];
        while (s->depth && s->open[s->depth - 1]->end_ns < e->begin_ns) s->depth--;
        if (s->depth < DEEPEST) s->open[s->depth++] = e;
    }
    while (s->depth && s->open[s->depth - 1]->end_ns < t_ns) s->depth--;
    return s->depth ? s->open[s->depth - 1]->name : "";
}

static int64_t row_of(struct table *t, int64_t first, int64_t visit, const char *range,
                      const struct kernel_event *k) {
    const int64_t graph = k->graph_node != 0;
    for (int64_t r = first; r < table_rows(t); r++) {
        if (table_int(t, r, "graph") == graph && !strcmp(table_text(t, r, "kernel"), k->name) &&
            !strcmp(table_text(t, r, "range"), range))
            return r;
    }
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", visit);
    table_set_text(t, row, "range", range);
    table_set_text(t, row, "kernel", k->name);
    table_set_i64(t, row, "graph", graph);
    table_set_i64(t, row, "n", 0);
    table_set_f64(t, row, "time", 0);
    table_set_f64(t, row, "min_time", INFINITY);
    table_set_f64(t, row, "max_time", 0);
    return row;
}

void kernel_rows(struct table *t, int64_t visit, const struct range_event *ranges, size_t n_ranges,
                 const struct kernel_event *kernels, size_t n) {
    struct sweep sweep = {.by_begin = must_alloc(sizeof *sweep.by_begin * (n_ranges + 1)),
                          .n = n_ranges};
    const int64_t first = table_rows(t);
    for (size_t i = 0; i < n_ranges; i++) sweep.by_begin[i] = &ranges[i];
    qsort(sweep.by_begin, n_ranges, sizeof *sweep.by_begin, by_begin);
    for (size_t i = 0; i < n; i++) {
        const struct kernel_event *k = &kernels[i];
        const char *range = k->launch_ns < 0 ? "" : range_at(&sweep, k->launch_ns);
        const int64_t row = row_of(t, first, visit, range, k);
        const double ns = (double)(k->end_ns - k->begin_ns);
        table_set_i64(t, row, "n", table_int(t, row, "n") + 1);
        table_set_f64(t, row, "time", table_real(t, row, "time") + ns);
        table_set_f64(t, row, "min_time", fmin(table_real(t, row, "min_time"), ns));
        table_set_f64(t, row, "max_time", fmax(table_real(t, row, "max_time"), ns));
    }
    free(sweep.by_begin);
}
