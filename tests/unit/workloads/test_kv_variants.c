/* SPDX-License-Identifier: Apache-2.0 */
/* Workload kv_variants: each variant equals its full form, bytes by plan and by allocator, what it
   refuses, and witnesses that fail. */
#include "kernels/lab.h"
#include "kernels/lab_latent.h"
#include "tests/unit/workloads/drive.h"

static struct arena *arena;
enum { DEVICES = 3 };
static struct device *devices[DEVICES];
static const char *const device_names[] = {"ref", "cpu", "cuda-emu"};

static struct model_config shape(const char *type, const char *kv_type, const char *n_kv,
                                 struct device *device) {
    struct model_config config = drive_config("tiny", arena);
    drive_set(shape_options, &config.shape, "n_layers", "5", arena);
    drive_set(shape_options, &config.shape, "n_kv", n_kv, arena);
    drive_model(&config, "type", type, arena);
    drive_model(&config, "kv_type", kv_type, arena);
    config.activation = model_activation(&config.params, device->kind);
    return config;
}

static void begin(struct drive *drive, struct device *device, const struct model_config *config,
                  const char *settings) {
    struct err err = {0};
    drive_open_run(drive, device, config, arena);
    if (drive_prepare(drive, "kv_variants", settings, &err))
        fail_msg("%s on %s: %s", settings, device->kind->name, err.text);
}

static void end(struct drive *drive) {
    drive_dispose(drive);
    drive_close_run(drive);
}

static bool lab_only(const char *settings) {
    return strstr(settings, "latent") || strstr(settings, "sparse");
}

/* ---- each variant, each device */

static const char *const variants[] = {
    "variant=mha length=37",
    "variant=gqa length=37 batch=2",
    "variant=mqa length=70",
    "variant=latent length=37 latent=24 rotary=6 batch=3",
    "variant=latent length=70 latent=33 rotary=0 form=rebuilt",
    "variant=shared length=37 share=2 batch=2",
    "variant=shared length=9 share=5",
    "variant=window length=37 window=8 local_layers=3",
    "variant=window length=70 window=33",
    "variant=window length=5 window=8",                  /* a window beyond the length */
    "variant=sparse length=37 block=8 blocks=5 batch=2", /* all blocks */
    "variant=sparse length=32 block=8 blocks=100",
    "variant=sparse length=37 block=8 blocks=2 batch=2",
    "variant=sparse length=70 block=16 blocks=1",
    "variant=gqa length=1",
    "variant=latent length=1 latent=1 rotary=2",
    "variant=sparse length=1 block=1 blocks=1",
};

static bool covers(const char *settings) {
    return !strstr(settings, "blocks=2") && !strstr(settings, "block=16");
}

static void equals_its_full_form(void **state) {
    static const char *const kv_types[] = {"f32", "f16", "bf16"};
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        if (!devices[d]) {
            print_message("SKIPPED: %s\n", device_names[d]);
            continue;
        }
        for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
            struct device *device = devices[d];
            if (lab_only(variants[i]) && !device->lab) continue;
            const struct model_config config =
                shape(i % 2 ? "f32" : "bf16", kv_types[i % 3], "2", device);
            const int64_t workspace = tracker_live(device->tracker, MEM_WORKSPACE);
            const int64_t before = tracker_live(device->tracker, -1) - workspace;
            struct drive drive;
            begin(&drive, device, &config, variants[i]);
            drive_execute(&drive);
            const struct witness w = drive_witness(&drive);
            const bool close = strstr(variants[i], "mha") || strstr(variants[i], "latent");
            const bool exact = !close && device->kind->has & DEV_BATCH_INVARIANT;
            const bool sparse = strstr(variants[i], "sparse") != NULL;
            if (!w.holds)
                fail_msg("%s on %s: %s, %g", variants[i], device->kind->name, w.note, w.max_error);
            if (sparse && !covers(variants[i])) {
                assert_int_equal(w.contract, CONTRACT_LOSSY);
                assert_false(w.identical);
            } else {
                if (w.contract != (exact ? CONTRACT_EXACT : CONTRACT_CLOSE) ||
                    (exact && !w.identical))
                    fail_msg("%s on %s: contract %s, identical %d", variants[i], device->kind->name,
                             contract_names[w.contract], w.identical);
            }
            drive_execute(&drive); /* the step leaves its caches as they were */
            const struct witness again = drive_witness(&drive);
            assert_true(again.hash == w.hash && again.holds && again.compared == w.compared);
            const struct values values = drive_report(&drive);
            assert_true(values_get(&values, "kv_bytes") ==
                        values_get(&values, "kv_bytes_allocated"));
            assert_true(values_get(&values, "kernel_error") < 1e-2);
            if (device->counts)
                assert_true(values_get(&values, "attention_macs") ==
                            values_get(&values, "attention_macs_counted"));
            if (strstr(variants[i], "latent"))
                assert_true(values_get(&values, "part_of_allowed") <= 1);
            if (sparse && !covers(variants[i])) /* reported, and no small thing */
                assert_true(values_get(&values, "error") > 1e-3);
            if (exact && covers(variants[i])) assert_true(values_get(&values, "error") == 0);
            end(&drive);
            assert_int_equal(tracker_live(device->tracker, -1) -
                                 tracker_live(device->tracker, MEM_WORKSPACE),
                             before);
        }
    }
}

