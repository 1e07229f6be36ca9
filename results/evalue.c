/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence, intervals and power of the always-valid t test, and exact bounds of rates. */
#include "results/evalue.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"
#include "results/stats.h"

double evalue_quadruple(double a1, double b1, double b2, double a2) {
    return 0.5 * (log(b1) + log(b2) - log(a1) - log(a2));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many fall at each end; the margin keeps 0.2 * 5 from being 0. */
static size_t cut_of(size_t n, double share) { return (size_t)(share * (double)n + 1e-9); }

double evalue_trimmed_mean(double *x, size_t n, double share) {
    if (!n) return NAN;
    size_t cut = cut_of(n, share);
    if (cut) qsort(x, n, sizeof *x, by_value);
    return stats_mean(x + cut, n - 2 * cut);
}

double evalue_trimmed_error(double *x, size_t n, double share) {
    size_t cut = cut_of(n, share);
    if (n < 2 || n - 2 * cut < 2) return NAN;
    qsort(x, n, sizeof *x, by_value);
    double *w = must_alloc(n * sizeof *w);
    for (size_t i = 0; i < n; i++) w[i] = x[i < cut ? cut : i >= n - cut ? n - cut - 1 : i];
    double s = stats_stddev(w, n);
    free(w);
    return s / ((1 - 2 * (double)cut / (double)n) * sqrt((double)n));
}

struct evalue evalue_of(const double *y, size_t n) {
    return (struct evalue){n, stats_mean(y, n), stats_stddev(y, n)};
}

double evalue_t(const struct evalue *e, double theta) {
    if (e->n < 2) return NAN;
    double d = e->mean - theta;
    if (e->s > 0) return d / (e->s / sqrt((double)e->n));
    return d > 0 ? INFINITY : d < 0 ? -INFINITY : 0;
}

/* ln E of n rounds at t; t may be infinite. */
static double ln_of_t(size_t n, double t) {
    double m = (double)n, wide = 1 + m * EVALUE_G, u = t * t / (m - 1);
    double ratio = u > 1e17 ? log(wide) : log1p(u) - log1p(u / wide);
    return -0.5 * log(wide) + m / 2 * ratio;
}

double evalue_ln(const struct evalue *e, double theta) {
    return e->n < 2 ? NAN : ln_of_t(e->n, evalue_t(e, theta));
}

double evalue_ln_bound(double alpha, int64_t m) { return log((double)m / (2 * alpha)); }

double evalue_critical_t(size_t n, double ln_bound) {
    if (n < 2) return INFINITY;
    double m = (double)n, wide = 1 + m * EVALUE_G;
    double c = exp((2 * ln_bound + log(wide)) / m);
    return c >= wide ? INFINITY : sqrt((m - 1) * (c - 1) / (1 - c / wide));
}

void evalue_interval(const struct evalue *e, double ln_bound, double *lo, double *hi) {
    double t = evalue_critical_t(e->n, ln_bound);
    double half = isinf(t) ? INFINITY : t * e->s / sqrt((double)e->n);
    *lo = e->n ? e->mean - half : -INFINITY;
    *hi = e->n ? e->mean + half : INFINITY;
}

size_t evalue_least_rounds(double ln_bound) {
    size_t n = EVALUE_LEAST;
    while (isinf(evalue_critical_t(n, ln_bound))) n++;
    return n;
}

/* P(T > t), t > 0, of a noncentral t: T = (Z + shift) / W with W^2 = chi^2_nu / nu; Simpson's rule
   over W, whose density beyond 12 standard deviations is nothing. */
static double noncentral_tail(double t, double nu, double shift) {
    enum { STEPS = 800 };
    int sign;
    const double from = fmax(0, 1 - 12 / sqrt(2 * nu)), to = 1 + 12 / sqrt(2 * nu);
    const double h = (to - from) / STEPS;
    const double scale = log(2.0) + nu / 2 * log(nu / 2) - lgamma_r(nu / 2, &sign);
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double w = from + h * i, weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        if (w <= 0) continue; /* density 0: nu > 1 */
        sum += weight * exp(scale + (nu - 1) * log(w) - nu * w * w / 2) * 0.5 *
               erfc((t * w - shift) / M_SQRT2);
    }
    return sum * h / 3;
}

double evalue_detectable(size_t n, double ln_bound, double power) {
    const double t = evalue_critical_t(n, ln_bound), root = sqrt((double)n);
    double lo = 0, hi = 1;
    if (isinf(t)) return INFINITY;
    while (noncentral_tail(t, (double)(n - 1), hi * root) < power) {
        lo = hi;
        hi *= 2;
    }
    for (int i = 0; i < 100 && hi - lo > 1e-10 * hi; i++) {
        const double f = lo + (hi - lo) / 2;
        if (noncentral_tail(t, (double)(n - 1), f * root) < power)
            lo = f;
        else
            hi = f;
    }
    return lo + (hi - lo) / 2;
}

/* The factor falls with n: halving finds the least. */
size_t evalue_rounds_for(double effect, double ln_bound, double power, size_t most) {
    size_t lo = evalue_least_rounds(ln_bound), hi = most;
    if (hi < lo || !(effect >= evalue_detectable(hi, ln_bound, power))) return 0;
    while (lo < hi) {
        size_t n = lo + (hi - lo) / 2;
        if (effect >= evalue_detectable(n, ln_bound, power))
            hi = n;
        else
            lo = n + 1;
    }
    return lo;
}

