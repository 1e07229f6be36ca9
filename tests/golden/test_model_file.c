/* SPDX-License-Identifier: Apache-2.0 */
/* Files of models against an independent program that writes them at test time
 * (model_file_golden.py): what each type's bytes mean, logits of whole models, broken files. */
#include "tests/golden/file_rig.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/common/tree.h"
#include "workloads/model/stored.h"
#include "workloads/model/taps.h"

static char folder[] = "/tmp/bench-model-XXXXXX";

static int make_files(void **state) {
    (void)state;
    return made_files_write(folder, made_files_python(), "model_file_golden.py");
}

static int remove_files(void **state) {
    (void)state;
    return made_files_remove(folder);
}

static const char *in_folder(const char *name) {
    static char path[2][300];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static char *content(const char *name, size_t *len) { return rig_content(in_folder(name), len); }

static struct model_file *open_file(const char *name) {
    struct model_file *file;
    struct err err = {0};
    if (model_file_open(&file, in_folder(name), &err)) fail_msg("%s", err.text);
    return file;
}

static void values_are_the_same_bits(void **state) {
    size_t len, at = 0;
    char *expected = content("types.values", &len);
    struct model_file *file = open_file("types.gguf");
    struct err err = {0};
    (void)state;
    for (int type = 0; type < N_STORED; type++) {
        const struct file_tensor *t = model_file_tensor(file, stored_types[type].name);
        assert_non_null(t);
        assert_int_equal(t->stored, type);
        assert_int_equal(t->rows, 7);
        float *row = must_alloc((size_t)t->cols * sizeof *row);
        for (int64_t r = 0; r < t->rows; r++) {
            assert_int_equal(model_file_row(file, t, r, row, &err), 0);
            for (int64_t c = 0; c < t->cols; c++, at += 4) {
                float v;
                assert_true(at + 4 <= len);
                memcpy(&v, expected + at, sizeof v);
                if (v != row[c]) /* -0 is 0 */
                    fail_msg("%s [%lld][%lld]: %.9g, expected %.9g", stored_types[type].name,
                             (long long)r, (long long)c, (double)row[c], (double)v);
            }
        }
        free(row);
    }
    assert_int_equal(at, len);
    model_file_close(&file);
    free(expected);
}

static struct model_config config_of(const char *name, struct arena *arena) {
    return rig_config(in_folder(name), arena);
}

/* stored.c reads them without branches; dtype.h case by case. */
static void every_half_is_read(void **state) {
    uint16_t halves[65536 + 1];
    float *values = must_alloc(65537 * sizeof *values);
    (void)state;
    for (int i = 0; i < 65537; i++) halves[i] = (uint16_t)i;
    stored_types[STORED_F16].decode((const uint8_t *)(const void *)halves, 65537, values);
    for (int i = 0; i < 65537; i++)
        if (f32_bits(values[i]) != f32_bits(f16_to_f32((uint16_t)i)))
            fail_msg("half %x is read as %.9g", (unsigned)i, (double)values[i]);
    free(values);
}

/* Logits of every position of one prompt. */
static void expect_logits(const char *device_name, const char *name, const char *expected_name) {
    struct arena *arena = arena_create();
    const struct model_config config = config_of(name, arena);
    struct rig rig;
    size_t len;
    char *data = content(expected_name, &len);
    const int32_t *head = (const int32_t *)(const void *)data, n = head[0], vocab = head[1];
    const float *expected = (const float *)(const void *)(head + 2 + n);
    assert_int_equal(len, 4 * (2 + n + n * vocab));
    assert_int_equal(vocab, config.shape.vocab);
    if (!rig_open(&rig, device_name, &config, head + 2, n, 0, arena)) {
        arena_close(&arena);
        skip();
    }
    float *got = rig_prompt_logits(&rig);
    double largest = 0;
    for (int32_t i = 0; i < n * vocab; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        if (!(fabs((double)got[i] - (double)expected[i]) < 5e-4))
            fail_msg("%s on %s, logit %d: %.9g, expected %.9g", name, device_name, i,
                     (double)got[i], (double)expected[i]);
    }
    assert_true(largest > 1); /* they say something */
    free(got);
    free(data);
    rig_close(&rig);
    arena_close(&arena);
}

static const struct {
    const char *file, *expected;
} models[] = {
    {"llama", "llama.expected"},
    {"alone/x.safetensors", "llama.expected"},
    {"llama.gguf", "llama.expected"},
    {"blocks.gguf", "blocks.expected"},
    {"qwen2.gguf", "qwen2.expected"},
    {"qwen2", "qwen2_folder.expected"},
    {"linear", "linear.expected"},
    {"linear.gguf", "linear.expected"},
    {"llama3", "llama3.expected"},
    {"llama3.gguf", "llama3.expected"},
    {"yarn", "yarn.expected"},
    {"yarn.gguf", "yarn.expected"},
    {"yarn_given", "yarn_given.expected"},
    {"yarn_given.gguf", "yarn_given.expected"},
};
static void logits_on(const char *device) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        expect_logits(device, models[i].file, models[i].expected);
}
static void logits_on_ref(void **state) {
    (void)state;
    logits_on("ref");
}
static void logits_on_cpu(void **state) {
    (void)state;
    logits_on("cpu");
}

