/* SPDX-License-Identifier: Apache-2.0 */
/* Energy: sums over packages, counters that wrap, and reasons where nothing can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "probes/common/tree.h"
#include "probes/probe.h"
#include "tests/support/made_up.h"
#include "tests/support/near.h"

extern const struct probe probe_rapl;
enum { PACKAGE, DRAM };
static union {
    struct tree tree;
    char bytes[16384];
    long double align;
} self;

static int open_at(const char *root, struct err *err) {
    assert_true(probe_rapl.self_size <= sizeof self);
    memset(&self, 0, sizeof self);
    self.tree.root = root;
    *err = (struct err){0};
    return probe_rapl.open(&self, err);
}

static void zone(const struct made_up *m, const char *id, const char *name, const char *range,
                 const char *energy) {
    char path[160];
    snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%s/name", id);
    made_up_file(m, path, name);
    snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%s/max_energy_range_uj", id);
    made_up_file(m, path, range);
    snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%s/energy_uj", id);
    made_up_file(m, path, energy);
}

static void energy(const struct made_up *m, const char *id, const char *value) {
    char path[160];
    snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%s/energy_uj", id);
    made_up_file(m, path, value);
}

static void sums_packages_and_wraps(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    double a[2], b[2];
    made_up_open(&m);
    zone(&m, "0", "package-0\n", "262143328850\n", "262143000000\n");
    zone(&m, "0:0", "dram\n", "65712999613\n", "100\n");
    zone(&m, "0:1", "core\n", "65712999613\n", "5\n"); /* inside the package: not added again */
    zone(&m, "1", "package-1\n", "262143328850\n", "1000000\n");
    assert_int_equal(open_at(m.root, &err), 0);
    probe_rapl.read(&self, a);
    energy(&m, "0", "671150\n"); /* 328850 to the end and 671150 on: 1 J */
    energy(&m, "0:0", "250100\n");
    energy(&m, "0:1", "99999999\n");
    energy(&m, "1", "3000000\n"); /* 2 J */
    probe_rapl.read(&self, b);
    assert_near(b[PACKAGE] - a[PACKAGE], 3, 1e-9);
    assert_near(b[DRAM] - a[DRAM], 0.25, 1e-9);
    energy(&m, "1", "rubbish\n"); /* one that fails makes the sum unknown, and for good */
    probe_rapl.read(&self, b);
    assert_true(isnan(b[PACKAGE]));
    assert_near(b[DRAM] - a[DRAM], 0.25, 1e-9);
    energy(&m, "1", "4000000\n");
    probe_rapl.read(&self, b);
    assert_true(isnan(b[PACKAGE]));
    made_up_close(&m);
}

static void without_memory_zone(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    double v[2];
    made_up_open(&m);
    zone(&m, "0", "package-0\n", "262143328850\n", "5\n");
    assert_int_equal(open_at(m.root, &err), 0);
    probe_rapl.read(&self, v);
    assert_near(v[PACKAGE], 0, 0);
    assert_true(isnan(v[DRAM]));
    made_up_close(&m);
}

/* A counter that may have wrapped more than once between two readings says nothing. */
static void read_too_rarely(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    double v[2];
    made_up_open(&m);
    zone(&m, "0", "package-0\n", "1000000\n", "5\n"); /* 1 J: at 2 kW half a millisecond */
    assert_int_equal(open_at(m.root, &err), 0);
    usleep(2000);
    probe_rapl.read(&self, v);
    assert_true(isnan(v[PACKAGE]));
    made_up_close(&m);
}

static void reasons(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    char path[160];
    made_up_open(&m);
    assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no energy counters"));
    zone(&m, "0", "package-0\n", "1000\n", "x\n");
    assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot be read"));
    zone(&m, "0", "package-0\n", "1000\n", "2000\n"); /* beyond its own range */
    assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
    zone(&m, "0", "package-0\n", "262143328850\n", "5\n");
    zone(&m, "1", "package-1\n", "262143328850\n", "-5\n"); /* half of the packages is no sum */
    assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
    zone(&m, "1", "package-1\n", "262143328850\n", "5\n");
    assert_int_equal(open_at(m.root, &err), 0);
    if (geteuid() != 0) { /* root reads it all the same */
        snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:0/energy_uj", m.root);
        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "root only"));
    }
    made_up_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_packages_and_wraps),
        cmocka_unit_test(without_memory_zone),
        cmocka_unit_test(read_too_rarely),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
