/* SPDX-License-Identifier: Apache-2.0 */
/* 95 % intervals of what is counted and of means over neighbours; also for those who hold the
   single values and report only the mean. */
#ifndef BASE_INTERVAL_H
#define BASE_INTERVAL_H
#include <stddef.h>
#include <stdint.h>

/* Of a proportion, k of n: Wilson's score interval (Wilson 1927), which stays within 0 ... 1 and is
   not empty at 0 or n. NAN where n is 0. */
void interval_wilson(int64_t k, int64_t n, double *lo, double *hi);

enum { INTERVAL_DRAWS = 2000, INTERVAL_LEAST_BLOCKS = 8 };
/* Of the mean of n values in order, of which neighbours depend on each other: blocks of `block`
   consecutive ones (the last may be shorter) are drawn with replacement, as many as there are,
   INTERVAL_DRAWS times; lo and hi are the 2.5 and 97.5 % quantiles (type 7) of the means. Block
   bootstrap: Carlstein 1986; percentile interval: Efron & Tibshirani 1993, 13.3. With differences
   of pairs as values it is the paired bootstrap. Draw d takes as its block j number random_below(
   random_key(seed, 0), d blocks + j, blocks). NAN below INTERVAL_LEAST_BLOCKS blocks. */
void interval_blocks(const double *x, size_t n, size_t block, uint64_t seed, double *lo,
                     double *hi);

#endif
