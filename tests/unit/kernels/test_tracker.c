/* SPDX-License-Identifier: Apache-2.0 */
/* The tracker against a replay of its own log and a plain model: peaks to the byte, spikes,
 * accounts, many addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "kernels/tracker.h"

enum { MANY = 3000 };
#define GIB ((size_t)1 << 30)

static const void *address(uintptr_t i) { return (const void *)(0x7f0000000000u + i * 64); }

/* Sums the log again: the largest total, and by class at that moment. */
static int64_t replay(const struct tracker *t, int64_t by_class[N_CLASSES], int64_t *live) {
    size_t n;
    const struct memory_event *log = tracker_log(t, &n);
    int64_t total = 0, peak = 0, now[N_CLASSES] = {0};
    memset(by_class, 0, sizeof now);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(log[i].class_of, 0, N_CLASSES - 1);
        if (i > 0) assert_true(log[i].t_ns >= log[i - 1].t_ns);
        total += log[i].bytes;
        now[log[i].class_of] += log[i].bytes;
        assert_true(now[log[i].class_of] >= 0);
        if (total > peak && log[i].bytes > 0 && log[i].phase != TRACKER_ASIDE) {
            peak = total;
            memcpy(by_class, now, sizeof now);
        }
    }
    *live = total;
    return peak;
}

static void check(const struct tracker *t) {
    int64_t live, again[N_CLASSES], by_class[N_CLASSES], peak = replay(t, again, &live);
    assert_int_equal(tracker_peak(t, by_class, NULL, NULL), peak);
    assert_memory_equal(by_class, again, sizeof again);
    assert_int_equal(tracker_live(t, -1), live);
}

static void test_empty(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    const char *site;
    int phase;
    size_t n;
    assert_int_equal(tracker_peak(t, NULL, &site, &phase), 0);
    assert_string_equal(site, "");
    assert_int_equal(phase, -1);
    assert_int_equal(tracker_remove(t, address(1)), 0);
    assert_int_equal(tracker_remove(t, NULL), 0);
    tracker_log(t, &n);
    assert_int_equal(n, 0);
    tracker_reset(t);
    check(t);
    tracker_close(&t);
    assert_null(t);
    tracker_close(&t);
}

static void test_classes_sites_phases(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    int64_t by_class[N_CLASSES];
    const char *site;
    int phase;
    tracker_add(t, address(1), 1000, MEM_WEIGHT, "embedding");
    tracker_phase(t, 0);
    tracker_add(t, address(2), 500, MEM_KV, "cache");
    tracker_phase(t, 1);
    tracker_add(t, address(3), 70, MEM_ACTIVATION,
                "a name that is longer than what an event can hold of it");
    assert_int_equal(tracker_peak(t, by_class, &site, &phase), 1570);
    assert_int_equal(by_class[MEM_WEIGHT], 1000);
    assert_int_equal(by_class[MEM_KV], 500);
    assert_int_equal(by_class[MEM_ACTIVATION], 70);
    assert_int_equal(by_class[MEM_LOGITS], 0);
    assert_string_equal(site, "a name that is longer than what an even");
    assert_int_equal(phase, 1);
    assert_int_equal(tracker_remove(t, address(2)), 500);
    assert_int_equal(tracker_remove(t, address(2)), 0);
    assert_int_equal(tracker_live(t, MEM_KV), 0);
    assert_int_equal(tracker_live(t, -1), 1070);
    tracker_add(t, address(4), 500, MEM_LOGITS,
                "logits"); /* as high as before: the first one stays the peak */
    tracker_peak(t, by_class, &site, NULL);
    assert_int_equal(by_class[MEM_KV], 500);
    assert_int_equal(tracker_count(t), 4);
    size_t n;
    const struct memory_event *log = tracker_log(t, &n);
    assert_int_equal(n, 5);
    assert_int_equal(log[3].bytes, -500);
    assert_int_equal(log[3].class_of, MEM_KV);
    assert_int_equal(log[3].phase, 1);
    assert_string_equal(log[3].site, "cache");
    assert_int_equal(log[0].phase, -1);
    check(t);
    tracker_close(&t);
}

static void test_spike(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    tracker_add(t, address(1), 12345, MEM_WEIGHT, "weights");
    tracker_phase(t, 3);
    tracker_add(t, address(2), GIB, MEM_WORKSPACE, "spike");
    int64_t until = clock_ns() + 5000000;
    while (clock_ns() < until) {}
    tracker_remove(t, address(2));
    tracker_phase(t, 4);
    tracker_add(t, address(3), 99, MEM_OTHER, "later");
    const char *site;
    int phase;
    int64_t by_class[N_CLASSES];
    assert_int_equal(tracker_peak(t, by_class, &site, &phase), (int64_t)GIB + 12345);
    assert_int_equal(by_class[MEM_WORKSPACE], GIB);
    assert_string_equal(site, "spike");
    assert_int_equal(phase, 3);
    size_t n;
    const struct memory_event *log = tracker_log(t, &n);
    assert_int_equal(n, 4);
    assert_in_range(log[2].t_ns - log[1].t_ns, 5000000, 5000000000);
    check(t);
    tracker_close(&t);
}

