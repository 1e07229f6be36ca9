/* SPDX-License-Identifier: Apache-2.0 */
/* Change points of a series of runs by the energy statistic, and drift from its first runs. */
#include "results/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "results/stats.h"

double history_energy(const double *x, size_t n, size_t at) {
    double across = 0, before = 0, after = 0;
    const double m = (double)at, k = (double)(n - at);
    if (at < 2 || n - at < 2) return NAN;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const double d = fabs(x[i] - x[j]);
            if (j < at)
                before += d;
            else if (i >= at)
                after += d;
            else
                across += d;
        }
    return m * k / (m + k) *
           (2 / (m * k) * across - before / (m * (m - 1) / 2) - after / (k * (k - 1) / 2));
}

/* The best split of x and its statistic; all splits in O(n^2), by moving one value at a time. */
static double best_split(const double *x, size_t n, size_t *at) {
    double across = 0, before = 0, after = 0, best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) after += fabs(x[i] - x[j]);
    for (size_t moved = 0; moved + HISTORY_SEGMENT < n; moved++) {
        double left = 0, right = 0;
        for (size_t i = 0; i < moved; i++) left += fabs(x[i] - x[moved]);
        for (size_t i = moved + 1; i < n; i++) right += fabs(x[i] - x[moved]);
        before += left;
        after -= right;
        across += right - left;
        const double m = (double)(moved + 1), k = (double)(n - moved - 1);
        if (moved + 1 < HISTORY_SEGMENT) continue;
        const double q =
            m * k / (m + k) *
            (2 / (m * k) * across - before / (m * (m - 1) / 2) - after / (k * (k - 1) / 2));
        if (q > best) {
            best = q;
            *at = moved + 1;
        }
    }
    return best;
}

static void shuffle(double *x, size_t n, uint64_t key, uint64_t *draw) {
    for (size_t i = n; i > 1; i--) {
        const size_t j = random_below(key, (*draw)++, (uint32_t)i);
        const double v = x[i - 1];
        x[i - 1] = x[j];
        x[j] = v;
    }
}

/* How likely the best split of a random order is as good: stops where it is clear that p is above
   the limit. */
static double split_p(const double *x, size_t n, double found, uint64_t key) {
    double *y = must_alloc(n * sizeof *y);
    uint64_t draw = 0;
    int as_good = 0, done = 0;
    memcpy(y, x, n * sizeof *y);
    for (; done < HISTORY_SHUFFLES && as_good < 2; done++) {
        size_t at;
        shuffle(y, n, key, &draw);
        as_good += best_split(y, n, &at) >= found * (1 - 1e-12);
    }
    free(y);
    return (1.0 + as_good) / (1.0 + done);
}

static double median(const double *x, size_t n) {
    double *copy = must_alloc(n * sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    const double m = stats_quantile(copy, n, 0.5);
    free(copy);
    return m;
}

struct search {
    const double *y;
    uint64_t seed;
    struct history_step *steps;
    size_t n, most;
};

static void bisect(struct search *s, size_t from, size_t n) {
    size_t at = 0;
    if (n < 2 * HISTORY_SEGMENT || s->n == s->most) return;
    const double q = best_split(s->y + from, n, &at);
    if (!(q > 0)) return;
    const double p = split_p(s->y + from, n, q, random_key(s->seed, from * HISTORY_MOST + n));
    if (p > HISTORY_P) return;
    s->steps[s->n++] = (struct history_step){from + at, 0, p};
    bisect(s, from, at);
    bisect(s, from + at, n - at);
}

static int by_place(const void *a, const void *b) {
    const struct history_step *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Drops the smallest change below the limit, if there is one: its segments become one. */
static bool drop_smallest(struct search *s, size_t n, double least) {
    size_t worst = s->n;
    double smallest = least;
    for (size_t i = 0; i < s->n; i++) {
        const size_t from = i ? s->steps[i - 1].at : 0, at = s->steps[i].at;
        const size_t end = i + 1 < s->n ? s->steps[i + 1].at : n;
        s->steps[i].change = median(s->y + at, end - at) - median(s->y + from, at - from);
        if (fabs(s->steps[i].change) < smallest) {
            smallest = fabs(s->steps[i].change);
            worst = i;
        }
    }
    if (worst == s->n) return false;
    memmove(s->steps + worst, s->steps + worst + 1, (s->n - worst - 1) * sizeof *s->steps);
    s->n--;
    return true;
}

size_t history_steps(const double *y, size_t n, double least, uint64_t seed,
                     struct history_step *steps, size_t most) {
    const size_t skipped = n > HISTORY_MOST ? n - HISTORY_MOST : 0;
    struct search s = {y + skipped, seed, steps, 0, most};
    bisect(&s, 0, n - skipped);
    qsort(steps, s.n, sizeof *steps, by_place);
    while (drop_smallest(&s, n - skipped, least)) continue;
    for (size_t i = 0; i < s.n; i++) steps[i].at += skipped;
    return s.n;
}

/* How far the last runs' mean lies from the first ones'. */
static double ends_apart(const double *y, size_t n) {
    return fabs(stats_mean(y + n - HISTORY_SEGMENT, HISTORY_SEGMENT) -
                stats_mean(y, HISTORY_SEGMENT));
}

double history_drift(const double *y, size_t n, uint64_t seed, double *p) {
    uint64_t draw = 0;
    int as_large = 0;
    *p = NAN;
    if (n < 2 * HISTORY_SEGMENT) return NAN;
    double *copy = must_alloc(n * sizeof *copy);
    memcpy(copy, y, n * sizeof *copy);
    const double found = ends_apart(y, n);
    for (int i = 0; i < HISTORY_SHUFFLES; i++) {
        shuffle(copy, n, random_key(seed, n), &draw);
        as_large += ends_apart(copy, n) >= found * (1 - 1e-12);
    }
    free(copy);
    *p = (1.0 + as_large) / (1.0 + HISTORY_SHUFFLES);
    return median(y + n - HISTORY_SEGMENT, HISTORY_SEGMENT) - median(y, HISTORY_SEGMENT);
}