/* Largest magnitudes of what flows into each matrix, and behind each layer. */
static void expect_magnitudes(const char *device_name, const char *name,
                              const char *expected_name) {
    struct arena *arena = arena_create();
    struct device *device = drive_open(device_name, arena);
    if (!device) {
        arena_close(&arena);
        skip();
    }
    struct model_config config = config_of(name, arena);
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct taps *taps;
    struct err err = {0};
    size_t len, most_len, at = 0;
    char path[100];
    snprintf(path, sizeof path, "%.*s.most", (int)(strlen(expected_name) - strlen(".expected")),
             expected_name);
    char *data = content(expected_name, &len), *most = content(path, &most_len);
    const int32_t *head = (const int32_t *)(const void *)data, n = head[0];
    const float *expected = (const float *)(const void *)most;
    if (model_create(&model, device, &config, &err)) fail_msg("%s", err.text);
    const struct session_spec spec = {
        .cache = {.n_seq = 1, .capacity = n, .most_q = n}, .most_rows = n, .most_out = 1};
    assert_int_equal(session_create(&s, model, &config, &spec, &err), 0);
    assert_int_equal(inputs_create(&inputs, s, 1, n, 1, &err), 0);
    assert_int_equal(inputs_prompt(inputs, head + 2, n, 0, n, 0, false, &err), 0);
    inputs_upload(inputs);
    taps_open(&taps, s, NULL, NULL);
    assert_int_equal(taps_run(taps, inputs, 0, &err), 0);
    for (int64_t l = 0; l < config.shape.n_layers; l++)
        for (int place = 0; place < N_TAPS; place++) {
            const int64_t cols = tap_cols(&config.shape, (enum tap)place);
            const float *ours = taps_most(taps, (enum tap)place) + l * cols;
            for (int64_t c = 0; c < cols; c++, at++) {
                assert_true(4 * (at + 1) <= most_len);
                const double want = (double)expected[at];
                if (!(fabs((double)ours[c] - want) < 5e-4 + 1e-4 * want))
                    fail_msg("%s on %s, layer %d, place %d, dimension %d: %.9g, expected %.9g",
                             name, device_name, (int)l, place, (int)c, (double)ours[c], want);
            }
        }
    assert_int_equal(4 * at, most_len);
    taps_close(&taps);
    free(data);
    free(most);
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
    device_close(&device);
    arena_close(&arena);
}
static void magnitudes_of_activations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        expect_magnitudes("ref", models[i].file, models[i].expected);
        expect_magnitudes("cpu", models[i].file, models[i].expected);
    }
}

/* The workload `outliers` finds the dimension that was planted, in every layer; others have none.
 */
