/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel records of a scripted CUPTI; and that the real one, where it is, is refused or works, and
 * knows the counters that the documents name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "probes/common/kernel_trace.h"

#ifdef FAKE_CUPTI_LIBRARY
static void checked(const char *mode, size_t want_lost) {
    const struct kernel_event *e;
    struct err err = {0};
    size_t lost = 9;
    setenv("FAKE_CUPTI", mode, 1);
    const int64_t before = clock_ns();
    assert_int_equal(kernel_trace_start(&err), 0);
    const int64_t after = clock_ns();
    assert_int_equal(kernel_trace_stop(&e, &lost), 6);
    assert_int_equal(lost, want_lost);
    static const char *const names[] = {"add_norm", "linear_bf16_n1", "select",
                                        "select",   "select",         "?"};
    for (int i = 0; i < 6; i++) assert_string_equal(e[i].name, names[i]);
    /* Theirs 1,002,000 is 2,000 ns after the moment at which the trace began. */
    assert_in_range(e[0].begin_ns, before + 2000, after + 2000);
    assert_int_equal(e[0].begin_ns - e[0].launch_ns, 1002000 - 1000100);
    assert_int_equal(e[1].begin_ns - e[1].launch_ns, 1003000 - 1000200);
    assert_int_equal(e[0].end_ns - e[0].begin_ns, 300);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(e[i].launch_ns, e[0].launch_ns + 1004000 - 1000100);
        assert_int_equal(e[i].graph_node, i - 1);
    }
    assert_int_equal(e[5].launch_ns, -1);
    assert_int_equal(e[0].grid[0], 4);
    assert_int_equal(e[0].block[0], 256);
    assert_int_equal(e[0].registers, 64);
    assert_int_equal(e[0].shared_bytes, 1040);
    kernel_trace_free();
}

static void joins_kernels_to_their_calls(void **state) {
    (void)state;
    checked("", 0);
    checked("splits", 0);
    checked("drops", 1);
}

static void a_refusal_is_said_and_undone(void **state) {
    (void)state;
    struct err err = {0};
    setenv("FAKE_CUPTI", "refuses", 1);
    assert_int_equal(kernel_trace_start(&err), ERR_UNSUPPORTED);
    assert_string_equal(
        err.text, "CUPTI does not trace here (CUPTI_ERROR_UNKNOWN), so no kernels are traced");
    checked("", 0); /* what had been enabled was disabled, and it can start again */
}
#endif

static void without_the_library(void **state) {
    (void)state;
    struct err err = {0};
    setenv("BENCH_CUPTI", "libcupti-absent.so", 1);
    assert_int_equal(kernel_trace_start(&err), ERR_UNSUPPORTED);
#ifdef FAKE_CUPTI_LIBRARY
    assert_string_equal(err.text,
                        "CUPTI (libcupti-absent.so) is not here, so no kernels are traced");
    setenv("BENCH_CUPTI", "libm.so.6", 1);
    assert_int_equal(kernel_trace_start(&err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "libm.so.6 lacks functions that tracing needs");
    setenv("BENCH_CUPTI", FAKE_CUPTI_LIBRARY, 1); /* for the tests that follow */
#else
    assert_non_null(strstr(err.text, "built without CUPTI"));
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_library),
#ifdef FAKE_CUPTI_LIBRARY
        cmocka_unit_test(joins_kernels_to_their_calls),
        cmocka_unit_test(a_refusal_is_said_and_undone),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
