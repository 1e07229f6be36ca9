/* SPDX-License-Identifier: Apache-2.0 */
/* The transformer against values that an independent program made (model_golden.py). */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "workloads/model/synth.h"
#include "workloads/model/taps.h"

enum { PROMPT = 11, STEPS = 5 };

static char *lines, *cursor;

static int load(void **state) {
    const char *root = getenv("SOURCE_DIR");
    char path[1000];
    size_t len;
    struct err err = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/model_golden.tsv", root ? root : ".");
    return file_read(path, 1 << 24, &lines, &len, &err);
}

static int unload(void **state) {
    (void)state;
    free(lines);
    return 0;
}

/* The values of a line; fails if there is none. */
static char *find(const char *variant, const char *what, const char *name) {
    char head[100];
    snprintf(head, sizeof head, "\n%s\t%s\t%s\t", variant, what, name);
    char *at = strstr(lines, head);
    if (!at) fail_msg("no golden line %s %s %s", variant, what, name);
    cursor = at + strlen(head);
    return cursor;
}
static double next_number(void) {
    char *end;
    assert_true(*cursor != '\n');
    double v = strtod(cursor, &end);
    assert_ptr_not_equal(cursor, end);
    cursor = *end == ' ' ? end + 1 : end;
    return v;
}
static uint32_t next_bits(void) {
    char *end;
    uint32_t v = (uint32_t)strtoul(cursor, &end, 16);
    assert_int_equal(end - cursor, 8);
    cursor = *end == ' ' ? end + 1 : end;
    return v;
}

static struct model_config config_of(const char *variant, struct arena *arena) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", "f32", arena);
    drive_model(&config, "kv_type", "f32", arena);
    if (strcmp(variant, "odd") != 0) return config;
    config.shape = (struct model_shape){.name = "odd",
                                        .source = "",
                                        .n_layers = 3,
                                        .d_model = 50,
                                        .n_q = 6,
                                        .n_kv = 3,
                                        .d_h = 6,
                                        .d_ff = 101,
                                        .vocab = 97,
                                        .rope_base = 500,
                                        .eps = 1e-6,
                                        .rope_style = ROPE_PAIRS,
                                        .rope_factor = config.shape.rope_factor,
                                        .rope_low = config.shape.rope_low,
                                        .rope_high = config.shape.rope_high,
                                        .rope_magnify = config.shape.rope_magnify,
                                        .rope_context = config.shape.rope_context};
    config.params.seed = 2026;
    return config;
}

static void expect_row(const char *variant, const char *name, struct synth_matrix matrix,
                       int64_t r) {
    char key[40];
    float *row = must_alloc(sizeof *row * (size_t)matrix.cols);
    snprintf(key, sizeof key, "%s %lld", name, (long long)r);
    find(variant, "weight", key);
    synth_row(&matrix, r, row);
    for (int64_t c = 0; c < matrix.cols; c++) assert_int_equal(f32_bits(row[c]), next_bits());
    assert_int_equal(*cursor, '\n');
    free(row);
}

static void weights_are_the_same_bits(void **state) {
    static const char *const variants[] = {"tiny", "odd"};
    (void)state;
    struct arena *arena = arena_create();
    for (int v = 0; v < 2; v++) {
        struct model_config config = config_of(variants[v], arena);
        const struct model_shape *s = &config.shape;
        uint64_t seed = (uint64_t)config.params.seed;
        int64_t last = s->n_layers - 1;
        struct {
            const char *name;
            struct synth_matrix matrix;
            int64_t rows;
        } expected[] = {
            {"embedding", synth_token_matrix(seed, SYNTH_EMBEDDING, s->d_model), s->vocab},
            {"head", synth_token_matrix(seed, s->tied ? SYNTH_EMBEDDING : SYNTH_HEAD, s->d_model),
             s->vocab},
            {"q", synth_layer_matrix(seed, 0, SYNTH_Q, s->d_model), s->n_q * s->d_h},
            {"v", synth_layer_matrix(seed, last, SYNTH_V, s->d_model), s->n_kv * s->d_h},
            {"up", synth_layer_matrix(seed, 0, SYNTH_UP, s->d_model), s->d_ff},
            {"down", synth_layer_matrix(seed, last, SYNTH_DOWN, s->d_ff), s->d_model}};
        for (int i = 0; i < 6; i++)
            for (int r = 0; r < 3; r++)
                expect_row(variants[v], expected[i].name, expected[i].matrix,
                           r < 2 ? r : expected[i].rows - 1);
        float gains[64];
        synth_gains(seed, SYNTH_NORM_LAST, s->d_model, gains);
        find(variants[v], "vector", "norm");
        for (int64_t c = 0; c < s->d_model; c++) assert_int_equal(f32_bits(gains[c]), next_bits());
    }
    arena_close(&arena);
}

