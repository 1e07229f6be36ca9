/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters: they count where there are any, and say why where there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "probes/common/clock_rate.h"
#include "probes/common/perf_reason.h"
#include "probes/probe.h"

extern const struct probe probe_perf;

static void says_why(void **state) {
    (void)state;
    static const struct {
        int why;
        int64_t paranoid;
        const char *word;
    } rows[] = {
        {EACCES, 3, "perf_event_paranoid is 3"},
        {EPERM, 2, "seccomp"},
        {EACCES, PARANOID_UNKNOWN, "seccomp"},
        {ENOENT, 2, "no hardware counters"},
        {EOPNOTSUPP, 2, "no hardware counters"},
        {ENOSYS, 2, "no perf_event_open"},
        {E2BIG, 2, "256 threads"},
        {EMFILE, 2, "perf_event_open: "},
        {0, 2, "no thread"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        assert_int_equal(perf_reason(&err, rows[i].why, rows[i].paranoid), ERR_UNSUPPORTED);
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        if (!strstr(err.text, rows[i].word)) fail_msg("%d: %s", rows[i].why, err.text);
    }
}

static void counts_or_refuses(void **state) {
    (void)state;
    void *self = calloc(1, probe_perf.self_size);
    struct err err = {0};
    double a[4], b[4];
    enum { LINKS = 1000000 };
    assert_non_null(self);
    int code = probe_perf.open(self, &err);
    if (code) {
        assert_int_equal(code, ERR_UNSUPPORTED);
        assert_true(strlen(err.text) > 10);
        print_message("no counters here: %s\n", err.text);
    } else {
        probe_perf.read(self, a);
        clock_rate_chain(LINKS);
        probe_perf.read(self, b);
        if (!isnan(b[1])) { /* a counter may be taken by another tool */
            assert_true(b[1] - a[1] >= LINKS);
            assert_true(b[1] - a[1] < 20.0 * LINKS);
            assert_true(b[0] - a[0] > LINKS);
        }
        probe_perf.close(self);
    }
    free(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why),
        cmocka_unit_test(counts_or_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
