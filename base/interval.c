/* SPDX-License-Identifier: Apache-2.0 */
/* Wilson's interval, and the block bootstrap. */
#include "base/interval.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"

void interval_wilson(int64_t k, int64_t n, double *lo, double *hi) {
    *lo = *hi = (double)NAN;
    if (n <= 0 || k < 0 || k > n) return;
    const double z = 1.9599639845400545;
    double m = (double)n, p = (double)k / m, z2 = z * z;
    double middle = (p + z2 / (2 * m)) / (1 + z2 / m);
    double half = z / (1 + z2 / m) * sqrt(p * (1 - p) / m + z2 / (4 * m * m));
    *lo = k == 0 ? 0 : middle - half;
    *hi = k == n ? 1 : middle + half;
}

static int rising(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q) {
    const double at = (double)(n - 1) * q;
    const size_t k = (size_t)at;
    return k + 1 < n ? sorted[k] + (at - (double)k) * (sorted[k + 1] - sorted[k]) : sorted[n - 1];
}

void interval_blocks(const double *x, size_t n, size_t block, uint64_t seed, double *lo,
                     double *hi) {
    *lo = *hi = (double)NAN;
    if (!block) return;
    const size_t blocks = n / block + (n % block > 0);
    if (blocks < INTERVAL_LEAST_BLOCKS || blocks > UINT32_MAX) return;
    double *sum = must_alloc(blocks * sizeof *sum),
           *mean = must_alloc(INTERVAL_DRAWS * sizeof *mean);
    for (size_t i = 0; i < n; i++) sum[i / block] += x[i];
    const size_t last = n - (blocks - 1) * block;
    const uint64_t key = random_key(seed, 0);
    for (size_t d = 0; d < INTERVAL_DRAWS; d++) {
        double all = 0;
        size_t count = 0;
        for (size_t j = 0; j < blocks; j++) {
            const size_t b = random_below(key, d * blocks + j, (uint32_t)blocks);
            all += sum[b];
            count += b + 1 < blocks ? block : last;
        }
        mean[d] = all / (double)count;
    }
    qsort(mean, INTERVAL_DRAWS, sizeof *mean, rising);
    *lo = quantile(mean, INTERVAL_DRAWS, 0.025);
    *hi = quantile(mean, INTERVAL_DRAWS, 0.975);
    free(sum);
    free(mean);
}