/* More blocks lose less, and all of them nothing. */
static void more_blocks_lose_less(void **state) {
    const struct model_config config = shape("f32", "f32", "2", devices[0]);
    double last = INFINITY;
    (void)state;
    for (int blocks = 2; blocks <= 32; blocks *= 4) {
        struct drive drive;
        begin(&drive, devices[0], &config,
              arena_printf(arena, "variant=sparse length=128 block=4 blocks=%d", blocks));
        drive_execute(&drive);
        drive_witness(&drive);
        const struct values values = drive_report(&drive);
        const double error = values_get(&values, "error");
        assert_true(error < last);
        assert_true(values_get(&values, "tokens_seen") == 4 * blocks);
        last = error;
        end(&drive);
    }
    assert_true(last == 0);
}

/* E11: fewer KV heads change the bytes and no multiply-add of attention. */
static void heads_change_no_arithmetic(void **state) {
    static const char *const n_kv[] = {"1", "2", "4"};
    double macs[3], bytes[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct model_config config = shape("bf16", "f16", n_kv[i], devices[0]);
        struct drive drive;
        begin(&drive, devices[0], &config, "variant=gqa length=20");
        drive_execute(&drive);
        const struct values values = drive_report(&drive);
        macs[i] = values_get(&values, "attention_macs_counted");
        bytes[i] = values_get(&values, "kv_bytes_allocated");
        end(&drive);
    }
    assert_true(macs[0] == 2.0 * 5 * 4 * 16 * 20 && macs[1] == macs[0] && macs[2] == macs[0]);
    assert_true(bytes[1] == 2 * bytes[0] && bytes[2] == 4 * bytes[0]);
}

/* ---- bytes */

/* What lives after prepare, and at most during the witness, is planned to the byte. */
static void allocator_agrees(void **state) {
    static const char *const types[] = {"bf16", "int8", "int4", "f32"};
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const char *kv_type = lab_only(variants[i]) ? "bf16" : i % 2 ? "int8" : "f32";
        struct model_config config = shape(types[i % 4], kv_type, "2", devices[0]);
        drive_model(&config, "group", i % 4 == 2 ? "16" : "0", arena);
        struct drive drive;
        tracker_reset(devices[0]->tracker);
        begin(&drive, devices[0], &config, variants[i]);
        drive_execute(&drive);
        int64_t by_class[N_CLASSES], planned = 0;
        tracker_reset(devices[0]->tracker);
        drive_witness(&drive);
        const int64_t peak = tracker_peak(devices[0]->tracker, by_class, NULL, NULL);
        for (int c = 0; c < N_CLASSES; c++) planned += drive.plan.bytes[c];
        const bool twin = !strstr(variants[i], "mha") && !strstr(variants[i], "latent");
        if (twin && peak != planned)
            fail_msg("%s: %lld bytes at the peak, planned %lld", variants[i], (long long)peak,
                     (long long)planned);
        assert_true(peak <= planned);
        end(&drive);
    }
}

/* ---- refusals */

static void checks_refuse(void **state) {
    static const char *const cases[] = {"variant=latent rotary=7",
                                        "variant=latent latent=2048 rotary=2",
                                        "variant=gqa batch=65536 length=1000000"};
    static const char *const models[][2] = {
        {"window", "8"}, {"layout", "paged"}, {"kv_type", "int8"}};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct model_config config = shape("bf16", "bf16", "2", devices[0]);
        struct drive drive;
        struct err err = {0};
        if (i >= 3) drive_model(&config, models[i - 3][0], models[i - 3][1], arena);
        drive_open_run(&drive, devices[0], &config, arena);
        if (drive_prepare(&drive, "kv_variants", i < 3 ? cases[i] : "variant=sparse length=9",
                          &err) != ERR_INPUT)
            fail_msg("case %zu is not refused", i);
        drive_close_run(&drive);
    }
    /* Heads that do not divide. */
    struct model_config config = shape("bf16", "bf16", "3", devices[0]);
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, devices[0], &config, arena);
    assert_int_equal(drive_prepare(&drive, "kv_variants", "variant=gqa", &err), ERR_INPUT);
    drive_close_run(&drive);
}

