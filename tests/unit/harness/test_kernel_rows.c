/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels under the innermost range of their launch, whatever the order of the ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/range.h"
#include "harness/kernel_rows.h"
#include "probes/common/kernel_trace.h"
#include "results/table.h"
#include "tests/support/near.h"

static struct kernel_event kernel(const char *name, int64_t launch_ns, int64_t ns, int64_t node) {
    struct kernel_event k = {.launch_ns = launch_ns,
                             .begin_ns = launch_ns + 1000,
                             .end_ns = launch_ns + 1000 + ns,
                             .graph_node = node};
    snprintf(k.name, sizeof k.name, "%s", name);
    return k;
}

static void row_is(const struct table *t, int64_t r, const char *range, const char *name,
                   int64_t graph, int64_t n, double time, double least, double most) {
    assert_string_equal(table_text(t, r, "range"), range);
    assert_string_equal(table_text(t, r, "kernel"), name);
    assert_int_equal(table_int(t, r, "visit"), 3);
    assert_int_equal(table_int(t, r, "graph"), graph);
    assert_int_equal(table_int(t, r, "n"), n);
    assert_near(table_real(t, r, "time"), time, 1e-9);
    assert_near(table_real(t, r, "min_time"), least, 1e-9);
    assert_near(table_real(t, r, "max_time"), most, 1e-9);
}

static void innermost_range_of_the_launch(void **state) {
    (void)state;
    /* By closing, as the recorder keeps them: two steps, parts within, a gap between. */
    static const struct range_event ranges[] = {
        {.begin_ns = 110, .end_ns = 120, .depth = 2, .name = "attention"},
        {.begin_ns = 121, .end_ns = 130, .depth = 2, .name = "mlp"},
        {.begin_ns = 100, .end_ns = 140, .depth = 1, .name = "decode"},
        {.begin_ns = 200, .end_ns = 240, .depth = 1, .name = "decode"},
        {.begin_ns = 200, .end_ns = 210, .depth = 2, .name = "attention"},
    };
    const struct kernel_event kernels[] = {
        kernel("add_norm", 50, 7, 0),                                 /* before all */
        kernel("add_norm", 112, 5, 0),                                /* in attention */
        kernel("linear", 115, 30, 0),   kernel("linear", 125, 40, 0), /* in mlp */
        kernel("select", 135, 2, 0),                                  /* in decode itself */
        kernel("add_norm", 150, 1, 0),                                /* between */
        kernel("add_norm", 200, 9, 0), /* both begin here: the inner one */
        kernel("linear", 220, 11, 1),   kernel("linear", 220, 12, 2), /* a recorded step */
        kernel("add_norm", 999, 8, 0),                                /* after all */
        kernel("add_norm", -1, 100, 0),                               /* cause unknown */
    };
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "kernels");
    kernel_rows(t, 3, ranges, sizeof ranges / sizeof *ranges, kernels,
                sizeof kernels / sizeof *kernels);
    assert_int_equal(table_rows(t), 6);
    row_is(t, 0, "", "add_norm", 0, 4, 116, 1, 100);
    row_is(t, 1, "attention", "add_norm", 0, 2, 14, 5, 9);
    row_is(t, 2, "attention", "linear", 0, 1, 30, 30, 30);
    row_is(t, 3, "mlp", "linear", 0, 1, 40, 40, 40);
    row_is(t, 4, "decode", "select", 0, 1, 2, 2, 2);
    row_is(t, 5, "decode", "linear", 1, 2, 23, 11, 12);
    kernel_rows(t, 4, NULL, 0, kernels, 1); /* another visit has rows of its own */
    assert_int_equal(table_rows(t), 7);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(innermost_range_of_the_launch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
