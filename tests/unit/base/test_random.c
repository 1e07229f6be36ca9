/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the published stream, ranges, moments, permutations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"

/* From tests/golden/base_values.py. */
static void follows_splitmix64(void **state) {
    (void)state;
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u};
    static const uint32_t below[] = {350, 173, 532, 249, 889, 423};
    for (uint64_t i = 0; i < 4; i++) assert_true(random_at(1234567, i) == want[i]);
    for (uint64_t i = 0; i < 6; i++) assert_int_equal(random_below(1234567, i, 1000), below[i]);
    assert_true(random_unit(1234567, 0) == 0x1.667b405fec23ep-2);
    assert_true(random_unit(1234567, 1) == 0x1.639f8422c2a04p-3);
    assert_true(fabs(random_normal(1234567, 0) - 0.4284879007349292) < 1e-12);
    assert_true(fabs(random_normal(1234567, 1) - 0.007685698515048663) < 1e-12);
    assert_true(random_key(42, 3) == 6349198060258255764u);
}

static void stays_in_range(void **state) {
    (void)state;
    uint64_t key = random_key(3, 0);
    int seen[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) {
        uint32_t v = random_below(key, i, 7);
        assert_true(v < 7);
        seen[v]++;
        double u = random_unit(key, i);
        assert_true(u >= 0 && u < 1);
    }
    for (int v = 0; v < 7; v++)
        assert_in_range(seen[v], 9500, 10500); /* five standard deviations */
    assert_int_equal(random_below(key, 5, 1), 0);
    assert_int_equal(random_below(key, 5, 0), 0);
}

static void normals_have_their_moments(void **state) {
    (void)state;
    enum { N = 100000 };
    uint64_t key = random_key(11, 4);
    double sum = 0, square = 0, cube = 0, fourth = 0, product = 0, last = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = random_normal(key, i);
        assert_true(isfinite(x));
        assert_true(x == random_normal(key, i));
        sum += x;
        square += x * x;
        cube += x * x * x;
        fourth += x * x * x * x;
        product += x * last;
        last = x;
    }
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(cube / N) < 5 * sqrt(15.0 / N));
    assert_true(fabs(fourth / N - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(product / N) < 5 / sqrt(N)); /* neighbours do not depend on each other */
}

static void shuffles_are_permutations(void **state) {
    (void)state;
    int32_t v[10], want[10] = {5, 9, 1, 0, 6, 7, 4, 2, 3, 8};
    for (int32_t i = 0; i < 10; i++) v[i] = i;
    random_shuffle(1234567, v, 10);
    int32_t seen = 0;
    for (int i = 0; i < 10; i++) seen |= 1 << v[i];
    assert_int_equal(seen, 1023);
    assert_memory_equal(v, want, sizeof want);
    int32_t one = 4;
    random_shuffle(1, &one, 1);
    assert_int_equal(one, 4);
    random_shuffle(1, NULL, 0);
    int first[6] = {0};
    for (uint64_t key = 0; key < 60000; key++) { /* all orders of three, equally often */
        int32_t three[] = {0, 1, 2};
        random_shuffle(random_key(7, key), three, 3);
        first[three[0] * 2 + (three[1] > three[2])]++;
    }
    for (int i = 0; i < 6; i++) assert_in_range(first[i], 9500, 10500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_splitmix64),
        cmocka_unit_test(stays_in_range),
        cmocka_unit_test(normals_have_their_moments),
        cmocka_unit_test(shuffles_are_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
