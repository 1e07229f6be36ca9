/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: nesting, payloads, what is lost, what does not balance; one recorder a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/range.h"

static void records_nested_ranges(void **state) {
    (void)state;
    range_pop(); /* outside any recording: nobody minds */
    int64_t begin = clock_ns();
    range_record(10);
    range_push(RANGE_RUN, "run", 0);
    range_push(RANGE_STEP, "step", 42);
    range_pop();
    range_push(RANGE_LAYER, "layer", -7);
    range_pop();
    range_pop();
    const struct range_event *e;
    size_t lost = 9;
    int unbalanced = 9;
    assert_int_equal(range_recorded(&e, &lost, &unbalanced), 3);
    assert_int_equal(lost, 0);
    assert_int_equal(unbalanced, 0);
    assert_string_equal(e[0].name, "step"); /* in order of closing */
    assert_string_equal(e[1].name, "layer");
    assert_string_equal(e[2].name, "run");
    assert_int_equal(e[0].depth, 1);
    assert_int_equal(e[1].depth, 1);
    assert_int_equal(e[2].depth, 0);
    assert_int_equal(e[0].payload, 42);
    assert_int_equal(e[1].payload, -7);
    assert_int_equal(e[0].category, RANGE_STEP);
    assert_int_equal(e[2].category, RANGE_RUN);
    assert_true(begin <= e[2].begin_ns && e[2].begin_ns <= e[0].begin_ns);
    assert_true(e[0].begin_ns <= e[0].end_ns && e[0].end_ns <= e[1].begin_ns);
    assert_true(e[1].end_ns <= e[2].end_ns && e[2].end_ns <= clock_ns());
    range_push(RANGE_RUN, "later", 0); /* recording has stopped */
    range_pop();
    assert_int_equal(range_recorded(&e, NULL, NULL), 3);
    range_record(0);
    assert_int_equal(range_recorded(&e, &lost, &unbalanced), 0);
    assert_null(e);
}

/* One buffer for many recordings: each begins with nothing open and nothing counted. */
static void begins_again(void **state) {
    const struct range_event *e;
    size_t lost;
    int unbalanced;
    (void)state;
    range_again(); /* there is no buffer: nobody minds */
    assert_false(range_recording());
    range_record(2);
    for (int k = 0; k < 3; k++) {
        assert_true(range_recording());
        range_push(RANGE_RUN, "left open", 0);
        for (int i = 0; i < 5; i++) {
            range_push(RANGE_STEP, "s", i);
            range_pop();
        }
        range_again();
        range_pop(); /* of what was open before */
        range_again();
        range_push(RANGE_STEP, "kept", k);
        range_pop();
        assert_int_equal(range_recorded(&e, &lost, &unbalanced), 1);
        assert_int_equal(lost, 0);
        assert_int_equal(unbalanced, 0);
        assert_int_equal(e[0].payload, k);
        assert_int_equal(e[0].depth, 0);
        assert_false(range_recording());
        range_again();
    }
    range_record(0);
}

static void counts_what_is_lost(void **state) {
    (void)state;
    range_record(2);
    for (int i = 0; i < 5; i++) {
        range_push(RANGE_STEP, "s", i);
        range_pop();
    }
    const struct range_event *e;
    size_t lost;
    int unbalanced;
    assert_int_equal(range_recorded(&e, &lost, &unbalanced), 2);
    assert_int_equal(lost, 3);
    assert_int_equal(unbalanced, 0);
    assert_int_equal(e[1].payload, 1);
    range_record(1000); /* deeper than any real nesting */
    for (int i = 0; i < 200; i++) range_push(RANGE_STEP, "deep", i);
    for (int i = 0; i < 200; i++) range_pop();
    size_t n = range_recorded(&e, &lost, &unbalanced);
    assert_int_equal(n + lost, 200);
    assert_int_equal(n, 64); /* the innermost ones are lost */
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(e[i].name, "deep");
        assert_int_equal(e[i].payload, 63 - i);
    }
    assert_int_equal(unbalanced, 0);
    range_record(0);
}

static void counts_what_does_not_balance(void **state) {
    (void)state;
    const struct range_event *e;
    int unbalanced;
    range_record(5);
    range_pop();
    range_push(RANGE_RUN, "a", 0);
    range_pop();
    range_pop();
    assert_int_equal(range_recorded(&e, NULL, &unbalanced), 1);
    assert_int_equal(unbalanced, 2);
    range_record(5);
    range_push(RANGE_RUN, "a", 0);
    range_push(RANGE_RUN, "b", 0);
    range_pop();
    assert_int_equal(range_recorded(&e, NULL, &unbalanced), 1);
    assert_int_equal(unbalanced, 1);
    range_record(0);
}

static void long_names_are_cut(void **state) {
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    range_record(1);
    range_push(RANGE_RUN, name, 0);
    range_pop();
    const struct range_event *e;
    assert_int_equal(range_recorded(&e, NULL, NULL), 1);
    assert_int_equal(strlen(e->name), sizeof e->name - 1);
    range_record(0);
}

static void *other_thread(void *seen) {
    const struct range_event *e;
    range_push(RANGE_STEP, "other", 0);
    range_pop();
    *(size_t *)seen = range_recorded(&e, NULL, NULL) + (range_active() ? 100 : 0);
    return NULL;
}

static void each_thread_records_its_own(void **state) {
    (void)state;
    range_record(5);
    size_t seen = 9;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen % 100, 0);
    const struct range_event *e;
    assert_int_equal(range_recorded(&e, NULL, NULL), 0);
    range_record(0);
}

static void says_who_listens(void **state) {
    (void)state;
    bool tool = range_active(); /* a profiler may be watching this very test */
    range_activate(true);
    assert_true(range_active());
    range_activate(false);
    assert_int_equal(range_active(), tool);
    range_record(1);
    assert_true(range_active());
    const struct range_event *e;
    range_recorded(&e, NULL, NULL);
    assert_int_equal(range_active(), tool);
    range_record(0);
}

static void costs_little_when_nobody_listens(void **state) {
    (void)state;
    if (range_active()) skip();
    double best = 1e9;
    for (int batch = 0; batch < 20; batch++) {
        int64_t begin = clock_ns();
        for (int i = 0; i < 10000; i++) {
            range_push(RANGE_STEP, "step", i);
            range_pop();
        }
        double cost = (double)(clock_ns() - begin) / 10000;
        best = cost < best ? cost : best;
    }
    print_message("a pair costs %.1f ns, built with NVTX: %d\n", best, range_built());
    assert_true(best < 500); /* generous: sanitizers and slow machines; a system call would show */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_nested_ranges), cmocka_unit_test(begins_again),
        cmocka_unit_test(counts_what_is_lost),   cmocka_unit_test(counts_what_does_not_balance),
        cmocka_unit_test(long_names_are_cut),    cmocka_unit_test(each_thread_records_its_own),
        cmocka_unit_test(says_who_listens),      cmocka_unit_test(costs_little_when_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
