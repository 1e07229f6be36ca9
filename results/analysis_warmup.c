/* SPDX-License-Identifier: Apache-2.0 */
/* What the first executions of a worker cost over what it settles at, and how many must be
 * discarded before a mean stands still (seed E59, rule R05). */
#include "results/analysis.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/beginnings.h"
#include "results/rows.h"
#include "results/stats.h"

struct warmup_params {
    const char *where;
    struct ints discard;
    int64_t window, settled, inside;
    double tolerance;
    bool outlier;
};
struct share { /* over the level, mean of the visits, with its interval */
    double value, lo, hi;
    double ms, spread; /* means over the visits: ms, and deviation / mean within the window */
    int64_t n;         /* visits */
};

#define NUM(v) rows_number((char[32]){0}, v, 4)

/* Executions from ... from + n - 1 of each visit of a row over that visit's level. */
static struct share share_of(const struct beginning *b, int64_t visits, int64_t from, int64_t n) {
    struct share s = {NAN, NAN, NAN, 0, 0, 0};
    double *logs = must_alloc((size_t)(visits + 1) * sizeof *logs);
    for (int64_t i = 0; i < visits; i++) {
        const double level = beginning_level(&b[i]);
        if (b[i].n < from + n || !(level > 0)) continue;
        const double mean = stats_mean(b[i].ms + from, (size_t)n);
        if (!(mean > 0)) continue;
        s.ms += mean;
        if (n > 1) s.spread += stats_stddev(b[i].ms + from, (size_t)n) / mean;
        logs[s.n++] = log(mean / level);
    }
    if (s.n >= 2)
        rows_log_interval(logs, (size_t)s.n, &s.value, &s.lo, &s.hi);
    else if (s.n)
        s.value = exp(logs[0]);
    if (s.n) s.ms /= (double)s.n, s.spread /= (double)s.n;
    free(logs);
    return s;
}

/* The whole interval within 1 +- tolerance, or wholly outside. */
static const char *within(const struct share *s, double tolerance) {
    if (!isfinite(s->lo)) return "none";
    if (s->lo >= 1 - tolerance && s->hi <= 1 + tolerance) return "ok";
    return s->lo > 1 + tolerance || s->hi < 1 - tolerance ? "failed" : "none";
}

static const char *above(const struct share *s, double limit) {
    return !isfinite(s->lo) ? "none" : s->lo > limit ? "ok" : s->hi <= limit ? "failed" : "none";
}

static void found(struct tables *ts, const char *only_case, const char *label, const char *what,
                  const struct share *s, const char *verdict, const char *sentence) {
    struct text name = {0};
    text_printf(&name, "%s%s%s", label, *label ? ": " : "", what);
    const bool point = !(s->lo < s->hi);
    const struct finding f = {"warmup",
                              only_case,
                              name.data,
                              s->value,
                              point ? (double)NAN : s->lo,
                              point ? (double)NAN : s->hi,
                              "",
                              verdict};
    analysis_found(ts, &f, "%s", sentence);
    text_free(&name);
}

static void first_one(struct tables *ts, const char *only_case, const struct warmup_params *p,
                      const char *label, const struct beginning *b, int64_t visits) {
    const struct share s = share_of(b, visits, 0, 1);
    struct text t = {0};
    text_printf(&t, "%s ms, over what the worker settles at%s", NUM(s.ms),
                p->outlier ? "; expected: an outlier, >1" : "");
    found(ts, only_case, label, "first execution", &s, p->outlier ? above(&s, 1) : "none", t.data);
    text_free(&t);
}

static void after(struct tables *ts, const char *only_case, const struct warmup_params *p,
                  const char *label, const struct beginning *b, int64_t visits, int64_t discard) {
    const struct share s = share_of(b, visits, discard, p->window);
    const bool settled = discard == p->settled, inside = discard == p->inside;
    struct text t = {0}, what = {0};
    text_printf(&what, "after %lld discarded", (long long)discard);
    if (s.n) {
        text_printf(&t, "the next %lld: mean %s ms, deviation %s %%", (long long)p->window,
                    NUM(s.ms), NUM(100 * s.spread));
        if (settled) text_printf(&t, "; expected: settled within %s %%", NUM(100 * p->tolerance));
        if (inside) text_puts(&t, "; expected: one-off cost inside still");
    } else {
        text_printf(&t, "not computed: no visit has %" PRId64 " executions", discard + p->window);
    }
    found(ts, only_case, label, what.data, &s,
          settled  ? within(&s, p->tolerance)
          : inside ? above(&s, 1 + p->tolerance)
                   : "none",
          t.data);
    text_free(&t);
    text_free(&what);
}

