/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device as its users see it: options, facts, what it supports, memory, weights, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/facts.h"
#include "base/option.h"
#include "kernels/cpu/cpu.h"

static struct device *open_cpu(const char *isa, int64_t threads) {
    struct arena *arena = arena_create();
    struct cpu_params params;
    struct device *device = NULL;
    struct err err = {0};
    option_defaults(device_cpu.params, &params, arena);
    assert_int_equal(option_parse(option_find(device_cpu.params, "isa"), isa, &params, arena, &err),
                     0);
    params.threads = threads;
    if (device_open(&device, &device_cpu, &params, &err)) fail_msg("%s", err.text);
    arena_close(&arena);
    return device;
}

static void defaults_take_the_best_level_and_all_cores(void **state) {
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    struct device *device = open_cpu("auto", 0);
    struct facts facts = {0};
    device_cpu.describe(device, &facts);
    assert_string_equal(facts_get(&facts, "device.isa", ""),
                        facts_get(&facts, "device.isa_best", "-"));
    const long threads = strtol(facts_get(&facts, "device.threads", "0"), NULL, 10);
    assert_in_range(threads, 1, CPU_COUNT(&allowed));
    assert_non_null(strstr(facts_get(&facts, "device.pinning", ""), "CPU "));
    assert_non_null(facts_find(&facts, "device.huge_pages"));
    facts_free(&facts);
    device_close(&device);
}

static void the_level_and_threads_asked_for_are_what_runs(void **state) {
    (void)state;
    for (int64_t threads = 1; threads <= 5; threads++) {
        struct device *device = open_cpu("scalar", threads);
        struct facts facts = {0};
        device_cpu.describe(device, &facts);
        assert_string_equal(facts_get(&facts, "device.isa", ""), "scalar");
        assert_int_equal(strtol(facts_get(&facts, "device.threads", "0"), NULL, 10), threads);
        facts_free(&facts);
        device_close(&device);
        assert_null(device);
    }
}

static void a_second_device_sees_the_whole_machine(void **state) {
    (void)state;
    struct device *first = open_cpu("auto", 0), *second = open_cpu("auto", 0);
    assert_int_equal(pool_threads(cpu_of(first)->pool), pool_threads(cpu_of(second)->pool));
    device_close(&first);
    device_close(&second);
}

static void what_is_not_there_is_refused_with_a_sentence(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 1);
    const struct op_case good = {.weight = DT_BF16, .kv = DT_BF16};
    const char *text = NULL;
    for (int op = 0; op < N_OPS; op++) {
        assert_true(device_cpu.supports(device, (enum op)op, &good, &text));
        assert_non_null(text);
    }
    struct op_case c = good;
    c.weight = DT_I8, c.scale = SCALE_ROW;
    assert_true(device_cpu.supports(device, OP_LINEAR, &c, &text));
    assert_non_null(strstr(text, "codes"));
    c.scale = SCALE_NONE;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    assert_non_null(strstr(text, "scale"));
    assert_true(
        device_cpu.supports(device, OP_ATTENTION, &c, &text)); /* weights do not matter to it */
    c.scale = SCALE_GROUP;
    assert_false(device_cpu.supports(device, OP_EMBED, &c, &text)); /* of 0 columns */
    c.weight = DT_I32, c.scale = SCALE_ROW;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    c.weight = DT_F16;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    c = good, c.activation = DT_F16;
    assert_true(device_cpu.supports(device, OP_ADD_NORM, &c, &text));
    c.activation = DT_I8;
    assert_false(device_cpu.supports(device, OP_ADD_NORM, &c, &text));
    assert_non_null(strstr(text, "f32"));
    c = good, c.kv = DT_NF4;
    assert_false(device_cpu.supports(device, OP_ATTENTION, &c, &text));
    c = good, c.activation = DT_I8;
    assert_true(device_cpu.supports(device, OP_FMA_PEAK, &c, &text));
    c.activation = DT_I4;
    assert_false(device_cpu.supports(device, OP_FMA_PEAK, &c, &text));
    c = good, c.input = DT_I8;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text)); /* bf16 weights */
    assert_non_null(strstr(text, "int4"));
    c.weight = DT_NF4, c.scale = SCALE_GROUP, c.group = 64;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    c.weight = DT_I4;
    assert_true(device_cpu.supports(device, OP_LINEAR, &c, &text));
    assert_non_null(strstr(text, "by codes"));
    c.activation = DT_BF16;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    c.activation = DT_F32, c.input = DT_I4;
    assert_false(device_cpu.supports(device, OP_LINEAR, &c, &text));
    device_close(&device);
}

