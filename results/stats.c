/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of samples and rounds: two passes everywhere, O(n), NAN where there is no number. */
#include "results/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* The second pass takes back what rounding lost in the first: right to the last bits for 60e9 +-
 * 3e9 too. */
double stats_mean(const double *x, size_t n) {
    if (!n) return NAN;
    double sum = 0, rest = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) rest += x[i] - mean;
    return mean + rest / (double)n;
}

double stats_stddev(const double *x, size_t n) {
    if (n < 2) return NAN;
    double mean = stats_mean(x, n), squares = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = x[i] - mean;
        squares += d * d;
        rest += d;
    }
    double variance = (squares - rest * rest / (double)n) / (double)(n - 1);
    return sqrt(variance > 0 ? variance : 0);
}

static double middle3(double a, double b, double c) {
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Puts the k-th smallest at x[k], smaller ones before, larger ones behind (Hoare's selection,
   three-way partitions: equal values end it early). The pivot is a median of nine spread values:
   sorted and saw-tooth input stay O(n). */
static void select_kth(double *x, size_t n, size_t k) {
    size_t lo = 0, hi = n;
    while (hi - lo > 1) {
        size_t m = hi - lo, step = m / 9;
        const double *p = x + lo;
        double pivot = m < 32 ? p[m / 2]
                              : middle3(middle3(p[0], p[step], p[2 * step]),
                                        middle3(p[3 * step], p[4 * step], p[5 * step]),
                                        middle3(p[6 * step], p[7 * step], p[m - 1]));
        size_t less = lo, at = lo, more = hi;
        while (at < more) {
            double v = x[at];
            if (v < pivot) {
                x[at++] = x[less];
                x[less++] = v;
            } else if (v > pivot) {
                x[at] = x[--more];
                x[more] = v;
            } else {
                at++;
            }
        }
        if (k < less)
            hi = less;
        else if (k >= more)
            lo = more;
        else
            return;
    }
}

double stats_quantile(double *x, size_t n, double q) {
    if (!n || !(q >= 0 && q <= 1)) return NAN;
    double h = (double)(n - 1) * q;
    size_t k = (size_t)h;
    if (k >= n - 1) k = n - 1;
    select_kth(x, n, k);
    double low = x[k], share = h - (double)k;
    if (k + 1 >= n || share <= 0) return low;
    double high = x[k + 1];
    for (size_t i = k + 2; i < n; i++)
        if (x[i] < high) high = x[i];
    return low + share * (high - low);
}

bool stats_quantile_known(size_t n_effective, double q) {
    if (!n_effective) return false;
    if (q <= 0.5) return true;
    return (double)n_effective * (1 - q) >= 10 * (1 - 1e-9);
}

static double *copy_of(const double *x, size_t n) {
    double *copy = must_alloc(n * sizeof *copy);
    if (n) memcpy(copy, x, n * sizeof *copy);
    return copy;
}

double stats_mad(const double *x, size_t n) {
    if (!n) return NAN;
    double *copy = copy_of(x, n), median = stats_quantile(copy, n, 0.5);
    for (size_t i = 0; i < n; i++) copy[i] = fabs(x[i] - median);
    double mad = stats_quantile(copy, n, 0.5);
    free(copy);
    return mad;
}

double stats_lag1(const double *x, size_t n) {
    if (n < 3) return NAN;
    double mean = stats_mean(x, n), squares = 0, products = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
        if (i) products += (x[i] - mean) * (x[i - 1] - mean);
    }
    return squares > 0 ? products / squares : NAN;
}

double stats_slope(const double *x, const double *y, size_t n) {
    if (n < 2) return NAN;
    double mx = stats_mean(x, n), my = stats_mean(y, n), xx = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xx > 0 ? xy / xx : NAN;
}

/* ---- Student's t */

/* ln(Gamma(a + 1/2) / Gamma(a)); for large a by its asymptotic series (DLMF 5.11.13), since a
   difference of two lgamma loses digits there. */
