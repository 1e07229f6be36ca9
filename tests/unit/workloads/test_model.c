/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and keys: counts of every shape, what may not be combined, what decides about a weight
 * set. */
#include "tests/unit/workloads/drive.h"

static struct arena *arena;

static void shapes_have_their_parameters(void **state) {
    static const struct {
        const char *name;
        int64_t parameters;
    } shapes[] = {{"tiny", 105024},
                  {"seed-0.5b", 494032768},
                  {"smollm2-135m", 134515008},
                  {"llama-1b", 1235814400},
                  {"7b", 7241732096},
                  {"13b", 13015449600 + 414720}}; /* E29 leaves the norms out */
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct model_config config = drive_config(shapes[i].name, arena);
        struct problems *problems = problems_create();
        int64_t scales;
        assert_int_equal(model_parameters(&config.shape), shapes[i].parameters);
        model_check(&config, problems);
        assert_int_equal(problems_count(problems), 0);
        problems_close(&problems);
        assert_true(strlen(config.shape.source) > 10);
        /* Two bytes a matrix entry, four a norm or bias. */
        int64_t vectors = ledger_vector_bytes(&config.shape);
        assert_int_equal(model_weight_bytes(&config, &scales),
                         2 * (shapes[i].parameters - vectors / 4) + vectors);
        assert_int_equal(scales, 0);
    }
}

static void formats_have_their_bytes(void **state) {
    struct model_config config = drive_config("13b", arena);
    int64_t scales, entries = 13015449600;
    (void)state;
    drive_model(&config, "type", "int4", arena);
    int64_t bytes = model_weight_bytes(&config, &scales) - ledger_vector_bytes(&config.shape);
    assert_int_equal(bytes, entries / 2);
    assert_int_equal(scales, entries / 128 * 2); /* E35: 4.125 bits a weight */
    drive_model(&config, "type", "nf4", arena);
    model_weight_bytes(&config, &scales);
    assert_int_equal(scales, entries / 64 * 2);
    drive_model(&config, "group", "32", arena);
    model_weight_bytes(&config, &scales);
    assert_int_equal(scales, entries / 32 * 2);
    assert_int_equal(model_group(&config.params), 32);
}

static void int8_cache_counts_its_scales(void **state) {
    struct model_config config = drive_config("seed-0.5b", arena);
    int64_t scales;
    (void)state;
    drive_model(&config, "kv_type", "int8", arena);
    assert_int_equal(model_kv_bytes_per_token(&config, &scales), 6144);
    assert_int_equal(scales, 2 * 24 * 2 * 4);
    drive_model(&config, "kv_type", "f32", arena);
    assert_int_equal(model_kv_bytes_per_token(&config, &scales), 24576);
    assert_int_equal(scales, 0);
}

static void expect_problem(struct model_config config, const char *key, const char *word) {
    struct problems *problems = problems_create();
    struct text text = {0};
    model_check(&config, problems);
    assert_int_equal(problems_count(problems), 1);
    problems_print(problems, &text);
    if (!strstr(text.data, word)) fail_msg("%s: %s", key, text.data);
    text_free(&text);
    problems_close(&problems);
}

static void contradictions_are_named(void **state) {
    (void)state;
    struct model_config config = drive_config("tiny", arena);
    config.shape.n_kv = 3;
    expect_problem(config, "shape.n_kv", "do not divide");
    config = drive_config("tiny", arena);
    config.shape.d_h = 15;
    expect_problem(config, "shape.d_h", "even");
    config = drive_config("tiny", arena);
    drive_model(&config, "group", "32", arena);
    expect_problem(config, "model.group", "bf16 has no groups");
    config = drive_config("tiny", arena);
    drive_model(&config, "activation", "int8", arena);
    expect_problem(config, "model.activation", "those of bf16 are neither");
    drive_model(&config, "type", "nf4", arena);
    expect_problem(config, "model.activation", "those of nf4 are neither");
    config = drive_config("tiny", arena);
    config.shape.d_model = 65536;
    config.shape.d_ff = 262144;
    config.shape.n_layers = 1024;
    expect_problem(config, "model.shape", "parameters");
}

