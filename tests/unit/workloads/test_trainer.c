/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps: memory and FLOPs against the account and what ran, checkpoints, threads, the
   forward pass against inference; and the workloads `train` and `fusion`. */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "workloads/common/trainer.h"
#include "workloads/model/theory.h"

static struct arena *arena;

struct example {
    struct model_shape shape;
    int64_t batch, tokens;
};

/* Shapes that have nothing in common. */
static struct example example(uint64_t i) {
    const uint64_t key = random_key(77, i);
#define DRAW(k, n) (1 + (int64_t)(random_at(key, k) % (n)))
    const int64_t n_kv = DRAW(0, 3);
    return (struct example){.shape = {.name = "drawn",
                                      .source = "",
                                      .n_layers = DRAW(1, 7),
                                      .d_model = 1 + DRAW(2, 20),
                                      .n_kv = n_kv,
                                      .n_q = n_kv * DRAW(3, 3),
                                      .d_h = 2 * DRAW(4, 5),
                                      .d_ff = DRAW(5, 30),
                                      .vocab = 1 + DRAW(6, 40),
                                      .qkv_bias = DRAW(7, 2) == 1,
                                      .tied = DRAW(8, 2) == 1,
                                      .rope_base = 1000,
                                      .eps = 1e-5,
                                      .rope_style = (int)DRAW(9, 2) - 1},
                            .batch = DRAW(10, 3),
                            .tokens = DRAW(11, 20)};
}

static struct trainer *open_example(struct device *device, const struct example *e, int64_t segment,
                                    struct trainer_spec *spec) {
    struct trainer *trainer;
    struct err err = {0};
    int32_t *tokens = arena_alloc(arena, sizeof *tokens * (size_t)(e->batch * (e->tokens + 1)));
    for (int64_t i = 0; i < e->batch * (e->tokens + 1); i++)
        tokens[i] = (int32_t)(random_at(random_key(3, 4), (uint64_t)i) % (uint64_t)e->shape.vocab);
    *spec = (struct trainer_spec){
        .shape = e->shape, .seed = 9, .batch = e->batch, .tokens = e->tokens, .segment = segment};
    trainer_defaults(spec);
    if (trainer_open(&trainer, device, spec, tokens, &err)) fail_msg("%s", err.text);
    return trainer;
}

static void step(struct trainer *trainer) {
    struct err err = {0};
    if (trainer_step(trainer, NULL, NULL, &err)) fail_msg("%s", err.text);
}

/* The account of each step is the formula's, to the byte and by class, and nothing stays. */
static void memory_is_the_formula(void **state) {
    struct device *ref = drive_open("ref", arena);
    (void)state;
    for (uint64_t i = 0; i < 12; i++) {
        const struct example e = example(i);
        for (int64_t segment = 0; segment <= e.shape.n_layers + 1; segment++) {
            struct trainer_spec spec;
            struct trainer_memory m;
            struct trainer *trainer = open_example(ref, &e, segment, &spec);
            int64_t by_class[N_CLASSES], held[N_CLASSES];
            trainer_memory(&spec, &m);
            assert_int_equal(m.parameters, model_parameters(&e.shape));
            for (int c = 0; c < N_CLASSES; c++) held[c] = tracker_live(ref->tracker, c);
            const int64_t before = tracker_live(ref->tracker, -1);
            assert_int_equal(held[MEM_WEIGHT], 4 * m.parameters);
            assert_int_equal(held[MEM_OTHER], 4 * m.parameters);
            assert_int_equal(held[MEM_STATE], 8 * m.parameters + 12 * e.batch * e.tokens);
            tracker_reset(ref->tracker);
            step(trainer);
            const struct trainer_given given = trainer_given(trainer);
            assert_int_equal(given.parameters + given.gradients + given.optimizer,
                             16 * m.parameters);
            assert_int_equal(given.entry, m.entry);
            assert_int_equal(given.attention, m.attention);
            assert_int_equal(given.kept, m.kept);
            assert_int_equal(given.step_peak, m.step_peak);
            assert_int_equal(tracker_peak(ref->tracker, by_class, NULL, NULL) - before,
                             m.step_peak);
            for (int c = 0; c < N_CLASSES; c++) {
                assert_int_equal(by_class[c] - held[c], m.at_peak[c]);
                assert_int_equal(given.at_peak[c], m.at_peak[c]);
            }
            assert_int_equal(tracker_live(ref->tracker, -1), before);
            trainer_close(&trainer);
            assert_int_equal(tracker_live(ref->tracker, -1), 0);
        }
    }
    device_close(&ref);
}

