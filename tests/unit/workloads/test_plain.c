/* SPDX-License-Identifier: Apache-2.0 */
/* The contract `close`, on a ref that promises nothing about batches: errors within the tolerance
 * hold, larger ones do not. */
#include "tests/unit/workloads/drive.h"

#include "workloads/common/plain.h"

static struct arena *arena;
static struct device *ref;
static const struct device_kind *real;
static struct device_kind kind;
static float error; /* added to the first logit of every download that is one row of logits */

static void spoil(struct device *device, void *to, const void *from, size_t bytes) {
    real->download(device, to, from, bytes);
    if (bytes == 288 * sizeof(float)) *(float *)to += error;
}

static struct witness compare_with(const char *settings, float plain_error, float fast_error,
                                   int32_t *kept) {
    struct model_config config = drive_config("tiny", arena);
    struct drive drive;
    struct err err = {0};
    drive_model(&config, "type", "f32", arena);
    drive_model(&config, "kv_type", "f32", arena);
    drive_open_run(&drive, ref, &config, arena);
    if (drive_prepare(&drive, "generate", settings, &err)) fail_msg("%s", err.text);
    drive_execute(&drive);
    error = plain_error;
    drive_witness(&drive); /* makes the plain results */
    error = fast_error;
    if (kept) { /* another token in the plain path, with a margin of our choice */
        struct plain *plain = drive.pieces[0].bytes;
        plain_tokens(plain)[*kept] ^= 1;
        plain_margins(plain)[*kept] = plain_error;
    }
    struct witness w = drive_witness(&drive);
    error = 0;
    drive_dispose(&drive);
    drive_close_run(&drive);
    return w;
}

static void the_same_is_identical(void **state) {
    (void)state;
    struct witness w = compare_with("prompt=4 tokens=5", 0, 0, NULL);
    assert_int_equal(w.contract, CONTRACT_CLOSE);
    assert_true(w.holds && w.identical);
    assert_true(w.max_error == 0);
    assert_int_equal(w.first_difference, -1);
    assert_true(w.hash == w.plain_hash);
}

static void small_errors_are_close(void **state) {
    (void)state;
    struct witness w = compare_with("prompt=4 tokens=5", 0, 1e-3f, NULL);
    assert_true(w.holds);
    assert_false(w.identical);
    assert_true(w.max_error > 0.9e-3 && w.max_error < 1.1e-3);
    assert_int_equal(w.first_difference, 4 + 4);
}

static void large_errors_are_wrong(void **state) {
    (void)state;
    struct witness w = compare_with("prompt=4 tokens=5", 0, 1e-2f, NULL);
    assert_false(w.holds);
    w = compare_with("prompt=4 tokens=5", 0, NAN, NULL);
    assert_false(w.holds);
}

static void forks_need_a_narrow_margin(void **state) {
    int32_t at = 2;
    (void)state;
    struct witness w = compare_with("prompt=4 tokens=5", 1e-4f, 0, &at);
    assert_true(w.holds);
    assert_false(w.identical);
    assert_int_equal(w.first_difference, 4 + 2);
    assert_int_equal(w.compared, 3);
    w = compare_with("prompt=4 tokens=5", 0.5f, 0, &at);
    assert_false(w.holds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_identical), cmocka_unit_test(small_errors_are_close),
        cmocka_unit_test(large_errors_are_wrong), cmocka_unit_test(forks_need_a_narrow_margin)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    real = ref->kind;
    kind = *real;
    kind.has &= ~(unsigned)DEV_BATCH_INVARIANT;
    kind.download = spoil;
    ref->kind = &kind;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ref->kind = real;
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