static struct values looked_at(const char *name, const char *settings) {
    struct arena *arena = arena_create();
    struct device *device = drive_open("ref", arena);
    const struct model_config config = config_of(name, arena);
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, device, &config, arena);
    if (drive_prepare(&drive, "outliers", settings, &err)) fail_msg("%s", err.text);
    drive_execute(&drive);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    device_close(&device);
    arena_close(&arena);
    return values;
}

static void a_planted_outlier_is_found(void **state) {
    const struct values v = looked_at("planted.gguf", "of=residual tokens=40 stands_out=16"),
                        none = looked_at("llama.gguf", "of=residual tokens=40 stands_out=16"),
                        w = looked_at("llama.gguf", "of=down layer=2");
    (void)state;
    assert_true(values_get(&v, "first_dim") == 5 && values_get(&v, "outlier_dims") == 1);
    assert_true(values_get(&v, "first_layers") == 2 && values_get(&v, "recurring_dims") == 1);
    assert_true(values_get(&v, "set_aside") == 40);
    assert_true(values_get(&v, "scale") > 10 * values_get(&v, "scale_without"));
    assert_true(values_get(&v, "middle_levels") < values_get(&v, "middle_levels_without"));
    assert_true(values_get(&v, "error") > 10 * values_get(&v, "error_without"));
    assert_true(values_get(&none, "outlier_dims") == 0 && values_get(&none, "set_aside") == 0);
    assert_true(values_get(&none, "scale") == values_get(&none, "scale_without"));
    /* Weights as the file has them. */
    struct model_file *file = open_file("llama.gguf");
    const struct file_tensor *t = model_file_tensor(file, "blk.1.ffn_down.weight");
    struct err err = {0};
    double most = 0;
    float row[128];
    for (int64_t r = 0; r < t->rows; r++) {
        assert_int_equal(model_file_row(file, t, r, row, &err), 0);
        for (int64_t c = 0; c < t->cols; c++) most = fmax(most, fabs((double)row[c]));
    }
    assert_true(values_get(&w, "largest") == most);
    assert_true(values_get(&w, "values") == (double)(t->rows * t->cols));
    model_file_close(&file);
}

/* All carriers of one model have one meaning and digests of their own. */
static void shapes_are_told(void **state) {
    struct arena *arena = arena_create();
    struct file_shape shape;
    struct err err = {0};
    (void)state;
    struct model_file *file = open_file("blocks.gguf");
    assert_int_equal(model_file_shape(file, arena, &shape, &err), 0);
    assert_string_equal(shape.shape.name, "blocks");
    assert_int_equal(shape.shape.n_kv, 2);
    assert_int_equal(shape.shape.rope_style, ROPE_PAIRS);
    assert_true(shape.shape.rope_base == 5e5 && !shape.shape.tied && !shape.shape.qkv_bias);
    assert_string_equal(shape.nearest, "int4");
    assert_int_equal(shape.group, 32);
    assert_non_null(strstr(shape.shape.source, "Q5_1"));
    const struct file_value *tokens = model_file_value(file, "tokenizer.ggml.tokens");
    assert_int_equal(tokens->kind, FILE_ARRAY);
    assert_int_equal(tokens->count, 3);
    char digest[17];
    snprintf(digest, sizeof digest, "%s", model_file_digest(file));
    model_file_close(&file);
    file = open_file("qwen2");
    assert_int_equal(model_file_shape(file, arena, &shape, &err), 0);
    assert_true(shape.shape.tied && shape.shape.qkv_bias && shape.window == 0);
    assert_int_equal(shape.shape.rope_style, ROPE_HALVES);
    assert_string_not_equal(digest, model_file_digest(file));
    model_file_close(&file);
    arena_close(&arena);
}

/* Calls `each` with the fields of every line of a table. */
static void each_line(const char *table, void (*each)(char *path, char *name, char *said)) {
    size_t len;
    char *lines = content(table, &len), *rest;
    int n = 0;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *name = strchr(line, '\t'), *said = strchr(name + 1, '\t');
        *name++ = *said++ = 0;
        each(line, name, said);
        n++;
    }
    assert_true(n > 5);
    free(lines);
}