static double ln_gamma_half_ratio(double a) {
    if (a < 40) {
        int sign;
        return lgamma_r(a + 0.5, &sign) - lgamma_r(a, &sign);
    }
    double r = 1 / a, r2 = r * r;
    return 0.5 * log(a) +
           r * (-1.0 / 8 + r2 * (1.0 / 192 + r2 * (-1.0 / 640 + r2 * (17.0 / 14336))));
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated forwards as
 * Lentz does. */
static double beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < 100000; m++) {
        double step = 1;
        for (int odd = 0; odd < 2; odd++) {
            double k = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                           : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + k * d;
            c = 1 + k / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            step = c * d;
            f *= step;
        }
        if (fabs(step - 1) < 1e-16) break;
    }
    return f;
}

/* P(T > t), t >= 0: half of I_x(df/2, 1/2) at x = df/(df + t^2). */
static double t_tail(double t, double df) {
    double a = df / 2, b = 0.5, y = t * t / (df + t * t), x = df / (df + t * t);
    if (t <= 0) return 0.5;
    /* ln of x^a y^b / B(a, b), with B(a, 1/2) = Gamma(a) sqrt(pi) / Gamma(a + 1/2) */
    double ln = a * -log1p(t * t / df) + b * log(y) + ln_gamma_half_ratio(a) - 0.5 * log(M_PI);
    if (x < (a + 1) / (a + b + 2)) return 0.5 * exp(ln) * beta_fraction(a, b, x) / a;
    return 0.5 * (1 - exp(ln) * beta_fraction(b, a, y) / b);
}

static double t_density(double t, double df) {
    double ln = ln_gamma_half_ratio(df / 2) - 0.5 * log(df * M_PI);
    return exp(ln - (df + 1) / 2 * log1p(t * t / df));
}

double stats_t_quantile(double p, double df) {
    if (!(p > 0 && p < 1) || !(df >= 1)) return NAN;
    if (p < 0.5) return -stats_t_quantile(1 - p, df);
    double tail = 1 - p, lo = 0, hi = 1;
    if (tail >= 0.5) return 0;
    while (t_tail(hi, df) > tail && hi < 1e300) {
        lo = hi;
        hi *= 2;
    }
    /* Newton within the bracket; where a step leaves it, halve. */
    double t = lo + (hi - lo) / 2;
    for (int i = 0; i < 200 && hi - lo > 1e-15 * hi; i++) {
        double excess = t_tail(t, df) - tail;
        if (excess > 0)
            lo = t;
        else
            hi = t;
        double next = t + excess / t_density(t, df);
        if (!(next > lo && next < hi)) next = lo + (hi - lo) / 2;
        if (fabs(next - t) <= 1e-15 * t) return next;
        t = next;
    }
    return t;
}

double stats_t95(double df) { return stats_t_quantile(0.975, df); }

double stats_beta(double x, double a, double b) {
    if (!(x >= 0 && x <= 1) || !(a > 0) || !(b > 0)) return NAN;
    if (x <= 0 || x >= 1) return x;
    int sign;
    const double ln = a * log(x) + b * log1p(-x) + lgamma_r(a + b, &sign) - lgamma_r(a, &sign) -
                      lgamma_r(b, &sign);
    if (x < (a + 1) / (a + b + 2)) return exp(ln) * beta_fraction(a, b, x) / a;
    return 1 - exp(ln) * beta_fraction(b, a, 1 - x) / b;
}

/* P(F > f). */
static double f_tail(double f, double d1, double d2) {
    return stats_beta(d2 / (d2 + d1 * f), d2 / 2, d1 / 2);
}

double stats_f95(double d1, double d2) {
    if (!(d1 >= 1) || !(d2 >= 1)) return NAN;
    double lo = 0, hi = 1;
    while (f_tail(hi, d1, d2) > 0.05 && hi < 1e300) {
        lo = hi;
        hi *= 2;
    }
    for (int i = 0; i < 200 && hi - lo > 1e-14 * hi; i++) {
        const double f = lo + (hi - lo) / 2;
        if (f_tail(f, d1, d2) > 0.05)
            lo = f;
        else
            hi = f;
    }
    return lo + (hi - lo) / 2;
}

