/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/rounding.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static void matrix_row(void *ctx, int64_t r, float *out) {
    const struct matrix_rows *m = ctx;
    memcpy(out, m->w + r * m->cols, sizeof *out * (size_t)m->cols);
}

struct row_source matrix_source(struct matrix_rows *m) {
    return (struct row_source){.row = matrix_row, .ctx = m};
}

struct pass { /* over all rows */
    const struct weight_spec *spec;
    const struct row_source *source;
    struct rounding *to;
    float *w, *rounded, *scales;
    int8_t *codes;
    float absmax;
    int64_t counts[256];
    double squares, error_squares; /* of the matrix; of the errors */
};

static void look(struct pass *p) { /* mean, magnitudes, what is no number */
    struct rounding *to = p->to;
    for (int64_t r = 0; r < p->spec->rows; r++) {
        p->source->row(p->source->ctx, r, p->w);
        for (int64_t c = 0; c < p->spec->cols; c++) {
            const double w = (double)p->w[c];
            to->not_finite += !isfinite(w);
            to->mean += w;
            to->mean_abs += fabs(w);
            to->largest = fmax(to->largest, fabs(w));
        }
    }
    to->mean /= (double)to->n;
    to->mean_abs /= (double)to->n;
}

static void look_again(struct pass *p, bool tails) { /* deviation; then what lies beyond six */
    struct rounding *to = p->to;
    double sum = 0;
    for (int64_t r = 0; r < p->spec->rows; r++) {
        p->source->row(p->source->ctx, r, p->w);
        for (int64_t c = 0; c < p->spec->cols; c++) {
            const double d = (double)p->w[c] - to->mean;
            sum += d * d;
            if (tails) to->beyond_six += fabs(d) > 6 * to->deviation;
        }
    }
    if (!tails) to->deviation = sqrt(sum / (double)to->n);
}

/* Codes and scales of the row in w, and what they mean; returns how many values a scale has. */
static int64_t round_row(struct pass *p) {
    const struct weight_spec *spec = p->spec;
    const int64_t span = spec->scale == SCALE_GROUP ? spec->group : spec->cols;
    if (spec->scale == SCALE_NONE) {
        memcpy(p->rounded, p->w, sizeof *p->w * (size_t)spec->cols);
        quant_roundtrip(spec, p->rounded, 0);
        return 0;
    }
    quant_row(spec, p->w, p->absmax, p->codes, p->scales);
    for (int64_t c = 0; c < spec->cols; c++) {
        p->rounded[c] = quant_value(spec, p->codes[c], p->scales[c / span]);
        p->counts[(uint8_t)p->codes[c]]++;
    }
    return span;
}

static void compare(struct pass *p) {
    struct rounding *to = p->to;
    const bool steps = p->spec->type == DT_I8 || p->spec->type == DT_I4;
    for (int64_t r = 0; r < p->spec->rows; r++) {
        double row_error = 0, row_squares = 0;
        p->source->row(p->source->ctx, r, p->w);
        const int64_t span = round_row(p);
        for (int64_t c = 0; c < p->spec->cols; c++) {
            const double w = (double)p->w[c], error = fabs((double)p->rounded[c] - w);
            row_error += error * error;
            row_squares += w * w;
            to->mean_error += error;
            to->worst_error = fmax(to->worst_error, error);
            to->zeros += p->rounded[c] == 0;
            if (steps)
                to->half_steps = fmax(to->half_steps, error / (0.5 * (double)p->scales[c / span]));
        }
        p->error_squares += row_error;
        p->squares += row_squares;
        if (row_squares > 0) to->worst_row = fmax(to->worst_row, sqrt(row_error / row_squares));
    }
    if (!steps) to->half_steps = (double)NAN;
    to->mean_error /= (double)to->n;
    to->rms_error = sqrt(p->error_squares / (double)to->n);
    to->relative = p->squares > 0 ? sqrt(p->error_squares / p->squares) : 0;
}

static int falling(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static void count_levels(struct pass *p) {
    struct rounding *to = p->to;
    double entropy = 0;
    int64_t held = 0;
    if (p->spec->scale == SCALE_NONE) return;
    qsort(p->counts, 256, sizeof *p->counts, falling);
    for (int i = 0; i < 256 && p->counts[i]; i++) {
        const double share = (double)p->counts[i] / (double)to->n;
        to->levels_used++;
        to->levels_most += held < to->n - to->n / 100;
        held += p->counts[i];
        entropy -= share * log2(share);
    }
    to->levels_alike = exp2(entropy);
}

void rounding_of(const struct weight_spec *spec, const struct row_source *source,
                 struct rounding *to) {
    const size_t cols = (size_t)spec->cols;
    struct pass p = {.spec = spec, .source = source, .to = to};
    *to = (struct rounding){.n = spec->rows * spec->cols};
    p.w = must_alloc(2 * sizeof *p.w * cols);
    p.rounded = p.w + cols;
    p.scales = must_alloc(sizeof *p.scales * (size_t)(quant_groups(spec) + 1));
    p.codes = must_alloc(cols);
    if (spec->scale == SCALE_TENSOR) p.absmax = quant_absmax(spec, source);
    look(&p);
    look_again(&p, false);
    look_again(&p, true);
    compare(&p);
    count_levels(&p);
    if (to->not_finite)
        to->deviation = to->mean_error = to->rms_error = to->worst_error = to->relative =
            to->worst_row = to->half_steps = (double)NAN;
    free(p.w);
    free(p.scales);
    free(p.codes);
}

double rounding_relative(const struct weight_spec *spec, const struct row_source *source) {
    const float absmax = spec->scale == SCALE_TENSOR ? quant_absmax(spec, source) : 0;
    float *w = must_alloc(2 * sizeof *w * (size_t)spec->cols), *rounded = w + spec->cols;
    double error = 0, all = 0;
    for (int64_t r = 0; r < spec->rows; r++) {
        source->row(source->ctx, r, w);
        memcpy(rounded, w, sizeof *w * (size_t)spec->cols);
        quant_roundtrip(spec, rounded, absmax);
        for (int64_t c = 0; c < spec->cols; c++) {
            const double d = (double)rounded[c] - (double)w[c];
            error += d * d;
            all += (double)w[c] * (double)w[c];
        }
    }
    free(w);
    return all > 0 ? sqrt(error / all) : 0;
}
