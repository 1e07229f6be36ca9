/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/outlying.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { SIGMA_BINS = 9 };

struct rounding outlying_spread(const struct outlying *o) {
    struct matrix_rows matrix = {o->x, o->cols};
    const struct row_source source = matrix_source(&matrix);
    const struct weight_spec spec = {.what = "", .rows = o->rows, .cols = o->cols, .type = DT_F32};
    struct rounding r;
    rounding_of(&spec, &source, &r);
    return r;
}

static void set_sigmas(const struct outlying *o, const struct rounding *r, struct values *v) {
    static const char *const names[SIGMA_BINS] = {
        "sigma_to_quarter", "sigma_to_half", "sigma_to_1",  "sigma_to_2",     "sigma_to_4",
        "sigma_to_8",       "sigma_to_16",   "sigma_to_32", "sigma_beyond_32"};
    const double n = (double)r->n, sigma = r->deviation > 0 ? r->deviation : (double)NAN;
    int64_t counts[SIGMA_BINS] = {0}, beyond = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double far = fabs((double)o->x[i] - r->mean);
        int bin = 0;
        while (bin < SIGMA_BINS - 1 && far >= ldexp(r->deviation, bin - 2)) bin++;
        counts[bin]++;
        beyond += far > o->sigmas * r->deviation;
    }
    for (int i = 0; i < SIGMA_BINS; i++)
        values_set(v, names[i], r->deviation > 0 ? (double)counts[i] / n : (double)NAN);
    values_set(v, "values", n);
    values_set(v, "mean_abs", r->mean_abs);
    values_set(v, "deviation", r->deviation);
    values_set(v, "mean_sigma", r->mean_abs / sigma);
    values_set(v, "largest_sigma", r->largest / sigma);
    values_set(v, "beyond", (double)beyond);
    values_set(v, "beyond_share", (double)beyond / n);
}

static void set_dimensions(const struct outlying *o, const struct dimensions *of, double unit,
                           struct values *v) {
    static const char *const names[] = {"first_dim", "second_dim", "third_dim"};
    const int64_t n = dimensions_beyond(of, o->stands_out), first = dimensions_ranked(of, 0);
    int64_t rows = 0;
    dimensions_report(of, unit > 0 ? unit : 1, v);
    values_set(v, "outlier_dims", (double)n);
    for (int i = 0; i < 3; i++)
        values_set(v, names[i], i == 0 || i < n ? (double)dimensions_ranked(of, i) : (double)NAN);
    for (int64_t r = 0; r < of->rows; r++)
        rows += 2 * fabs((double)of->x[r * of->dims + first]) >= of->largest;
    values_set(v, "first_rows", (double)rows);
}

/* ---- with and without */

static bool *choose_aside(const struct outlying *o, const struct dimensions *of,
                          const struct rounding *r) {
    bool *aside = must_alloc(sizeof *aside * (size_t)r->n);
    const int64_t n = o->exclude > 0 ? o->exclude : dimensions_beyond(of, o->stands_out);
    for (int64_t i = 0; i < n && !o->single; i++)
        for (int64_t row = 0, d = dimensions_ranked(of, i); row < of->rows; row++)
            aside[row * of->dims + d] = true;
    for (int64_t i = 0; i < r->n && o->single; i++)
        aside[i] = fabs((double)o->x[i] - r->mean) > o->sigmas * r->deviation;
    return aside;
}

/* What is aside gives its place to the first value of its row that stays, or where none does of all
   that stay: it sets no scale and uses no level. False: nothing stays. */
static bool stand_in(const struct outlying *o, const bool *aside, float *x) {
    const int64_t n = o->rows * o->cols;
    int64_t first = 0;
    while (first < n && aside[first]) first++;
    if (first == n) return false;
    for (int64_t r = 0; r < o->rows; r++) {
        const int64_t begin = r * o->cols, end = begin + o->cols;
        int64_t c = begin;
        while (c < end && aside[c]) c++;
        const float kept = o->x[c < end ? c : first];
        for (int64_t i = begin; i < end; i++) x[i] = aside[i] ? kept : o->x[i];
    }
    return true;
}

static double row_levels(const struct code_spec *spec, const struct code_array *all) {
    struct code_sums *row = must_alloc(sizeof *row);
    double levels = 0;
    for (int64_t r = 0; r < all->rows; r++) {
        const struct code_array one = {all->x + r * all->cols, 1, all->cols};
        memset(row, 0, sizeof *row);
        code_round(spec, &one, NULL, row);
        levels += (double)code_levels_used(row);
    }
    free(row);
    return levels / (double)all->rows;
}

/* Codes that a dimension uses, but for those of stand-ins. */
static double levels_of(const struct outlying *o, const float *rounded, const bool *aside,
                        int64_t dimension) {
    float *kept = must_alloc(sizeof *kept * (size_t)o->rows);
    struct dimensions one = {.dims = 1, .x = kept};
    for (int64_t r = 0; r < o->rows; r++) {
        const int64_t at = r * o->cols + dimension;
        if (!aside || !aside[at]) kept[one.rows++] = rounded[at];
    }
    const double n = one.rows ? (double)dimensions_values(&one, kept, 0) : (double)NAN;
    free(kept);
    return n;
}

/* x: the array, or what stands for it without what is aside. */
static void set_codes(const struct outlying *o, const float *x, const bool *aside, int64_t middle,
                      const char *suffix, struct values *v) {
    const struct code_spec spec = {.scheme = CODE_SYMMETRIC, .bits = o->bits, .by = BY_ALL};
    const struct code_array all = {x, o->rows, o->cols};
    const int64_t n = o->rows * o->cols;
    struct code_sums *sums = must_alloc(sizeof *sums);
    float *rounded = must_alloc(sizeof *rounded * (size_t)n);
    double error = 0, value = 0, kept = 0, zeros = 0;
    code_round(&spec, &all, rounded, sums);
    for (int64_t i = 0; i < n; i++) {
        if (aside[i]) continue;
        const double was = (double)o->x[i], e = (double)rounded[i] - was;
        kept++;
        zeros += rounded[i] == 0;
        error += e * e;
        value += was * was;
    }
    const struct {
        const char *name;
        double v;
    } found[] = {
        {"scale", sums->scale},
        {"levels_used", (double)code_levels_used(sums)},
        {"row_levels", row_levels(&spec, &all)},
        {"middle_levels", levels_of(o, rounded, x == o->x ? NULL : aside, middle)},
        {"zero_share", zeros / kept},
        {"error", value > 0 ? sqrt(error / value) : (double)NAN},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s%s", found[i].name, suffix);
        values_set(v, name, found[i].v);
    }
    free(rounded);
    free(sums);
}

int64_t outlying_report(const struct outlying *o, struct values *v) {
    const struct rounding r = outlying_spread(o);
    struct dimensions of = {.rows = o->rows, .dims = o->cols, .x = o->x};
    double set_aside = 0;
    if (r.not_finite) return r.not_finite;
    dimensions_open(&of);
    bool *aside = choose_aside(o, &of, &r);
    float *without = must_alloc(sizeof *without * (size_t)r.n);
    for (int64_t i = 0; i < r.n; i++) set_aside += aside[i];
    values_set(v, "set_aside", set_aside);
    set_dimensions(o, &of, o->single ? r.deviation : 1, v);
    set_sigmas(o, &r, v);
    if (stand_in(o, aside, without)) {
        const int64_t middle = dimensions_middle(&of);
        set_codes(o, o->x, aside, middle, "", v);
        set_codes(o, without, aside, middle, "_without", v);
    }
    free(without);
    free(aside);
    dimensions_close(&of);
    return 0;
}