/* What the loop itself discarded. */
static void loop_end(struct tables *ts, const char *only_case, const char *label,
                     const struct beginning *b, int64_t visits) {
    double sum = 0;
    int64_t least = INT64_MAX, most = 0, steady = 0;
    struct text name = {0};
    for (int64_t i = 0; i < visits; i++) {
        sum += (double)b[i].warmups;
        if (b[i].warmups < least) least = b[i].warmups;
        if (b[i].warmups > most) most = b[i].warmups;
        steady += b[i].steady;
    }
    text_printf(&name, "%s%sthe loop's own warm-up", label, *label ? ": " : "");
    const struct finding f = {"warmup", only_case,   name.data,   sum / (double)visits,
                              NAN,      (double)NAN, "execution", NULL};
    analysis_found(ts, &f, "%lld to %lld discarded; steady in %lld of %lld visits",
                   (long long)least, (long long)most, (long long)steady, (long long)visits);
    text_free(&name);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct warmup_params *p = params;
    const struct table *points = tables_peek(ts, "points");
    struct beginnings all;
    int64_t rows = 0;
    (void)err;
    beginnings_read(ts, &all);
    for (int64_t i = 0, end; i < all.n; i = end) {
        const int64_t point = all.items[i].point;
        for (end = i; end < all.n && all.items[end].point == point;) end++;
        if (*only_case && strcmp(only_case, table_text(points, point, "case"))) continue;
        if (!rows_match(ts, point, p->where)) continue;
        /* Before anything is added: tables of fits and points are different ones. */
        const char *label = table_text(points, point, "label");
        const struct beginning *b = all.items + i;
        rows++;
        first_one(ts, only_case, p, label, b, end - i);
        for (int32_t k = 0; k < p->discard.n; k++)
            after(ts, only_case, p, label, b, end - i, p->discard.v[k]);
        loop_end(ts, only_case, label, b, end - i);
    }
    if (!rows) {
        const struct finding f = {"warmup", only_case, "warm-up", NAN, NAN, NAN, "", NULL};
        analysis_found(ts, &f, "not computed: no row that meets the condition has samples");
    }
    beginnings_free(&all);
    return 0;
}

static const struct option options[] = {
    {"where", NULL, OPT_TEXT, 0, offsetof(struct warmup_params, where), "", 0, 0, NULL, "",
     "only rows that meet this condition"},
    {"discard", NULL, OPT_INTS, 0, offsetof(struct warmup_params, discard), "[0, 1, 2, 5, 10]", 0,
     10000, NULL, "executions", "after so many the mean of the next ones is looked at"},
    {"window", NULL, OPT_INT, 0, offsetof(struct warmup_params, window), "10", 2, 10000, NULL,
     "executions", "how many next ones"},
    {"outlier", NULL, OPT_FLAG, 0, offsetof(struct warmup_params, outlier), "false", 0, 0, NULL, "",
     "the first execution must take longer than the settled ones"},
    {"settled", NULL, OPT_INT, 0, offsetof(struct warmup_params, settled), "5", -1, 10000, NULL,
     "executions", "after so many discarded the mean must be settled; -1: no check"},
    {"inside", NULL, OPT_INT, 0, offsetof(struct warmup_params, inside), "-1", -1, 10000, NULL,
     "executions", "after so many the mean must still be above; -1: no check"},
    {"tolerance", NULL, OPT_REAL, 0, offsetof(struct warmup_params, tolerance), "0.05", 0, 10, NULL,
     "", "share of the level within which a mean is settled"},
    {0},
};

const struct analysis analysis_warmup = {
    .name = "warmup",
    .brief = "the first executions of a worker over what it settles at: how many to discard",
    .params = options,
    .params_size = sizeof(struct warmup_params),
    .run = run,
};
