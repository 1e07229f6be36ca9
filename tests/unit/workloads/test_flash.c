/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `flash`: bytes by formula and by allocator, multiply-adds as executed, a witness that
   holds and one that fails, what is refused. */
#include "kernels/lab.h"
#include "kernels/lab_flash.h"
#include "tests/unit/workloads/drive.h"
#include "workloads/workload.h"

static struct arena *arena;
static struct device *ref, *cpu;

static void prepare(struct drive *drive, struct device *device, const char *settings) {
    struct err err = {0};
    drive_open_run(drive, device, NULL, arena);
    if (drive_prepare(drive, "flash", settings, &err)) fail_msg("%s: %s", settings, err.text);
}

static void finish(struct drive *drive) {
    struct device *device = drive->device;
    drive_dispose(drive);
    drive_close_run(drive);
    assert_int_equal(tracker_live(device->tracker, -1), 0);
}

static const char *const settings[] = {
    "method=naive tokens=7 heads=2 d_h=3",
    "method=tiled tokens=7 heads=2 d_h=3 rows=2 columns=3",
    "method=naive tokens=9 batch=2 heads=3 d_h=5 pass=forward_backward causal=true",
    "method=tiled tokens=9 batch=2 heads=3 d_h=5 pass=forward_backward causal=true rows=4 columns=1",
    "method=tiled tokens=20 heads=1 d_h=16 pass=forward_backward rows=1 columns=4096",
    "method=tiled tokens=1 heads=1 d_h=1 pass=forward_backward",
    "method=naive tokens=1 heads=1 d_h=1 pass=forward_backward",
    "method=tiled tokens=600 heads=2 d_h=8 pass=forward_backward causal=true columns=100",
    "method=naive tokens=300 heads=2 d_h=8 pass=forward_backward"};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

static void bytes_and_counts_are_the_formulas(void **state) {
    (void)state;
    for (int i = 0; i < 2 * N_SETTINGS; i++) {
        struct device *device = i < N_SETTINGS ? ref : cpu;
        struct drive drive;
        prepare(&drive, device, settings[i % N_SETTINGS]);
        assert_int_equal(tracker_live(device->tracker, MEM_ACTIVATION),
                         drive.plan.bytes[MEM_ACTIVATION]);
        assert_int_equal(tracker_live(device->tracker, MEM_WORKSPACE),
                         drive.plan.bytes[MEM_WORKSPACE]);
        const int64_t live = tracker_live(device->tracker, -1);
        drive_execute(&drive); /* allocates nothing */
        const struct witness w = drive_witness(&drive);
        if (!w.holds) fail_msg("%s: error %g (%s)", settings[i % N_SETTINGS], w.max_error, w.note);
        assert_true(w.contract == CONTRACT_CLOSE && w.compared > 0);
        const struct witness again = drive_witness(&drive); /* from what was kept */
        assert_true(again.holds && again.hash == w.hash && again.plain_hash == w.plain_hash);
        assert_true(drive.found == 1);
        const struct values v = drive_report(&drive);
        assert_true(values_get(&v, "kept_bytes") == values_get(&v, "kept_bytes_allocated"));
        assert_true(values_get(&v, "peak_formula") == (double)live);
        const double macs = values_get(&v, "macs");
        assert_true(2 * macs == drive.plan.work[0].flops + drive.plan.work[1].flops && macs > 0);
        if (device == ref) assert_true(values_get(&v, "macs_counted") == macs);
        finish(&drive);
    }
}

