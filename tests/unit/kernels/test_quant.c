/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization by its promises: half a step at most, the theory's error on Gaussian weights, zeros,
 * extremes, nearest levels. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "kernels/quant.h"

enum { COLS = 4864 };

struct gauss {
    uint64_t key;
    int64_t cols;
    float scale;
};

static void gauss_row(void *ctx, int64_t r, float *out) {
    const struct gauss *g = ctx;
    for (int64_t c = 0; c < g->cols; c++)
        out[c] = (float)random_normal(g->key, (uint64_t)(r * g->cols + c)) * g->scale;
}

/* ||w - w'|| / ||w|| over `rows` rows. */
static double relative_error(const struct weight_spec *spec, const struct row_source *source) {
    float most = quant_absmax(spec, source), *w = malloc((size_t)spec->cols * 4),
          *q = malloc((size_t)spec->cols * 4);
    double lost = 0, all = 0;
    for (int64_t r = 0; r < spec->rows; r++) {
        source->row(source->ctx, r, w);
        memcpy(q, w, (size_t)spec->cols * 4);
        quant_roundtrip(spec, q, most);
        for (int64_t c = 0; c < spec->cols; c++) {
            lost += pow((double)w[c] - (double)q[c], 2);
            all += pow((double)w[c], 2);
        }
    }
    free(w);
    free(q);
    return sqrt(lost / all);
}

/* E33's table: independent Gaussian weights, within 2 %. */
static void test_theory(void **state) {
    (void)state;
    static const struct {
        enum dtype type;
        enum scale scale;
        int group, cols;
        double error;
    } rows[] = {
        {DT_I4, SCALE_GROUP, 32, 896, 0.097004},   {DT_I4, SCALE_GROUP, 64, 896, 0.107599},
        {DT_I4, SCALE_GROUP, 128, 896, 0.117268},  {DT_I4, SCALE_ROW, 0, 896, 0.141047},
        {DT_I4, SCALE_ROW, 0, 4864, 0.159041},     {DT_I8, SCALE_ROW, 0, 896, 0.007774},
        {DT_I8, SCALE_ROW, 0, 4864, 0.008766},     {DT_NF4, SCALE_GROUP, 64, 896, 0.091979},
        {DT_NF4, SCALE_GROUP, 128, 896, 0.095580},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gauss g = {random_key(33, i), rows[i].cols, 0.02f};
        struct row_source source = {.row = gauss_row, .ctx = &g};
        struct weight_spec spec = {"gauss",       400000 / rows[i].cols, rows[i].cols, rows[i].type,
                                   rows[i].scale, rows[i].group,         DT_F32};
        double error = relative_error(&spec, &source);
        if (fabs(error / rows[i].error - 1) > 0.02)
            fail_msg("row %zu: %g, theory %g", i, error, rows[i].error);
    }
}

/* One weight at 24.1 sigma and one scale for all: E33's last two rows. */
static void outlier_row(void *ctx, int64_t r, float *out) {
    gauss_row(ctx, r, out);
    if (r == 0) out[0] = 24.1f * ((const struct gauss *)ctx)->scale;
}

static void test_outlier(void **state) {
    (void)state;
    struct gauss g = {random_key(33, 99), COLS, 0.01822f};
    struct row_source source = {.row = outlier_row, .ctx = &g};
    struct weight_spec spec = {"outlier", 100, COLS, DT_I4, SCALE_TENSOR, 0, DT_F32};
    double tensor4 = relative_error(&spec, &source);
    assert_true(fabs(tensor4 / 0.872358 - 1) < 0.02);
    spec.type = DT_I8;
    double tensor8 = relative_error(&spec, &source);
    assert_true(fabs(tensor8 / 0.054780 - 1) < 0.02);
    spec.type = DT_I4, spec.scale = SCALE_ROW;
    double row4 = relative_error(&spec, &source);
    spec.scale = SCALE_GROUP, spec.group = 128;
    double group4 = relative_error(&spec, &source);
    spec.type = DT_NF4, spec.group = 64;
    double nf4 = relative_error(&spec, &source);
    assert_true(tensor4 > row4 && row4 > group4 && group4 > nf4 && nf4 > tensor8);
}

