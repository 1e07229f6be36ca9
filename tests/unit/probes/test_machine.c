/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of the rest of the machine: shares of ticks, and nothing where ticks are not to be had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "probes/common/tree.h"
#include "probes/probe.h"
#include "tests/support/made_up.h"
#include "tests/support/near.h"

extern const struct probe probe_machine;
enum { STEAL, FOREIGN };
static union {
    struct tree tree;
    char bytes[1024];
    long double align;
} self;

static int open_at(const char *root, struct err *err) {
    assert_true(probe_machine.self_size <= sizeof self);
    assert_string_equal(probe_machine.channels[STEAL].name, "steal_share");
    assert_string_equal(probe_machine.channels[FOREIGN].name, "foreign_share");
    memset(&self, 0, sizeof self);
    self.tree.root = root;
    *err = (struct err){0};
    return probe_machine.open(&self, err);
}

static void shares(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    double v[2];
    made_up_open(&m);
    made_up_file(&m, "proc/stat", "cpu  100 10 50 1000 20 3 4 5 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
    assert_int_equal(open_at(m.root, &err), 0);
    /* +300 user +20 nice +60 system +10 +10 interrupts, +450 idle +50 waiting, +100 stolen: 1000 */
    made_up_file(&m, "proc/stat",
                 "cpu  400 30 110 1450 70 13 14 105 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n");
    probe_machine.read(&self, v);
    assert_near(v[STEAL], 0.1, 1e-12);
    assert_true(v[FOREIGN] <= 0.4 && v[FOREIGN] > 0.39); /* less what this test used itself */
    made_up_close(&m);
}

static void too_short_or_backwards(void **state) {
    (void)state;
    struct made_up m;
    struct err err;
    double v[2] = {1, 1};
    made_up_open(&m);
    made_up_file(&m, "proc/stat", "cpu  100 0 0 100 0 0 0 50 0 0\n");
    assert_int_equal(open_at(m.root, &err), 0);
    made_up_file(&m, "proc/stat", "cpu  105 0 0 104 0 0 0 50 0 0\n"); /* 9 ticks */
    probe_machine.read(&self, v);
    assert_true(isnan(v[STEAL]) && isnan(v[FOREIGN]));
    v[STEAL] = 1;
    made_up_file(&m, "proc/stat", "cpu  200 0 0 200 0 0 0 40 0 0\n"); /* seen after a migration */
    probe_machine.read(&self, v);
    assert_true(isnan(v[STEAL]) && isnan(v[FOREIGN]));
    v[STEAL] = 1;
    made_up_remove(&m, "proc/stat");
    probe_machine.read(&self, v);
    assert_true(isnan(v[STEAL]) && isnan(v[FOREIGN]));
    made_up_close(&m);
}

static void malformed_is_unavailable(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "cpu0 1 2 3 4 5 6 7 8 9 10\n",
                                      "cpu  1 2 3 4 5 6 7\n",
                                      "cpu  1 2 3 4 5 6 7 x\n",
                                      "cpu  1 2 3 -4 5 6 7 8\n",
                                      "cpu  1 2 3 99999999999999999999 5 6 7 8\n",
                                      "intr 1 2 3\n"};
    struct made_up m;
    struct err err;
    made_up_open(&m);
    assert_int_equal(open_at(m.root, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/proc/stat"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made_up_file(&m, "proc/stat", bad[i]);
        if (open_at(m.root, &err) != ERR_UNSUPPORTED || !*err.text)
            fail_msg("'%s' was understood", bad[i]);
    }
    made_up_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(too_short_or_backwards),
        cmocka_unit_test(malformed_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
