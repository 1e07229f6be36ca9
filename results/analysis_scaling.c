/* SPDX-License-Identifier: Apache-2.0 */
/* Exponents: how a metric grows with a swept key, over the range where a power law holds. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/fit.h"
#include "results/rows.h"
#include "results/stats.h"

struct scaling_params {
    const char *x, *y, *by;
    double bend;
    int64_t least;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)

/* Logarithms of one group: lx (n); ly (n, n_rounds), NAN where a round has none; the last column is
 * the mean. */
struct curve {
    int32_t n;
    int64_t n_rounds;
    double *lx, *ly, *mean;
    double *a, *b; /* scratch (n) */
};

static size_t points_from(const struct curve *c, int32_t first, int64_t round) {
    size_t n = 0;
    for (int32_t i = first; i < c->n; i++) {
        double v = round < 0 ? c->mean[i] : c->ly[i * c->n_rounds + round];
        if (!isfinite(v)) continue;
        c->a[n] = c->lx[i];
        c->b[n++] = v;
    }
    return n;
}

/* How far the local exponent moves from end to end of the range that begins at `first`, and whether
   the rounds agree that it moves at all. */
static bool bends(const struct curve *c, int32_t first, double limit, double *scratch) {
    size_t rounds = 0;
    double span = c->lx[c->n - 1] - c->lx[first], lo = (double)NAN, hi = (double)NAN;
    size_t n = points_from(c, first, -1);
    double moved = 2 * fit_bend(c->a, c->b, n) * span;
    if (!(fabs(moved) > limit)) return false;
    for (int64_t r = 0; r < c->n_rounds; r++) {
        n = points_from(c, first, r);
        double v = fit_bend(c->a, c->b, n);
        if (isfinite(v)) scratch[rounds++] = v;
    }
    if (rounds < 2) return true; /* one round knows no noise: what can be seen counts */
    stats_t_interval(scratch, rounds, &lo, &hi);
    return lo > 0 || hi < 0;
}

static void curve_read(const struct tables *ts, const struct rows_group *g, const char *y,
                       const struct rounds *r, struct curve *c, struct arena *arena) {
    size_t n = (size_t)g->n, rounds = (size_t)r->n_rounds;
    *c = (struct curve){0, r->n_rounds, NULL, NULL, NULL, NULL, NULL};
    c->lx = arena_alloc(arena, n * sizeof(double));
    c->ly = arena_alloc(arena, n * (rounds + 1) * sizeof(double));
    c->mean = arena_alloc(arena, n * sizeof(double));
    c->a = arena_alloc(arena, n * sizeof(double));
    c->b = arena_alloc(arena, n * sizeof(double));
    for (int32_t i = 0; i < g->n; i++) {
        double sum = 0, count = 0;
        if (!(g->x[i] > 0)) continue; /* a power law has no zero */
        for (int64_t k = 0; k < r->n_rounds; k++) {
            double v = log(rounds_get(r, g->point[i], r->rounds[k]));
            c->ly[c->n * c->n_rounds + k] = isfinite(v) ? v : (double)NAN;
            if (isfinite(v)) sum += v, count++;
        }
        /* Exact metrics are not in visits: the row's own number is their only round. */
        double v = count > 0 ? sum / count : log(rows_metric(ts, g->point[i], y));
        if (!isfinite(v)) continue;
        c->lx[c->n] = log(g->x[i]);
        c->mean[c->n++] = v;
    }
}

