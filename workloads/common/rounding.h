/* SPDX-License-Identifier: Apache-2.0 */
/* What rounding a matrix to a weight format does to it, weight by weight, by the packers' own codes
   and scales (kernels/quant.h): errors, levels in use, outliers (seeds E32-E34). */
#ifndef WORKLOADS_COMMON_ROUNDING_H
#define WORKLOADS_COMMON_ROUNDING_H
#include "kernels/quant.h"

struct rounding {
    int64_t n, not_finite; /* weights; NaN and infinities among them: then errors are NAN */
    /* of the matrix as it was */
    double mean, mean_abs, deviation, largest; /* deviation: root mean square about the mean */
    int64_t beyond_six;                        /* weights more than 6 deviations from the mean */
    /* of |w^ - w| */
    double mean_error, rms_error, worst_error;
    double relative;     /* ||w^ - w|| / ||w||; 0 for zeros alone */
    double worst_row;    /* the largest row's own */
    double half_steps;   /* the largest |w^ - w| over half its scale; int8 and int4, else NAN */
    int64_t zeros;       /* weights that became 0 */
    int64_t levels_used; /* codes that occur; 0 for formats without codes, as what follows */
    int64_t levels_most; /* codes of 99 of 100 weights, the most frequent first */
    double levels_alike; /* levels that would hold as much if all were as frequent: 2^entropy */
};
/* Rows are asked for four times. */
void rounding_of(const struct weight_spec *, const struct row_source *, struct rounding *);

/* Its `relative` alone: rows are asked for once, of one scale a matrix twice. */
double rounding_relative(const struct weight_spec *, const struct row_source *);

/* Rows of a matrix in memory, (rows, cols). */
struct matrix_rows {
    const float *w;
    int64_t cols;
};
struct row_source matrix_source(struct matrix_rows *);

#endif
