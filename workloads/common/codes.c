/* SPDX-License-Identifier: Apache-2.0 */
/* Codes in double: one value, arrays, and what theory says of normal values. */
#include "workloads/common/codes.h"

#include <math.h>
#include <stddef.h>

#include "kernels/dtype.h"

const char *const code_scheme_words[] = {"symmetric", "affine", "nf4", NULL};

/* ---- one value */

double coder_top(const struct coder *c) {
    if (c->scheme == CODE_NF4) return 15;
    return ldexp(1, c->scheme == CODE_AFFINE ? c->bits : c->bits - 1) - 1;
}

double coder_levels(const struct coder *c) {
    return c->scheme == CODE_SYMMETRIC ? 2 * coder_top(c) + 1 : coder_top(c) + 1;
}

struct coder coder_fit(enum code_scheme scheme, int bits, double least, double most) {
    struct coder c = {.scheme = scheme, .bits = bits, .scale = 1};
    const double largest = fmax(fabs(least), fabs(most)), top = coder_top(&c);
    if (!(largest > 0)) return c;
    if (scheme == CODE_NF4) {
        c.scale = largest;
    } else if (scheme == CODE_SYMMETRIC) {
        c.scale = largest / top;
    } else {
        c.scale = most > least ? (most - least) / top : largest;
        if (c.scale > 0) c.zero = -rint(least / c.scale);
    }
    if (!(c.scale > 0)) c.scale = 1; /* below the smallest double: nothing is left of the values */
    return c;
}

static double clamp(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

double coder_code(const struct coder *c, double x) {
    const double top = coder_top(c), v = x / c->scale;
    if (c->scheme == CODE_SYMMETRIC) return clamp(rint(v), -top - 1, top);
    if (c->scheme == CODE_AFFINE) return clamp(rint(v) + c->zero, 0, top);
    int code = 0;
    for (int i = 0; i < 15; i++)
        code += v > 0.5 * ((double)nf4_levels[i] + (double)nf4_levels[i + 1]);
    return code;
}

double coder_value(const struct coder *c, double code) {
    if (c->scheme == CODE_NF4) return (double)nf4_levels[(int)code & 15] * c->scale;
    return (code - c->zero) * c->scale;
}

/* ---- arrays */

struct run_of { /* values of one scale: n of them, `step` apart */
    int64_t at, n, step;
};

static void round_run(const struct code_spec *spec, const float *x, const struct run_of *r,
                      float *out, struct code_sums *sums) {
    double least = INFINITY, most = -INFINITY;
    bool finite = true;
    for (int64_t i = 0; i < r->n; i++) {
        const double v = (double)x[r->at + i * r->step];
        finite = finite && isfinite(v);
        least = fmin(least, v);
        most = fmax(most, v);
    }
    const struct coder c = coder_fit(spec->scheme, spec->bits, least, most);
    sums->scale = fmax(sums->scale, c.scale);
    sums->scales++;
    sums->n += r->n;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t at = r->at + i * r->step;
        const double v = (double)x[at], code = finite ? coder_code(&c, v) : 0;
        const float value = finite ? (float)coder_value(&c, code) : NAN;
        const double error = fabs((double)value - v);
        const unsigned place = (unsigned)(int)(code + ldexp(1, 15)) & 0xffff;
        if (finite) sums->used[place >> 3] |= (unsigned char)(1u << (place & 7));
        sums->zeros += value == 0;
        sums->error += error * error;
        sums->error_sum += error;
        sums->value += v * v;
        if (!(error <= sums->worst)) sums->worst = error; /* a NaN stays */
        if (out) out[at] = value;
    }
}

static int64_t run_length(int64_t run, int64_t whole) {
    return run > 0 && run < whole ? run : whole;
}

void code_round(const struct code_spec *spec, const struct code_array *a, float *out,
                struct code_sums *sums) {
    if (spec->by == BY_ALL) {
        const struct run_of all = {0, a->rows * a->cols, 1};
        round_run(spec, a->x, &all, out, sums);
        return;
    }
    const bool rows = spec->by == BY_ROW;
    const int64_t lines = rows ? a->rows : a->cols, whole = rows ? a->cols : a->rows;
    const int64_t run = run_length(spec->run, whole), step = rows ? 1 : a->cols;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t begin = 0; begin < whole; begin += run) {
            const int64_t n = whole - begin < run ? whole - begin : run;
            const struct run_of r = {line * (rows ? a->cols : 1) + begin * step, n, step};
            round_run(spec, a->x, &r, out, sums);
        }
}