static void memory_is_aligned_zeroed_and_counted(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 0);
    static const size_t sizes[] = {1, 63, 64, 4097, (1 << 20) - 1, 1 << 20, (5 << 20) + 3};
    for (int round = 0; round < 2; round++) /* the second finds what the first left dirty */
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *p = device_alloc(device, sizes[i], MEM_OTHER, "test");
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % (sizes[i] >= 1 << 20 ? 2 << 20 : 64), 0);
            for (size_t b = 0; b < sizes[i]; b++)
                if (p[b] != 0) fail_msg("byte %zu of %zu is %d", b, sizes[i], p[b]);
            memset(p, 0xa5, sizes[i]);
            assert_int_equal(tracker_live(device->tracker, MEM_OTHER), sizes[i]);
            device_free(device, p);
        }
    device_close(&device);
}

static void more_memory_than_there_is_is_not_had(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 1);
    assert_null(device_alloc(device, SIZE_MAX / 2, MEM_OTHER, "test"));
    assert_null(device_alloc(device, (size_t)1 << 46, MEM_OTHER, "test"));
    const int64_t available = memory_available("/");
    assert_true(available > 0);
    if (available < INT64_MAX / 2)
        assert_null(device_alloc(device, (size_t)available * 2, MEM_OTHER, "test"));
    assert_int_equal(device_live_allocations(device), 0);
    device_close(&device);
}

static void numbered_row(void *ctx, int64_t r, float *out) {
    for (int64_t c = 0; c < 7; c++) out[c] = *(const float *)ctx + (float)(r * 8 + c);
}

/* Stacked parts whose rows do not fill panels: every row is found again, and padding is zero. */
static void stacked_weights_keep_every_row(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 0);
    for (int type = DT_F32; type <= DT_BF16; type++) {
        float base[3] = {0, 64, 128}; /* all values whole and below 256 */
        const struct weight_spec parts[3] = {{"a", 5, 7, (enum dtype)type, SCALE_NONE, 0, DT_F32},
                                             {"b", 1, 7, (enum dtype)type, SCALE_NONE, 0, DT_F32},
                                             {"c", 15, 7, (enum dtype)type, SCALE_NONE, 0, DT_F32}};
        const struct row_source sources[3] = {{.row = numbered_row, .ctx = &base[0]},
                                              {.row = numbered_row, .ctx = &base[1]},
                                              {.row = numbered_row, .ctx = &base[2]}};
        struct weight *weight = NULL;
        struct err err = {0};
        assert_int_equal(device_cpu.pack(device, &weight, parts, 3, sources, &err), 0);
        assert_int_equal(weight->rows, 21);
        const int64_t cols = type == DT_BF16 ? 8 : 7; /* pairs */
        assert_int_equal(weight->bytes, 3 * 16 * cols * dtype_bits((enum dtype)type) / 8);
        assert_int_equal(tracker_live(device->tracker, MEM_WEIGHT), weight->bytes);
        const int64_t first[4] = {0, 5, 6, 21};
        for (int p = 0; p < 3; p++)
            for (int64_t r = first[p]; r < first[p + 1]; r++) {
                float row[7], want[7];
                cpu_weight_row(cpu_of(device), (const struct cpu_weight *)weight, r, row);
                numbered_row(&base[p], r - first[p], want);
                assert_memory_equal(row, want, sizeof row);
            }
        const struct cpu_weight *w = (const struct cpu_weight *)weight;
        double sum = 0;
        for (int64_t i = 0; i < 3 * 16 * cols; i++)
            sum += (double)dtype_load(w->data, (enum dtype)type, i);
        double want = 0;
        for (int p = 0; p < 3; p++)
            for (int64_t r = 0; r < parts[p].rows; r++) {
                float row[7];
                numbered_row(&base[p], r, row);
                for (int c = 0; c < 7; c++) want += (double)row[c];
            }
        assert_true(sum == want); /* padding adds nothing */
        device_cpu.unpack(device, &weight);
        assert_null(weight);
        device_cpu.unpack(device, &weight);
    }
    assert_int_equal(device_live_allocations(device), 0);
    device_close(&device);
}