static void expect_refused(char *path, char *name, char *said) {
    struct arena *arena = arena_create();
    struct model_file *file;
    struct file_shape shape;
    struct err err = {0};
    int code = model_file_open(&file, in_folder(path), &err);
    if (!code) code = model_file_shape(file, arena, &shape, &err);
    if (!code) fail_msg("%s (%s) was taken", name, path);
    if (!err.text[0] || !strstr(err.text, said) || strchr(err.text, '\n'))
        fail_msg("%s (%s): '%s' does not say '%s'", name, path, err.text, said);
    model_file_close(&file);
    arena_close(&arena);
}
static void broken_files_are_refused(void **state) {
    (void)state;
    each_line("broken.tsv", expect_refused);
}

/* Creates the model and expects a refusal that says so. */
static void expect_no_model(const char *device_name, const struct model_config *config,
                            const char *said, const char *also) {
    struct arena *arena = arena_create();
    struct device *device = drive_open(device_name, arena);
    struct model *model = NULL;
    struct err err = {0};
    if (device && !model_create(&model, device, config, &err))
        fail_msg("a model was made of %s", config->params.file);
    if (device && (!strstr(err.text, said) || !strstr(err.text, also)))
        fail_msg("%s: '%s' does not say '%s' and '%s'", config->params.file, err.text, said, also);
    device_close(&device);
    arena_close(&arena);
}

static void expect_bad_value(char *path, char *name, char *said) {
    struct arena *arena = arena_create();
    const struct model_config config = config_of(path, arena);
    expect_no_model("ref", &config, said, name);
    expect_no_model("cpu", &config, said, name);
    arena_close(&arena);
}
static void bad_values_name_their_tensor(void **state) {
    (void)state;
    each_line("values.tsv", expect_bad_value);
}

/* A row source has no way to fail: the file loses its end between opening and reading. */
static void a_shrinking_file_is_a_sentence(void **state) {
    struct arena *arena = arena_create();
    size_t len;
    (void)state;
    char *data = content("llama.gguf", &len);
    struct err err = {0};
    assert_int_equal(file_write(in_folder("short.gguf"), data, len, &err), 0);
    struct model_file *file = open_file("short.gguf");
    const struct file_tensor *t = model_file_tensor(file, "blk.1.ffn_down.weight");
    float row[128];
    assert_int_equal(model_file_row(file, t, 0, row, &err), 0);
    assert_int_equal(model_file_unchanged(file, &err), 0);
    assert_int_equal(truncate(in_folder("short.gguf"), t->begin + 1), 0);
    assert_int_equal(model_file_row(file, t, 0, row, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "shrank"));
    err = (struct err){0};
    assert_int_equal(model_file_unchanged(file, &err), ERR_INPUT);
    model_file_close(&file);
    free(data);
    arena_close(&arena);
}

/* The same in the middle of loading: after three matrices the file has lost its end. */
static const struct device_kind *sound;
static int packs;
static int pack_and_cut(struct device *device, struct weight **weight,
                        const struct weight_spec *parts, int n, const struct row_source *sources,
                        struct err *err) {
    if (++packs == 3) assert_int_equal(truncate(in_folder("short.gguf"), 12000), 0);
    return sound->pack(device, weight, parts, n, sources, err);
}
static void a_file_that_shrinks_while_it_is_loaded(const char *device_name) {
    struct arena *arena = arena_create();
    size_t len;
    char *data = content("llama.gguf", &len);
    struct err err = {0};
    struct model *model = NULL;
    assert_int_equal(file_write(in_folder("short.gguf"), data, len, &err), 0);
    const struct model_config config = config_of("short.gguf", arena);
    struct device *device = drive_open(device_name, arena);
    sound = device->kind;
    struct device_kind kind = *sound;
    kind.pack = pack_and_cut;
    packs = 0;
    device->kind = &kind;
    assert_int_equal(model_create(&model, device, &config, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "short.gguf ends at byte"));
    assert_int_equal(device_live_allocations(device), 0);
    device->kind = sound;
    device_close(&device);
    free(data);
    arena_close(&arena);
}
static void shrinking_on_ref_and_cpu(void **state) {
    (void)state;
    a_file_that_shrinks_while_it_is_loaded("ref");
    a_file_that_shrinks_while_it_is_loaded("cpu");
}

