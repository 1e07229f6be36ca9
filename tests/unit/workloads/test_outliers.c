/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out and softened distributions against NumPy (outlying_golden.tsv); the workloads
   `outliers` and `next_token` on a tiny model: every place, mistakes, and a device that draws from
   another distribution. */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "workloads/common/fill.h"
#include "workloads/common/outlying.h"
#include "workloads/common/softened.h"
#include "workloads/model/synth.h"

static struct arena *arena;
#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* ---- the golden file */

enum { MOST_WORDS = 160 };
static const char *words[MOST_WORDS];
static int n_words;

static double word(int i) {
    double v = NAN;
    if (i >= n_words || (!parse_f64(words[i], &v) && strcmp(words[i], "nan") != 0))
        fail_msg("field %d of a line is no number", i);
    return v;
}

/* Calls `one` for every line of a kind. */
static void each_line(const char *kind, void (*one)(void), int least) {
    const char *root = getenv("SOURCE_DIR");
    char path[1000], *text, *rest, *tabs;
    struct err err = {0};
    size_t len;
    int n = 0;
    snprintf(path, sizeof path, "%s/tests/golden/outlying_golden.tsv", root ? root : ".");
    if (file_read(path, 1 << 20, &text, &len, &err)) fail_msg("%s", err.text);
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        n_words = 0;
        for (char *w = strtok_r(at, "\t", &tabs); w; w = strtok_r(NULL, "\t", &tabs)) {
            assert_true(n_words < MOST_WORDS);
            words[n_words++] = w;
        }
        if (strcmp(words[0], kind) != 0) continue;
        one();
        n++;
    }
    free(text);
    assert_true(n >= least);
}

/* Names and values from field `first` on. */
static void expect_values(int first, const struct values *values, double tolerance) {
    assert_true(first < n_words);
    for (int i = first; i < n_words; i += 2) {
        const double ours = values_get(values, words[i]), theirs = word(i + 1);
        if (isnan(theirs) ? !isnan(ours)
                          : !(fabs(ours - theirs) <= tolerance * fmax(fabs(theirs), 1e-3)))
            fail_msg("%s %s %s %s: %s is %.15g, NumPy has %.15g", words[1], words[2], words[3],
                     words[4], words[i], ours, theirs);
    }
}

static void one_array(void) {
    const int64_t rows = (int64_t)word(1), cols = (int64_t)word(2);
    const uint64_t key = random_key(88, (uint64_t)(rows * 1000 + cols));
    float *x = must_alloc(sizeof *x * (size_t)(rows * cols));
    struct values values = {0};
    for (int64_t i = 0; i < rows * cols; i++) x[i] = fill_value(key, i);
    for (int64_t r = 0; !strcmp(words[3], "dimensions") && r < rows; r++) x[r * cols + 3] *= 1000;
    if (!strcmp(words[3], "dimensions")) x[cols - 2] = 300;
    if (!strcmp(words[3], "single")) {
        x[rows / 2 * cols + 1] = 40;
        x[cols - 1] = -24.5f;
    }
    for (int64_t r = 0; !strcmp(words[3], "equal") && r < rows; r++) {
        x[r * cols + 2] = 50;
        x[r * cols + 4] = -50;
    }
    const struct outlying outlying = {.x = x,
                                      .rows = rows,
                                      .cols = cols,
                                      .stands_out = 8,
                                      .sigmas = 4,
                                      .single = word(4) > 0,
                                      .exclude = (int64_t)word(5),
                                      .bits = (int)word(6)};
    assert_int_equal(outlying_report(&outlying, &values), 0);
    expect_values(7, &values, 1e-9);
    x[rows * cols - 1] = NAN;
    x[0] = INFINITY;
    const int before = values.n;
    assert_int_equal(outlying_report(&outlying, &values), 2);
    assert_int_equal(values.n, before);
    free(x);
}
static void arrays(void **state) {
    (void)state;
    each_line("outlying", one_array, 40);
}

