/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops on rows of activations: embedding, normalisation, matrix product, gathering. */
#include <math.h>

#include "kernels/ref/ref.h"

enum {
    TILE = 64,
    SPAN = 256
}; /* rows and columns at a time: each weight is decoded once per TILE rows, on the stack */

static float at(const struct tensor *t, int32_t r, int32_t c) {
    return dtype_load(t->data, t->type, r * t->stride + c);
}

static void put(struct tensor *t, int32_t r, int32_t c, float v) {
    dtype_store(t->data, t->type, r * t->stride + c, v);
}

void ref_embed(struct device *device, struct tensor *x, const struct weight *weight,
               const struct step *step) {
    const struct ref_weight *w = (const struct ref_weight *)weight;
    float values[SPAN];
    if (!ref_expects(device, x->cols == weight->cols, "embed: x and the weight differ in width"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        int32_t token = step->token[r];
        if (!ref_expects(device, token >= 0 && token < weight->rows, "embed: no such token"))
            continue;
        for (int32_t c = 0; c < x->cols; c += SPAN) {
            int32_t n = x->cols - c < SPAN ? x->cols - c : SPAN;
            ref_decode(w, token, c, n, values);
            for (int32_t i = 0; i < n; i++) put(x, r, c + i, values[i]);
        }
    }
}

void ref_add_norm(struct device *device, struct tensor *y, struct tensor *residual,
                  const struct tensor *delta, const float *gain, float eps) {
    (void)device;
    for (int32_t r = 0; r < residual->rows; r++) {
        float *h = (float *)residual->data + r * residual->stride;
        double squares = 0;
        for (int32_t c = 0; c < residual->cols; c++) {
            if (delta) h[c] += at(delta, r, c);
            squares += (double)h[c] * (double)h[c];
        }
        float norm = (float)sqrt(squares / residual->cols + (double)eps);
        for (int32_t c = 0; y && c < residual->cols; c++) put(y, r, c, h[c] / norm * gain[c]);
    }
}

/* acc[i] += x[first + i] . w[row] for n rows of x, each sum in order of columns. */
static void dots(double *acc, const struct tensor *x, int32_t first, int32_t n,
                 const struct ref_weight *w, int64_t row, int64_t *macs) {
    float values[SPAN];
    for (int32_t c = 0; c < x->cols; c += SPAN) {
        int32_t span = x->cols - c < SPAN ? x->cols - c : SPAN;
        ref_decode(w, row, c, span, values);
        for (int32_t i = 0; i < n; i++) {
            double sum = acc[i];
            for (int32_t j = 0; j < span; j++)
                sum += (double)at(x, first + i, c + j) * (double)values[j];
            acc[i] = sum;
            *macs += span;
        }
    }
}

/* Codes of a row of x, whose scale is s, times a row of the weight: exact in each group, then f32.
 */
static float dot_codes(const int8_t *x, float s, const struct ref_weight *w, int64_t row,
                       int64_t *macs) {
    const int64_t cols = w->head.cols, span = w->head.scale == SCALE_GROUP ? w->head.group : cols;
    float total = 0;
    for (int64_t begin = 0; begin < cols; begin += span) {
        int32_t sum = 0;
        for (int64_t c = begin; c < begin + span && c < cols; c++)
            sum += x[c] * ref_code(w, row, c);
        total += ref_scale(w, row, begin) * (float)sum;
    }
    *macs += cols;
    return s * total;
}

static double finish(double v, double up, const float *bias, enum epilogue epilogue) {
    if (bias) v += (double)*bias;
    return epilogue == EPI_SWIGLU ? v / (1 + exp(-v)) * up : v;
}

static void linear_codes(struct tensor *y, const struct tensor *x, const struct ref_weight *w,
                         const float *bias, enum epilogue epilogue, int64_t *macs) {
    int8_t codes[QUANT_INPUT_COLS];
    for (int32_t r = 0; r < x->rows; r++) {
        float s = quant_input((const float *)x->data + r * x->stride, x->cols, codes);
        for (int32_t c = 0; c < y->cols; c++) {
            float up =
                epilogue == EPI_SWIGLU ? dot_codes(codes, s, w, c + (int64_t)y->cols, macs) : 0;
            put(y, r, c,
                (float)finish((double)dot_codes(codes, s, w, c, macs), (double)up,
                              bias ? &bias[c] : NULL, epilogue));
        }
    }
}

void ref_linear(struct device *device, struct tensor *y, const struct tensor *x,
                const struct weight *weight, const float *bias, enum epilogue epilogue) {
    const struct ref_weight *w = (const struct ref_weight *)weight;
    int64_t *macs = &((struct ref *)device)->counts.linear;
    int64_t rows = epilogue == EPI_SWIGLU ? 2 * (int64_t)y->cols : y->cols;
    if (!ref_expects(device, x->cols == weight->cols && rows == weight->rows && x->rows == y->rows,
                     "linear: x, y and the weight do not fit"))
        return;
    if (weight->input == DT_I8) {
        if (ref_expects(device, x->type == DT_F32, "linear: int8 inputs are rounded from f32"))
            linear_codes(y, x, w, bias, epilogue, macs);
        return;
    }
    for (int32_t first = 0; first < x->rows; first += TILE) {
        int32_t n = x->rows - first < TILE ? x->rows - first : TILE;
        for (int32_t c = 0; c < y->cols; c++) {
            double v[TILE] = {0}, up[TILE] = {0};
            dots(v, x, first, n, w, c, macs);
            if (epilogue == EPI_SWIGLU) dots(up, x, first, n, w, c + (int64_t)y->cols, macs);
            for (int32_t i = 0; i < n; i++)
                put(y, first + i, c, (float)finish(v[i], up[i], bias ? &bias[c] : NULL, epilogue));
        }
    }
}

void ref_gather_rows(struct device *device, struct tensor *y, const struct tensor *x,
                     const struct step *step) {
    (void)device;
    for (int32_t o = 0; o < step->n_out; o++)
        for (int32_t c = 0; c < y->cols; c++) put(y, o, c, at(x, step->out_row[o], c));
}