/* Within the rounding of f32 over a few layers, relative to values of size 1. */
static void expect_close(const char *variant, const char *what, const char *name, const float *v,
                         int64_t n) {
    find(variant, what, name);
    for (int64_t i = 0; i < n; i++) {
        double expected = next_number();
        if (!(fabs((double)v[i] - expected) < 2e-4))
            fail_msg("%s %s %s [%lld]: %.9g, expected %.9g", variant, what, name, (long long)i,
                     (double)v[i], expected);
    }
    assert_int_equal(*cursor, '\n');
}

static void expect_logits(struct session *s, struct step *step, const char *variant, int i) {
    char name[16];
    struct tensor logits = session_logits(s, step);
    float *host = must_alloc(sizeof *host * (size_t)logits.cols);
    assert_int_equal(step->n_out, 1);
    s->model->device->kind->download(s->model->device, host, logits.data,
                                     sizeof *host * (size_t)logits.cols);
    snprintf(name, sizeof name, "%d", i);
    expect_close(variant, "logits", name, host, logits.cols);
    free(host);
}

static void expect_cache(struct session *s, const char *variant) {
    const struct model_shape *shape = &s->config.shape;
    size_t bytes = cache_saved_bytes(s->cache, PROMPT), head = (size_t)(PROMPT * shape->d_h);
    find(variant, "kv_values", "11");
    assert_int_equal(bytes, (int64_t)next_number() * 4);
    float *saved = must_alloc(bytes), *k = must_alloc(bytes), *v = must_alloc(bytes);
    cache_save(s->cache, 0, PROMPT, saved);
    const float *at = saved;
    for (int64_t l = 0; l < shape->n_layers; l++) {
        for (int64_t h = 0; h < shape->n_kv; h++, at += 2 * head) {
            memcpy(k + (size_t)h * head, at, head * sizeof *k);
            memcpy(v + (size_t)h * head, at + head, head * sizeof *v);
        }
        char name[16];
        snprintf(name, sizeof name, "%d", (int)l);
        expect_close(variant, "k", name, k, shape->n_kv * (int64_t)head);
        expect_close(variant, "v", name, v, shape->n_kv * (int64_t)head);
    }
    free(saved);
    free(k);
    free(v);
}

static void generate(const char *device_name, const char *variant, const char *layout) {
    struct arena *arena = arena_create();
    struct device *device = drive_open(device_name, arena);
    if (!device) {
        arena_close(&arena);
        skip();
    }
    struct model_config config = config_of(variant, arena);
    drive_model(&config, "layout", layout, arena);
    drive_model(&config, "block", "4", arena);
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    if (model_create(&model, device, &config, &err)) {
        int code = err.code;
        print_message("%s\n", err.text);
        device_close(&device);
        arena_close(&arena);
        assert_int_equal(code, ERR_UNSUPPORTED);
        skip();
    }
    struct session_spec spec = {.cache = {.n_seq = 1, .capacity = PROMPT + STEPS, .most_q = PROMPT},
                                .most_rows = PROMPT,
                                .most_out = 1};
    assert_int_equal(session_create(&s, model, &config, &spec, &err), 0);
    assert_int_equal(inputs_create(&inputs, s, 1, PROMPT, 1, &err), 0);
    int32_t tokens[PROMPT], expected[STEPS];
    find(variant, "tokens", "prompt");
    for (int i = 0; i < PROMPT; i++) {
        tokens[i] = (int32_t)next_number();
        assert_int_equal(tokens[i],
                         random_below(random_key(7, 3), (uint64_t)i, (uint32_t)config.shape.vocab));
    }
    find(variant, "tokens", "generated");
    for (int i = 0; i < STEPS; i++) expected[i] = (int32_t)next_number();
    assert_int_equal(inputs_prompt(inputs, tokens, PROMPT, 0, PROMPT, 0, false, &err), 0);
    inputs_upload(inputs);
    struct step *step = inputs_step(inputs, 0);
    assert_int_equal(session_run(s, inputs, 0, &err), 0);
    for (int i = 0; i < STEPS; i++) {
        int32_t next;
        if (i) assert_int_equal(session_decode(s, &err), 0);
        expect_logits(s, step, variant, i);
        if (i == 0) expect_cache(s, variant);
        session_select(s, step);
        session_next(s, step, &next);
        assert_int_equal(next, expected[i]);
        session_advance(s, step);
        step = &s->decode;
    }
    assert_int_equal(device->kind->sync(device, &err), 0);
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
    /* A device keeps its workspace until it is closed. */
    assert_int_equal(tracker_live(device->tracker, -1),
                     tracker_live(device->tracker, MEM_WORKSPACE));
    device_close(&device);
    arena_close(&arena);
}

