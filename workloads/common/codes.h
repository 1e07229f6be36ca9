/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding values to codes in double, as the seeds' formulas have it (E32, E36, E40, E41): the
   plain definition, with zero points and scales along any direction, beside the packers' own
   (kernels/quant.h), which keep scales in f32 and f16 and know rows only. */
#ifndef WORKLOADS_COMMON_CODES_H
#define WORKLOADS_COMMON_CODES_H
#include <stdbool.h>
#include <stdint.h>

enum code_scheme { CODE_SYMMETRIC, CODE_AFFINE, CODE_NF4 };
extern const char *const code_scheme_words[]; /* symmetric, affine, nf4, NULL */

/* What a code means: (code - zero) scale, or level[code] scale. */
struct coder {
    enum code_scheme scheme;
    int bits; /* 2 ... 16; NF4: 4 */
    double scale, zero;
};
/* The largest code: qmax = 2^(bits - 1) - 1, or 2^bits - 1. */
double coder_top(const struct coder *);
/* Codes that can occur where the scale was fitted: 2 qmax + 1 (-qmax - 1 never does), or all. */
double coder_levels(const struct coder *);
/* For finite values in least ... most. Symmetric: scale = max|x| / qmax, code = clamp(rint(x /
   scale), -qmax - 1, qmax) (E32). Affine: scale = (most - least) / (2^bits - 1), zero = -rint(least
   / scale), code = clamp(rint(x / scale) + zero, 0, 2^bits - 1) (E40, E41). NF4: scale = max|x|,
   the nearest level, ties to the lower (E36). Zeros alone have scale 1; equal values of affine have
   their magnitude, so both come back as they were. rint is half to even. */
struct coder coder_fit(enum code_scheme, int bits, double least, double most);
double coder_code(const struct coder *, double x);
double coder_value(const struct coder *, double code);

/* ---- arrays */

enum code_by { BY_ROW, BY_COLUMN, BY_ALL };
struct code_spec {
    enum code_scheme scheme;
    int bits;
    enum code_by by;
    int64_t run; /* along the row or column: consecutive values with one scale; 0: all of it */
};
struct code_array { /* (rows, cols), row-major */
    const float *x;
    int64_t rows, cols;
};
struct code_sums {               /* of one array or several: begin with zeros */
    int64_t n, scales, zeros;    /* zeros: values that became 0 */
    double error, value, worst;  /* sums of squares: x^ - x, x; the largest |x^ - x| */
    double error_sum;            /* of |x^ - x| */
    double scale;                /* the largest */
    unsigned char used[1 << 13]; /* codes that occurred, a bit each */
};
/* out (rows, cols), or NULL: what the codes mean, rounded to f32. A run with a NaN or an infinity
   has no scale: its values become NaN, as the sums then are. */
void code_round(const struct code_spec *, const struct code_array *, float *out,
                struct code_sums *);
int64_t code_levels_used(const struct code_sums *);
double code_relative(const struct code_sums *); /* ||x^ - x|| / ||x||; 0 for zeros alone */
/* Bits of a value in an array of that size, scales (and zero points, of affine) among them. */
double code_bits(const struct code_spec *, int64_t rows, int64_t cols, double scale_bits,
                 double zero_bits);

/* ---- theory of normal values */

/* The x that a standard normal value does not exceed with probability p, 0 < p < 1. */
double normal_quantile(double p);
/* NF4's levels by their public construction (QLoRA, Dettmers et al. 2023): quantiles at
   linspace(offset, 0.5), 8 positive, 7 negative and 0, over the largest; rising. */
void nf4_quantiles(double offset, double levels[16]);
/* The rising levels of a scheme's reconstruction over the largest magnitude: coder_levels of them,
   at most 2^16; affine: of values symmetric about 0. */
int code_level_list(enum code_scheme, int bits, double *levels);
/* Relative error of standard normal values within -m ... m, rounded to the nearest of levels m (n,
   rising from -1 to 1): E33's mean squared error of a truncated normal. */
double normal_error_at(const double *levels, int n, double m);
/* Of independent normal values in runs of `run`, each scaled by its largest: the same, over the
   distribution of that largest (E33). */
double normal_error(const double *levels, int n, double run);

#endif
