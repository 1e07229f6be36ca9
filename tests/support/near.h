/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles that must be near: cmocka's assert_float_equal compares floats. */
#ifndef TESTS_SUPPORT_NEAR_H
#define TESTS_SUPPORT_NEAR_H
#include <math.h>

#define assert_near(a, b, within) assert_true(fabs((double)(a) - (double)(b)) <= (within))

#endif