/* By hand: two layers of width 4 and one head of 2, three gates, five ids, one sequence of three
   tokens. */
static void memory_by_hand(void **state) {
    const struct example e = {
        .shape =
            {.n_layers = 2, .d_model = 4, .n_q = 1, .n_kv = 1, .d_h = 2, .d_ff = 3, .vocab = 5},
        .batch = 1,
        .tokens = 3};
    struct trainer_spec spec = {.shape = e.shape, .batch = 1, .tokens = 3};
    struct trainer_memory m;
    (void)state;
    trainer_memory(&spec, &m);
    assert_int_equal(m.entry, 48);
    assert_int_equal(m.attention, 36);
    /* 3 rows of: 3 x 4, 6 of q, k, v, 2 mixed, 9 of gate, up and hidden, 2 roots; 9 scores. */
    assert_int_equal(m.layer, 4 * (3 * (12 + 6 + 2 + 9 + 2) + 9));
    assert_int_equal(m.kept, 2 * (48 + 408));
    /* and the head: 9 values a row, 5 logits; temporary: 2 x 4, 9, 2, 6 a row, 16 x 4. */
    assert_int_equal(m.step_peak, 912 + 108 + 60 + 4 * (3 * (8 + 9 + 2 + 6) + 64));
    spec.segment = 1;
    trainer_memory(&spec, &m);
    assert_int_equal(m.kept, 96);
    assert_true(m.model == 2 * 48 + 456);
    assert_int_equal(m.step_peak, 96 + 408 + 556);
}

/* Multiply-adds of products and attention as the reference counts them. */
static void flops_are_counted(void **state) {
    struct device *ref = drive_open("ref", arena);
    (void)state;
    for (uint64_t i = 20; i < 30; i++) {
        const struct example e = example(i);
        for (int64_t segment = 0; segment <= e.shape.n_layers; segment++) {
            struct trainer_spec spec;
            struct work work[MAX_PHASES] = {0};
            struct trainer *trainer = open_example(ref, &e, segment, &spec);
            const int64_t before = ref->counts->linear + ref->counts->attention;
            double flops = 0;
            step(trainer);
            trainer_work(&spec, work);
            for (int k = 0; k < MAX_PHASES; k++) flops += work[k].flops;
            assert_int_equal(2 * (ref->counts->linear + ref->counts->attention - before),
                             (int64_t)flops);
            assert_true(work[TRAIN_BACKWARD].flops == 2 * work[TRAIN_FORWARD].flops);
            assert_true((work[TRAIN_RECOMPUTE].flops > 0) == (segment > 0));
            trainer_close(&trainer);
        }
    }
    device_close(&ref);
}

/* Any segment, dividing the layers or not: losses, gradients, weights and moments of three steps.
 */
static void checkpoints_change_no_bit(void **state) {
    static const char *const names[] = {"ref", "cpu"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct device *device = drive_open(names[d], arena);
        if (!device) continue;
        for (uint64_t i = 40; i < 48; i++) {
            const struct example e = example(i);
            struct trainer_spec spec;
            uint64_t plain = 0;
            double first = 0;
            for (int64_t segment = 0; segment <= e.shape.n_layers + 1; segment++) {
                struct trainer *trainer = open_example(device, &e, segment, &spec);
                step(trainer);
                first = trainer_loss(trainer);
                step(trainer);
                step(trainer);
                if (segment == 0) plain = trainer_hash(trainer);
                assert_true(trainer_hash(trainer) == plain);
                assert_true(trainer_loss(trainer) != first);
                trainer_restart(trainer);
                step(trainer);
                assert_true(trainer_loss(trainer) == first);
                assert_true(trainer_hash(trainer) != plain);
                trainer_close(&trainer);
            }
        }
        device_close(&device);
    }
}

static struct device *open_cpu(const char *threads) {
    const struct device_kind *kind = device_kind_find("cpu");
    struct device *device = NULL;
    struct err err = {0};
    void *params = arena_alloc(arena, kind->params_size);
    option_defaults(kind->params, params, arena);
    drive_set(kind->params, params, "threads", threads, arena);
    if (device_open(&device, kind, params, &err)) fail_msg("%s", err.text);
    return device;
}