int64_t code_levels_used(const struct code_sums *sums) {
    int64_t n = 0;
    for (size_t i = 0; i < sizeof sums->used; i++)
        for (unsigned bits = sums->used[i]; bits; bits &= bits - 1) n++;
    return n;
}

double code_relative(const struct code_sums *sums) {
    if (!(sums->value > 0) && sums->error == 0) return 0; /* zeros came back as such */
    return sqrt(sums->error / sums->value);
}

double code_bits(const struct code_spec *spec, int64_t rows, int64_t cols, double scale_bits,
                 double zero_bits) {
    const double n = (double)rows * (double)cols,
                 zero = spec->scheme == CODE_AFFINE ? zero_bits : 0;
    const int64_t whole = spec->by == BY_ROW ? cols : rows;
    const int64_t run = run_length(spec->run, whole);
    const double runs = spec->by == BY_ALL ? 1
                                           : (double)((whole + run - 1) / run) *
                                                 (double)(spec->by == BY_ROW ? rows : cols);
    return spec->bits + runs * (scale_bits + zero) / n;
}

/* ---- theory of normal values */

static double cdf(double x) { return 0.5 * erfc(-x / sqrt(2)); }
static double density(double x) { return 0.39894228040143268 * exp(-x * x / 2); } /* 1/sqrt(2 pi) */

double normal_quantile(double p) {
    double least = -40, most = 40;
    if (p > 0.5) return -normal_quantile(1 - p); /* erfc is exact to the last digits below 0 */
    for (int i = 0; i < 200; i++) {
        const double middle = 0.5 * (least + most);
        if (cdf(middle) < p)
            least = middle;
        else
            most = middle;
    }
    return 0.5 * (least + most);
}

void nf4_quantiles(double offset, double levels[16]) {
    const double largest = normal_quantile(offset);
    for (int i = 0; i < 7; i++)
        levels[i] = -normal_quantile(offset + (0.5 - offset) * i / 7) / largest;
    levels[7] = 0;
    for (int i = 0; i < 8; i++)
        levels[15 - i] = normal_quantile(offset + (0.5 - offset) * i / 8) / largest;
}

int code_level_list(enum code_scheme scheme, int bits, double *levels) {
    const struct coder c = {.scheme = scheme, .bits = bits};
    const int n = (int)coder_levels(&c);
    for (int i = 0; i < n; i++)
        levels[i] = scheme == CODE_NF4 ? (double)nf4_levels[i] : 2.0 * i / (n - 1) - 1;
    return n;
}

/* Sum over the levels of the integral of (x - q)^2 density(x) where q is the nearest, from the
   moments of a normal value; over the chance of -m ... m. */
static double mean_square(const double *levels, int n, double m) {
    double a = -m, mass_a = cdf(a), density_a = density(a), sum = 0;
    for (int i = 0; i < n; i++) {
        const double b = i + 1 < n ? 0.5 * m * (levels[i] + levels[i + 1]) : m, q = levels[i] * m;
        const double mass_b = cdf(b), density_b = density(b), mass = mass_b - mass_a;
        sum +=
            mass - (b * density_b - a * density_a) - 2 * q * (density_a - density_b) + q * q * mass;
        a = b;
        mass_a = mass_b;
        density_a = density_b;
    }
    return sum / erf(m / sqrt(2));
}

double normal_error_at(const double *levels, int n, double m) {
    return m > 0 ? sqrt(fmax(mean_square(levels, n, m), 0)) : (double)NAN;
}

/* The largest of `run` magnitudes has the density run (2 Phi(m) - 1)^(run - 1) 2 phi(m); it is met
   exactly, and the others are normal values below it. */
double normal_error(const double *levels, int n, double run) {
    enum { STEPS = 1200 };
    const double width = 12.0 / STEPS;
    double sum = 0;
    for (int i = 0; i < STEPS; i++) {
        const double m = (i + 0.5) * width;
        const double chance =
            run * exp((run - 1) * log1p(-erfc(m / sqrt(2)))) * 2 * density(m) * width;
        if (chance > 1e-14) sum += chance * mean_square(levels, n, m);
    }
    return sqrt(fmax(sum * (run - 1) / run, 0));
}