/* In a process of its own: what loading takes at its peak beyond the packed bytes, in KiB. */
static int64_t peak_of(const char *name, const char *type) {
    int64_t over = INT64_MAX, answer[2];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        struct arena *arena = arena_create();
        struct model_config config = config_of(name, arena);
        struct device *device = drive_open("cpu", arena);
        struct model *model = NULL;
        struct err err = {0};
        int64_t scales = 0, before, peak;
        drive_model(&config, "type", type, arena);
        if (!tree_kib(&before, "VmRSS", NULL, "proc/self/status")) _exit(1);
        if (model_create(&model, device, &config, &err)) _exit(1);
        answer[0] = (model_weight_bytes(&config, &scales) + scales) / 1024;
        if (!tree_kib(&peak, "VmHWM", NULL, "proc/self/status")) _exit(1);
        answer[1] = (peak - before) / 1024 - answer[0];
        _exit(write(ends[1], answer, sizeof answer) != (ssize_t)sizeof answer);
    }
    close(ends[1]);
    if (read(ends[0], answer, sizeof answer) == (ssize_t)sizeof answer) over = answer[1];
    close(ends[0]);
    waitpid(child, NULL, 0);
    print_message("%s as %s: %lld MiB packed, %lld MiB more at the peak\n", name, type,
                  (long long)answer[0] / 1024, (long long)over / 1024);
    assert_true(over != INT64_MAX && answer[0] > 64 << 10);
    return over;
}
static void loading_takes_little_more_than_the_packed_bytes(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* whose memory is not ours alone */
#endif
    assert_true(peak_of("zeros.gguf", "f16") <= 64 << 10);
    assert_true(peak_of("zeros.gguf", "f32") <= 64 << 10);
    assert_true(peak_of("zeros8.gguf", "int8") <= 64 << 10);
}

static void another_file_is_no_longer_the_planned_one(void **state) {
    struct arena *arena = arena_create();
    struct model_config config = config_of("llama.gguf", arena);
    (void)state;
    drive_model(&config, "digest", "0123456789abcdef", arena);
    expect_no_model("ref", &config, "another file", "0123456789abcdef");
    config = config_of("llama.gguf", arena);
    config.shape.d_ff++;
    expect_no_model("ref", &config, "ffn_gate", "elements");
    config = config_of("llama.gguf", arena);
    drive_model(&config, "file", in_folder("not there.gguf"), arena);
    expect_no_model("ref", &config, "not there.gguf", "No such file");
    arena_close(&arena);
}

/* Weights beyond the largest f16 would become infinite; bf16 holds them. */
static void values_that_a_type_does_not_hold(void **state) {
    struct arena *arena = arena_create();
    struct model_config config = config_of("values/large.gguf", arena);
    (void)state;
    drive_model(&config, "type", "f16", arena);
    expect_no_model("cpu", &config, "blk.0.ffn_down.weight", "at most 65520");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_the_same_bits),
        cmocka_unit_test(shapes_are_told),
        cmocka_unit_test(logits_on_ref),
        cmocka_unit_test(logits_on_cpu),
        cmocka_unit_test(magnitudes_of_activations),
        cmocka_unit_test(a_planted_outlier_is_found),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(bad_values_name_their_tensor),
        cmocka_unit_test(values_that_a_type_does_not_hold),
        cmocka_unit_test(a_shrinking_file_is_a_sentence),
        cmocka_unit_test(shrinking_on_ref_and_cpu),
        cmocka_unit_test(loading_takes_little_more_than_the_packed_bytes),
        cmocka_unit_test(every_half_is_read),
        cmocka_unit_test(another_file_is_no_longer_the_planned_one),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
