/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic weights: the shape of their distribution (seed E34), the same for every order and
 * width. */
#include "tests/unit/workloads/drive.h"

#include "workloads/common/tokens.h"
#include "workloads/model/synth.h"

enum { ROWS = 896, COLS = 4864 }; /* the matrix of E34 */

static void distribution_is_trained_like(void **state) {
    struct synth_matrix matrix = synth_layer_matrix(1, 12, SYNTH_DOWN, COLS);
    float *row = must_alloc(sizeof *row * COLS);
    double sum = 0, squares = 0, most = 0, absolute = 0, n = (double)ROWS * COLS;
    int64_t beyond = 0, halves = 0;
    (void)state;
    for (int64_t r = 0; r < ROWS; r++) {
        synth_row(&matrix, r, row);
        for (int c = 0; c < COLS; c++) {
            sum += (double)row[c];
            squares += (double)row[c] * (double)row[c];
            absolute += fabs((double)row[c]);
            if (fabs((double)row[c]) > most) most = fabs((double)row[c]);
        }
    }
    double deviation = sqrt(squares / n);
    for (int64_t r = 0; r < ROWS; r++) {
        synth_row(&matrix, r, row);
        for (int c = 0; c < COLS; c++) {
            beyond += fabs((double)row[c]) > 6 * deviation;
            halves += fabs((double)row[c]) < 0.6745 * deviation; /* half of a normal distribution */
        }
    }
    assert_true(fabs(sum / n) < deviation / 300);
    assert_true(fabs(deviation * sqrt(COLS) - 1) < 0.03);
    assert_true(most / deviation > 22 && most / deviation < 24.5); /* E34: 24.1 */
    assert_true((double)beyond > 692 * 0.9 &&
                (double)beyond < 692 * 1.1); /* E34: 692 of 4,358,144 */
    assert_true(fabs((double)halves / n - 0.5) < 0.02);
    assert_true(fabs(absolute / n / deviation - 0.79) < 0.03); /* E34: 0.01386 / 0.01822 = 0.76 */
    free(row);
}

static void narrow_rows_begin_like_wide_ones(void **state) {
    float a[300], b[301];
    (void)state;
    for (int64_t cols = 1; cols <= 300; cols += 7) {
        struct synth_matrix matrix = synth_matrix(3, 4, cols),
                            wide = {
                                .key = matrix.key, .cols = 301, .unit = matrix.unit, .tail = true};
        a[cols - 1] = -1;
        synth_row(&matrix, 5, a);
        synth_row(&wide, 5, b);
        /* Outliers are placed per block of 128 columns, so that only ones beyond the narrow row's
         * end are lost. */
        assert_memory_equal(a, b, sizeof *a * (size_t)cols);
    }
}

static void integers_times_a_short_unit(void **state) {
    (void)state;
    for (int64_t cols = 1; cols <= 262144; cols = cols * 3 / 2 + 1) {
        struct synth_matrix matrix = synth_matrix(1, 2, cols);
        int exponent;
        double mantissa = frexp((double)matrix.unit, &exponent) * 256;
        assert_true(mantissa == floor(mantissa));
        assert_true(fabs((double)matrix.unit * 148 * sqrt((double)cols) - 1) < 0.01);
    }
}

static void token_rows_have_no_tail(void **state) {
    struct synth_matrix matrix = synth_token_matrix(1, SYNTH_EMBEDDING, 896);
    float row[896];
    (void)state;
    for (int64_t r = 0; r < 2000; r++) {
        synth_row(&matrix, r, row);
        for (int c = 0; c < 896; c++) assert_true(fabsf(row[c]) <= 510 * matrix.unit);
    }
}

static void gains_are_near_one(void **state) {
    float gains[1000], last[1000], biases[1000];
    int negative = 0;
    (void)state;
    synth_gains(1, synth_stream(0, SYNTH_NORM_1), 1000, gains);
    synth_gains(1, SYNTH_NORM_LAST, 1000, last);
    synth_biases(1, synth_stream(0, SYNTH_BIAS_Q), 1000, biases);
    for (int i = 0; i < 1000; i++) {
        assert_true(gains[i] >= 0.875f && gains[i] < 1.125f);
        assert_true(fabsf(last[i]) >= 0.875f && fabsf(last[i]) < 1.125f);
        assert_true(fabsf(biases[i]) <= 0.125f);
        negative += last[i] < 0;
    }
    assert_true(negative > 400 && negative < 600);
}

static void streams_are_distinct(void **state) {
    const struct token_stream stream = {.seed = 1, .vocab = 50000};
    int32_t a[64], b[64], c[64];
    (void)state;
    tokens_fill(&stream, 0, 0, 64, a);
    tokens_fill(&stream, 1, 0, 64, b);
    tokens_fill(&stream, 0, 32, 32, c);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_equal(a + 32, c, 32 * sizeof *c); /* a longer prompt begins like a shorter one */
    for (int i = 0; i < 64; i++) assert_true(a[i] >= 0 && a[i] < 50000);
    memset(b, 0, sizeof b);
    assert_true(tokens_entropy(b, 64) == 0);
    for (int i = 0; i < 64; i++) b[i] = i / 2;
    assert_true(fabs(tokens_entropy(b, 64) - 5) < 1e-12);
    assert_true(tokens_stream_entropy(&stream, 4, 64) > 7.9);
}

static void constant_streams_are_one_token(void **state) {
    const struct token_stream one = {.seed = 1, .vocab = 50000, .input = TOKENS_CONSTANT},
                              random = {.seed = 1, .vocab = 50000};
    int32_t a[64], b[64];
    (void)state;
    tokens_fill(&one, 0, 0, 64, a);
    tokens_fill(&one, 3, 7, 64, b);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 64; i++) assert_int_equal(a[i], a[0]);
    assert_true(tokens_stream_entropy(&one, 4, 64) == 0);
    assert_true(tokens_key(&one) != tokens_key(&random)); /* what is kept of them never mixes */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distribution_is_trained_like),
                                       cmocka_unit_test(narrow_rows_begin_like_wide_ones),
                                       cmocka_unit_test(integers_times_a_short_unit),
                                       cmocka_unit_test(token_rows_have_no_tail),
                                       cmocka_unit_test(gains_are_near_one),
                                       cmocka_unit_test(streams_are_distinct),
                                       cmocka_unit_test(constant_streams_are_one_token)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
