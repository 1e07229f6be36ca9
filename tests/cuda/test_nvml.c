/* SPDX-License-Identifier: Apache-2.0 */
/* The probe `nvml` over a made-up management library, and its sentence where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/gpu_name.h"
#include "probes/probe.h"
#include "tests/support/near.h"

extern const struct probe probe_nvml;
enum { SM_CLOCK, LOWEST_SM_CLOCK, MEMORY_CLOCK, TEMPERATURE, POWER, ENERGY, SLOWED, N };
static union {
    char bytes[512];
    long double align;
} self;

static int open_with(const char *library, const char *mode, const char *bus, struct err *err) {
    assert_true(probe_nvml.self_size <= sizeof self);
    memset(&self, 0, sizeof self);
    *err = (struct err){0};
    setenv("BENCH_NVML", library, 1);
    setenv("FAKE_NVML", mode, 1);
    gpu_name_set(bus);
    return probe_nvml.open(&self, err);
}

static void reads_all_channels(void **state) {
    (void)state;
    struct err err;
    double a[N], b[N];
    assert_int_equal(open_with(FAKE_NVML_LIBRARY, "", "0000:3b:00.0", &err), 0);
    probe_nvml.read(&self, a);
    probe_nvml.read(&self, b);
    assert_near(a[SM_CLOCK], 1980, 0);
    assert_near(b[SM_CLOCK], 1500, 0);
    assert_near(b[LOWEST_SM_CLOCK], 1500, 0);
    assert_near(a[LOWEST_SM_CLOCK], 1980, 0);
    assert_near(a[MEMORY_CLOCK], 2619, 0);
    assert_near(a[TEMPERATURE], 41, 0);
    assert_near(a[POWER], 350.5, 1e-9);
    assert_near(b[ENERGY] - a[ENERGY], 2.5, 1e-6);
    assert_near(a[SLOWED], 0, 0);
    assert_near(b[SLOWED], 1, 0);
    probe_nvml.read(&self, b);
    assert_near(b[SM_CLOCK], 1700, 0);
    assert_near(b[LOWEST_SM_CLOCK], 1500, 0); /* stays */
    probe_nvml.close(&self);
}

static void an_old_driver_leaves_gaps(void **state) {
    (void)state;
    struct err err;
    double v[N];
    assert_int_equal(open_with(FAKE_NVML_LIBRARY, "old", "", &err), 0);
    probe_nvml.read(&self, v);
    assert_true(isnan(v[ENERGY]));
    assert_near(v[POWER], 350.5, 1e-9);
    probe_nvml.close(&self);
}

static void says_why_it_is_unavailable(void **state) {
    (void)state;
    struct err err;
    assert_int_equal(open_with("libnvidia-ml-absent.so.1", "", "", &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text,
                        "NVIDIA's management library (libnvidia-ml-absent.so.1) is not here");
    assert_int_equal(open_with(FAKE_NVML_LIBRARY, "no_driver", "", &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "NVIDIA's management library does not start: Driver Not Loaded");
    assert_int_equal(open_with(FAKE_NVML_LIBRARY, "no_gpu", "", &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "NVIDIA's management library does not know the GPU: Not Found");
    assert_int_equal(open_with(FAKE_NVML_LIBRARY, "", "0000:99:00.0", &err), ERR_UNSUPPORTED);
    assert_int_equal(open_with("libm.so.6", "", "", &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "libm.so.6 lacks functions that this probe needs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_channels),
        cmocka_unit_test(an_old_driver_leaves_gaps),
        cmocka_unit_test(says_why_it_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
