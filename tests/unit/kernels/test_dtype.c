/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision conversions by their definition: nearest, ties to even, over every value; names
 * and widths. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/dtype.h"

/* f16 by its definition, in double. */
static double f16_value(uint32_t h) {
    double m = h & 0x3ff, sign = h & 0x8000 ? -1 : 1;
    int e = (int)(h >> 10 & 31);
    if (e == 31) return m > 0 ? NAN : sign * INFINITY;
    return sign * (e ? ldexp(m + 1024, e - 25) : ldexp(m, -24));
}

static void test_f16_all(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h);
        double want = f16_value(h);
        if (want != want) {
            assert_true(f != f);
            uint16_t back = f16_from_f32(f);
            assert_true((back & 0x7c00) == 0x7c00 && (back & 0x200)); /* stays NaN, quiet */
            assert_int_equal(back & 0x8000, h & 0x8000);
            continue;
        }
        assert_true((double)f == want && (signbit(f) != 0) == (h >= 0x8000));
        assert_int_equal(f16_from_f32(f), h);
    }
}

/* Between two neighbours the nearer one, at the middle the even one; over all finite neighbours. */
static void test_f16_rounding(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double low = f16_value(h), high = h == 0x7bff ? 65536 : f16_value(h + 1);
        float middle = (float)((low + high) / 2);
        assert_int_equal(f16_from_f32(nextafterf(middle, -1)), h);
        assert_int_equal(f16_from_f32(middle), h % 2 ? h + 1 : h);
        assert_int_equal(f16_from_f32(nextafterf(middle, 1e9f)), h + 1);
        assert_int_equal(f16_from_f32(-middle), 0x8000 | (h % 2 ? h + 1 : h));
    }
    assert_int_equal(f16_from_f32(3e38f), 0x7c00);
    assert_int_equal(f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(f16_from_f32(0x1p-149f), 0);
    assert_int_equal(f16_from_f32(-0.0f), 0x8000);
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = bf16_to_f32((uint16_t)h);
        assert_int_equal(f32_bits(f), h << 16);
        uint16_t back = bf16_from_f32(f);
        if (f != f) {
            float again = bf16_to_f32(back);
            assert_true(again != again && (back & 0x40));
            continue;
        }
        assert_int_equal(back, h);
        if ((h & 0x7fff) >= 0x7f80) continue;
        assert_int_equal(bf16_from_f32(f32_from_bits(h << 16 | 0x7fff)), h);
        assert_int_equal(bf16_from_f32(f32_from_bits(h << 16 | 0x8000)), h % 2 ? h + 1 : h);
        assert_int_equal(bf16_from_f32(f32_from_bits(h << 16 | 0x8001)), h + 1);
    }
    /* A NaN whose payload sits in the lower half only must not become infinity. */
    assert_true(isnan(bf16_to_f32(bf16_from_f32(f32_from_bits(0x7f800001)))));
}

static void test_load_store(void **state) {
    (void)state;
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16, DT_I32};
    for (int t = 0; t < 4; t++) {
        uint32_t data[4] = {0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 0xdeadbeef};
        dtype_store(data, types[t], 1, -3.0f);
        assert_true(dtype_load(data, types[t], 1) == -3.0f);
        assert_int_equal(data[3], 0xdeadbeef);
    }
    uint16_t half;
    dtype_store(&half, DT_F16, 0, 65519.99f);
    assert_int_equal(half, 0x7bff);
    dtype_store(&half, DT_BF16, 0, 1.00390625f); /* a tie: to even */
    assert_true(dtype_load(&half, DT_BF16, 0) == 1.0f);
    int32_t whole;
    static const struct {
        float from;
        int32_t to;
    } rows[] = {{2.5f, 2}, {3.5f, 4}, {-2.5f, -2}, {3e9f, INT32_MAX}, {-3e9f, INT32_MIN}, {NAN, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dtype_store(&whole, DT_I32, 0, rows[i].from);
        assert_int_equal(whole, rows[i].to);
    }
}

static void test_names(void **state) {
    (void)state;
    static const int bits[N_DTYPES] = {32, 16, 16, 8, 4, 4, 32};
    for (int i = 0; i < N_DTYPES; i++) {
        assert_non_null(dtype_names[i]);
        assert_int_equal(dtype_bits((enum dtype)i), bits[i]);
    }
    assert_null(dtype_names[N_DTYPES]);
    assert_null(scale_names[N_SCALES]);
    int i = 0;
    for (; weight_formats[i].name; i++) {
        assert_string_equal(weight_formats[i].name, weight_format_names[i]);
        /* The word itself says the type; a suffix says the scale, where it is not the usual one. */
        size_t n = strcspn(weight_formats[i].name, "-");
        assert_int_equal(strncmp(weight_formats[i].name, dtype_names[weight_formats[i].type], n),
                         0);
        if (weight_formats[i].name[n])
            assert_string_equal(weight_formats[i].name + n + 1,
                                scale_names[weight_formats[i].scale]);
    }
    assert_int_equal(i, 10);
    assert_null(weight_format_names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_all), cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16),    cmocka_unit_test(test_load_store),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