/* What a check holds beside the measured work is live and logged, and makes no peak. */
static void test_aside(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    tracker_add(t, address(1), 1000, MEM_WEIGHT, "weights");
    tracker_phase(t, 1);
    tracker_aside(t, true);
    tracker_add(t, address(2), GIB, MEM_KV, "plain path");
    tracker_add(t, address(3), 50, MEM_WORKSPACE, "stays");
    assert_int_equal(tracker_live(t, -1), (int64_t)GIB + 1050);
    tracker_remove(t, address(2));
    tracker_aside(t, false);
    assert_int_equal(tracker_peak(t, NULL, NULL, NULL), 1000);
    tracker_add(t, address(4), 7, MEM_OTHER, "later");
    int phase;
    const char *site;
    assert_int_equal(tracker_peak(t, NULL, &site, &phase), 1057);
    assert_string_equal(site, "later");
    assert_int_equal(phase, 1);
    size_t n;
    const struct memory_event *log = tracker_log(t, &n);
    assert_int_equal(n, 5);
    assert_int_equal(log[1].phase, TRACKER_ASIDE);
    assert_int_equal(log[3].phase, TRACKER_ASIDE);
    assert_int_equal(log[4].phase, 1);
    check(t);
    tracker_close(&t);
}

static void test_reset(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    for (uintptr_t i = 0; i < 10; i++) tracker_add(t, address(i), 100 + i, MEM_KV, "cache");
    tracker_add(t, address(50), GIB, MEM_OTHER, "before the account");
    tracker_remove(t, address(50));
    for (uintptr_t i = 0; i < 10; i += 2) tracker_remove(t, address(i));
    tracker_phase(t, 2);
    tracker_reset(t);
    size_t n;
    const struct memory_event *log = tracker_log(t, &n);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) { /* one event per live allocation, as they came */
        assert_int_equal(log[i].bytes, 101 + 2 * i);
        assert_string_equal(log[i].site, "cache");
        assert_int_equal(log[i].phase, -1);
    }
    assert_int_equal(tracker_count(t), 0);
    assert_int_equal(tracker_peak(t, NULL, NULL, NULL), 101 + 103 + 105 + 107 + 109);
    check(t);
    tracker_add(t, address(60), 1, MEM_STATE, "state");
    int phase;
    assert_int_equal(tracker_peak(t, NULL, NULL, &phase), 526);
    assert_int_equal(phase, 2); /* the phase outlives the account */
    assert_int_equal(tracker_count(t), 1);
    for (uintptr_t i = 1; i < 10; i += 2) assert_int_equal(tracker_remove(t, address(i)), 100 + i);
    tracker_remove(t, address(60));
    assert_int_equal(tracker_live(t, -1), 0);
    assert_int_equal(tracker_live_count(t), 0);
    check(t);
    tracker_reset(t);
    assert_int_equal(tracker_peak(t, NULL, NULL, NULL), 0);
    tracker_close(&t);
}

/* The same address again without a release seen: the old one is closed, nothing is counted twice.
 */
static void test_reused_address(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    tracker_add(t, address(1), 100, MEM_KV, "a");
    tracker_add(t, address(1), 30, MEM_OTHER, "b");
    assert_int_equal(tracker_live(t, MEM_KV), 0);
    assert_int_equal(tracker_live(t, -1), 30);
    assert_int_equal(tracker_remove(t, address(1)), 30);
    check(t);
    tracker_close(&t);
}

/* Thousands of allocations in random order against a plain array; addresses collide in the table.
 */
static void test_many(void **state) {
    (void)state;
    struct tracker *t = tracker_create();
    static int64_t bytes[MANY];
    int64_t total = 0, peak = 0, count = 0;
    uint64_t key = random_key(5, 0);
    size_t held = 0;
    for (uint64_t i = 0; i < 40000; i++) {
        uint32_t a = random_below(key, 3 * i, MANY);
        if (bytes[a]) {
            assert_int_equal(tracker_remove(t, address(a * 977)), bytes[a]);
            total -= bytes[a];
            bytes[a] = 0;
            held--;
        } else {
            bytes[a] = 1 + random_below(key, 3 * i + 1, 100000);
            tracker_phase(t, (int)(i / 1000));
            tracker_add(t, address(a * 977), (size_t)bytes[a],
                        random_below(key, 3 * i + 2, N_CLASSES), "many");
            total += bytes[a];
            held++;
            count++;
        }
        if (total > peak) peak = total;
        assert_int_equal(tracker_live(t, -1), total);
    }
    assert_int_equal(tracker_live_count(t), held);
    assert_int_equal(tracker_peak(t, NULL, NULL, NULL), peak);
    assert_int_equal(tracker_count(t), count);
    size_t n;
    tracker_log(t, &n);
    assert_int_equal(n, 40000);
    check(t);
    tracker_reset(t);
    check(t);
    for (uint32_t a = 0; a < MANY; a++)
        assert_int_equal(tracker_remove(t, address(a * 977)), bytes[a]);
    assert_int_equal(tracker_live(t, -1), 0);
    tracker_close(&t);
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < N_CLASSES; i++) assert_true(strlen(memory_class_names[i]) > 1);
    assert_null(memory_class_names[N_CLASSES]);
    assert_string_equal(memory_class_names[MEM_KV], "kv");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty), cmocka_unit_test(test_classes_sites_phases),
        cmocka_unit_test(test_spike), cmocka_unit_test(test_aside),
        cmocka_unit_test(test_reset), cmocka_unit_test(test_reused_address),
        cmocka_unit_test(test_many),  cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