/* |w - code * scale| <= scale / 2 for every weight, whatever its size. */
static void test_half_a_step(void **state) {
    (void)state;
    static const float sizes[] = {1e-30f, 1e-12f, 3e-8f, 1e-6f, 1e-5f, 1e-4f, 0.02f, 1, 1e4f, 1e6f};
    static float w[200], scales[200];
    static int8_t codes[200];
    for (int type = DT_I8; type <= DT_I4; type++) {
        for (int scale = SCALE_TENSOR; scale <= SCALE_GROUP; scale++) {
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                struct weight_spec spec = {"w",
                                           1,
                                           200,
                                           (enum dtype)type,
                                           (enum scale)scale,
                                           scale == SCALE_GROUP ? 33 : 0,
                                           DT_F32};
                struct gauss g = {random_key((uint64_t)type, (uint64_t)scale * 100 + s), 200,
                                  sizes[s]};
                if (scale == SCALE_GROUP && sizes[s] > 1e5f) continue; /* f16 scales end at 65504 */
                struct row_source source = {.row = gauss_row, .ctx = &g};
                gauss_row(&g, 0, w);
                quant_row(&spec, w, quant_absmax(&spec, &source), codes, scales);
                for (int c = 0; c < 200; c++) {
                    float step = scales[scale == SCALE_GROUP ? c / 33 : 0];
                    double off = fabs((double)w[c] - (double)quant_value(&spec, codes[c], step));
                    if (!(off <= 0.5 * (double)step * (1 + 1e-6)))
                        fail_msg("%s per %s at %g: %g is %g off, a step is %g", dtype_names[type],
                                 scale_names[scale], (double)sizes[s], (double)w[c], off,
                                 (double)step);
                    int top = type == DT_I8 ? 127 : 7;
                    assert_in_range(codes[c] + 128, 128 - top, 128 + top);
                }
                if (scale != SCALE_GROUP) continue;
                for (int i = 0; i < 7; i++)
                    assert_true(f16_to_f32(f16_from_f32(scales[i])) == scales[i]);
            }
        }
    }
}

static void test_zeros(void **state) {
    (void)state;
    static const float w[6];
    float scales[6], x[6];
    int8_t codes[6];
    for (int type = DT_I8; type <= DT_NF4; type++) {
        for (int scale = SCALE_TENSOR; scale <= SCALE_GROUP; scale++) {
            struct weight_spec spec = {
                "zero", 1, 6, (enum dtype)type, (enum scale)scale, scale == SCALE_GROUP ? 4 : 0,
                DT_F32};
            quant_row(&spec, w, 0, codes, scales);
            assert_true(scales[0] == 1);
            memcpy(x, w, sizeof x);
            quant_roundtrip(&spec, x, 0);
            for (int i = 0; i < 6; i++) assert_true(x[i] == 0);
        }
    }
    assert_true(quant_kv(w, 6, codes) == 1);
    for (int i = 0; i < 6; i++) assert_int_equal(codes[i], 0);
}

/* What no weight should be: finite scales and codes in range come out all the same. */
static void test_absurd(void **state) {
    (void)state;
    static const float w[8] = {NAN, 1, -1, FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, 0x1p-149f};
    for (int n = 1; n <= 8; n++) {
        for (int type = DT_I8; type <= DT_NF4; type++) {
            for (int scale = SCALE_ROW; scale <= SCALE_GROUP; scale++) {
                struct weight_spec spec = {"absurd",
                                           1,
                                           n,
                                           (enum dtype)type,
                                           (enum scale)scale,
                                           scale == SCALE_GROUP ? 8 : 0,
                                           DT_F32};
                float scales[1];
                int8_t codes[8];
                quant_row(&spec, w, 0, codes, scales);
                if (n < 6 || scale == SCALE_GROUP)
                    assert_true(isfinite(scales[0]) && scales[0] > 0);
                for (int i = 0; i < n; i++)
                    assert_true(type == DT_NF4 ? codes[i] >= 0 && codes[i] < 16
                                               : type == DT_I8 || (codes[i] >= -8 && codes[i] < 8));
                assert_int_equal(codes[0], type == DT_NF4 ? 7 : 0); /* NaN is 0 */
            }
        }
    }
}

/* The nearest level for a fine grid, ties to the lower code; a block is exact at its largest
 * weight. */
