/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric quantization by the largest magnitude, and NF4: codes, scales, and the bytes that they
 * take. */
#include "kernels/quant.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/quant_code.h"

static bool is_quantized(enum dtype type) {
    return type == DT_I8 || type == DT_I4 || type == DT_NF4;
}

int64_t quant_groups(const struct weight_spec *spec) {
    if (!is_quantized(spec->type)) return 0;
    if (spec->scale == SCALE_ROW) return 1;
    if (spec->scale != SCALE_GROUP || spec->group < 1) return 0;
    return (spec->cols + spec->group - 1) / spec->group;
}

int64_t quant_payload_bytes(const struct weight_spec *spec) {
    return spec->rows * ((spec->cols * dtype_bits(spec->type) + 7) / 8);
}

int64_t quant_scale_bytes(const struct weight_spec *spec) {
    if (!is_quantized(spec->type)) return 0;
    if (spec->scale == SCALE_TENSOR) return 4;
    return spec->rows * quant_groups(spec) * (spec->scale == SCALE_GROUP ? 2 : 4);
}

static float absmax(const float *w, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        float a = fabsf(w[i]);
        if (a > most) most = a;
    }
    return most;
}

float quant_absmax(const struct weight_spec *spec, const struct row_source *source) {
    float *w = must_alloc((size_t)(spec->cols > 0 ? spec->cols : 1) * sizeof *w), most = 0;
    for (int64_t r = 0; r < spec->rows; r++) {
        source->row(source->ctx, r, w);
        float a = absmax(w, spec->cols);
        if (a > most) most = a;
    }
    free(w);
    return most;
}

void quant_row(const struct weight_spec *spec, const float *w, float tensor_absmax, int8_t *codes,
               float *scales) {
    int64_t span = spec->scale == SCALE_GROUP && spec->group > 0 ? spec->group : spec->cols;
    float top = quant_top(spec->type);
    for (int64_t begin = 0, g = 0; begin < spec->cols; begin += span, g++) {
        int64_t n = spec->cols - begin < span ? spec->cols - begin : span;
        bool whole = spec->scale == SCALE_TENSOR;
        float scale = quant_scale(whole ? tensor_absmax : absmax(w + begin, n), top,
                                  spec->scale == SCALE_GROUP);
        scales[g] = scale;
        for (int64_t i = begin; i < begin + n; i++)
            codes[i] =
                spec->type == DT_NF4 ? quant_nf4(w[i] / scale) : quant_int(w[i] / scale, top);
    }
}

float quant_value(const struct weight_spec *spec, int8_t code, float scale) {
    return (spec->type == DT_NF4 ? nf4_levels[code & 15] : (float)code) * scale;
}

void quant_roundtrip(const struct weight_spec *spec, float *w, float tensor_absmax) {
    if (!is_quantized(spec->type)) {
        for (int64_t i = 0; i < spec->cols; i++) {
            if (spec->type == DT_F16) w[i] = f16_to_f32(f16_from_f32(w[i]));
            if (spec->type == DT_BF16) w[i] = bf16_to_f32(bf16_from_f32(w[i]));
        }
        return;
    }
    int64_t groups = quant_groups(spec),
            span = spec->scale == SCALE_GROUP ? spec->group : spec->cols;
    int8_t *codes = must_alloc((size_t)spec->cols + 1);
    float *scales = must_alloc((size_t)(groups + 1) * sizeof *scales);
    quant_row(spec, w, tensor_absmax, codes, scales);
    for (int64_t i = 0; i < spec->cols; i++) w[i] = quant_value(spec, codes[i], scales[i / span]);
    free(codes);
    free(scales);
}

float quant_input(const float *x, int64_t n, int8_t *codes) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);
        if (!(a < INFINITY)) {
            memset(codes, 0, (size_t)n);
            return NAN;
        }
        if (a > most) most = a;
    }
    const float scale = quant_scale(most, 127.0f, false);
    for (int64_t i = 0; i < n; i++) codes[i] = quant_int(fmaxf(x[i] / scale, -127.0f), 127.0f);
    return scale;
}

const char *quant_input_refused(enum dtype weight, enum dtype input, int64_t cols) {
    if (input == DT_F32) return NULL;
    if (input != DT_I8) return "inputs of products are floats or int8";
    if (weight != DT_I8 && weight != DT_I4) return "int8 inputs are for int8 and int4 weights";
    return cols > QUANT_INPUT_COLS ? "int8 inputs: more than 131072 columns leave int32" : NULL;
}

float quant_kv(const float *x, int d_h, int8_t *codes) {
    float scale = quant_scale(absmax(x, d_h), 127.0f, false);
    for (int i = 0; i < d_h; i++) codes[i] = quant_int(x[i] / scale, 127.0f);
    return scale;
}
