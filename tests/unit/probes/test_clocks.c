/* SPDX-License-Identifier: Apache-2.0 */
/* Clock rates: what the kernel states, what a virtual machine only pretends, what is measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "probes/common/clock_rate.h"
#include "probes/common/frequency.h"
#include "probes/common/tree.h"
#include "probes/probe.h"
#include "tests/support/made_up.h"
#include "tests/support/near.h"

extern const struct probe probe_clocks;
enum { KERNEL, MEASURED, LOWEST, THROTTLES };
#define CPU "sys/devices/system/cpu/"

static void stated_frequency(void **state) {
    (void)state;
    struct made_up m;
    made_up_open(&m);
    assert_true(isnan(frequency_now(m.root)));
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu sse\ncpu MHz\t: 2596.130\n");
    assert_near(frequency_now(m.root), 2.59613, 1e-9);
    made_up_file(&m, "proc/cpuinfo", "cpu MHz\t: 2596.130\nflags\t: fpu hypervisor lahf_lm\n");
    assert_true(isnan(frequency_now(m.root))); /* there it never moves */
    made_up_file(&m, CPU "online", "0-1,3\n");
    made_up_file(&m, CPU "cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    made_up_file(&m, CPU "cpu1/cpufreq/scaling_cur_freq", "2000000\n");
    made_up_file(&m, CPU "cpu2/cpufreq/scaling_cur_freq", "9000000\n"); /* offline */
    made_up_file(&m, CPU "cpu3/cpufreq/scaling_cur_freq", "1000000\n");
    assert_near(frequency_now(m.root), 2, 1e-9);
    made_up_file(&m, CPU "cpu3/cpufreq/scaling_cur_freq", "<unknown>\n");
    assert_near(frequency_now(m.root), 2.5, 1e-9);
    made_up_file(&m, CPU "online", "0-\n");
    assert_true(isnan(frequency_now(m.root)));
    made_up_close(&m);
}

static void throttling(void **state) {
    (void)state;
    struct made_up m;
    made_up_open(&m);
    assert_int_equal(frequency_throttles(m.root), -1);
    made_up_file(&m, CPU "online", "0-1\n");
    assert_int_equal(frequency_throttles(m.root),
                     -1); /* a CPU without counters has not throttled 0 times */
    made_up_file(&m, CPU "cpu0/thermal_throttle/core_throttle_count", "3\n");
    made_up_file(&m, CPU "cpu0/thermal_throttle/package_throttle_count", "4\n");
    made_up_file(&m, CPU "cpu1/thermal_throttle/core_throttle_count", "0\n");
    assert_int_equal(frequency_throttles(m.root), 7);
    made_up_close(&m);
}

/* Twice the links take twice the cycles and about twice the time of this thread. */
static void measures_by_work(void **state) {
    (void)state;
    assert_near(clock_rate_chain(1000), 3000, 0);
    double ratio = 0;
    for (int attempt = 0; attempt < 20 && !(ratio > 1.8 && ratio < 2.2); attempt++) {
        int64_t t0 = clock_ns();
        clock_rate_chain(200000);
        int64_t t1 = clock_ns();
        clock_rate_chain(400000);
        ratio = (double)(clock_ns() - t1) / (double)(t1 - t0);
    }
    assert_true(ratio > 1.8 && ratio < 2.2);
    double rate = clock_rate(20);
    assert_true(rate > 0.2 && rate < 20);
}

static void the_probe(void **state) {
    (void)state;
    union {
        struct tree tree;
        char bytes[256];
        long double align;
    } self = {.bytes = {0}};
    struct made_up m;
    struct err err = {0};
    double v[4], w[4];
    made_up_open(&m);
    assert_true(probe_clocks.self_size <= sizeof self);
    self.tree.root = m.root;
    assert_int_equal(probe_clocks.open(&self, &err), 0);
    probe_clocks.read(&self, v);
    assert_true(isnan(v[KERNEL]) && isnan(v[THROTTLES]));
    assert_true(v[MEASURED] > 0.2 && v[LOWEST] == v[MEASURED]);
    double least = v[MEASURED];
    for (int i = 0; i < 10; i++) {
        probe_clocks.read(&self, w);
        least = fmin(least, w[MEASURED]);
        assert_true(w[LOWEST] == least);
    }
    made_up_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stated_frequency),
        cmocka_unit_test(throttling),
        cmocka_unit_test(measures_by_work),
        cmocka_unit_test(the_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
