/* SPDX-License-Identifier: Apache-2.0 */
/* Axes: ticks inside the range, readable labels, and sense in odd data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "plots/axis.h"
#include "tests/support/german.h"

static void check(const struct axis *a) {
    assert_true(isfinite(a->lo) && isfinite(a->hi) && a->lo < a->hi);
    assert_true(!a->log || a->lo > 0);
    for (int i = 0; i < a->n_ticks; i++) {
        double place = axis_place(a, a->tick[i]);
        assert_true(place > -1e-6 && place < 1 + 1e-6);
        if (i) assert_true(a->tick[i] > a->tick[i - 1]);
    }
}

static void any_range_gets_ticks(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 4000; i++) {
        double v[3];
        for (uint64_t k = 0; k < 3; k++) v[k] = pow(10, 24 * random_unit(random_key(1, i), k) - 12);
        struct axis a;
        axis_fit(&a, v, 3, true, false);
        check(&a);
        assert_true(a.n_ticks >= 2);
        axis_fit(&a, v, 3, false, i % 2);
        check(&a);
        assert_true(a.n_ticks >= 2);
        double near[] = {v[0], v[0] * (1 + 1e-3 * random_unit(random_key(1, i), 9))};
        axis_fit(&a, near, 2, i % 2, false);
        check(&a);
        assert_true(a.n_ticks >= 1);
    }
}

static void odd_values_are_passed_over(void **state) {
    (void)state;
    struct axis a;
    double v[] = {NAN, INFINITY, -1, 0};
    axis_fit(&a, v, 4, true, false);
    assert_false(a.used);
    check(&a);
    axis_fit(&a, v, 0, false, true);
    assert_false(a.used);
    check(&a);
    double same[] = {5, 5, 5}, zero[] = {0, 0};
    axis_fit(&a, same, 3, false, false);
    assert_true(a.used);
    check(&a);
    assert_true(a.lo < 5 && a.hi > 5);
    axis_fit(&a, zero, 2, false, true);
    check(&a);
    assert_true(isnan(axis_place(&a, NAN)));
}

static void sweeps_have_ticks_at_their_values(void **state) {
    (void)state;
    double v[] = {1, 2, 4, 8, 16, 32};
    struct axis a;
    assert_true(axis_wants_log(v, 6));
    axis_fit(&a, v, 6, true, false);
    axis_ticks_at(&a, v, 6);
    assert_int_equal(a.n_ticks, 6);
    for (int i = 0; i < 6; i++) assert_true(fabs(a.tick[i] - v[i]) < 1e-12);
    double few[] = {10, 11, 12};
    assert_false(axis_wants_log(few, 3));
    double signs[] = {-1, 100};
    assert_false(axis_wants_log(signs, 2));
}

static void labels_are_short(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *label;
    } cases[] = {{0, "0"},        {1, "1"},         {0.5, "0.5"},   {1024, "1024"},
                 {250, "250"},    {1e4, "10 k"},    {2e10, "20 G"}, {1.5e5, "150 k"},
                 {1e-5, "1e-05"}, {0.025, "0.025"}, {-2, "-2"},     {1.87e11, "187 G"}};
    char buf[32];
    for (int comma = 0; comma < 2; comma++) {
        if (comma) german_begin();
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            assert_string_equal(axis_label(buf, cases[i].v), cases[i].label);
    }
    german_end();
    struct axis a = {.n_ticks = 2, .tick = {1000, 100000}};
    assert_string_equal(axis_tick_label(&a, 0, buf), "1 k");
    a.tick[1] = 2000;
    assert_string_equal(axis_tick_label(&a, 0, buf), "1000");
    a = (struct axis){.n_ticks = 2, .tick = {1024, 131072}}; /* 1.02 k and 131 k would be wrong */
    assert_string_equal(axis_tick_label(&a, 0, buf), "1024");
    assert_string_equal(axis_tick_label(&a, 1, buf), "131072");
    a = (struct axis){.n_ticks = 2, .tick = {1024, 2097152}}; /* too long to be said in full */
    assert_string_equal(axis_tick_label(&a, 1, buf), "2.1 M");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_range_gets_ticks),
        cmocka_unit_test(odd_values_are_passed_over),
        cmocka_unit_test(sweeps_have_ticks_at_their_values),
        cmocka_unit_test(labels_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