/* Greedy tokens in a format. */
static void tokens_in(const char *device_name, const char *format, struct arena *arena,
                      int32_t *tokens) {
    struct device *device = drive_open(device_name, arena);
    struct model_config config = config_of("tiny", arena);
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    drive_model(&config, "type", format, arena);
    if (!device || model_create(&model, device, &config, &err)) fail_msg("%s", err.text);
    struct session_spec spec = {.cache = {.n_seq = 1, .capacity = PROMPT + STEPS, .most_q = PROMPT},
                                .most_rows = PROMPT,
                                .most_out = 1};
    int32_t prompt[PROMPT];
    for (int i = 0; i < PROMPT; i++)
        prompt[i] =
            (int32_t)random_below(random_key(7, 3), (uint64_t)i, (uint32_t)config.shape.vocab);
    assert_int_equal(session_create(&s, model, &config, &spec, &err), 0);
    assert_int_equal(inputs_create(&inputs, s, 1, PROMPT, 1, &err), 0);
    assert_int_equal(inputs_prompt(inputs, prompt, PROMPT, 0, PROMPT, 0, false, &err), 0);
    inputs_upload(inputs);
    struct step *step = inputs_step(inputs, 0);
    assert_int_equal(session_run(s, inputs, 0, &err), 0);
    for (int i = 0; i < STEPS; i++) {
        if (i) assert_int_equal(session_decode(s, &err), 0);
        session_select(s, step);
        session_next(s, step, &tokens[i]);
        session_advance(s, step);
        step = &s->decode;
    }
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
    device_close(&device);
}

static void cpu_gives_the_tokens_of_ref_in_every_format(void **state) {
    (void)state;
    struct arena *arena = arena_create();
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        int32_t want[STEPS], got[STEPS];
        tokens_in("ref", f->name, arena, want);
        tokens_in("cpu", f->name, arena, got);
        for (int i = 0; i < STEPS; i++)
            if (got[i] != want[i])
                fail_msg("%s: token %d is %d, ref has %d", f->name, i, got[i], want[i]);
    }
    arena_close(&arena);
}

/* ---- what flows into matrices */

static const char *const places[N_TAPS] = {"qkv", "out", "mlp", "down", "residual"};
struct seen { /* by whoever listens: rows in order, their largest magnitudes */
    int64_t rows[N_TAPS][3];
    float most[N_TAPS][3][160];
};

static void see(void *ctx, const struct tapped *t) {
    struct seen *seen = ctx;
    assert_true(t->layer < 3 && t->cols <= 160);
    assert_int_equal(t->first, seen->rows[t->tap][t->layer]);
    seen->rows[t->tap][t->layer] += t->rows;
    for (int32_t i = 0; i < t->rows * t->cols; i++) {
        float *most = &seen->most[t->tap][t->layer][i % t->cols];
        *most = fmaxf(*most, fabsf(t->x[i]));
    }
}