static void values_are_refused(void **state) {
    static const char *const bad[][2] = {
        {"blocks", "0"},    {"block", "0"},     {"window", "0"},    {"latent", "0"},
        {"rotary", "-2"},   {"share", "0"},     {"length", "0"},    {"batch", "0"},
        {"latent", "4096"}, {"variant", "mla"}, {"form", "absorb"}, {"local_layers", "-1"},
        {"blocks", "1e99"}, {"length", "nan"}};
    const struct workload *w = workload_find("kv_variants");
    void *params = arena_alloc(arena, w->params_size);
    (void)state;
    option_defaults(w->params, params, arena);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = {0};
        if (!option_parse(option_find(w->params, bad[i][0]), bad[i][1], params, arena, &err))
            fail_msg("%s = %s is taken", bad[i][0], bad[i][1]);
        assert_true(err.text[0]);
    }
}

/* Devices without the lab's ops say so. */
static void without_lab(void **state) {
    static const char *const cases[] = {"variant=latent length=4 latent=8 rotary=2",
                                        "variant=sparse length=4"};
    const struct lab_ops *lab = devices[0]->lab;
    (void)state;
    devices[0]->lab = NULL;
    for (int i = 0; i < 2; i++) {
        const struct model_config config = shape("bf16", "bf16", "2", devices[0]);
        struct drive drive;
        struct err err = {0};
        drive_open_run(&drive, devices[0], &config, arena);
        assert_int_equal(drive_prepare(&drive, "kv_variants", cases[i], &err), ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "--device cpu or ref"));
        end(&drive);
    }
    devices[0]->lab = lab;
    assert_int_equal(tracker_live(devices[0]->tracker, -1), 0);
}

/* ---- witnesses that must fail */

static const struct ops *sound;
static const struct lab_latent *sound_lab;

static void scale_row(struct tensor *o, float by) {
    for (int32_t c = 0; c < o->cols; c++)
        dtype_store(o->data, o->type, c, by * dtype_load(o->data, o->type, c));
}
/* Masks one token too many where all are kept. */
static void narrow_mask(struct device *device, struct tensor *o, const struct tensor *q,
                        const struct kv *kv, const struct step *step, float scale) {
    struct kv off = *kv;
    if (kv->window > 1 && kv->block > kv->window) off.window--;
    sound->attention(device, o, q, &off, step, scale);
}
/* Where the last layer wrote, the next one writes something else. */
static void wrong_append(struct device *device, struct tensor *q, const struct kv *kv,
                         const struct tensor *qkv, const struct step *step,
                         const struct rope *rope) {
    static const void *last;
    struct tensor spoiled = *qkv;
    if (last == kv->k) scale_row(&spoiled, 1.5f);
    last = kv->k;
    sound->rope_append(device, q, kv, &spoiled, step, rope);
}
static void wrong_attention(struct device *device, struct tensor *o, const struct tensor *q,
                            const struct kv *kv, const struct step *step, float scale) {
    sound->attention(device, o, q, kv, step, scale * 1.2f);
}
static void wrong_rebuilt(struct device *device, struct tensor *o, const struct tensor *q,
                          const struct latent_cache *cache, const struct latent_heads *heads,
                          const struct step *step, float scale, enum latent_form form) {
    sound_lab->attention(device, o, q, cache, heads, step, scale, form);
    if (form == LATENT_REBUILT) scale_row(o, 1.0005f);
}
static void wrong_latent(struct device *device, struct tensor *o, const struct tensor *q,
                         const struct latent_cache *cache, const struct latent_heads *heads,
                         const struct step *step, float scale, enum latent_form form) {
    sound_lab->attention(device, o, q, cache, heads, step, scale * 1.2f, form);
}
/* The first block is never chosen, even where all may be. */
static void wrong_choice(struct device *device, const struct block_choice *choice,
                         const struct block_means *means, const struct tensor *q,
                         const struct kv *kv, const struct step *step) {
    sound_lab->choose(device, choice, means, q, kv, step);
    choice->table[0] = choice->table[1];
}