/* Every format and a group that words of codes do not divide: rows of stacked parts as quant.h
   defines them, and the bytes that these take. */
static void quantized_rows_are_those_of_the_definition(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 0);
    for (const struct weight_format *f = weight_formats; f->name != NULL; f++) {
        if (f->scale == SCALE_NONE) continue;
        float base[2] = {-30, 1000};
        const int group = f->scale == SCALE_GROUP ? 3 : 0;
        const struct weight_spec parts[2] = {{"a", 18, 7, f->type, f->scale, group, DT_F32},
                                             {"b", 5, 7, f->type, f->scale, group, DT_F32}};
        const struct row_source sources[2] = {{.row = numbered_row, .ctx = &base[0]},
                                              {.row = numbered_row, .ctx = &base[1]}};
        struct weight *weight = NULL;
        struct err err = {0};
        assert_int_equal(device_cpu.pack(device, &weight, parts, 2, sources, &err), 0);
        const int64_t words = f->scale == SCALE_GROUP ? 3 : 1; /* each begins at a word */
        assert_int_equal(weight->bytes, 3 * 16 * (f->type == DT_I8 ? 7 : 4 * words));
        assert_int_equal(weight->scale_bytes, f->scale == SCALE_TENSOR ? 2 * 4
                                              : f->scale == SCALE_ROW  ? 3 * 16 * 4
                                                                       : 3 * 16 * 3 * 2);
        assert_int_equal(tracker_live(device->tracker, MEM_WEIGHT), weight->bytes);
        assert_int_equal(tracker_live(device->tracker, MEM_SCALE), weight->scale_bytes);
        for (int64_t r = 0; r < 23; r++) {
            const int part = r >= 18;
            float got[7], want[7];
            cpu_weight_row(cpu_of(device), (const struct cpu_weight *)weight, r, got);
            numbered_row(&base[part], r - part * 18, want);
            quant_roundtrip(&parts[part], want, quant_absmax(&parts[part], &sources[part]));
            assert_memory_equal(got, want, sizeof got);
        }
        device_cpu.unpack(device, &weight);
    }
    assert_int_equal(device_live_allocations(device), 0);
    device_close(&device);
}

static void weights_that_cannot_be_are_refused(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 1);
    float base = 0;
    const struct row_source sources[2] = {{.row = numbered_row, .ctx = &base},
                                          {.row = numbered_row, .ctx = &base}};
    struct weight_spec parts[2] = {{"a", 4, 7, DT_I8, SCALE_NONE, 0, DT_F32},
                                   {"b", 4, 8, DT_BF16, SCALE_NONE, 0, DT_F32}};
    struct weight *weight = NULL;
    struct err err = {0};
    assert_int_equal(device_cpu.pack(device, &weight, parts, 1, sources, &err), ERR_UNSUPPORTED);
    assert_null(weight);
    parts[0].type = DT_BF16, parts[0].scale = SCALE_NONE;
    assert_int_equal(device_cpu.pack(device, &weight, parts, 2, sources, &err),
                     ERR_INTERNAL); /* other columns */
    parts[0] =
        (struct weight_spec){"vast", (int64_t)1 << 36, 1 << 10, DT_F32, SCALE_NONE, 0, DT_F32};
    assert_int_equal(device_cpu.pack(device, &weight, parts, 1, sources, &err), ERR_MEMORY);
    assert_non_null(strstr(err.text, "vast"));
    assert_null(weight);
    assert_int_equal(device_live_allocations(device), 0);
    device_close(&device);
}

