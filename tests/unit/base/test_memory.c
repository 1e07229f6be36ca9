/* SPDX-License-Identifier: Apache-2.0 */
/* What of the memory can be had: the least of what the machine and the control groups say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

static char root[64];

static void put(const char *path, const char *text) {
    struct text full = {0};
    text_printf(&full, "%s%s", root, path);
    *strrchr(full.data, '/') = 0;
    assert_int_equal(make_dirs(full.data, NULL), 0);
    full.data[strlen(full.data)] = '/';
    assert_int_equal(file_write(full.data, text, strlen(text), NULL), 0);
    text_free(&full);
}

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/bench-memory-XXXXXX");
    if (!mkdtemp(root)) return -1;
    strcat(root, "/");
    return 0;
}

static int remove_root(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command); /* NOLINT: our own folder */
}

static void what_can_be_had(void **state) {
    (void)state;
    const int64_t all = memory_limit(), page = 4096;
    assert_int_equal(memory_available(root), all); /* where nothing says more */
    put("proc/meminfo", "MemTotal:       16000 kB\nMemFree:   10 kB\nMemAvailable:   9000 kB\n");
    assert_int_equal(memory_available(root), 9000 * 1024);
    put("proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(memory_available(root), 9000 * 1024);
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/memory.max", "4096000\n"); /* of the group above */
    assert_int_equal(memory_available(root), 1000 * page);
    put("sys/fs/cgroup/a/memory.current", "2048000\n");
    assert_int_equal(memory_available(root), 500 * page);
    put("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 409600\nactive_file 9\n");
    assert_int_equal(memory_available(root), 600 * page);
    put("sys/fs/cgroup/a/memory.current", "9999999\n"); /* beyond it: nothing is left */
    assert_int_equal(memory_available(root), 0);
    put("proc/self/cgroup", "5:cpu,memory:/c\n");
    put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "409600\n");
    put("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "4096\n");
    assert_int_equal(memory_available(root), 99 * page);
    assert_int_equal(memory_limit(), all); /* of this machine, not of the tree */
    assert_true(memory_available("/") > 0 && memory_available("/") <= all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_can_be_had)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
