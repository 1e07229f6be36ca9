/* SPDX-License-Identifier: Apache-2.0 */
/* How much a ceiling moves and computes where nothing was said: enough for the device at hand. */
#include "tests/unit/workloads/drive.h"
#include "workloads/workload.h"

static struct arena *arena;
static const struct device_kind host = {.name = "host", .has = DEV_HOST_CLOCK},
                                gpu = {.name = "gpu", .has = DEV_GPU};

/* The ledger of an execution; mistakes: how many check finds. */
static struct work ledger(const struct device_kind *kind, const char *settings, size_t *mistakes) {
    const struct workload *w = workload_find("ceiling");
    void *params = arena_alloc(arena, w->params_size);
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, " ", arena);
    struct problems *problems = problems_create();
    struct plan plan = {0};
    w->adapt(params, kind);
    w->check(params, NULL, problems);
    *mistakes = problems_count(problems);
    problems_close(&problems);
    if (!*mistakes) w->plan(params, NULL, &plan);
    return plan.work[0].items > 0 ? plan.work[0] : plan.work[1];
}

static double flops_of(const struct device_kind *kind, const char *settings) {
    size_t mistakes;
    const struct work work = ledger(kind, settings, &mistakes);
    assert_int_equal(mistakes, 0);
    return work.flops;
}
static double bytes_of(const struct device_kind *kind, const char *settings) {
    size_t mistakes;
    const struct work work = ledger(kind, settings, &mistakes);
    assert_int_equal(mistakes, 0);
    return work.bytes[MEM_OTHER];
}

static void arithmetic(void **state) {
    (void)state;
    assert_true(flops_of(&host, "op=fma") == 0x1p30);
    assert_true(flops_of(&host, "op=gemm") == 2.0 * 512 * 1024 * 1024);
    /* At 1 PFLOP/s, more than any single GPU does in bf16: half a millisecond at least. */
    assert_true(flops_of(&gpu, "op=fma") == 0x1p39);
    assert_true(flops_of(&gpu, "op=gemm") == 2.0 * 8192 * 8192 * 8192);
    assert_true(flops_of(&gpu, "op=fma flops=4194304") == 0x1p22); /* what is said holds */
    assert_true(flops_of(&host, "op=gemm rows=64 depth=64 width=64") >= 0x1p24);
    assert_true(flops_of(&gpu, "op=gemm rows=512 depth=1024 width=1024") >= 0x1p39);
    assert_true(flops_of(&gpu, "op=gemm rows=1 depth=2 width=2") == 4096.0 * 8);
}

static void traffic(void **state) {
    (void)state;
    assert_true(bytes_of(&host, "op=read") == 0x1p28);
    assert_true(bytes_of(&host, "op=read bytes=64KiB") >= 0x1p23);
    assert_true(bytes_of(&gpu, "op=read") >= 0x1p32);
    assert_true(bytes_of(&gpu, "op=copy bytes=16GiB") == 0x1p34);
    assert_true(bytes_of(&gpu, "op=read bytes=16KiB") == 4096.0 * 16384);
}

static void too_few_flops_are_refused(void **state) {
    size_t mistakes;
    (void)state;
    ledger(&gpu, "op=fma flops=4194303", &mistakes);
    assert_int_equal(mistakes, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(arithmetic), cmocka_unit_test(traffic),
                                       cmocka_unit_test(too_few_flops_are_refused)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
