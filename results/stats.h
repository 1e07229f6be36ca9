/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of samples and rounds (measurement.md sections 1 and 3). All two-pass, NAN where there
 * is no number. */
#ifndef RESULTS_STATS_H
#define RESULTS_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

double stats_mean(const double *x, size_t n);
double stats_stddev(const double *x, size_t n);       /* n - 1; NAN at n < 2 */
double stats_quantile(double *x, size_t n, double q); /* type 7; reorders x (O(n)) */
bool stats_quantile_known(size_t n_effective,
                          double q);         /* q <= 0.5, or at least 10/(1-q) samples */
double stats_mad(const double *x, size_t n); /* median |x - median|, unscaled */
double stats_lag1(const double *x,
                  size_t n); /* autocorrelation at lag 1; NAN at n < 3 or no spread */
double stats_slope(const double *x, const double *y, size_t n); /* least squares */
double stats_t95(double df); /* two-sided 95 % quantile of Student's t; any df >= 1 */
double stats_t_quantile(double p, double df);
double stats_beta(double x, double a, double b); /* regularised incomplete beta I_x(a, b) */
double stats_f95(double d1, double d2);          /* 95 % quantile of F; any d1, d2 >= 1, else NAN */
/* Student t interval of the mean of n values; NAN bounds at n < 2. */
void stats_t_interval(const double *x, size_t n, double *lo, double *hi);
/* Relative half width of the 95 % interval of the mean of correlated samples by non-overlapping
   batch means (20 ... 40 batches, length doubling as n grows; Flegal & Jones 2010); NAN below 20
   samples. */
double stats_batch_means(const double *x, size_t n);
/* Steady (measurement.md section 1 item 6): medians of the two halves of the window within max(2 %,
 * 3 batch SE). */
bool stats_steady(const double *x, size_t n, double *difference);
/* Labels by max(1.5 IQR, 3 ticks) beyond the quartiles: sets bit 1 of labels[i]. */
void stats_outliers(const double *x, size_t n, double tick, int64_t *labels);
/* Two separated modes (gap statistic on sorted samples, each side >= 10 % and gap > 4 MADs of its
 * sides). */
bool stats_bimodal(const double *x, size_t n);

#endif
