/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic weights that the CUDA device makes itself: byte by byte those that packing makes of the
   same rows from the host, padding and scales included, without memory beside the weight's own. */
// ctest: timeout 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/synthetic.h"
#include "kernels/cuda/weight.h"
#include "kernels/device.h"
#include "workloads/model/synth.h"

enum { MOST_PARTS = 3 };
static struct device *device; /* cuda-emu or cuda */

struct packed { /* a weight as it lies on the device: data, then scales */
    unsigned char *bytes;
    size_t n;
};

struct shape {
    int n_parts;
    int64_t rows[MOST_PARTS], cols;
};

static void no_row(void *ctx, int64_t r, float *out) {
    (void)ctx, (void)r, (void)out;
    fail_msg("the device knows the recipe and still asks for a row");
}

static struct packed pack(const struct weight_format *format, int group, const struct shape *shape,
                          struct synth_matrix *matrices, bool by_recipe) {
    struct weight_spec parts[MOST_PARTS];
    struct row_source sources[MOST_PARTS];
    struct weight *weight = NULL;
    struct err err = {0};
    for (int i = 0; i < shape->n_parts; i++) {
        parts[i] = (struct weight_spec){.what = "synthetic",
                                        .rows = shape->rows[i],
                                        .cols = shape->cols,
                                        .type = format->type,
                                        .scale = format->scale,
                                        .group = format->scale == SCALE_GROUP ? group : 0};
        sources[i] = synth_source(&matrices[i]);
        if (by_recipe)
            sources[i].row = no_row;
        else
            sources[i].recipe = NULL;
    }
    tracker_reset(device->tracker);
    if (device->kind->pack(device, &weight, parts, shape->n_parts, sources, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tracker_peak(device->tracker, NULL, NULL, NULL),
                     weight->bytes + weight->scale_bytes);
    const struct cuda_weight *w = (const struct cuda_weight *)weight;
    struct packed p = {.n = (size_t)(weight->bytes + weight->scale_bytes)};
    p.bytes = must_alloc(p.n);
    device->kind->download(device, p.bytes, w->data, (size_t)weight->bytes);
    device->kind->download(device, p.bytes + weight->bytes, w->scales, (size_t)weight->scale_bytes);
    device->kind->unpack(device, &weight);
    if (device->kind->sync(device, &err)) fail_msg("%s", err.text);
    assert_int_equal(tracker_live(device->tracker, -1), 0);
    return p;
}

static void compare(const struct weight_format *format, int group, const struct shape *shape,
                    struct synth_matrix *matrices) {
    struct packed want = pack(format, group, shape, matrices, false);
    struct packed got = pack(format, group, shape, matrices, true);
    assert_int_equal(got.n, want.n);
    for (size_t i = 0; i < got.n; i++)
        if (got.bytes[i] != want.bytes[i])
            fail_msg("%s group %d, %d parts of %lld ... rows, %lld columns, unit %g: byte %zu of "
                     "%zu is %02x, not %02x",
                     format->name, group, shape->n_parts, (long long)shape->rows[0],
                     (long long)shape->cols, (double)matrices[0].unit, i, got.n, got.bytes[i],
                     want.bytes[i]);
    free(want.bytes);
    free(got.bytes);
}

static void matrices_of(const struct shape *shape, float unit, struct synth_matrix *matrices) {
    for (int i = 0; i < shape->n_parts; i++) {
        matrices[i] = synth_matrix(7, (uint64_t)i, shape->cols);
        if (unit > 0) matrices[i].unit = unit * (float)(i + 1);
        matrices[i].tail = i != 1;
    }
}

/* Every format and group, `first` in front: what is recorded to be replayed is the first launch of
   a shape, which so is of another format for each. */
static void of_shape(const struct shape *shape, float unit, int first) {
    static const int groups[] = {32, 64, 128};
    struct synth_matrix matrices[MOST_PARTS];
    int n = 0;
    while (weight_formats[n].name) n++;
    matrices_of(shape, unit, matrices);
    for (int i = 0; i < n; i++) {
        const struct weight_format *format = &weight_formats[(first + i) % n];
        for (int g = 0; g < (format->scale == SCALE_GROUP ? 3 : 1); g++)
            compare(format, groups[(first + g) % 3], shape, matrices);
    }
}

static void same_bytes(void **state) {
    (void)state;
    static const struct shape shapes[] = {
        {1, {5}, 97},      {2, {8, 8}, 129},     {3, {20, 7, 7}, 64},   {1, {1}, 1},
        {1, {16}, 63},     {1, {17}, 65},        {1, {40}, 127},        {1, {33}, 128},
        {1, {129}, 257},   {1, {48}, 1000},      {2, {1, 1}, 7},        {2, {9, 9}, 192},
        {2, {23, 23}, 65}, {2, {64, 64}, 300},   {2, {5, 12}, 96},      {2, {16, 17}, 193},
        {3, {1, 1, 1}, 3}, {3, {32, 16, 16}, 5}, {3, {31, 5, 40}, 321},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        of_shape(&shapes[i], 0, (int)(7 * i) + 9);
}

/* Scales among the subnormals of f16 and of f32, and beyond f16. */
static void same_bytes_at_the_ends_of_the_types(void **state) {
    (void)state;
    static const float units[] = {0x1p-24f,    0x1.9p-29f, 0x1.8p-31f, 0x1p-34f,
                                  0x1.4p-133f, 0x1p-148f,  0x1p12f,    0x1.fep40f};
    const struct shape one = {1, {19}, 200}, two = {2, {9, 9}, 130};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        of_shape(&one, units[i], 0);
        of_shape(&two, units[i], 0);
    }
}

/* The test's own test: each word of the recipe matters. */
static void another_recipe_is_another_weight(void **state) {
    (void)state;
    const struct shape shape = {2, {40, 40}, 300};
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        for (int change = 0; change < 4; change++) {
            struct synth_matrix right[MOST_PARTS], wrong[MOST_PARTS];
            matrices_of(&shape, 0, right);
            matrices_of(&shape, 0, wrong);
            if (change == 0) wrong[0].key++;
            if (change == 1) wrong[1].key ^= (uint64_t)1 << 63;
            if (change == 2) wrong[1].unit *= 1.5f;
            if (change == 3) wrong[0].tail = false;
            struct packed want = pack(f, 64, &shape, right, true);
            struct packed got = pack(f, 64, &shape, wrong, true);
            assert_int_equal(got.n, want.n);
            if (!memcmp(got.bytes, want.bytes, got.n))
                fail_msg("%s: change %d of the recipe changes nothing", f->name, change);
            free(want.bytes);
            free(got.bytes);
        }
    }
}

int main(void) {
    const struct device_kind *kind = device_kind_find("cuda-emu");
    if (!kind) kind = device_kind_find("cuda");
    if (!kind) {
        fprintf(stderr, "skipped: this build has neither cuda-emu nor cuda\n");
        return 77;
    }
    struct arena *arena = arena_create();
    void *params = arena_alloc(arena, kind->params_size + 1);
    struct err err = {0};
    option_defaults(kind->params, params, arena);
    if (device_open(&device, kind, params, &err)) {
        fprintf(stderr, "skipped: %s\n", err.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes),
        cmocka_unit_test(same_bytes_at_the_ends_of_the_types),
        cmocka_unit_test(another_recipe_is_another_weight),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&device);
    arena_close(&arena);
    return failed;
}
