/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of /proc and /sys: what is absent, cut, empty or otherwise than expected is no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "probes/common/tree.h"
#include "tests/support/made_up.h"

static void lines(void **state) {
    (void)state;
    struct made_up m;
    char line[16];
    made_up_open(&m);
    assert_false(tree_line(line, sizeof line, m.root, "absent"));
    made_up_file(&m, "a/b/one", "  performance \n");
    assert_true(tree_line(line, sizeof line, m.root, "a/%s/one", "b"));
    assert_string_equal(line, "performance");
    made_up_file(&m, "two", "first\nsecond\n");
    assert_true(tree_line(line, sizeof line, m.root, "two"));
    assert_string_equal(line, "first");
    made_up_file(&m, "no-newline", "tsc");
    assert_true(tree_line(line, sizeof line, m.root, "no-newline"));
    assert_string_equal(line, "tsc");
    made_up_file(&m, "empty", "");
    assert_false(tree_line(line, sizeof line, m.root, "empty"));
    made_up_file(&m, "blank", "  \n");
    assert_false(tree_line(line, sizeof line, m.root, "blank"));
    made_up_file(&m, "long", "0123456789abcdefghij\n"); /* cut, it would be another word */
    assert_false(tree_line(line, sizeof line, m.root, "long"));
    made_up_file(&m, "fits", "0123456789abcde");
    assert_false(tree_line(line, sizeof line, m.root, "fits")); /* whole or cut: not to be told */
    made_up_file(&m, "folder/x", "");
    assert_false(tree_line(line, sizeof line, m.root, "folder"));
    made_up_close(&m);
}

static void numbers(void **state) {
    (void)state;
    static const char *const bad[] = {"",    "x",   "12x", "1.5", "--1", "99999999999999999999",
                                      "1 2", "0x1", "-",   "1,",  "+1",  "1_0"};
    struct made_up m;
    int64_t v = 7;
    made_up_open(&m);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made_up_file(&m, "n", bad[i]);
        if (tree_number(&v, m.root, "n")) fail_msg("'%s' is no number", bad[i]);
        assert_int_equal(v, 7);
    }
    made_up_file(&m, "n", "9223372036854775807\n");
    assert_true(tree_number(&v, m.root, "n"));
    assert_true(v == INT64_MAX);
    made_up_file(&m, "n", " -5 \n");
    assert_true(tree_number(&v, m.root, "n"));
    assert_int_equal(v, -5);
    made_up_close(&m);
}

static void keyed_lines(void **state) {
    (void)state;
    struct made_up m;
    char out[32];
    int64_t bytes = 7;
    made_up_open(&m);
    made_up_file(&m, "f",
                 "model\t\t: 17\nmodel name\t:  Fast 9000 \nVmHWM:\t   1234 kB\nodd: 12 MB\n"
                 "bare: 5\nnegative: -3 kB\nhuge: 9223372036854775807 kB\nempty:\n");
    assert_true(tree_keyed(out, sizeof out, "model name", m.root, "f"));
    assert_string_equal(out, "Fast 9000");
    assert_true(tree_keyed(out, sizeof out, "model", m.root, "f"));
    assert_string_equal(out, "17");
    assert_false(tree_keyed(out, sizeof out, "name", m.root, "f"));
    assert_false(tree_keyed(out, sizeof out, "empty", m.root, "f"));
    assert_false(tree_keyed(out, 4, "model name", m.root, "f"));
    assert_true(tree_kib(&bytes, "VmHWM", m.root, "f"));
    assert_int_equal(bytes, 1234 * 1024);
    bytes = 7;
    assert_false(tree_kib(&bytes, "odd", m.root, "f"));
    assert_false(tree_kib(&bytes, "bare", m.root, "f"));
    assert_false(tree_kib(&bytes, "negative", m.root, "f"));
    assert_false(tree_kib(&bytes, "absent", m.root, "f"));
    assert_false(tree_kib(&bytes, "VmHWM", m.root, "absent"));
    assert_int_equal(bytes, 7);
    assert_false(tree_kib(&bytes, "huge", m.root, "f"));
    made_up_close(&m);
}

static void collect(void *ctx, int cpu) {
    char *list = ctx;
    snprintf(list + strlen(list), 100 - strlen(list), " %d", cpu);
}

static void lists_of_cpus(void **state) {
    (void)state;
    static const char *const bad[] = {"",     "a",  "1-",         "-1",  "3-1",
                                      "1,,2", "1,", "0-99999999", "1;2", "1 2"};
    char list[100] = "";
    assert_int_equal(cpu_list("0-2,5,8-9", collect, list), 6);
    assert_string_equal(list, " 0 1 2 5 8 9");
    assert_int_equal(cpu_list("0", NULL, NULL), 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (cpu_list(bad[i], NULL, NULL) != -1) fail_msg("'%s' is no list", bad[i]);
}

/* Something that never answers must not stop us. */
static void a_fifo_is_no_file(void **state) {
    (void)state;
    struct made_up m;
    char path[100], out[32];
    int64_t v;
    made_up_open(&m);
    snprintf(path, sizeof path, "%s/fifo", m.root);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(tree_number(&v, m.root, "fifo"));
    assert_false(tree_keyed(out, sizeof out, "a", m.root, "fifo"));
    made_up_close(&m);
}

static void paths_may_be_too_long(void **state) {
    (void)state;
    char line[16];
    assert_int_equal(tree_read(line, sizeof line, "/tmp", "%5000d", 1), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_true(tree_exists(NULL, "proc"));
    assert_true(tree_exists("/", "proc"));
    assert_false(tree_exists("/", "proc/nothing-like-this"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(numbers),
        cmocka_unit_test(keyed_lines),
        cmocka_unit_test(lists_of_cpus),
        cmocka_unit_test(a_fifo_is_no_file),
        cmocka_unit_test(paths_may_be_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
