/* SPDX-License-Identifier: Apache-2.0 */
/* The walk up the control groups, in made-up trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/groups.h"
#include "base/text.h"

static char root[64];

static int make_root(void **state) {
    (void)state;
    struct text folder = {0};
    snprintf(root, sizeof root, "/tmp/bench-groups-XXXXXX");
    if (!mkdtemp(root)) return -1;
    text_printf(&folder, "%s/proc/self", root);
    const int code = make_dirs(folder.data, NULL);
    text_free(&folder);
    return code;
}

static int remove_root(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command); /* NOLINT: our own folder */
}

static void is_in(const char *lines) {
    struct text path = {0};
    text_printf(&path, "%s/proc/self/cgroup", root);
    assert_int_equal(file_write(path.data, lines, strlen(lines), NULL), 0);
    text_free(&path);
}

/* The folders of the walk, one behind the other, without what all begin with. */
static void walks(const char *controller, const char *expected) {
    struct groups g;
    struct text all = {0};
    groups_own(&g, root, controller);
    do {
        assert_memory_equal(g.folder, "sys/fs/cgroup", 13);
        text_printf(&all, "%s ", g.folder + 13);
    } while (groups_up(&g));
    assert_false(groups_up(&g));
    assert_string_equal(all.data, expected);
    text_free(&all);
}

static void both_versions(void **state) {
    (void)state;
    walks(NULL, " "); /* no such file */
    walks("cpu", "/cpu ");
    is_in("0::/a/b\n");
    walks(NULL, "/a/b /a  ");
    walks("memory", "/memory ");
    is_in("12:cpuset:/of cpuset\n5:cpuacct,cpu:/c/d\n4:memory:/m\n0::/\n");
    walks(NULL, " "); /* the topmost */
    walks("cpu", "/cpu/c/d /cpu/c /cpu ");
    walks("cpuset", "/cpuset/of cpuset /cpuset ");
    walks("memory", "/memory/m /memory ");
    walks("mem", "/mem ");
    is_in("0::/in a name: colons/x");
    walks(NULL, "/in a name: colons/x /in a name: colons  ");
}

static void nonsense(void **state) {
    (void)state;
    char longest[3 * PATH_MAX];
    is_in("");
    walks(NULL, " ");
    is_in("\n:\n::\n0:\nnothing\n:::\n");
    walks(NULL, " ");
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "0::/", 4);
    longest[sizeof longest - 1] = 0;
    is_in(longest); /* cut, it would name another group */
    struct groups g;
    groups_own(&g, root, NULL);
    assert_true(strlen(g.folder) < sizeof g.folder);
    groups_own(&g, "/no/such/root", NULL);
    assert_string_equal(g.folder, "sys/fs/cgroup");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_versions), cmocka_unit_test(nonsense)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