static void the_first_failure_sticks_until_sync(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 1);
    struct err err = {0};
    float data[16] = {0};
    const struct cpu_weight w = {.head = {.rows = 4, .cols = 4}};
    struct tensor x = {data, DT_F32, 1, 4, 4}, y = {data, DT_F32, 1, 4, 4};
    struct tensor half = {data, DT_F16, 1, 4, 4};
    assert_int_equal(device_cpu.sync(device, &err), 0);
    device->ops->linear(device, &y, &x, &w.head, NULL, EPI_NONE); /* before plan */
    device->ops->gather_rows(device, &half, &x, &(struct step){0});
    assert_int_equal(device_cpu.sync(device, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "plan"));
    err = (struct err){0};
    assert_int_equal(device_cpu.sync(device, &err), 0);
    assert_int_equal(err.code, 0);
    device_close(&device);
}

/* A step larger than planned is an error, never a write beyond the workspace. */
static void heads_larger_than_planned_are_refused(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 1);
    const struct step_bounds small = {.n_seq = 1,
                                      .n_row = 1,
                                      .n_out = 1,
                                      .most_q = 1,
                                      .most_kv = 8,
                                      .n_q = 1,
                                      .n_kv = 1,
                                      .d_h = 16};
    struct err err = {0};
    assert_int_equal(device_cpu.plan(device, &small, &err), 0);
    enum { D = 1 << 14 };
    float *data = device_alloc(device, 6 * D * sizeof *data, MEM_OTHER, "test");
    struct tensor q = {data, DT_F32, 1, D, D}, o = {data + D, DT_F32, 1, D, D};
    int32_t zero = 0, rows[2] = {0, 1}, one = 1;
    const struct step step = {.n_seq = 1,
                              .n_row = 1,
                              .most_q = 1,
                              .most_kv = 1,
                              .pos = &zero,
                              .seq = &zero,
                              .q_begin = rows,
                              .kv_len = &one};
    const struct kv kv = {
        .type = DT_F32, .n_kv = 1, .d_h = D, .block = 1, .k = data + 2 * D, .v = data + 3 * D};
    device->ops->attention(device, &o, &q, &kv, &step, 1.0f);
    assert_int_equal(device_cpu.sync(device, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "planned"));
    device_free(device, data);
    device_close(&device);
}

static void planning_again_leaves_one_workspace(void **state) {
    (void)state;
    struct device *device = open_cpu("auto", 2);
    const struct step_bounds b = {2, 64, 2, 32, 512, 4, 2, 32, 128, 256, 1000, DT_F32};
    struct step_bounds larger = b;
    struct err err = {0};
    larger.most_kv = 4096;
    assert_int_equal(device_cpu.plan(device, &b, &err), 0);
    const int64_t bytes = tracker_live(device->tracker, MEM_WORKSPACE);
    assert_true(bytes > 0);
    assert_int_equal(device_cpu.plan(device, &larger, &err), 0);
    assert_true(tracker_live(device->tracker, MEM_WORKSPACE) > bytes);
    assert_int_equal(device_cpu.plan(device, &b, &err), 0);
    assert_int_equal(tracker_live(device->tracker, MEM_WORKSPACE), bytes);
    device_cpu.evict(device);
    assert_int_equal(tracker_live(device->tracker, -1), bytes);
    device_close(&device);
}

static void made_up_row(void *ctx, int64_t r, float *out) {
    for (int64_t i = 0; i < *(const int64_t *)ctx; i++)
        out[i] = (float)((r * 7919 + i * 104729) % 1009 - 504) / 504.0f;
}