static void one_distribution(void) {
    const int32_t n = (int32_t)word(1);
    float *logits = must_alloc(sizeof *logits * (size_t)n);
    double *p = must_alloc(sizeof *p * (size_t)n), sum = 0;
    struct softened s;
    struct values values = {0};
    for (int32_t i = 0; i < n; i++) logits[i] = 6 * fill_value(random_key(89, (uint64_t)n), i);
    softened_of(logits, n, word(2), (int32_t)word(3), p, &s);
    for (int32_t i = 0; i < n; i++) sum += p[i];
    assert_true(fabs(sum - 1) < 1e-12);
    values_set(&values, "entropy", s.entropy);
    values_set(&values, "top", s.top);
    values_set(&values, "third", s.third);
    values_set(&values, "mass", s.mass);
    values_set(&values, "log_ratio", s.log_ratio);
    values_set(&values, "log_ratio_1", s.log_ratio_1);
    values_set(&values, "bits", softened_bits(&s, logits[n / 2], word(2)));
    expect_values(4, &values, 1e-9);
    free(logits);
    free(p);
}

static void one_draw(void) {
    const int32_t n = (int32_t)word(1), draws = (int32_t)word(2);
    float *logits = must_alloc(sizeof *logits * (size_t)n);
    double *p = must_alloc(sizeof *p * (size_t)n);
    int32_t *ids = must_alloc(sizeof *ids * (size_t)draws);
    struct softened s;
    struct drawn d;
    for (int32_t i = 0; i < n; i++) logits[i] = 6 * fill_value(random_key(89, (uint64_t)n), i);
    softened_of(logits, n, 1, 1, p, &s);
    for (int32_t i = 0; i < draws; i++) {
        double u = random_unit(random_key(90, (uint64_t)draws), (uint64_t)i);
        for (ids[i] = 0; ids[i] < n - 1 && u >= p[ids[i]]; ids[i]++) u -= p[ids[i]];
    }
    drawn_of(p, n, ids, draws, &d);
    const struct values statistic = {2, {{"statistic", d.statistic}, {"cells", d.cells}}};
    assert_string_equal(words[7], "chance");
    const double chance = word(8);
    n_words = 7;
    expect_values(3, &statistic, 1e-6);
    assert_true(d.cells > 2 && chance > 1e-3);
    /* Wilson and Hilferty's is an approximation. */
    if (!(fabs(d.chance - chance) < 0.01)) fail_msg("chance %g, NumPy has %g", d.chance, chance);
    for (int32_t i = 0; i < draws; i++) ids[i] = i % 2; /* of two ids alone */
    drawn_of(p, n, ids, draws, &d);
    assert_true(d.chance < 1e-6);
    ids[0] = n;
    drawn_of(p, n, ids, draws, &d);
    assert_true(isnan(d.chance));
    free(logits);
    free(p);
    free(ids);
}

static void distributions(void **state) {
    (void)state;
    each_line("softened", one_distribution, 9);
    each_line("drawn", one_draw, 3);
}

static void logits_that_are_no_numbers(void **state) {
    const float none[] = {NAN, -INFINITY, NAN}, some[] = {NAN, 1, -INFINITY, 1};
    double p[4];
    struct softened s;
    (void)state;
    softened_of(none, 3, 1, 2, p, &s);
    assert_true(isnan(s.entropy) && p[0] == 0 && p[1] == 0 && p[2] == 0);
    softened_of(some, 4, 0.5, 2, p, &s);
    assert_true(s.entropy == 1 && s.top == 0.5 && s.mass == 1 && isnan(s.log_ratio));
    assert_true(p[0] == 0 && p[1] == 0.5 && p[2] == 0 && p[3] == 0.5);
}

/* ---- on a tiny model */

