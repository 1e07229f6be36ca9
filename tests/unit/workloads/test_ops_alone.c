/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of one op (gemm, gemv, attention) and of a step's parts: witnesses that hold and that
   fail, copies that take turns, bytes by ledger and by allocator. */
#include "base/range.h"
#include "tests/unit/workloads/drive.h"

static struct arena *arena;
static struct device *ref;

static struct model_config tiny(const char *settings) {
    struct model_config config = drive_config("tiny", arena);
    drive_settings(model_options, &config.params, settings, " ", arena);
    config.activation = model_activation(&config.params, ref->kind);
    return config;
}

static void prepare(struct drive *drive, const struct model_config *config, const char *name,
                    const char *settings) {
    struct err err = {0};
    drive_open_run(drive, ref, config, arena);
    if (drive_prepare(drive, name, settings, &err)) fail_msg("%s %s: %s", name, settings, err.text);
}

static void finish(struct drive *drive) {
    drive_dispose(drive);
    drive_close_run(drive);
    assert_int_equal(tracker_live(ref->tracker, -1), 0);
}

/* ---- bytes by the plan and by the allocator */

static void allocator_agrees(void **state) {
    static const char *const models[] = {"type=bf16 kv_type=f16",
                                         "type=f32 kv_type=int8",
                                         "type=int8-group kv_type=f32 layout=paged",
                                         "type=int4 group=32 kv_type=bf16 window=6",
                                         "type=nf4 activation=bf16",
                                         "type=int4 group=32 activation=int8"};
    static const struct {
        const char *name, *settings;
    } cases[] = {{"gemm", "m=5 matrix=mlp rotate=1"},
                 {"gemm", "m=3 matrix=qkv rotate=100kB"},
                 {"gemv", "m=2 matrix=head rotate=1MiB"},
                 {"attention", "batch=2 tokens=3 context=11 rotate=40kB"},
                 {"attention", "tokens=9 rotate=1"}};
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct model_config config = tiny(models[m]);
            struct drive drive;
            prepare(&drive, &config, cases[i].name, cases[i].settings);
            for (int c = 0; c < N_CLASSES; c++)
                if (tracker_live(ref->tracker, c) != drive.plan.bytes[c])
                    fail_msg("%s %s %s: class %d has %lld bytes, planned %lld", models[m],
                             cases[i].name, cases[i].settings, c,
                             (long long)tracker_live(ref->tracker, c),
                             (long long)drive.plan.bytes[c]);
            finish(&drive);
        }
}

/* ---- what stands in a row */

static void copies_take_turns(void **state) {
    const struct model_config config = tiny("type=bf16");
    struct drive drive;
    (void)state;
    /* down: 64 x 160 weights of 2 bytes. */
    prepare(&drive, &config, "gemv", "matrix=down rotate=100000");
    for (int i = 0; i < 7; i++) { /* every copy has its turn, and all say the same */
        drive_execute(&drive);
        const struct witness w = drive_witness(&drive);
        assert_true(w.holds && w.identical && w.contract == CONTRACT_EXACT);
    }
    struct values values = drive_report(&drive);
    assert_true(values_get(&values, "copies") == 5);
    assert_true(drive.plan.bytes[MEM_WEIGHT] == 5 * 64 * 160 * 2);
    assert_true(drive.plan.work[0].bytes[MEM_WEIGHT] == 64 * 160 * 2); /* of one product */
    assert_true(values_get(&values, "weight_bits") == 16);
    assert_true(values_get(&values, "formula_intensity") ==
                2.0 * 160 * 64 / (2.0 * 160 + 2 * 160 * 64 + 2 * 64));
    finish(&drive);
    prepare(&drive, &config, "attention", "context=20 rotate=10000");
    struct witness first = {0};
    for (int i = 0; i < 5; i++) {
        drive_execute(&drive);
        const struct witness w = drive_witness(&drive);
        assert_true(w.holds && w.identical);
        assert_true(i == 0 || w.hash == first.hash);
        first = w;
    }
    values = drive_report(&drive);
    assert_true(values_get(&values, "copies") == 4); /* 20 tokens of 2 x 2 x 16 x 2 bytes */
    assert_true(values_get(&values, "kv_token_bytes") == 128);
    finish(&drive);
}

/* A GPU has one product with each copy in an execution. */
static void a_gpu_goes_through_all_copies(void **state) {
    static const struct device_kind gpu = {.name = "gpu", .has = DEV_GPU};
    const struct model_config config = tiny("type=bf16");
    static const char *const names[] = {"gemv", "attention"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct workload *w = workload_find(names[i]);
        struct plan on_host = {0}, on_gpu = {0};
        void *params = arena_alloc(arena, w->params_size + 1);
        option_defaults(w->params, params, arena);
        drive_set(w->params, params, "rotate", "100kB", arena);
        w->plan(params, &config, &on_host);
        w->adapt(params, &gpu);
        w->plan(params, &config, &on_gpu);
        for (int c = 0; c < N_CLASSES; c++) assert_true(on_host.bytes[c] == on_gpu.bytes[c]);
        const double times = on_gpu.work[0].flops / on_host.work[0].flops;
        assert_true(times > 1 && times == floor(times));
        assert_true(on_gpu.work[0].bytes[MEM_ACTIVATION] ==
                    times * on_host.work[0].bytes[MEM_ACTIVATION]);
    }
}