/* What a formula would hide if it and the allocation were wrong alike: numbers by hand. */
static void bytes_by_hand(void **state) {
    static const struct {
        const char *settings;
        double kept, peak, macs, flops; /* of ref, which has no tiles of its own */
    } rows[] = {
        {"method=naive tokens=10 heads=2 d_h=4", 4 * 2 * 100, 4 * 4 * 80 + 800, 2 * 2 * 100 * 4,
         4 * 2 * 100 * 4},
        {"method=tiled tokens=10 heads=2 d_h=4", 4 * 2 * 10, 4 * 4 * 80 + 80, 2 * 2 * 100 * 4,
         4 * 2 * 100 * 4},
        {"method=naive tokens=10 heads=2 d_h=4 pass=forward_backward causal=true", 800,
         8 * 4 * 80 + 1600, 6 * 2 * 100 * 4, 3.5 * 4 * 2 * 100 * 4 / 2},
        /* tiles of 5 x 4: queries 0-4 see 8 keys, 5-9 all 10 */
        {"method=tiled tokens=10 heads=2 d_h=4 pass=forward_backward causal=true rows=5 columns=4",
         80, 8 * 4 * 80 + 160, 7 * 2 * (5 * 8 + 5 * 10) * 4, 3.5 * 4 * 2 * 100 * 4 / 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct drive drive;
        prepare(&drive, ref, rows[i].settings);
        const struct values v = drive_report(&drive);
        assert_true(values_get(&v, "kept_bytes_allocated") == rows[i].kept);
        assert_true((double)tracker_live(ref->tracker, -1) == rows[i].peak);
        assert_true(values_get(&v, "macs") == rows[i].macs);
        assert_true(values_get(&v, "formula_flops") == rows[i].flops);
        finish(&drive);
    }
}

/* Tiles do not grow with T, but for a row of scores of each thread. */
static void tiles_are_constant(void **state) {
    double bytes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct drive drive;
        prepare(&drive, cpu, i ? "tokens=4096 heads=1 d_h=1" : "tokens=1024 heads=1 d_h=1");
        const struct values v = drive_report(&drive);
        bytes[i] = values_get(&v, "tile_bytes");
        finish(&drive);
    }
    const double grown = (bytes[1] - bytes[0]) / (4 * 3072);
    assert_true(grown >= 1 && grown == floor(grown)); /* the number of threads */
}

/* ---- ops that are wrong */

static const struct lab_flash *right;
static int spoiled; /* which output */
static void spoil(struct tensor *t) {
    ((float *)t->data)[(t->rows - 1) * t->stride + t->cols - 1] += 1e-2f;
}
static void wrong_forward(struct device *device, const struct lab_attention *a) {
    right->tiled_forward(device, a);
    if (spoiled == 0) spoil(a->o);
}
static void wrong_backward(struct device *device, const struct lab_attention *a) {
    right->tiled_backward(device, a);
    if (spoiled == 1) spoil(a->dq);
    if (spoiled == 2) spoil(a->dk);
    if (spoiled == 3) spoil(a->dv);
}

static void a_wrong_kernel_is_found(void **state) {
    const struct lab_ops *kept = ref->lab;
    struct lab_flash wrong = *kept->flash;
    const struct lab_ops ops = {.flash = &wrong};
    (void)state;
    right = kept->flash;
    wrong.tiled_forward = wrong_forward;
    wrong.tiled_backward = wrong_backward;
    ref->lab = &ops;
    for (spoiled = 0; spoiled < 5; spoiled++) { /* the last one spoils nothing */
        struct drive drive;
        prepare(&drive, ref, "tokens=40 heads=2 batch=2 d_h=6 pass=forward_backward rows=7");
        drive_execute(&drive);
        const struct witness w = drive_witness(&drive);
        assert_int_equal(w.holds, spoiled == 4);
        if (spoiled < 4) assert_true(w.max_error > 9e-3 && !w.identical);
        finish(&drive);
    }
    ref->lab = kept;
}

static bool refused(const char *text) {
    const struct workload *w = workload_find("flash");
    void *params = arena_alloc(arena, w->params_size);
    struct problems *problems = problems_create();
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, text, " ", arena);
    w->check(params, NULL, problems);
    const bool bad = problems_count(problems) > 0;
    problems_close(&problems);
    return bad;
}

static void too_much_is_refused(void **state) {
    struct device *fake = drive_open("fake", arena);
    struct drive drive;
    struct err err = {0};
    (void)state;
    assert_true(refused("tokens=131072 heads=4096 batch=4096 d_h=1024"));
    assert_true(refused("tokens=131072 heads=64"));
    assert_false(refused("tokens=16384 heads=8"));
    assert_false(refused("tokens=1 heads=1 d_h=1 rows=1 columns=1"));
    drive_open_run(&drive, fake, NULL, arena);
    assert_int_not_equal(drive_prepare(&drive, "flash", "tokens=8", &err), 0);
    assert_non_null(strstr(err.text, "--device cpu or ref"));
    finish(&drive);
    device_close(&fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_counts_are_the_formulas), cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(tiles_are_constant), cmocka_unit_test(a_wrong_kernel_is_found),
        cmocka_unit_test(too_much_is_refused)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    cpu = drive_open("cpu", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&cpu);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