static struct values ran(struct device *device, const struct model_config *config,
                         const char *workload, const char *settings, struct witness *witness) {
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, device, config, arena);
    if (drive_prepare(&drive, workload, settings, &err)) fail_msg("%s: %s", settings, err.text);
    drive_execute(&drive);
    if (witness) *witness = drive_witness(&drive);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    return values;
}

static struct model_config tiny(void) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", "f32", arena);
    drive_model(&config, "kv_type", "f32", arena);
    return config;
}

/* Two devices agree about every place, whole or in chunks; weights need neither. */
static void places_of_a_model(void **state) {
    static const char *const activations[] = {"residual", "qkv_input", "o_input", "mlp_input",
                                              "down_input"};
    static const int64_t cols[] = {64, 64, 64, 64, 160};
    static const char *const same[] = {"at_layer", "first_dim", "largest", "median", "deviation"};
    const struct model_config config = tiny();
    struct device *ref = drive_open("ref", arena), *cpu = drive_open("cpu", arena);
    (void)state;
    for (int i = 0; i < 5; i++) {
        for (int tokens = 3; tokens <= 300; tokens += 297) { /* one step; two */
            const char *settings = TEXT("of=%s tokens=%d stands_out=1.5", activations[i], tokens);
            const struct values a = ran(ref, &config, "outliers", settings, NULL),
                                b = ran(cpu, &config, "outliers", settings, NULL);
            assert_true(values_get(&a, "values") == (double)(tokens * cols[i]));
            assert_true(values_get(&a, "first_layers") >= 1);
            for (int k = 0; k < 5; k++) {
                const double x = values_get(&a, same[k]), y = values_get(&b, same[k]);
                if (!(fabs(x - y) <= 1e-4 * fabs(x)))
                    fail_msg("%s %s: %g on ref, %g on cpu", settings, same[k], x, y);
            }
        }
    }
    device_close(&cpu);
    device_close(&ref);
}

/* A matrix of synthetic weights, looked at here and by the workload. */
static void weights_of_a_model(void **state) {
    static const struct {
        const char *of;
        enum synth_kind kind;
        int64_t rows, cols;
    } matrices[] = {{"q", SYNTH_Q, 64, 64},        {"k", SYNTH_K, 32, 64},
                    {"v", SYNTH_V, 32, 64},        {"o", SYNTH_O, 64, 64},
                    {"gate", SYNTH_GATE, 160, 64}, {"up", SYNTH_UP, 160, 64},
                    {"down", SYNTH_DOWN, 64, 160}};
    const struct model_config config = tiny();
    struct device *ref = drive_open("ref", arena);
    (void)state;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        double most[2] = {0}, sigmas[2];
        for (int l = 0; l < 2; l++) {
            struct synth_matrix m = synth_layer_matrix((uint64_t)config.params.seed, l,
                                                       matrices[i].kind, matrices[i].cols);
            float row[160];
            double sum = 0, squares = 0;
            const double n = (double)(matrices[i].rows * matrices[i].cols);
            for (int64_t r = 0; r < matrices[i].rows; r++) {
                synth_row(&m, r, row);
                for (int64_t c = 0; c < matrices[i].cols; c++) {
                    most[l] = fmax(most[l], fabs((double)row[c]));
                    sum += (double)row[c];
                    squares += (double)row[c] * (double)row[c];
                }
            }
            sigmas[l] = most[l] / sqrt(squares / n - sum / n * sum / n);
            const struct values one =
                ran(ref, &config, "outliers", TEXT("of=%s layer=%d", matrices[i].of, l + 1), NULL);
            assert_true(values_get(&one, "values") == n && values_get(&one, "at_layer") == l + 1);
            assert_true(values_get(&one, "largest") == most[l]);
            assert_true(fabs(values_get(&one, "largest_sigma") - sigmas[l]) < 1e-9 * sigmas[l]);
            assert_true(isnan(values_get(&one, "first_layers")));
        }
        const struct values worst =
            ran(ref, &config, "outliers", TEXT("of=%s", matrices[i].of), NULL);
        assert_true(values_get(&worst, "at_layer") == (sigmas[1] > sigmas[0] ? 2 : 1));
    }
    device_close(&ref);
}