/* What a format loses shows in format_error, what the device adds in kernel_error. */
static void errors_tell_formats_apart(void **state) {
    static const struct {
        const char *type;
        double least, most;
    } formats[] = {{"f32", 0, 0},        {"f16", 1e-6, 4e-4}, {"bf16", 2e-4, 4e-3},
                   {"int8", 2e-3, 4e-2}, {"int4", 4e-2, 0.5}, {"nf4", 3e-2, 0.5}};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct model_config config = tiny("");
        struct drive drive;
        drive_model(&config, "type", formats[i].type, arena);
        prepare(&drive, &config, "gemv", "m=4 matrix=qkv rotate=1");
        drive_execute(&drive);
        assert_true(drive_witness(&drive).holds);
        const struct values values = drive_report(&drive);
        const double error = values_get(&values, "format_error");
        if (!(error >= formats[i].least && error <= formats[i].most))
            fail_msg("%s: %g", formats[i].type, error);
        assert_true(values_get(&values, "kernel_error") < 1e-6);
        finish(&drive);
    }
    /* Rounded inputs are a part of the format. */
    for (int i = 0; i < 2; i++) {
        double error[2];
        for (int inputs = 0; inputs < 2; inputs++) {
            const struct model_config config =
                tiny(inputs ? i ? "type=int4 activation=int8" : "type=int8 activation=int8"
                     : i    ? "type=int4"
                            : "type=int8");
            struct drive drive;
            prepare(&drive, &config, "gemv", "m=4 matrix=mlp rotate=1");
            drive_execute(&drive);
            assert_true(drive_witness(&drive).holds);
            const struct values values = drive_report(&drive);
            error[inputs] = values_get(&values, "format_error");
            assert_true(values_get(&values, "kernel_error") < 1e-6);
            finish(&drive);
        }
        if (!(error[1] > error[0] * (i ? 1.001 : 1.1) && error[1] < error[0] + 0.02))
            fail_msg("%d: %g with int8 inputs, %g without", i, error[1], error[0]);
    }
    static const char *const caches[] = {"f32", "f16", "bf16", "int8"};
    static const double least[] = {0, 1e-5, 1e-4, 1e-3}, most[] = {0, 1e-3, 1e-2, 5e-2};
    for (int i = 0; i < 4; i++) {
        struct model_config config = tiny("layout=paged block=4");
        struct drive drive;
        drive_model(&config, "kv_type", caches[i], arena);
        prepare(&drive, &config, "attention", "batch=2 tokens=3 context=30 rotate=1");
        drive_execute(&drive);
        assert_true(drive_witness(&drive).holds);
        const struct values values = drive_report(&drive);
        const double error = values_get(&values, "format_error");
        if (!(error >= least[i] && error <= most[i])) fail_msg("%s: %g", caches[i], error);
        assert_true(values_get(&values, "kernel_error") < 1e-6);
        finish(&drive);
    }
}

/* ---- witnesses that must fail */

/* A device whose ops err, where they have more than one row in their last bit, or everywhere by a
 * thousandth. */
static const struct ops *sound;
static bool everywhere;
static void spoil(struct tensor *y) {
    const int64_t size = dtype_bits(y->type) / 8; /* little-endian */
    for (int64_t r = 0; everywhere && r < y->rows; r++)
        for (int64_t c = 0; c < y->cols; c++) {
            const float v = dtype_load(y->data, y->type, r * y->stride + c);
            dtype_store(y->data, y->type, r * y->stride + c, v * 1.25f + 0.01f);
        }
    if (!everywhere && y->rows > 1)
        ((char *)y->data)[((int64_t)y->rows * y->stride - 1) * size] ^= 1;
}
static void spoiled_linear(struct device *device, struct tensor *y, const struct tensor *x,
                           const struct weight *w, const float *bias, enum epilogue epilogue) {
    sound->linear(device, y, x, w, bias, epilogue);
    spoil(y);
}
static void spoiled_attention(struct device *device, struct tensor *o, const struct tensor *q,
                              const struct kv *kv, const struct step *step, float scale) {
    sound->attention(device, o, q, kv, step, scale);
    spoil(o);
}

