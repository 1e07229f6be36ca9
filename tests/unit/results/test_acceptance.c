/* SPDX-License-Identifier: Apache-2.0 */
/* The acceptance table of a row: what is there with its numbers, what is not by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "results/analysis.h"
#include "results/summary.h"
#include "tests/support/synthetic.h"

static void five_lines(void **state) {
    static const char *const names[] = {"R34 user experience", "R35 system efficiency",
                                        "R36 capacity", "R37 quality", "R38 comparability"};
    struct tables *ts = tables_create();
    struct err err = {0};
    (void)state;
    int64_t p = synthetic_point(ts, "", "", 2e9, 2e9);
    synthetic_visit(ts, p, 0, 1, 4, 0, 1);
    synthetic_fact(ts, "analysis.0.kind", "acceptance");
    assert_int_equal(summary_compute(ts, &err), 0);
    assert_int_equal(analyses_run(ts, &err), 0);
    for (int i = 0; i < 5; i++)
        assert_string_equal(synthetic_verdict(ts, "acceptance", names[i]), "none");
    const struct table *fits = tables_peek(ts, "fits");
    assert_int_equal(table_rows(fits), 5);
    /* No tokens, no rates of requests: said, and never a number. */
    assert_non_null(strstr(table_text(fits, 0, "text"), "ttft not recorded"));
    assert_non_null(strstr(table_text(fits, 1, "text"), "output_rate not recorded"));
    assert_non_null(strstr(table_text(fits, 1, "text"), "GB/s by the ledger"));
    assert_non_null(strstr(table_text(fits, 2, "text"), "cache_occupancy not recorded"));
    assert_non_null(strstr(table_text(fits, 3, "text"), "witness"));
    tables_close(&ts);
}

static void no_row(void **state) {
    struct tables *ts = tables_create();
    struct err err = {0};
    (void)state;
    synthetic_fact(ts, "analysis.0.kind", "acceptance");
    synthetic_fact(ts, "analysis.0.where", "workload.gap=3");
    assert_int_equal(analyses_run(ts, &err), 0);
    const struct table *fits = tables_peek(ts, "fits");
    assert_int_equal(table_rows(fits), 1);
    assert_non_null(strstr(table_text(fits, 0, "text"), "not computed"));
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(five_lines), cmocka_unit_test(no_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
