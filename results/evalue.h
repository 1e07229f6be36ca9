/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of the gate: pure functions of the logarithms of ratios that rounds gave. Whoever
 * looks after every round may stop at any: the test stays valid (measurement.md section 4). */
#ifndef RESULTS_EVALUE_H
#define RESULTS_EVALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVALUE_G = 10,    /* variance of the prior of the effect, in units of the rounds' variance */
    EVALUE_LEAST = 4, /* rounds before the first look */
    EVALUE_PASS = 100 /* evidence against `detect` that a pass needs */
};

/* The effect of one quadruple ABBA (or BAAB) of times: ln(b/a), with both orders in it:
   1/2 (ln b1 + ln b2 - ln a1 - ln a2). A drift that is linear over the four turns cancels
   (Kalibera & Jones 2013 on levels of repetition; Bulej et al. 2020 on interleaving). */
double evalue_quadruple(double a1, double b1, double b2, double a2);

/* Mean of what is left when floor(share n) values are cut from each end; NAN at n = 0. The gate
   takes share = 0.2. Reorders x. */
double evalue_trimmed_mean(double *x, size_t n, double share);
/* Standard error of the trimmed mean by the Winsorised variance (Tukey & McLaughlin 1963); NAN at
   n < 2 or where fewer than two values are left. Reorders x. */
double evalue_trimmed_error(double *x, size_t n, double share);

struct evalue { /* the y of n rounds: their number, mean and standard deviation (n - 1) */
    size_t n;
    double mean, s;
};
struct evalue evalue_of(const double *y, size_t n);

/* t = (mean - theta) / (s / sqrt(n)); +-INFINITY at s = 0 beside theta, 0 on it; NAN at n < 2. */
double evalue_t(const struct evalue *, double theta);
/* ln E(theta): the evidence against 'the true mean of y is theta', whatever the variance. The
   mixture of t likelihood ratios over effects N(0, g s^2) with nu = n - 1:
     -1/2 ln(1 + n g) + n/2 [ln(1 + t^2/nu) - ln(1 + t^2/(nu (1 + n g)))]
   (Lai 1976; Wang & Ramdas 2023, the t mixture). With theta true, the chance that E ever reaches B
   is at most 1/B, over all n together. NAN at n < 2. */
double evalue_ln(const struct evalue *, double theta);

/* ln of the bound that a row's evidence must reach: ln(m / (2 alpha)) for m rows together, so that
   each side has alpha / m. */
double evalue_ln_bound(double alpha, int64_t m);
/* |t| from which on E reaches the bound at n rounds: with C = (bound^2 (1 + n g))^(1/n),
   t_c^2 = nu (C - 1) / (1 - C/(1 + n g)); INFINITY where C >= 1 + n g: no data can reach it. */
double evalue_critical_t(size_t n, double ln_bound);
/* The always-valid interval of the true mean: mean -+ t_c s / sqrt(n); infinite where t_c is. It
   holds at every n together with probability 1 - 1/bound. */
void evalue_interval(const struct evalue *, double ln_bound, double *lo, double *hi);
/* Fewest rounds at which the bound can be reached at all. */
size_t evalue_least_rounds(double ln_bound);

/* f: a true effect of theta + f sigma is told from theta with this power at n rounds, sigma being
   the rounds' standard deviation. P(T > t_c) = power for a noncentral t with nu = n - 1 and
   noncentrality f sqrt(n); looks at earlier rounds only add to the power. INFINITY where t_c is. */
double evalue_detectable(size_t n, double ln_bound, double power);
/* Fewest rounds (to `most`) that tell `effect` (beyond theta, over sigma) with this power; 0: more.
 */
size_t evalue_rounds_for(double effect, double ln_bound, double power, size_t most);
/* Fewest rounds in all at which, mean and s staying what they are, the evidence against theta on
   that side (+1: the mean is above it) reaches the bound; 0: not by `most`. */
size_t evalue_rounds_until(const struct evalue *, double theta, int side, double ln_bound,
                           size_t most);

/* P(X >= k) and P(X <= k) of a binomial X. */
double evalue_binomial_upper(int64_t k, int64_t n, double p);
double evalue_binomial_lower(int64_t k, int64_t n, double p);
/* Clopper & Pearson 1934: the bounds of the rate of k events in n at this two-sided level (0.95),
   by quantiles of the beta distribution. */
void evalue_clopper_pearson(int64_t k, int64_t n, double level, double *lo, double *hi);
/* Where one further value will lie: mean -+ t_(1+level)/2 s sqrt(1 + 1/n), nu = n - 1; NAN at n
 * < 2.
 */
void evalue_prediction(const double *x, size_t n, double level, double *lo, double *hi);

/* How often a gate of these rows would cry wolf: y holds n rounds of `rows` rows each (row by row:
   y[row * n + round]) of a program against itself. Each draw takes the rounds in their order from a
   random one on (cyclic, `limit` of them), swaps the labels of each round at random (all rows of it
   together: their workers were swapped), and looks after every round from EVALUE_LEAST on. Counts
   the draws in which some row was called slower beyond theta before it passed (evidence EVALUE_PASS
   against `detect`, both logarithms), and in per_row (rows; NULL: not wanted) those of each row.
   NAN counts as a round that the row did not take part in. */
int64_t evalue_false_alarms(const double *y, size_t rows, size_t n, double theta, double detect,
                            double ln_bound, size_t limit, int64_t draws, uint64_t seed,
                            int64_t *per_row);

#endif