static void spoiled_ops_are_wrong(void **state) {
    static const struct {
        const char *name, *settings, *model;
    } cases[] = {{"gemm", "m=3 matrix=out rotate=1", ""},
                 {"gemm", "m=3 matrix=mlp rotate=1", ""},
                 {"gemv", "m=3 matrix=gate_up rotate=50kB", "type=int8"},
                 {"attention", "tokens=3 context=11 rotate=1", "kv_type=int8"},
                 {"gemm", "m=3 matrix=qkv rotate=1", "activation=bf16"},
                 {"gemm", "m=3 matrix=mlp rotate=1", "activation=bf16"},
                 {"gemm", "m=3 matrix=mlp rotate=1", "type=int8 activation=int8"},
                 {"gemv", "m=3 matrix=down rotate=1", "type=int4 group=32 activation=int8"},
                 {"attention", "tokens=3 context=11 rotate=1", "activation=f16"}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const struct model_config config = tiny(cases[i / 2].model);
        struct drive drive;
        prepare(&drive, &config, cases[i / 2].name, cases[i / 2].settings);
        drive_execute(&drive);
        struct witness w = drive_witness(&drive);
        assert_true(w.holds && w.identical && w.hash == w.plain_hash);
        assert_int_equal(w.contract, CONTRACT_EXACT);
        everywhere = i % 2;
        sound = ref->ops;
        struct ops spoiled = *sound;
        spoiled.linear = spoiled_linear;
        spoiled.attention = spoiled_attention;
        ref->ops = &spoiled;
        drive_execute(&drive);
        w = drive_witness(&drive);
        ref->ops = sound;
        assert_false(w.holds);
        assert_false(w.identical);
        assert_true(w.first_difference >= !everywhere); /* the bit: in the last row */
        if (everywhere) { /* each row alone errs alike: only the slow computation can tell */
            assert_non_null(strstr(w.note, "slow computation"));
            const struct values values = drive_report(&drive);
            assert_true(values_get(&values, "kernel_error") > 0.1);
        } else {
            assert_true(w.hash != w.plain_hash);
        }
        finish(&drive);
    }
}

/* ---- steps */

static int phase_marks(const struct drive *drive, int phase) {
    int n = 0;
    for (int64_t i = 0; i < drive->run.n_marks; i++) n += drive->run.marks[i].mark == -1 - phase;
    return n;
}

static void steps_have_parts(void **state) {
    static const char *const models[] = {"", "layout=paged block=4 kv_type=int8", "window=6"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct model_config config = tiny(models[i]);
        struct drive whole, parts;
        prepare(&whole, &config, "step", "batch=2 context=12 split=whole");
        drive_execute(&whole);
        assert_int_equal(phase_marks(&whole, 0), 1);
        assert_int_equal(whole.run.n_marks, 1);
        const struct witness a = drive_witness(&whole);
        assert_true(a.holds && a.identical && a.compared == 2);
        drive_dispose(&whole);
        drive_close_run(&whole);
        prepare(&parts, &config, "step", "batch=2 context=12");
        for (int k = 0; k < 2; k++) { /* lengths go back: the same step again */
            drive_execute(&parts);
            static const int wanted[] = {0, 1, 4, 2, 2, 2, 2, 2, 1, 1}; /* two layers */
            for (int p = 0; p < 10; p++) assert_int_equal(phase_marks(&parts, p), wanted[p]);
            assert_int_equal(parts.run.n_marks, parts.plan.most_marks);
            const struct witness b = drive_witness(&parts);
            assert_true(b.holds && b.identical && b.hash == a.hash);
        }
        drive_dispose(&parts);
        drive_close_run(&parts);
    }
    assert_int_equal(tracker_live(ref->tracker, -1), 0);
}

/* What a profiler sees: each part a range, none within another. */
static void parts_are_ranges(void **state) {
    static const char *const wanted[] = {"embed",     "norm", "qkv",  "rope",
                                         "attention", "out",  "norm", "mlp"};
    const struct model_config config = tiny("");
    const struct range_event *events;
    struct drive drive;
    size_t lost;
    int unbalanced;
    (void)state;
    prepare(&drive, &config, "step", "context=5");
    range_record(64);
    drive_execute(&drive);
    const size_t n = range_recorded(&events, &lost, &unbalanced);
    assert_int_equal(unbalanced, 0);
    assert_int_equal(n, drive.plan.most_marks);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(events[i].category, RANGE_PHASE);
        assert_int_equal(events[i].depth, events[0].depth);
        assert_true(i == 0 || events[i].begin_ns >= events[i - 1].end_ns);
        if (i < sizeof wanted / sizeof *wanted) assert_string_equal(events[i].name, wanted[i]);
    }
    assert_string_equal(events[n - 1].name, "select");
    range_record(0);
    finish(&drive);
}

/* The ledger's peak of a step with its witness is what the allocator sees. */
static void step_memory(void **state) {
    const struct model_config config = tiny("kv_type=f16");
    struct drive drive;
    (void)state;
    tracker_reset(ref->tracker);
    prepare(&drive, &config, "step", "batch=3 context=9");
    drive_execute(&drive);
    int64_t planned = 0;
    drive_witness(&drive);
    for (int c = 0; c < N_CLASSES; c++) planned += drive.plan.bytes[c];
    assert_int_equal(tracker_peak(ref->tracker, NULL, NULL, NULL), planned);
    finish(&drive);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocator_agrees),
                                       cmocka_unit_test(copies_take_turns),
                                       cmocka_unit_test(a_gpu_goes_through_all_copies),
                                       cmocka_unit_test(errors_tell_formats_apart),
                                       cmocka_unit_test(spoiled_ops_are_wrong),
                                       cmocka_unit_test(steps_have_parts),
                                       cmocka_unit_test(parts_are_ranges),
                                       cmocka_unit_test(step_memory)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