static bool reaches(const struct evalue *e, size_t n, double theta, double ln_bound) {
    const struct evalue later = {n, e->mean, e->s};
    return evalue_ln(&later, theta) >= ln_bound;
}

/* With mean and s as they are, evidence below the bound falls for some rounds at most and then only
 * rises: halving finds where it gets there. */
size_t evalue_rounds_until(const struct evalue *e, double theta, int side, double ln_bound,
                           size_t most) {
    size_t lo = e->n < EVALUE_LEAST ? EVALUE_LEAST : e->n, hi = lo;
    if (lo > most || !((e->mean - theta) * side > 0)) return 0;
    while (!reaches(e, hi, theta, ln_bound)) {
        if (hi == most) return 0;
        lo = hi + 1;
        hi = hi < most / 2 ? 2 * hi : most;
    }
    while (lo < hi) {
        const size_t n = lo + (hi - lo) / 2;
        if (reaches(e, n, theta, ln_bound))
            hi = n;
        else
            lo = n + 1;
    }
    return hi;
}

double evalue_binomial_upper(int64_t k, int64_t n, double p) {
    if (n < 0 || !(p >= 0 && p <= 1)) return NAN;
    if (k <= 0) return 1;
    if (k > n) return 0;
    return stats_beta(p, (double)k, (double)(n - k + 1)); /* DLMF 8.17.5 */
}

double evalue_binomial_lower(int64_t k, int64_t n, double p) {
    if (n < 0 || !(p >= 0 && p <= 1)) return NAN;
    if (k < 0) return 0;
    if (k >= n) return 1;
    return stats_beta(1 - p, (double)(n - k), (double)(k + 1));
}

/* The p at which a tail, rising or falling in p, is `chance`. */
static double rate_at(double (*tail)(int64_t, int64_t, double), int64_t k, int64_t n, double chance,
                      bool rising) {
    double lo = 0, hi = 1;
    for (int i = 0; i < 1100 && hi - lo > 1e-15 * hi; i++) {
        const double p = lo + (hi - lo) / 2;
        if ((tail(k, n, p) < chance) == rising)
            lo = p;
        else
            hi = p;
    }
    return lo + (hi - lo) / 2;
}

void evalue_clopper_pearson(int64_t k, int64_t n, double level, double *lo, double *hi) {
    *lo = *hi = NAN;
    if (n <= 0 || k < 0 || k > n) return;
    const double chance = (1 - level) / 2;
    *lo = k == 0 ? 0 : rate_at(evalue_binomial_upper, k, n, chance, true);
    *hi = k == n ? 1 : rate_at(evalue_binomial_lower, k, n, chance, false);
}

void evalue_prediction(const double *x, size_t n, double level, double *lo, double *hi) {
    *lo = *hi = NAN;
    if (n < 2) return;
    const double mean = stats_mean(x, n);
    const double half = stats_t_quantile((1 + level) / 2, (double)(n - 1)) * stats_stddev(x, n) *
                        sqrt(1 + 1 / (double)n);
    *lo = mean - half;
    *hi = mean + half;
}

/* Whether a row, seen after each round of one draw, is called slower: signs[i] is round i's. */
static bool cries(const double *y, size_t n, size_t start, const double *signs, size_t limit,
                  double theta, double detect, double ln_bound) {
    double sum = 0, squares = 0; /* of y - theta, as large as the spread: one pass loses nothing */
    size_t taken = 0;
    for (size_t i = 0; i < limit; i++) {
        const double v = y[(start + i) % n] * signs[i] - theta;
        if (isnan(v)) continue;
        sum += v;
        squares += v * v;
        if (++taken < EVALUE_LEAST) continue;
        const double m = (double)taken, mean = sum / m;
        const double variance = fmax(0, (squares - m * mean * mean) / (m - 1));
        const struct evalue e = {taken, theta + mean, sqrt(variance)};
        if (mean > 0 && evalue_ln(&e, theta) >= ln_bound) return true;
        if (e.mean < detect && evalue_ln(&e, detect) >= log(EVALUE_PASS)) return false;
    }
    return false;
}

int64_t evalue_false_alarms(const double *y, size_t rows, size_t n, double theta, double detect,
                            double ln_bound, size_t limit, int64_t draws, uint64_t seed,
                            int64_t *per_row) {
    const uint64_t key = random_key(seed, 0x5a6);
    double *signs = must_alloc((limit + 1) * sizeof *signs);
    int64_t alarms = 0;
    uint64_t at = 0;
    for (size_t r = 0; per_row && r < rows; r++) per_row[r] = 0;
    for (int64_t d = 0; d < draws && n && n <= UINT32_MAX; d++) {
        const size_t start = random_below(key, at++, (uint32_t)n);
        bool any = false;
        for (size_t i = 0; i < limit; i++) signs[i] = random_at(key, at++) >> 63 ? -1 : 1;
        for (size_t r = 0; r < rows; r++) {
            if (!cries(y + r * n, n, start, signs, limit, theta, detect, ln_bound)) continue;
            any = true;
            if (per_row) per_row[r]++;
        }
        alarms += any;
    }
    free(signs);
    return alarms;
}
