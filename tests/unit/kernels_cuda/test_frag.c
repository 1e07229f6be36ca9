/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of quantized weights as C sees them: every code of a whole weight has a place of its own
   within the weight's bytes, a tile's codes stay in the tile, and NF4's levels are those of
   dtype.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cuda/frag.cuh"
#include "kernels/dtype.h"

typedef int64_t place_map(int64_t row, int64_t col, int64_t padded_cols);

static void check_places(place_map *place, int64_t rows, int64_t cols) {
    unsigned char *seen = calloc((size_t)(rows * cols), 1);
    assert_non_null(seen);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            const int64_t p = place(r, c, cols);
            assert_true(p >= 0 && p < rows * cols);
            assert_int_equal(p / (FRAG_ROWS * cols), r / FRAG_ROWS);
            assert_int_equal(seen[p]++, 0);
        }
    }
    free(seen);
}

static void test_places(void **state) {
    (void)state;
    static place_map *const maps[] = {int8_place, int4_place, nf4_place};
    static const int64_t cols[] = {64, 128, 192, 896};
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) check_places(maps[m], 48, cols[i]);
}

/* A vocabulary of 152k by 5,120 columns has more codes than 32 bits count. */
static void test_large_weights(void **state) {
    (void)state;
    const int64_t rows = 8 * 152064, cols = 5120;
    assert_true(int8_place(rows - 1, cols - 1, cols) > UINT32_MAX);
    assert_int_equal(int8_place(rows - 16, 0, cols), (rows - 16) * cols);
    assert_int_equal(int4_place(rows - 16, 0, cols), (rows - 16) * cols);
    assert_int_equal(nf4_place(rows - 16, 0, cols), (rows - 16) * cols);
}

static void test_nf4_levels(void **state) {
    (void)state;
    for (int code = 0; code < 16; code++)
        assert_int_equal(nf4_level_bits(code), f32_bits(nf4_levels[code]));
    assert_int_equal(nf4_level_bits(NF4_ZERO), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_large_weights),
        cmocka_unit_test(test_nf4_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