static void run_group(struct tables *ts, const char *only_case, const void *params,
                      const struct rows_group *g, const struct rounds *r, const char *left_out) {
    const struct scaling_params *p = params;
    struct arena *arena = arena_create();
    struct text t = {0};
    char name[160], prefactor[170];
    double a, b, lo = (double)NAN, hi = (double)NAN;
    snprintf(name, sizeof name, "exponent%s%s", *g->name ? " " : "", g->name);
    struct finding f = {"scaling", only_case, name, NAN, NAN, NAN, "", NULL};
    struct curve c;
    if ((double)g->n * (double)r->n_rounds > 5e7) {
        analysis_found(ts, &f, "no exponent: too many visits");
        goto out;
    }
    curve_read(ts, g, p->y, r, &c, arena);
    if (c.n < p->least) {
        analysis_found(
            ts, &f, "no exponent: %d rows have %s and a positive %s, and it takes %lld%s%s", c.n,
            p->y, rows_short(p->x), (long long)p->least, *left_out ? "; left out: " : "", left_out);
        goto out;
    }
    double *each = arena_alloc(arena, (size_t)(c.n_rounds + 1) * sizeof *each);
    int32_t first = 0;
    while (c.n - first > p->least && bends(&c, first, p->bend, each)) first++;
    bool bent = bends(&c, first, p->bend, each);

    size_t rounds = 0, n = points_from(&c, first, -1);
    fit_line(c.a, c.b, n, &a, &b);
    f.value = b;
    double offset = a;
    for (int64_t k = 0; k < c.n_rounds; k++) {
        n = points_from(&c, first, k);
        if (n == (size_t)(c.n - first) && fit_line(c.a, c.b, n, &a, &b)) each[rounds++] = b;
    }
    if (rounds >= 2) stats_t_interval(each, rounds, &lo, &hi);
    f.lo = lo;
    f.hi = hi;
    double from = exp(c.lx[first]), to = exp(c.lx[c.n - 1]);
    text_printf(&t, "%s grows as %s^%s over %s \xe2\x80\xa6 %s", p->y, rows_short(p->x),
                NUM(f.value), NUM(from), NUM(to));
    if (first) text_printf(&t, " (%d of %d rows: below, it bends)", c.n - first, c.n);
    if (bent) text_puts(&t, "; it bends there too: the exponent is that of a chord");
    if (*left_out) text_printf(&t, "; left out: %s", left_out);
    analysis_found(ts, &f, "%s", t.data);
    /* The line itself, for plots: y = prefactor * x^exponent, where it holds. */
    snprintf(prefactor, sizeof prefactor, "prefactor%s%s", *g->name ? " " : "", g->name);
    struct finding line = {"scaling", only_case, prefactor,           exp(offset),
                           NAN,       NAN,       rows_unit(ts, p->y), NULL};
    analysis_found(ts, &line, "%s = prefactor * %s^exponent", p->y, rows_short(p->x));
    snprintf(prefactor, sizeof prefactor, "from%s%s", *g->name ? " " : "", g->name);
    line.value = from;
    line.unit = rows_short(p->x);
    analysis_found(ts, &line, "where the exponent begins to hold");
out:
    text_free(&t);
    arena_close(&arena);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct scaling_params *p = params;
    const struct finding none = {"scaling", only_case, "exponent", NAN, NAN, NAN, "", NULL};
    (void)err;
    analysis_groups(ts, &(struct analysis_axes){p->x, p->y, p->by}, &none, "no exponent", p,
                    run_group);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct scaling_params, x), NULL, 0, 0, NULL, "",
     "swept key, as workload.context"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct scaling_params, y), "time", 0, 0, NULL, "",
     "metric whose exponent is wanted"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct scaling_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"bend", NULL, OPT_REAL, 0, offsetof(struct scaling_params, bend), "0.15", 0, 10, NULL, "",
     "how far the local exponent may move from end to end of the stated range"},
    {"least", NULL, OPT_INT, 0, offsetof(struct scaling_params, least), "3", 2, 1000, NULL, "",
     "rows that the range keeps at least"},
    {0},
};

const struct analysis analysis_scaling = {
    .name = "scaling",
    .brief = "exponent of a metric against a swept key, over the range without a bend",
    .params = options,
    .params_size = sizeof(struct scaling_params),
    .run = run,
};
