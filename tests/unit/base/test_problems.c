/* SPDX-License-Identifier: Apache-2.0 */
/* Problems: places, the other key, order, repetition, the closing line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/facts.h"
#include "base/problems.h"
#include "base/text.h"

static void assert_prints(const struct problems *p, const char *want) {
    struct text t = {0};
    text_add(&t, "", 0);
    problems_print(p, &t);
    assert_string_equal(t.data, want);
    text_free(&t);
}

static void reads_as_designed(void **state) {
    (void)state;
    struct problems *p = problems_create();
    struct facts f = {0};
    facts_set(&f, "workload.batch", "0", "", "my.toml:21:18");
    facts_set(&f, "model.shape", "x", "", "my.toml:7:1");
    facts_set(&f, "model.file", "y", "", "my.toml:9:1");
    problems_scope(p, &f);
    problem(p, "workload.batch", NULL, "%d is outside 1 \xe2\x80\xa6 4096", 0);
    problem_at(p, "my.toml:14:1",
               "[measure] takes: budget, level, order, precision, rounds, seed, warmups",
               "unknown key '%s' in [measure]; did you mean 'warmups'?", "warmpu");
    problem(p, "model.shape", "model.file", "model.shape and model.file exclude each other");
    assert_int_equal(problems_count(p), 3);
    assert_prints(p, "my.toml:7:1: model.shape and model.file (line 9) exclude each other\n"
                     "my.toml:14:1: unknown key 'warmpu' in [measure]; did you mean 'warmups'?\n"
                     "    [measure] takes: budget, level, order, precision, rounds, seed, warmups\n"
                     "my.toml:21:18: workload.batch: 0 is outside 1 \xe2\x80\xa6 4096\n"
                     "3 mistakes; nothing was measured\n");
    problems_close(&p);
    assert_null(p);
    problems_close(&p);
    facts_free(&f);
}

static void sorts_numbers_as_numbers(void **state) {
    (void)state;
    struct problems *p = problems_create();
    static const char *const places[] = {"b.toml:1:1", "a.toml:100:1", "a.toml:9:20", "a.toml:9:3",
                                         "",           "a.toml:9",     "odd:place",   "a.toml:9:3"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        problem_at(p, places[i], NULL, "m%zu", i);
    assert_prints(
        p, "a.toml:9: m5\na.toml:9:3: m3\na.toml:9:3: m7\na.toml:9:20: m2\na.toml:100:1: m1\n"
           "b.toml:1:1: m0\nm4\nodd:place: m6\n8 mistakes; nothing was measured\n");
    problems_close(&p);
}

static void keeps_repetitions_once(void **state) {
    (void)state;
    struct problems *p = problems_create();
    assert_prints(p, "");
    for (int i = 0; i < 3; i++) problem(p, "k", NULL, "bad");
    problem_at(p, NULL, NULL, "k: bad");
    assert_int_equal(problems_count(p), 1);
    assert_prints(p, "k: bad\n1 mistake; nothing was measured\n");
    problem_at(p, NULL, "takes x", "k: bad"); /* says more */
    problem(p, "k2", NULL, "bad");
    assert_int_equal(problems_count(p), 3);
    problems_close(&p);
}

static void says_where_a_key_came_from(void **state) {
    (void)state;
    struct problems *p = problems_create();
    struct facts f = {0};
    facts_set(&f, "s", "", "", "--set");
    facts_set(&f, "d", "", "", "default");
    facts_set(&f, "x", "", "", "x.toml:3:5");
    facts_set(&f, "x2", "", "", "x.toml:4:5");
    facts_set(&f, "y", "", "", "y.toml:8:1");
    problem(p, "early", "x", "no scope"); /* before any scope is set */
    problems_scope(p, &f);
    problem(p, "s", NULL, "is 1");
    problem(p, "s", "x", "is 2");
    problem(p, "d", "s", "is 3");
    problem(p, "none", "d", "is 4");
    problem(p, "x", "y", "is 5");
    problem(p, "x", "x2", "is 6, as x2 says; x2x is another");
    problem(p, "x", "s", "s.t is not s.");
    problem(p, NULL, NULL, "of no key");
    assert_prints(p, "x.toml:3:5: x: is 5 (with y, y.toml:8)\n"
                     "x.toml:3:5: x: is 6, as x2 (line 4) says; x2x is another\n"
                     "x.toml:3:5: x: s.t is not s (--set).\n"
                     "early: no scope (with x)\n"
                     "--set s: is 1\n"
                     "--set s: is 2 (with x, line 3)\n"
                     "d: is 3 (with s, --set)\n"
                     "none: is 4 (with d)\n"
                     "of no key\n"
                     "9 mistakes; nothing was measured\n");
    problems_close(&p);
    facts_free(&f);
}

static void odd_places_do_no_harm(void **state) {
    (void)state;
    struct problems *p = problems_create();
    static const char *const places[] = {":",      ":1",    ":1:2",
                                         "a:",     "a:0:0", "a:99999999999999999999:1",
                                         "a:-3:4", "::::",  "C:b.toml:2:1"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        problem_at(p, places[i], NULL, "%s%%", "x");
    assert_int_equal(problems_count(p), 9);
    struct text t = {0};
    problems_print(p, &t);
    assert_non_null(strstr(t.data, "C:b.toml:2:1: x%\n"));
    assert_non_null(strstr(t.data, "a:-3:4: x%\n"));
    text_free(&t);
    problems_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_as_designed),      cmocka_unit_test(sorts_numbers_as_numbers),
        cmocka_unit_test(keeps_repetitions_once), cmocka_unit_test(says_where_a_key_came_from),
        cmocka_unit_test(odd_places_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