/* Caches of all sizes, unknown ones too: the same bits. */
static void blocks_follow_the_cache_and_change_no_bit(void **state) {
    (void)state;
    enum { M = 301, N = 37, K = 1500 };
    static const int64_t sizes[] = {0,         1,       128 << 10, 256 << 10,
                                    512 << 10, 1 << 20, 2 << 20,   1 << 30};
    static const struct {
        enum dtype type;
        enum scale scale;
        int group;
    } formats[] = {{DT_BF16, SCALE_NONE, 0}, {DT_I4, SCALE_GROUP, 128}, {DT_I8, SCALE_ROW, 0}};
    struct device *device = open_cpu("auto", 2);
    struct cpu *cpu = cpu_of(device);
    struct err err = {0};
    const struct step_bounds b = {.n_seq = 1,
                                  .n_row = M,
                                  .n_out = 1,
                                  .most_q = M,
                                  .most_kv = M,
                                  .n_q = 1,
                                  .n_kv = 1,
                                  .d_h = 16,
                                  .d_model = K,
                                  .d_ff = K,
                                  .vocab = N};
    if (device_cpu.plan(device, &b, &err)) fail_msg("%s", err.text);
    int64_t k = K;
    float *x = must_alloc(sizeof(float) * M * K), *first = must_alloc(sizeof(float) * M * N),
          *y = must_alloc(sizeof(float) * M * N);
    for (int r = 0; r < M; r++) made_up_row(&k, r + 5, x + r * K);
    struct tensor in = {.data = x, .type = DT_F32, .rows = M, .cols = K, .stride = K};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const struct weight_spec spec = {.what = "w",
                                         .rows = N,
                                         .cols = K,
                                         .type = formats[f].type,
                                         .scale = formats[f].scale,
                                         .group = formats[f].group};
        const struct row_source source = {.row = made_up_row, .ctx = &k};
        struct weight *w = NULL;
        if (device_cpu.pack(device, &w, &spec, 1, &source, &err)) fail_msg("%s", err.text);
        int64_t least = INT64_MAX, most = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct tensor out = {
                .data = i ? y : first, .type = DT_F32, .rows = M, .cols = N, .stride = N};
            cpu_linear_blocks(cpu, sizes[i]);
            if (cpu->block_k < least) least = cpu->block_k;
            if (cpu->block_k > most) most = cpu->block_k;
            device->ops->linear(device, &out, &in, w, NULL, EPI_NONE);
            if (device_cpu.sync(device, &err)) fail_msg("%s", err.text);
            if (i) assert_memory_equal(first, y, sizeof(float) * M * N);
        }
        /* One row alone streams the panels, and asks for others at their ends. */
        for (int r = 0; r < M; r += 100) {
            struct tensor one = in,
                          out = {.data = y, .type = DT_F32, .rows = 1, .cols = N, .stride = N};
            one.data = x + r * K;
            one.rows = 1;
            device->ops->linear(device, &out, &one, w, NULL, EPI_NONE);
            if (device_cpu.sync(device, &err)) fail_msg("%s", err.text);
            assert_memory_equal(first + r * N, y, sizeof(float) * N);
        }
        assert_in_range(least, 100, 200); /* else all sizes were one */
        assert_int_equal(most, BLOCK_K);
        device_cpu.unpack(device, &w);
    }
    free(x);
    free(y);
    free(first);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_take_the_best_level_and_all_cores),
        cmocka_unit_test(the_level_and_threads_asked_for_are_what_runs),
        cmocka_unit_test(a_second_device_sees_the_whole_machine),
        cmocka_unit_test(what_is_not_there_is_refused_with_a_sentence),
        cmocka_unit_test(memory_is_aligned_zeroed_and_counted),
        cmocka_unit_test(more_memory_than_there_is_is_not_had),
        cmocka_unit_test(stacked_weights_keep_every_row),
        cmocka_unit_test(quantized_rows_are_those_of_the_definition),
        cmocka_unit_test(weights_that_cannot_be_are_refused),
        cmocka_unit_test(the_first_failure_sticks_until_sync),
        cmocka_unit_test(heads_larger_than_planned_are_refused),
        cmocka_unit_test(planning_again_leaves_one_workspace),
        cmocka_unit_test(blocks_follow_the_cache_and_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