static void test_nf4(void **state) {
    (void)state;
    struct weight_spec spec = {"nf4", 1, 2, DT_NF4, SCALE_GROUP, 64, DT_F32};
    float scales[1];
    int8_t codes[2];
    for (int i = -1000; i <= 1000; i++) {
        const float w[2] = {1, (float)i / 1000};
        quant_row(&spec, w, 0, codes, scales);
        assert_true(scales[0] == 1);
        assert_int_equal(codes[0], 15);
        double off = fabs((double)w[1] - (double)nf4_levels[codes[1]]);
        for (int l = 0; l < 16; l++) {
            double other = fabs((double)w[1] - (double)nf4_levels[l]);
            assert_true(off < other || (off == other && codes[1] <= l));
        }
    }
    for (int i = 1; i < 16; i++) assert_true(nf4_levels[i] > nf4_levels[i - 1]);
    const float zero_and_tie[2] = {1, (nf4_levels[7] + nf4_levels[8]) /
                                          2}; /* exactly between 0 and the next level */
    quant_row(&spec, zero_and_tie, 0, codes, scales);
    assert_int_equal(codes[1], 7);
    const float negative[2] = {-0.5f, 0.25f};
    quant_row(&spec, negative, 0, codes, scales);
    assert_true(quant_value(&spec, codes[0], scales[0]) == -0.5f);
}

static void test_ties_to_even(void **state) {
    (void)state;
    struct weight_spec spec = {"ties", 1, 6, DT_I8, SCALE_ROW, 0, DT_F32};
    const float w[6] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f};
    static const int want[6] = {127, 0, 2, 2, 0, -2};
    float scales[1];
    int8_t codes[6];
    quant_row(&spec, w, 0, codes, scales);
    for (int i = 0; i < 6; i++) assert_int_equal(codes[i], want[i]);
    quant_kv(w, 6, codes);
    for (int i = 0; i < 6; i++) assert_int_equal(codes[i], want[i]);
    /* A tensor-wide maximum from elsewhere: the row does not decide. */
    spec.scale = SCALE_TENSOR;
    quant_row(&spec, w, 1270, codes, scales);
    assert_true(scales[0] == 10);
    assert_int_equal(codes[0], 13);
}

static void test_bytes(void **state) {
    (void)state;
    struct weight_spec spec = {"bytes", 3, 130, DT_I4, SCALE_GROUP, 128, DT_F32};
    assert_int_equal(quant_groups(&spec), 2);
    assert_int_equal(quant_payload_bytes(&spec), 3 * 65);
    assert_int_equal(quant_scale_bytes(&spec), 3 * 2 * 2);
    spec.cols = 131;
    assert_int_equal(quant_payload_bytes(&spec), 3 * 66);
    spec.type = DT_I8, spec.scale = SCALE_ROW;
    assert_int_equal(quant_groups(&spec), 1);
    assert_int_equal(quant_scale_bytes(&spec), 12);
    spec.scale = SCALE_TENSOR;
    assert_int_equal(quant_groups(&spec), 0);
    assert_int_equal(quant_scale_bytes(&spec), 4);
    assert_int_equal(quant_payload_bytes(&spec), 393);
    spec.type = DT_BF16, spec.scale = SCALE_NONE;
    assert_int_equal(quant_payload_bytes(&spec), 786);
    assert_int_equal(quant_scale_bytes(&spec), 0);
    assert_int_equal(quant_groups(&spec), 0);
}

/* Floats are only rounded, and rounding again changes nothing. */
static void test_float_roundtrip(void **state) {
    (void)state;
    struct gauss g = {random_key(1, 2), 500, 1};
    float w[500], x[500];
    gauss_row(&g, 0, w);
    for (int type = DT_F32; type <= DT_BF16; type++) {
        struct weight_spec spec = {"float", 1, 500, (enum dtype)type, SCALE_NONE, 0, DT_F32};
        memcpy(x, w, sizeof x);
        quant_roundtrip(&spec, x, 0);
        for (int i = 0; i < 500; i++) {
            uint32_t stored;
            dtype_store(&stored, (enum dtype)type, 0, w[i]);
            assert_true(x[i] == dtype_load(&stored, (enum dtype)type, 0));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theory),          cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_half_a_step),     cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_absurd),          cmocka_unit_test(test_nf4),
        cmocka_unit_test(test_ties_to_even),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_float_roundtrip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
