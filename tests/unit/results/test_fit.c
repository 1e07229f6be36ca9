/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, bends and hinges: exact on exact data, refused where they say nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "results/fit.h"

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("got %.12g, wanted %.12g", got, want);
}

static void line_is_exact(void **state) {
    (void)state;
    double x[] = {1, 2, 5, 9}, y[4], a, b;
    for (int i = 0; i < 4; i++) y[i] = 3 - 0.5 * x[i];
    assert_true(fit_line(x, y, 4, &a, &b));
    near(a, 3, 1e-12);
    near(b, -0.5, 1e-12);
    double same[] = {2, 2, 2};
    assert_false(fit_line(same, y, 3, &a, &b));
    assert_true(isnan(b));
    assert_false(fit_line(x, y, 1, &a, &b));
}

static void bend_is_the_quadratic_term(void **state) {
    (void)state;
    double x[] = {-1, 0.5, 2, 4, 7}, y[5];
    for (int i = 0; i < 5; i++) y[i] = 1 + 2 * x[i] - 0.75 * x[i] * x[i];
    near(fit_bend(x, y, 5), -0.75, 1e-12);
    for (int i = 0; i < 5; i++) y[i] = 4 + 2 * x[i];
    near(fit_bend(x, y, 5), 0, 1e-12);
    assert_true(isnan(fit_bend(x, y, 2)));
    double two[] = {1, 1, 3, 3};
    assert_true(isnan(fit_bend(two, y, 4)));
}

static void hinge_is_exact(void **state) {
    (void)state;
    double x[] = {1, 2, 4, 8, 16, 32}, t[6];
    struct hinge h;
    static const double knees[] = {1.5, 3, 9.2, 8, 15};
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < 6; i++) t[i] = fmax(53, 53 + 6 * (x[i] - knees[k]));
        assert_int_equal(fit_hinge(x, t, 6, &h), HINGE_INSIDE);
        near(h.knee, knees[k], 1e-4);
        near(h.level, 53, 1e-4);
        near(h.slope, 6, 1e-4);
        assert_true(h.error < 1e-6);
        assert_true(h.error_line > 0.01);
    }
}

static void hinge_says_where_there_is_none(void **state) {
    (void)state;
    double x[] = {1, 2, 4, 8, 16}, t[5];
    struct hinge h;
    for (int i = 0; i < 5; i++) t[i] = 10;
    assert_int_equal(fit_hinge(x, t, 5, &h), HINGE_ABOVE);
    for (int i = 0; i < 5; i++) t[i] = 10 + 3 * x[i];
    assert_int_equal(fit_hinge(x, t, 5, &h), HINGE_BELOW);
    for (int i = 0; i < 5; i++) t[i] = i == 4 ? 14 : 10; /* one point on the slope: anywhere */
    assert_int_equal(fit_hinge(x, t, 5, &h), HINGE_ABOVE);
    for (int i = 0; i < 5; i++) t[i] = 20 - x[i]; /* falls: the level is the best there is */
    assert_int_equal(fit_hinge(x, t, 5, &h), HINGE_ABOVE);
}

static void hinge_refuses(void **state) {
    (void)state;
    double x[] = {1, 2, 4, 8}, t[] = {1, 1, 2, 4}, zero[] = {1, 1, 0, 4}, twice[] = {1, 2, 2, 8};
    double nan[] = {1, 1, NAN, 4};
    struct hinge h;
    assert_int_equal(fit_hinge(x, t, 3, &h), HINGE_NONE);
    assert_int_equal(fit_hinge(x, zero, 4, &h), HINGE_NONE);
    assert_int_equal(fit_hinge(twice, t, 4, &h), HINGE_NONE);
    assert_int_equal(fit_hinge(x, nan, 4, &h), HINGE_NONE);
    assert_int_equal(fit_hinge(x, t, 4, &h), HINGE_INSIDE);
    near(h.knee, 2, 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_is_exact),  cmocka_unit_test(bend_is_the_quadratic_term),
        cmocka_unit_test(hinge_is_exact), cmocka_unit_test(hinge_says_where_there_is_none),
        cmocka_unit_test(hinge_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