/* The prompt in chunks: only the last one has logits, and so a head that ends the last layer. */
static void tapped(const char *device_name, const char *variant, int32_t chunk) {
    struct arena *arena = arena_create();
    struct device *device = drive_open(device_name, arena);
    struct model_config config = config_of(variant, arena);
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct taps *taps;
    struct seen *seen = must_alloc(sizeof *seen);
    struct err err = {0};
    if (!device || model_create(&model, device, &config, &err)) fail_msg("%s", err.text);
    const struct session_spec spec = {.cache = {.n_seq = 1, .capacity = PROMPT, .most_q = chunk},
                                      .most_rows = chunk,
                                      .most_out = 1};
    int32_t tokens[PROMPT];
    find(variant, "tokens", "prompt");
    for (int i = 0; i < PROMPT; i++) tokens[i] = (int32_t)next_number();
    const int32_t steps = (PROMPT + chunk - 1) / chunk;
    assert_int_equal(session_create(&s, model, &config, &spec, &err), 0);
    assert_int_equal(inputs_create(&inputs, s, steps, PROMPT, 1, &err), 0);
    assert_int_equal(inputs_prompt(inputs, tokens, PROMPT, 0, PROMPT, chunk, false, &err), 0);
    inputs_upload(inputs);
    taps_open(&taps, s, see, seen);
    for (int32_t i = 0; i < steps; i++) assert_int_equal(taps_run(taps, inputs, i, &err), 0);
    expect_logits(s, inputs_step(inputs, steps - 1), variant, 0); /* nothing was disturbed */
    for (int place = 0; place < N_TAPS; place++) {
        const int64_t cols = tap_cols(&config.shape, (enum tap)place);
        for (int64_t l = 0; l < config.shape.n_layers; l++) {
            const float *most = taps_most(taps, (enum tap)place) + l * cols;
            char name[24];
            snprintf(name, sizeof name, "%s %d", places[place], (int)l);
            expect_close(variant, "most", name, most, cols);
            assert_int_equal(seen->rows[place][l], PROMPT);
            assert_memory_equal(seen->most[place][l], most, sizeof *most * (size_t)cols);
        }
    }
    taps_close(&taps);
    taps_close(&taps);
    assert_null(s->on_part);
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
    device_close(&device);
    arena_close(&arena);
    free(seen);
}

static void magnitudes_of_activations(void **state) {
    (void)state;
    tapped("ref", "tiny", PROMPT);
    tapped("ref", "odd", 4);
    tapped("cpu", "tiny", 3);
    tapped("cpu", "odd", PROMPT);
}

/* Distributions of next tokens at temperatures, as the workload has them. */
static void softened(const char *device_name, const char *variant) {
    static const char *const metrics[] = {"entropy", "effective_tokens", "top_share", "top_mass",
                                          "ratio",   "text_bits"};
    static const char *const temperatures[] = {"0.5", "1", "2"};
    struct arena *arena = arena_create();
    struct device *device = drive_open(device_name, arena);
    const struct model_config config = config_of(variant, arena);
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        struct err err = {0};
        const char *settings =
            arena_printf(arena, "tokens=12 skip=2 top=3 draws=0 temperature=%s", temperatures[i]);
        drive_open_run(&drive, device, &config, arena);
        if (drive_prepare(&drive, "next_token", settings, &err)) fail_msg("%s", err.text);
        drive_execute(&drive);
        const struct values values = drive_report(&drive);
        find(variant, "softened", temperatures[i]);
        for (int k = 0; k < 6; k++) {
            const double theirs = next_number(), ours = values_get(&values, metrics[k]);
            if (!(fabs(ours - theirs) <= 2e-4 * fabs(theirs)))
                fail_msg("%s on %s at %s: %s is %.9g, NumPy has %.9g", variant, device_name,
                         temperatures[i], metrics[k], ours, theirs);
        }
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
    device_close(&device);
    arena_close(&arena);
}
static void distributions_of_next_tokens(void **state) {
    (void)state;
    softened("ref", "tiny");
    softened("cpu", "tiny");
    softened("ref", "odd");
}

static void ref_tiny(void **state) {
    (void)state;
    generate("ref", "tiny", "contiguous");
}
static void ref_tiny_paged(void **state) {
    (void)state;
    generate("ref", "tiny", "paged");
}
static void ref_odd(void **state) {
    (void)state;
    generate("ref", "odd", "contiguous");
}
static void cpu_tiny(void **state) {
    (void)state;
    generate("cpu", "tiny", "contiguous");
}
static void cpu_odd(void **state) {
    (void)state;
    generate("cpu", "odd", "contiguous");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_the_same_bits),
        cmocka_unit_test(ref_tiny),
        cmocka_unit_test(ref_tiny_paged),
        cmocka_unit_test(ref_odd),
        cmocka_unit_test(cpu_tiny),
        cmocka_unit_test(cpu_odd),
        cmocka_unit_test(magnitudes_of_activations),
        cmocka_unit_test(distributions_of_next_tokens),
        cmocka_unit_test(cpu_gives_the_tokens_of_ref_in_every_format)};
    return cmocka_run_group_tests(tests, load, unload);
}
