/* SPDX-License-Identifier: Apache-2.0 */
/* The clock moves, its resolution and cost are plausible and cached, dates are dates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tests/support/german.h"

static void follows_the_monotonic_clock(void **state) {
    (void)state;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t before = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, now = clock_ns();
    clock_gettime(CLOCK_MONOTONIC, &t);
    assert_in_range(now, before, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    struct timespec pause = {0, 20000000};
    int64_t begin = clock_ns();
    nanosleep(&pause, NULL);
    assert_true(clock_ns() - begin >= 20000000);
}

static void resolution_and_cost_are_plausible(void **state) {
    (void)state;
    int64_t resolution = clock_resolution_ns();
    double cost = clock_cost_ns();
    assert_in_range(resolution, 1, 20000000); /* up to a 50 Hz tick */
    assert_true(cost > 0.5 && cost < 100000);
    int64_t begin = clock_ns();
    for (int i = 0; i < 100; i++) {
        assert_true(clock_resolution_ns() == resolution); /* cached */
        assert_true(clock_cost_ns() == cost);
    }
    assert_true((double)(clock_ns() - begin) < 200 * 4096 * cost);
}

static void dates_are_utc(void **state) {
    (void)state;
    setenv("TZ", "XXX-11:30", 1); /* far from UTC */
    tzset();
    german_begin();
    time_t before = time(NULL);
    char date[32], stamp[32];
    assert_ptr_equal(clock_rfc3339(date), date);
    clock_stamp(stamp);
    time_t after = time(NULL);
    german_end();
    struct tm tm = {0};
    const char *end = strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm);
    assert_true(end && !*end && strlen(date) == 20);
    assert_in_range(timegm(&tm), before, after);
    memset(&tm, 0, sizeof tm);
    end = strptime(stamp, "%Y%m%d-%H%M%S", &tm);
    assert_true(end && !*end && strlen(stamp) == 15);
    assert_in_range(timegm(&tm), before, after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_monotonic_clock),
        cmocka_unit_test(resolution_and_cost_are_plausible),
        cmocka_unit_test(dates_are_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