static void a_weight_set_is_shape_format_and_seed(void **state) {
    (void)state;
    struct model_config a = drive_config("tiny", arena), b = a;
    drive_model(&b, "kv_type", "f32", arena);
    drive_model(&b, "layout", "paged", arena);
    drive_model(&b, "window", "9", arena);
    assert_true(model_key(&a) == model_key(&b));
    assert_true(model_hash(&a) != model_hash(&b));
    static const char *const changes[][2] = {{"type", "f32"}, {"seed", "2"}};
    for (int i = 0; i < 2; i++) {
        b = a;
        drive_model(&b, changes[i][0], changes[i][1], arena);
        assert_true(model_key(&a) != model_key(&b));
    }
    b = a;
    b.shape.tied = !b.shape.tied;
    assert_true(model_key(&a) != model_key(&b));
    b = a;
    b.shape.rope_base = 500;
    assert_true(model_key(&a) == model_key(&b));
    assert_true(model_hash(&a) != model_hash(&b));
    static const char *const angles[] = {"rope_scaling=linear rope_factor=2", "rope_context=99",
                                         "rope_magnify=2", "rope_low=2", "rope_high=9"};
    for (int i = 0; i < 5; i++) {
        b = a;
        drive_settings(shape_options, &b.shape, angles[i], " ", arena);
        assert_true(model_key(&a) == model_key(&b));
        assert_true(model_hash(&a) != model_hash(&b));
    }
    b = a;
    drive_model(&b, "layout", "paged", arena); /* the same bits, whatever the layout */
    assert_true(model_hash(&a) == model_hash(&b));
}

/* Pairs by counting. */
static void pairs_are_counted(void **state) {
    (void)state;
    for (int64_t kv = 1; kv < 20; kv++)
        for (int64_t rows = 1; rows <= kv; rows++)
            for (int64_t window = 0; window < 22; window++) {
                int64_t n = 0;
                for (int64_t p = kv - rows; p < kv; p++)
                    for (int64_t k = 0; k <= p; k++) n += window == 0 || k > p - window;
                assert_int_equal(ledger_pairs(rows, kv, window), n);
            }
}

/* A step of a batch is the sum of its rows, but the weights are read once. */
static void batches_share_weights(void **state) {
    (void)state;
    struct model_config config = drive_config("seed-0.5b", arena);
    struct work one = {0}, many = {0}, chunked = {0}, whole = {0};
    ledger_step_alike(&one, &config, 1, 1, 65, 1);
    ledger_step_alike(&many, &config, 16, 1, 65, 16);
    assert_true(many.flops == 16 * one.flops);
    assert_true(many.bytes[MEM_KV] == 16 * one.bytes[MEM_KV]);
    double row = 896 * 2;
    assert_true(many.bytes[MEM_WEIGHT] - one.bytes[MEM_WEIGHT] == 15 * row);
    /* All weights once: the tied embedding serves as head. */
    int64_t weights = model_weight_bytes(&config, NULL);
    assert_true(one.bytes[MEM_WEIGHT] == (double)weights + row);
    /* Two FLOPs a matrix entry (E07's theory), and attention. */
    assert_true(one.flops == 2.0 * (494032768 - (49 * 896) - 24 * 18 * 64) + 24.0 * 4 * 896 * 65);
    ledger_prompt(&chunked, &config, 2, 0, 100, 7, false);
    ledger_prompt(&whole, &config, 2, 0, 100, 0, false);
    assert_true(chunked.flops == whole.flops);
    assert_true(chunked.bytes[MEM_WEIGHT] > 10 * whole.bytes[MEM_WEIGHT]);
}

/* The closed form of many steps is the sum of the steps. */
static void decode_is_the_sum_of_its_steps(void **state) {
    (void)state;
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "kv_type", "int8", arena);
    for (int64_t window = 0; window < 30; window++)
        for (int64_t context = 1; context < 20; context += 3)
            for (int64_t steps = 0; steps < 20; steps++) {
                struct work whole = {0}, sum = {0};
                config.params.window = window;
                ledger_decode(&whole, &config, 3, context, steps);
                for (int64_t i = 0; i < steps; i++)
                    ledger_step_alike(&sum, &config, 3, 1, context + i + 1, 3);
                assert_memory_equal(&whole, &sum, sizeof sum);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_have_their_parameters),
                                       cmocka_unit_test(formats_have_their_bytes),
                                       cmocka_unit_test(int8_cache_counts_its_scales),
                                       cmocka_unit_test(contradictions_are_named),
                                       cmocka_unit_test(a_weight_set_is_shape_format_and_seed),
                                       cmocka_unit_test(pairs_are_counted),
                                       cmocka_unit_test(batches_share_weights),
                                       cmocka_unit_test(decode_is_the_sum_of_its_steps)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