static void threads_change_no_bit(void **state) {
    static const char *const threads[] = {"1", "2", "3"};
    (void)state;
    for (uint64_t i = 60; i < 64; i++) {
        const struct example e = example(i);
        uint64_t first = 0;
        for (int t = 0; t < 3; t++) {
            struct trainer_spec spec;
            struct device *cpu = open_cpu(threads[t]);
            struct trainer *trainer = open_example(cpu, &e, 2, &spec);
            step(trainer);
            if (t == 0) first = trainer_hash(trainer);
            assert_true(trainer_hash(trainer) == first);
            trainer_close(&trainer);
            device_close(&cpu);
        }
    }
}

/* The forward pass gives the logits that inference gives with the same weights. */
static void forward_is_inference(void **state) {
    struct device *ref = drive_open("ref", arena);
    struct model_config config = drive_config("tiny", arena);
    struct trainer_spec spec = {.shape = config.shape, .seed = 1, .batch = 2, .tokens = 9};
    const int64_t vocab = config.shape.vocab;
    struct trainer *trainer;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    struct err err = {0};
    int32_t tokens[20], fed[18];
    float *logits = must_alloc(sizeof *logits * (size_t)(18 * vocab));
    (void)state;
    drive_model(&config, "type", "f32", arena);
    drive_model(&config, "kv_type", "f32", arena);
    config.activation = DT_F32;
    for (int i = 0; i < 20; i++) tokens[i] = (i * 37 + i * i) % (int32_t)vocab;
    for (int i = 0; i < 18; i++) fed[i] = tokens[i / 9 * 10 + i % 9];
    trainer_defaults(&spec);
    assert_int_equal(trainer_open(&trainer, ref, &spec, tokens, &err), 0);
    assert_int_equal(trainer_logits(trainer, logits, &err), 0);
    const struct session_spec session_of = {
        .cache = {.n_seq = 2, .capacity = 9, .most_q = 9}, .most_rows = 18, .most_out = 18};
    assert_int_equal(model_create(&model, ref, &config, &err), 0);
    assert_int_equal(session_create(&session, model, &config, &session_of, &err), 0);
    assert_int_equal(inputs_create(&inputs, session, 1, 18, 18, &err), 0);
    assert_int_equal(inputs_prompt(inputs, fed, 9, 0, 9, 0, true, &err), 0);
    inputs_upload(inputs);
    assert_int_equal(session_run(session, inputs, 0, &err), 0);
    const struct tensor want = session_logits(session, inputs_step(inputs, 0));
    for (int64_t i = 0; i < 18 * vocab; i++)
        assert_true(fabsf(logits[i] - ((const float *)want.data)[i]) < 2e-5f);
    inputs_close(&inputs);
    session_close(&session);
    model_close(&model);
    trainer_close(&trainer);
    free(logits);
    device_close(&ref);
}

static void workloads_run(void **state) {
    static const char *const names[] = {"ref", "cpu"};
    static const struct {
        const char *name, *settings;
    } cases[] = {{"train", "batch=2 tokens=5"},
                 {"train", "batch=1 tokens=8 segment=1"},
                 {"train", "tokens=1 segment=2"},
                 {"train", "tokens=7 segment=1000"},
                 {"fusion", "chain=norm form=nodes rows=9 cols=33"},
                 {"fusion", "chain=norm form=fused rows=9 cols=33"},
                 {"fusion", "chain=add_norm form=nodes rows=40 cols=7"},
                 {"fusion", "chain=add_norm form=fused rows=1 cols=1"},
                 {"fusion", "chain=swiglu form=nodes rows=5 cols=100"},
                 {"fusion", "chain=swiglu form=fused rows=5 cols=100"}};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct device *device = drive_open(names[d], arena);
        if (!device) continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct model_config config = drive_config("tiny", arena);
            struct drive drive;
            struct err err = {0};
            drive_model(&config, "type", "f32", arena);
            drive_open_run(&drive, device, &config, arena);
            if (drive_prepare(&drive, cases[i].name, cases[i].settings, &err))
                fail_msg("%s: %s", cases[i].settings, err.text);
            drive_execute(&drive);
            const struct witness w = drive_witness(&drive);
            if (!w.holds) fail_msg("%s: %g, %s", cases[i].settings, w.max_error, w.note);
            drive_execute(&drive);
            assert_true(drive_witness(&drive).hash == w.hash);
            const struct values v = drive_report(&drive);
            static const char *const equal[][2] = {{"static_bytes", "static_bytes_allocated"},
                                                   {"residual_bytes", "residual_bytes_allocated"},
                                                   {"attention_bytes", "attention_bytes_allocated"},
                                                   {"kept_bytes", "kept_bytes_allocated"},
                                                   {"step_peak", "step_peak_allocated"},
                                                   {"saved_bytes", "saved_bytes_allocated"},
                                                   {"kernels", "kernels_run"}};
            int found = 0;
            for (size_t k = 0; k < sizeof equal / sizeof *equal; k++) {
                const double a = values_get(&v, equal[k][0]), b = values_get(&v, equal[k][1]);
                if (isnan(a)) continue;
                found++;
                if (!(a == b)) fail_msg("%s: %s %g, %g", cases[i].settings, equal[k][0], a, b);
            }
            assert_int_equal(found, strcmp(cases[i].name, "train") ? 2 : 5);
            drive_dispose(&drive);
            drive_close_run(&drive);
            assert_int_equal(tracker_live(device->tracker, -1), 0);
        }
        device_close(&device);
    }
}