static void wrong_ops_are_wrong(void **state) {
    static const struct {
        const char *settings, *note;
        void (*attention)(struct device *, struct tensor *, const struct tensor *,
                          const struct kv *, const struct step *, float);
        void (*latent)(struct device *, struct tensor *, const struct tensor *,
                       const struct latent_cache *, const struct latent_heads *,
                       const struct step *, float, enum latent_form);
        bool append, choose;
    } cases[] = {
        {"variant=window length=37 window=8", "all tokens", narrow_mask, NULL, false, false},
        {"variant=shared length=37 share=2", "copy", NULL, NULL, true, false},
        {"variant=mha length=37", "slow computation", wrong_attention, NULL, false, false},
        {"variant=gqa length=37", "slow computation", wrong_attention, NULL, false, false},
        {"variant=latent length=37 latent=24 rotary=6", "other form", NULL, wrong_rebuilt, false,
         false},
        {"variant=latent length=37 latent=24 rotary=6", "slow computation", NULL, wrong_latent,
         false, false},
        {"variant=sparse length=37 block=8 blocks=5", "full attention", NULL, NULL, false, true},
    };
    (void)state;
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct device *device = devices[d];
            if (!device) continue;
            const struct model_config config = shape("f32", "f32", "2", device);
            const struct lab_ops *lab = device->lab;
            sound = device->ops;
            sound_lab = lab->latent;
            struct ops ops = *sound;
            struct lab_latent latent = *sound_lab;
            const struct lab_ops wrong = {.latent = &latent};
            if (cases[i].attention) ops.attention = cases[i].attention;
            if (cases[i].latent) latent.attention = cases[i].latent;
            if (cases[i].append) ops.rope_append = wrong_append;
            if (cases[i].choose) latent.choose = wrong_choice;
            struct drive drive;
            device->ops = &ops;
            device->lab = &wrong;
            begin(&drive, device, &config, cases[i].settings);
            drive_execute(&drive);
            const struct witness w = drive_witness(&drive);
            device->ops = sound;
            device->lab = lab;
            if (w.holds || !strstr(w.note, cases[i].note))
                fail_msg("%s on %s: holds %d, %s", cases[i].settings, device->kind->name, w.holds,
                         w.note);
            end(&drive);
        }
}

/* ---- a device without memory */

static int allocations_left;
static const struct device_kind *real_kind;
static void *scarce(struct device *device, size_t bytes) {
    return allocations_left-- > 0 ? real_kind->alloc(device, bytes) : NULL;
}

static void every_failing_allocation(void **state) {
    static const char *const cases[] = {
        "variant=gqa length=5", "variant=latent length=5 latent=8 rotary=2",
        "variant=window length=9 window=3 local_layers=2", "variant=shared length=5",
        "variant=sparse length=9 block=2 blocks=2"};
    struct device_kind kind = *devices[0]->kind;
    (void)state;
    real_kind = devices[0]->kind;
    kind.alloc = scarce;
    devices[0]->kind = &kind;
    const struct model_config config = shape("bf16", "bf16", "2", devices[0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool witnessed = false;
        int failures = 0;
        for (int allowed = 0; !witnessed; allowed++) {
            struct drive drive;
            struct err err = {0};
            struct witness w = {0};
            drive_open_run(&drive, devices[0], &config, arena);
            allocations_left = allowed;
            int code = drive_prepare(&drive, "kv_variants", cases[i], &err);
            if (!code) { /* and in the witness, which makes another stack */
                drive_execute(&drive);
                code = drive.run.workload->witness(drive.self, &w, &err);
                witnessed = !code;
            }
            end(&drive);
            assert_int_equal(tracker_live(devices[0]->tracker, -1), 0);
            if (!code) break;
            assert_int_equal(code, ERR_MEMORY);
            assert_true(err.text[0]);
            failures++;
        }
        assert_true(failures > 20);
    }
    devices[0]->kind = real_kind;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_its_full_form),
                                       cmocka_unit_test(more_blocks_lose_less),
                                       cmocka_unit_test(heads_change_no_arithmetic),
                                       cmocka_unit_test(allocator_agrees),
                                       cmocka_unit_test(checks_refuse),
                                       cmocka_unit_test(values_are_refused),
                                       cmocka_unit_test(without_lab),
                                       cmocka_unit_test(wrong_ops_are_wrong),
                                       cmocka_unit_test(every_failing_allocation)};
    arena = arena_create();
    for (int i = 0; i < DEVICES; i++) devices[i] = drive_open(device_names[i], arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < DEVICES; i++)
        if (devices[i]) device_close(&devices[i]);
    arena_close(&arena);
    return failed;
}
