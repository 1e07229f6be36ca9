/* SPDX-License-Identifier: Apache-2.0 */
/* A row over many runs: where its level changed, and how far it has drifted from its anchor. */
#ifndef RESULTS_HISTORY_H
#define RESULTS_HISTORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HISTORY_SEGMENT = 5,     /* runs between two changes, at least */
    HISTORY_SHUFFLES = 1999, /* of a permutation test */
    HISTORY_MOST = 400       /* runs that are looked at, the latest ones */
};
#define HISTORY_P 0.001

struct history_step {
    size_t at;     /* index of the first run of the new level */
    double change; /* ln(level after / level before), by the medians of the two segments */
    double p;      /* of the permutation test */
};
/* The energy statistic of one split of x (n) before `at`:
     Q = m k / (m + k) (2/(m k) sum |x_i - y_j| - mean |x_i - x_j| - mean |y_i - y_j|),
   m before and k from it on (Szekely & Rizzo 2005; exponent 1). NAN where a side has fewer than 2.
 */
double history_energy(const double *x, size_t n, size_t at);
/* Change points of y (n logarithms, in order of time), ascending: hierarchical bisection by the
   energy statistic with a permutation test of every split (E-Divisive: Matteson & James 2014), kept
   where p <= HISTORY_P, segments have at least HISTORY_SEGMENT runs and the medians differ by at
   least `least` (a logarithm). A single spike moves no median and is none. Returns how many, at
   most `most`. */
size_t history_steps(const double *y, size_t n, double least, uint64_t seed,
                     struct history_step *steps, size_t most);
/* ln(median of the last HISTORY_SEGMENT runs / median of the first ones), and how likely their
   means lie as far apart in a random order of all n runs; NAN below 2 HISTORY_SEGMENT runs. Sees
   what came in steps too small to be found one by one. */
double history_drift(const double *y, size_t n, uint64_t seed, double *p);

#endif
