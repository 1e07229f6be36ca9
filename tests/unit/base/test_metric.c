/* SPDX-License-Identifier: Apache-2.0 */
/* The small list of numbers that a workload reports: set, replace, full, absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metric.h"

static void sets_and_replaces(void **state) {
    (void)state;
    struct values v = {0};
    assert_true(isnan(values_get(&v, "absent")));
    values_set(&v, "acceptance", 0.5);
    values_set(&v, "accept", 7);
    values_set(&v, "acceptance", 0.75);
    assert_int_equal(v.n, 2);
    assert_true(values_get(&v, "acceptance") >= 0.75 && values_get(&v, "acceptance") <= 0.75);
    assert_true(values_get(&v, "accept") >= 7 && values_get(&v, "accept") <= 7);
    assert_true(isnan(values_get(&v, "accep"))); /* a prefix is another name */
    values_set(&v, "accept", NAN);
    assert_true(isnan(values_get(&v, "accept")));
    assert_int_equal(v.n, 2);
    assert_string_equal(v.items[0].name, "acceptance"); /* in the order of the first setting */
}

static void full_drops_new_names_only(void **state) {
    (void)state;
    struct values v = {0};
    char name[32];
    for (int i = 0; i < VALUES_MOST + 10; i++) {
        snprintf(name, sizeof name, "metric %d", i);
        values_set(&v, name, i);
    }
    assert_int_equal(v.n, VALUES_MOST);
    assert_true(isnan(values_get(&v, "metric 64")));
    values_set(&v, "metric 63", -1);
    assert_true(values_get(&v, "metric 63") < 0);
    assert_int_equal(v.n, VALUES_MOST);
}

static void long_names_are_cut_and_found(void **state) {
    (void)state;
    struct values v = {0};
    char name[200];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    values_set(&v, name, 1);
    values_set(&v, name, 2);
    assert_int_equal(v.n, 1);
    assert_int_equal(strlen(v.items[0].name), sizeof v.items[0].name - 1);
    assert_true(values_get(&v, name) >= 2);
}

static void no_infinity_is_kept(void **state) {
    (void)state;
    struct values v = {0};
    values_set(&v, "rate", (double)INFINITY);
    values_set(&v, "change", -(double)INFINITY);
    assert_true(isnan(values_get(&v, "rate")) && isnan(values_get(&v, "change")));
    assert_int_equal(v.n, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_and_replaces),
        cmocka_unit_test(full_drops_new_names_only),
        cmocka_unit_test(long_names_are_cut_and_found),
        cmocka_unit_test(no_infinity_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