/* Bytes and ops of the chains, counted by hand: n values, r rows, c columns. */
static void fusion_by_hand(void **state) {
    static const struct {
        const char *chain, *form;
        int kernels, n, r, c, saved_n, saved_r;
    } chains[] = {
        /* square 2n; mean n + r; root 2r; rows 2n + r; columns 2n + c; then d gain 3n and n + c;
           columns 2n + c; 3n; sum n + r; root's 3r; spread n + r; square's 3n; rows 2n + r; 3n */
        {"norm", "nodes", 15, 26, 10, 3, 2, 1},     {"norm", "fused", 2, 5, 2, 3, 1, 1},
        {"add_norm", "nodes", 17, 32, 10, 3, 2, 1}, {"add_norm", "fused", 2, 8, 2, 3, 1, 1},
        {"swiglu", "nodes", 9, 26, 0, 0, 4, 0},     {"swiglu", "fused", 2, 8, 0, 0, 2, 0},
    };
    struct device *ref = drive_open("ref", arena);
    (void)state;
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        struct drive drive;
        struct err err = {0};
        double bytes = 0;
        drive_open_run(&drive, ref, NULL, arena);
        if (drive_prepare(&drive, "fusion",
                          arena_printf(arena, "chain=%s form=%s rows=6 cols=10", chains[i].chain,
                                       chains[i].form),
                          &err))
            fail_msg("%s", err.text);
        drive_execute(&drive);
        const struct values v = drive_report(&drive);
        const double want = 4.0 * (chains[i].n * 60 + chains[i].r * 6 + chains[i].c * 10);
        for (int p = 0; p < MAX_PHASES; p++)
            for (int c = 0; c < N_CLASSES; c++) bytes += drive.plan.work[p].bytes[c];
        if (!(values_get(&v, "traffic_bytes") == want) || !(bytes == want))
            fail_msg("%s %s: %g bytes, %g in the ledger, not %g", chains[i].chain, chains[i].form,
                     values_get(&v, "traffic_bytes"), bytes, want);
        assert_true(values_get(&v, "kernels") == chains[i].kernels);
        assert_true(values_get(&v, "saved_bytes") ==
                    4.0 * (chains[i].saved_n * 60 + chains[i].saved_r * 6));
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
    device_close(&ref);
}

/* Out of memory within a step: the error says of what, and everything is given back. */
static void devices_without(void **state) {
    struct device *fake = drive_open("fake", arena);
    struct model_config config = drive_config("tiny", arena);
    struct drive drive;
    struct err err = {0};
    (void)state;
    drive_model(&config, "type", "f32", arena);
    drive_open_run(&drive, fake, &config, arena);
    assert_int_equal(drive_prepare(&drive, "train", "tokens=4", &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "--device cpu or ref"));
    drive_dispose(&drive);
    drive_close_run(&drive);
    drive_open_run(&drive, fake, NULL, arena);
    assert_int_equal(drive_prepare(&drive, "fusion", "rows=4", &err), ERR_UNSUPPORTED);
    drive_dispose(&drive);
    drive_close_run(&drive);
    device_close(&fake);
    /* Types other than f32 are refused beforehand. */
    struct device *ref = drive_open("ref", arena);
    config = drive_config("tiny", arena);
    drive_open_run(&drive, ref, &config, arena);
    assert_int_equal(drive_prepare(&drive, "train", "tokens=4", &err), ERR_INPUT);
    drive_close_run(&drive);
    device_close(&ref);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_the_formula), cmocka_unit_test(memory_by_hand),
        cmocka_unit_test(flops_are_counted),     cmocka_unit_test(checkpoints_change_no_bit),
        cmocka_unit_test(threads_change_no_bit), cmocka_unit_test(forward_is_inference),
        cmocka_unit_test(workloads_run),         cmocka_unit_test(fusion_by_hand),
        cmocka_unit_test(devices_without),
    };
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