void stats_t_interval(const double *x, size_t n, double *lo, double *hi) {
    *lo = *hi = NAN;
    if (n < 2) return;
    double mean = stats_mean(x, n);
    double half = stats_t95((double)(n - 1)) * stats_stddev(x, n) / sqrt((double)n);
    *lo = mean - half;
    *hi = mean + half;
}

/* ---- within a visit */

/* Means of batches of equal length; returns how many (at most 40), the rest of less than a batch is
 * left out. */
static size_t batch_means(const double *x, size_t n, double mean[40]) {
    size_t length = 1;
    while (n / length > 40) length *= 2;
    size_t batches = n / length;
    for (size_t b = 0; b < batches; b++) mean[b] = stats_mean(x + b * length, length);
    return batches;
}

double stats_batch_means(const double *x, size_t n) {
    if (n < 20) return NAN;
    double batch[40];
    size_t m = batch_means(x, n, batch);
    double mean = stats_mean(x, n);
    if (mean == 0) return NAN;
    double half = stats_t95((double)(m - 1)) * stats_stddev(batch, m) / sqrt((double)m);
    return half / fabs(mean);
}

/* The spread of batches is taken about the mean of their own half: a drift must not excuse itself.
 */
bool stats_steady(const double *x, size_t n, double *difference) {
    if (difference) *difference = NAN;
    if (n < 4) return false;
    size_t half = n / 2;
    double *copy = copy_of(x, n);
    double first = stats_quantile(copy, half, 0.5);
    double second = stats_quantile(copy + (n - half), half, 0.5);
    free(copy);
    double batch[40];
    size_t m = batch_means(x, n, batch);
    double a = stats_stddev(batch, m / 2), b = stats_stddev(batch + m / 2, m - m / 2);
    double error = sqrt((a * a + b * b) / 2 / (double)m), level = (fabs(first) + fabs(second)) / 2;
    double moved = level > 0 ? (second - first) / level : 0;
    if (difference) *difference = moved;
    return fabs(moved) <= fmax(0.02, level > 0 ? 3 * 2 * error / level : 0);
}

void stats_outliers(const double *x, size_t n, double tick, int64_t *labels) {
    if (!n) return;
    double *copy = copy_of(x, n);
    double q1 = stats_quantile(copy, n, 0.25), q3 = stats_quantile(copy, n, 0.75);
    free(copy);
    double reach = fmax(1.5 * (q3 - q1), 3 * tick);
    for (size_t i = 0; i < n; i++)
        if (x[i] < q1 - reach || x[i] > q3 + reach) labels[i] |= 1;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median absolute deviation of sorted values: the two sides of the median are merged, no second
 * sort. */
static double sorted_mad(const double *x, size_t n) {
    double median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2, d = 0, before = 0;
    size_t right = n / 2, left = n / 2; /* next candidates: x[right], x[left - 1] */
    for (size_t taken = 0; taken <= n / 2; taken++) {
        before = d;
        double r = right < n ? x[right] - median : INFINITY;
        double l = left > 0 ? median - x[left - 1] : INFINITY;
        if (r <= l) {
            d = r;
            right++;
        } else {
            d = l;
            left--;
        }
    }
    return n % 2 ? d : (before + d) / 2;
}

bool stats_bimodal(const double *x, size_t n) {
    enum {
        LEAST = 10,
        MOST = 1 << 15
    }; /* more are thinned out evenly: sorting must not cost more than O(n) */
    if (n < LEAST) return false;
    size_t stride = (n + MOST - 1) / MOST, m = n / stride;
    double *s = must_alloc(m * sizeof *s);
    for (size_t i = 0; i < m; i++) s[i] = x[i * stride];
    qsort(s, m, sizeof *s, by_value);
    size_t margin = (m + 9) / 10, cut = 0;
    double gap = 0;
    for (size_t i = margin; i + margin <= m; i++)
        if (s[i] - s[i - 1] > gap) {
            gap = s[i] - s[i - 1];
            cut = i;
        }
    /* Modes closer than 2 % are clock ticks or nobody's concern. */
    bool two = cut && gap > 0.02 * fabs(s[m / 2]) &&
               gap > 4 * fmax(sorted_mad(s, cut), sorted_mad(s + cut, m - cut));
    free(s);
    return two;
}