static void refuse(const char *workload, const char *settings, int code) {
    const struct model_config config = tiny();
    struct device *ref = drive_open("ref", arena);
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, ref, &config, arena);
    if (!drive_prepare(&drive, workload, settings, &err)) fail_msg("'%s' was taken", settings);
    assert_int_equal(err.code, code);
    if (drive.self) drive_dispose(&drive);
    drive_close_run(&drive);
    device_close(&ref);
}

static void mistakes(void **state) {
    (void)state;
    refuse("outliers", "layer=3", ERR_UNSUPPORTED);
    refuse("outliers", "exclude=64", ERR_INPUT);
    refuse("outliers", "of=down exclude=1", ERR_INPUT);
    refuse("outliers", "text=prose", ERR_INPUT); /* there is no tokenizer */
    refuse("next_token", "text=prose", ERR_INPUT);
    refuse("next_token", "text=nothing.ids", ERR_INPUT);
    refuse("next_token", "tokens=16 skip=16", ERR_INPUT);
}

/* ---- temperature */

static void temperatures(void **state) {
    const struct model_config config = tiny();
    static const char *const devices[] = {"ref", "cpu"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct device *device = drive_open(devices[i], arena);
        double before = 0;
        for (double t = 0.25; t <= 16; t *= 2) {
            struct witness w;
            const struct values v =
                ran(device, &config, "next_token",
                    TEXT("temperature=%g tokens=70 skip=2 top=288 draws=300", t), &w);
            const double entropy = values_get(&v, "entropy"), power = values_get(&v, "power");
            assert_true(values_get(&v, "positions") == 68);
            assert_true(entropy > before && entropy < log2(288)); /* hotter is less certain */
            assert_true(fabs(values_get(&v, "top_mass") - 1) < 1e-12);
            assert_true(fabs(values_get(&v, "ratio") - power) < 1e-9 * power);
            assert_true(values_get(&v, "text_bits") > 0);
            assert_int_equal(w.contract, CONTRACT_CLOSE);
            if (!w.holds) fail_msg("%s at %g: %s", devices[i], t, w.note);
            before = entropy;
        }
        device_close(&device);
    }
}

/* The golden model's own numbers: tests/golden/test_model.c. Here: a sampler that is wrong. */
static void (*right_select)(struct device *, struct step *, const struct tensor *,
                            const struct sampler *);
static void hotter(struct device *device, struct step *step, const struct tensor *logits,
                   const struct sampler *sampler) {
    const struct sampler other = {.temperature = 1.5f * sampler->temperature, .end_id = -1};
    right_select(device, step, logits, &other);
}

static void a_wrong_sampler_is_found(void **state) {
    const struct model_config config = tiny();
    struct device *device = drive_open("ref", arena);
    const struct ops *right = device->ops;
    struct ops wrong = *right;
    struct witness w;
    (void)state;
    right_select = right->select;
    wrong.select = hotter;
    device->ops = &wrong;
    ran(device, &config, "next_token", "tokens=20 draws=4000", &w);
    assert_false(w.holds);
    device->ops = right;
    ran(device, &config, "next_token", "tokens=20 draws=4000", &w);
    assert_true(w.holds);
    ran(device, &config, "next_token", "tokens=20 draws=0", &w);
    assert_int_equal(w.contract, CONTRACT_NONE);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays),
        cmocka_unit_test(distributions),
        cmocka_unit_test(logits_that_are_no_numbers),
        cmocka_unit_test(places_of_a_model),
        cmocka_unit_test(weights_of_a_model),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(temperatures),
        cmocka_unit_test(a_wrong_sampler_is_found),
    };
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
