/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to codes: matrices, schemes and caches against NumPy (quantize_golden.tsv), normal
   weights against theory, outliers where they were planted, edges. */
#include "tests/unit/workloads/drive.h"
#include "workloads/common/codes.h"
#include "workloads/common/fill.h"
#include "workloads/common/outliers.h"
#include "workloads/common/rounding.h"

static struct arena *arena;
static struct device *ref;
#define TEXT(...) arena_printf(arena, __VA_ARGS__)

static void near(const char *what, double ours, double theirs, double tolerance) {
    if (!(fabs(ours - theirs) <= tolerance * fmax(fabs(theirs), 1e-3)))
        fail_msg("%s: %.17g, NumPy has %.17g", what, ours, theirs);
}

/* ---- the golden file */

enum { MOST_WORDS = 24 };
struct line {
    const char *words[MOST_WORDS];
    int n;
};

static double number(const struct line *l, int i) {
    double v = NAN;
    if (i >= l->n || !parse_f64(l->words[i], &v)) fail_msg("field %d of a line is no number", i);
    return v;
}

/* Calls `one` for every line whose first word is `kind`. */
static void each_line(const char *kind, void (*one)(const struct line *), int least) {
    const char *root = getenv("SOURCE_DIR");
    char path[1000], *text, *rest, *tabs;
    struct err err = {0};
    size_t len;
    int n = 0;
    snprintf(path, sizeof path, "%s/tests/golden/quantize_golden.tsv", root ? root : ".");
    if (file_read(path, 1 << 20, &text, &len, &err)) fail_msg("%s", err.text);
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        struct line line = {{0}, 0};
        for (char *w = strtok_r(at, "\t", &tabs); w && line.n < MOST_WORDS;
             w = strtok_r(NULL, "\t", &tabs))
            line.words[line.n++] = w;
        if (strcmp(line.words[0], kind)) continue;
        one(&line);
        n++;
    }
    free(text);
    assert_true(n >= least);
}

static float *matrix(int64_t rows, int64_t cols, const char *pattern) {
    float *w = arena_alloc(arena, sizeof *w * (size_t)(rows * cols));
    const uint64_t key = random_key(77, (uint64_t)(rows * 1000 + cols));
    for (int64_t i = 0; i < rows * cols; i++) {
        w[i] = fill_value(key, i);
        if (!strcmp(pattern, "zeros") && i < cols) w[i] = 0;
        if (!strcmp(pattern, "column") && i % cols == cols / 2) w[i] *= 16.0f;
        if (!strcmp(pattern, "offset")) w[i] += 3.0f;
    }
    if (!strcmp(pattern, "outlier")) w[rows * cols / 2] = 40;
    return w;
}

static void packer(const struct line *l) {
    const int64_t rows = (int64_t)number(l, 1), cols = (int64_t)number(l, 2);
    struct matrix_rows m = {matrix(rows, cols, l->words[3]), cols};
    const struct row_source source = matrix_source(&m);
    struct weight_spec spec = {.what = "", .rows = rows, .cols = cols, .group = (int)number(l, 6)};
    struct rounding r;
    for (int t = 0; t < N_DTYPES; t++)
        if (!strcmp(dtype_names[t], l->words[4])) spec.type = (enum dtype)t;
    for (int s = 0; s < N_SCALES; s++)
        if (!strcmp(scale_names[s], l->words[5])) spec.scale = (enum scale)s;
    rounding_of(&spec, &source, &r);
    const double bits =
        8 * (double)(quant_payload_bytes(&spec) + quant_scale_bytes(&spec)) / (double)r.n;
    const double ours[] = {
        r.mean_error,    r.rms_error,           r.worst_error,         r.relative,     r.worst_row,
        (double)r.zeros, (double)r.levels_used, (double)r.levels_most, r.levels_alike, bits,
        r.deviation,     (double)r.beyond_six};
    for (int i = 0; i < 12; i++)
        near(TEXT("%s x %s %s %s-%s %s, number %d", l->words[1], l->words[2], l->words[3],
                  l->words[4], l->words[5], l->words[6], i),
             ours[i], number(l, 7 + i), 1e-9);
    assert_int_equal(r.not_finite, 0);
    if (spec.type != DT_NF4) assert_true(r.half_steps <= 1.0 + (spec.scale == SCALE_GROUP) * 0.2);
}

static int word_of(const char *const *words, const char *word) {
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], word)) return i;
    fail_msg("no word %s", word);
    return -1;
}

static void scheme(const struct line *l) {
    static const char *const by[] = {"row", "column", "all", NULL};
    const struct code_spec spec = {.scheme =
                                       (enum code_scheme)word_of(code_scheme_words, l->words[4]),
                                   .bits = (int)number(l, 5),
                                   .by = (enum code_by)word_of(by, l->words[6]),
                                   .run = (int64_t)number(l, 7)};
    const int64_t rows = (int64_t)number(l, 1), cols = (int64_t)number(l, 2);
    const struct code_array a = {matrix(rows, cols, l->words[3]), rows, cols};
    struct code_sums s = {0};
    code_round(&spec, &a, NULL, &s);
    assert_int_equal(s.n, rows * cols);
    const double ours[] = {s.error_sum,
                           sqrt(s.error),
                           s.worst,
                           code_relative(&s),
                           (double)s.scales,
                           (double)s.zeros,
                           (double)code_levels_used(&s),
                           code_bits(&spec, rows, cols, 16, 8)};
    for (int i = 0; i < 8; i++)
        near(TEXT("%s x %s %s %s %s by %s %s, number %d", l->words[1], l->words[2], l->words[3],
                  l->words[4], l->words[5], l->words[6], l->words[7], i),
             ours[i], number(l, 8 + i), 1e-9);
}

/* ---- caches */

static struct values ran(const char *workload, const char *model, const char *settings,
                         struct witness *w) {
    struct model_config config = drive_config("tiny", arena);
    struct drive drive;
    struct err err = {0};
    drive_settings(model_options, &config.params, model, " ", arena);
    config.activation = model_activation(&config.params, ref->kind);
    drive_open_run(&drive, ref, &config, arena);
    if (drive_prepare(&drive, workload, settings, &err)) fail_msg("%s: %s", settings, err.text);
    for (int c = 0; c < N_CLASSES; c++)
        assert_int_equal(tracker_live(ref->tracker, c), drive.plan.bytes[c]);
    drive_execute(&drive);
    *w = drive_witness(&drive);
    const struct values v = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    assert_int_equal(tracker_live(ref->tracker, -1), 0);
    return v;
}

static void cache(const struct line *l) {
    static const char *const names[] = {"key_error", "value_error", "score_error", "output_error",
                                        "worst_output_error"};
    struct witness w;
    const struct values v = ran("kv_quantize", "kv_type=f32", l->words[1], &w);
    if (!w.holds) fail_msg("%s: %s", l->words[1], w.note);
    for (int i = 0; i < 5; i++)
        near(TEXT("%s: %s", l->words[1], names[i]), values_get(&v, names[i]), number(l, 2 + i),
             1e-3);
}

static void numpy_agrees(void **state) {
    (void)state;
    each_line("packer", packer, 160);
    each_line("scheme", scheme, 480);
    each_line("cache", cache, 24);
}

/* The device's int8 is 8 bits by token and head; every type is as large as the allocator says. */
static void caches_of_devices(void **state) {
    static const char *const types[] = {"f32", "f16", "bf16", "int8"};
    static const double least[] = {0, 1e-5, 1e-4, 1e-3}, most[] = {1e-7, 1e-3, 1e-2, 0.1};
    struct witness w;
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct values v =
            ran("kv_quantize",
                TEXT("kv_type=%s layout=%s block=4", types[i % 4], i < 4 ? "contiguous" : "paged"),
                "batch=3 context=20", &w);
        assert_true(w.holds && w.compared == 3 * 4 * 16);
        assert_true(values_get(&v, "kv_bytes_allocated") == values_get(&v, "kv_token_bytes") * 60);
        const double error = values_get(&v, "output_error"), key = values_get(&v, "key_error");
        if (!(error >= least[i % 4] && error <= most[i % 4]))
            fail_msg("%s: output error %g", types[i % 4], error);
        assert_true(i % 4 ? key > 0 : key == 0);
        assert_true(values_get(&v, "kernel_error") < 1e-6);
    }
    const struct values device = ran("kv_quantize", "kv_type=int8", "context=40", &w);
    const struct values plain =
        ran("kv_quantize", "kv_type=f32", "context=40 scheme=symmetric bits=8 by=token", &w);
    static const char *const same[] = {"key_error", "value_error", "score_error", "output_error"};
    for (int i = 0; i < 4; i++)
        near(same[i], values_get(&device, same[i]), values_get(&plain, same[i]), 1e-3);
    assert_true(values_get(&device, "kv_bits") == 8 + 32.0 / 16);
    assert_true(values_get(&plain, "kv_bits") == 8 + 16.0 / 16);
    assert_true(isnan(values_get(&plain, "kv_bytes_allocated")));
}

/* Keys have large channels and want scales by channel; values have none. */
static void directions(void **state) {
    struct witness w;
    double score[2], value[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct values v =
            ran("kv_quantize", "kv_type=f32",
                TEXT("context=64 scheme=symmetric bits=4 by=%s outlier_scale=20",
                     i ? "channel" : "token"),
                &w);
        score[i] = values_get(&v, "score_error");
        value[i] = values_get(&v, "value_error");
    }
    assert_true(score[1] < score[0] && value[0] < value[1]);
    const struct values token = ran("kv_quantize", "kv_type=f32",
                                    "context=64 scheme=symmetric bits=4 by=token part=values", &w);
    assert_true(values_get(&token, "key_error") == 0 && values_get(&token, "score_error") == 0);
    assert_true(values_get(&token, "output_error") > 0.01);
    /* A zero point pays where channels lie to one side. */
    double offset[2];
    for (int i = 0; i < 2; i++) {
        const struct values v =
            ran("kv_quantize", "kv_type=f32",
                TEXT("context=64 scheme=%s bits=4 by=channel part=keys key_offset=5 "
                     "outlier_share=0",
                     i ? "affine" : "symmetric"),
                &w);
        offset[i] = values_get(&v, "key_error");
    }
    assert_true(offset[1] < 0.7 * offset[0]);
}

/* ---- theory (E33: a random matrix agrees within 2 %) and outliers where they were planted */

static double relative(float *w, int64_t rows, int64_t cols, enum dtype type, enum scale scale,
                       int group, struct rounding *r) {
    struct matrix_rows m = {w, cols};
    const struct row_source source = matrix_source(&m);
    const struct weight_spec spec = {
        .what = "", .rows = rows, .cols = cols, .type = type, .scale = scale, .group = group};
    rounding_of(&spec, &source, r);
    return r->relative;
}

static void normal_weights(void **state) {
    static const struct {
        enum dtype type;
        enum scale scale;
        int64_t cols, group;
        double expected;
    } cases[] = {
        {DT_I4, SCALE_GROUP, 4864, 32, 0.097004},  {DT_I4, SCALE_GROUP, 4864, 64, 0.107599},
        {DT_I4, SCALE_GROUP, 4864, 128, 0.117268}, {DT_I4, SCALE_ROW, 896, 0, 0.141047},
        {DT_I4, SCALE_ROW, 4864, 0, 0.159041},     {DT_I8, SCALE_ROW, 896, 0, 0.007774},
        {DT_I8, SCALE_ROW, 4864, 0, 0.008766},     {DT_NF4, SCALE_GROUP, 4864, 64, 0.091979},
        {DT_NF4, SCALE_GROUP, 4864, 128, 0.095580}};
    const int64_t n = 896 * 4864 / 4;
    const struct outliers none = {OUTLIERS_NONE, 0, 0}, one = {OUTLIERS_ONE, 0, 24.1};
    float *w = must_alloc(sizeof *w * (size_t)n);
    struct rounding r;
    (void)state;
    outliers_fill(w, n / 4864, 4864, 0.018, &none, 11);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t cols = cases[i].cols, span = cases[i].group ? cases[i].group : cols;
        double levels[256];
        const double ours =
            relative(w, n / cols, cols, cases[i].type, cases[i].scale, (int)cases[i].group, &r);
        const int count = code_level_list(cases[i].type == DT_NF4 ? CODE_NF4 : CODE_SYMMETRIC,
                                          dtype_bits(cases[i].type), levels);
        near("theory", normal_error(levels, count, (double)span), cases[i].expected, 1e-5);
        near("normal weights", ours, cases[i].expected, 0.02);
        assert_true(fabs(r.mean_abs / r.deviation - 0.798) < 0.003 && r.beyond_six == 0);
    }
    outliers_fill(w, n / 4864, 4864, 0.018, &one, 11);
    near("24.1 sigma, int4", relative(w, n / 4864, 4864, DT_I4, SCALE_TENSOR, 0, &r), 0.872358,
         0.02);
    assert_true(r.levels_most == 3 && r.levels_used == 4 && r.beyond_six == 1);
    near("24.1 sigma, int8", relative(w, n / 4864, 4864, DT_I8, SCALE_TENSOR, 0, &r), 0.05478,
         0.02);
    free(w);
}

static void planted(void **state) {
    const int64_t rows = 224, cols = 4864, n = rows * cols;
    const struct outliers trained = {OUTLIERS_VALUES, 0.00016, 24.1},
                          columns = {OUTLIERS_COLUMNS, 0.001, 20},
                          in_rows = {OUTLIERS_ROWS, 0.01, 20};
    float *w = must_alloc(sizeof *w * (size_t)n), *again = must_alloc(sizeof *w * (size_t)n);
    struct rounding r;
    (void)state;
    outliers_fill(w, rows, cols, 0.018, &trained, 5);
    outliers_fill(again, rows, cols, 0.018, &trained, 5);
    assert_memory_equal(w, again, sizeof *w * (size_t)n);
    /* The seeds' order: one scale is as good as noise, then rows, groups, NF4; int8 far below. */
    const double whole = relative(w, rows, cols, DT_I4, SCALE_TENSOR, 0, &r);
    assert_true(r.beyond_six > 120 && r.beyond_six < 230); /* 174 expected of 0.00016 */
    assert_true(r.largest / r.deviation > 22 && r.largest / r.deviation < 24.2);
    assert_true(r.levels_most <= 5);
    const double row = relative(w, rows, cols, DT_I4, SCALE_ROW, 0, &r);
    const double group = relative(w, rows, cols, DT_I4, SCALE_GROUP, 128, &r);
    const double nf4 = relative(w, rows, cols, DT_NF4, SCALE_GROUP, 64, &r);
    const double int8 = relative(w, rows, cols, DT_I8, SCALE_ROW, 0, &r);
    assert_true(whole > 0.8 && row < whole && group < row && nf4 < group && int8 < nf4 / 3);
    /* A row's scale holds an outlier row, not an outlier column; a group's confines that. */
    outliers_fill(w, rows, cols, 0.018, &columns, 5);
    const double column_row = relative(w, rows, cols, DT_I8, SCALE_ROW, 0, &r);
    const double column_group = relative(w, rows, cols, DT_I8, SCALE_GROUP, 64, &r);
    outliers_fill(w, rows, cols, 0.018, &in_rows, 5);
    const double row_row = relative(w, rows, cols, DT_I8, SCALE_ROW, 0, &r);
    assert_true(column_row > 4 * row_row && column_group < column_row / 2);
    assert_true(fabs(row_row - 0.0088) < 0.0005); /* as if there were none */
    /* Shares of next to nothing, and of all. */
    const struct outliers least = {OUTLIERS_COLUMNS, 1e-9, 3}, all = {OUTLIERS_ROWS, 1, 2};
    outliers_fill(w, 2, 10, 1, &(struct outliers){OUTLIERS_NONE, 0, 0}, 6);
    outliers_fill(again, 2, 10, 1, &least, 6);
    int differ = 0;
    for (int i = 0; i < 20; i++) differ += w[i] < again[i] || w[i] > again[i];
    assert_int_equal(differ, 2);
    outliers_fill(again, 2, 10, 1, &all, 6);
    for (int i = 0; i < 20; i++) assert_true(again[i] == 2 * w[i]);
    free(w);
    free(again);
}

/* ---- edges */

static void edges(void **state) {
    float zero[6] = {0}, odd[6] = {1, NAN, -2, 0, INFINITY, 3}, alone = -7;
    struct rounding r;
    struct code_sums s = {0};
    float out[6];
    (void)state;
    static const enum dtype types[] = {DT_I8, DT_I4, DT_NF4};
    for (int i = 0; i < 3; i++)
        for (int scale = SCALE_TENSOR; scale <= SCALE_GROUP; scale++) {
            assert_true(relative(zero, 2, 3, types[i], (enum scale)scale, 2, &r) == 0);
            assert_true(r.zeros == 6 && r.worst_row == 0 && r.levels_used == 1 &&
                        r.levels_alike == 1 && r.deviation == 0);
            assert_true(relative(&alone, 1, 1, types[i], (enum scale)scale, 1, &r) < 1e-3);
            assert_true(r.n == 1 && r.levels_used == 1);
            assert_true(isnan(relative(odd, 2, 3, types[i], (enum scale)scale, 2, &r)));
            assert_true(r.not_finite == 2 && isnan(r.worst_error) && isnan(r.deviation));
        }
    assert_true(relative(&alone, 1, 1, DT_F32, SCALE_NONE, 0, &r) == 0 && r.levels_used == 0);
    /* Schemes: zeros, equal values, a NaN in one run of two. */
    for (int scheme_ = 0; scheme_ < 3; scheme_++) {
        const struct code_spec spec = {
            .scheme = (enum code_scheme)scheme_, .bits = scheme_ == CODE_NF4 ? 4 : 8, .by = BY_ROW};
        const float equal[] = {5, 5, 5, -3, -3, -3};
        memset(&s, 0, sizeof s);
        code_round(&spec, &(struct code_array){zero, 2, 3}, out, &s);
        assert_true(s.zeros == 6 && code_relative(&s) == 0 && code_levels_used(&s) == 1);
        memset(&s, 0, sizeof s);
        code_round(&spec, &(struct code_array){equal, 2, 3}, out, &s);
        for (int i = 0; i < 6; i++) assert_true(fabsf(out[i] - equal[i]) < 1e-5f);
        memset(&s, 0, sizeof s);
        code_round(&spec, &(struct code_array){odd, 2, 3}, out, &s);
        for (int i = 0; i < 6; i++) assert_true(isnan(out[i]));
        assert_true(isnan(s.worst) && isnan(code_relative(&s)));
        const float half[] = {1, NAN, 1, 4, 2, 0};
        memset(&s, 0, sizeof s);
        code_round(&spec, &(struct code_array){half, 2, 3}, out, &s);
        assert_true(isnan(out[0]) && isnan(out[2]) && out[3] == 4 && out[5] == 0);
    }
    /* Values that no scale can hold apart, and numbers at the ends of f32. */
    const struct coder tiny = coder_fit(CODE_AFFINE, 8, 0, 5e-324);
    assert_true(coder_value(&tiny, coder_code(&tiny, 5e-324)) >= 0);
    const struct coder wide = coder_fit(CODE_SYMMETRIC, 8, -3e38, 1e38);
    assert_true(coder_value(&wide, coder_code(&wide, -3e38)) == -3e38);
    assert_true(coder_code(&wide, 1e300) == 127 && coder_code(&wide, -1e300) == -128);
    /* Half to even, as the seeds' own rounding. */
    const struct coder one = {CODE_SYMMETRIC, 8, 1, 0};
    assert_true(coder_code(&one, 0.5) == 0 && coder_code(&one, 1.5) == 2 &&
                coder_code(&one, -2.5) == -2);
    assert_true(fabs(normal_quantile(0.5)) < 1e-15);
    assert_true(fabs(normal_quantile(0.975) - 1.959963984540054) < 1e-12);
    assert_true(fabs(normal_quantile(1e-9) + 5.997807015007687) < 1e-9);
    double levels[256];
    assert_true(normal_error(levels, code_level_list(CODE_SYMMETRIC, 4, levels), 1) == 0);
}

static bool taken(const char *workload, const char *settings) {
    const struct workload *w = workload_find(workload);
    struct model_config config = drive_config("tiny", arena);
    struct problems *problems = problems_create();
    void *params = arena_alloc(arena, w->params_size);
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, ";", arena);
    w->check(params, &config, problems);
    const bool good = !problems_count(problems);
    problems_close(&problems);
    return good;
}

static void refusals(void **state) {
    static const char *const bad_lists[] = {"values=1,",
                                            "values=,1",
                                            "values=1 2",
                                            "values=x",
                                            "values=nan",
                                            "values=inf",
                                            "values=1e31",
                                            "values=1,,2",
                                            "at=101",
                                            "values=1, 2;at=3",
                                            "zero=3",
                                            "scheme=affine;scale=1;zero=0.5",
                                            "scheme=nf4;count=3;at=17",
                                            "scheme=affine;zero=1"};
    static const char *const good_lists[] = {"values=",
                                             "values=1",
                                             "values= -2.5 , 3e2",
                                             "at=100",
                                             "scheme=nf4;count=3;at=16",
                                             "scheme=affine;scale=0.1;zero=-4"};
    (void)state;
    for (size_t i = 0; i < sizeof bad_lists / sizeof *bad_lists; i++)
        if (taken("codes", bad_lists[i])) fail_msg("'%s' was taken", bad_lists[i]);
    for (size_t i = 0; i < sizeof good_lists / sizeof *good_lists; i++)
        if (!taken("codes", good_lists[i])) fail_msg("'%s' was refused", good_lists[i]);
    assert_true(taken("activations", "exclude=895;dimension=4.77"));
    assert_false(taken("activations", "exclude=896"));
    assert_false(taken("activations", "counts=[1, 2]"));
    assert_false(taken("activations", "counts=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];largest=0"));
    assert_false(taken("activations", "largest=3"));     /* the last bin is 1024 ... 4096 */
    assert_false(taken("activations", "dimension=300")); /* an empty one */
    assert_false(taken("activations", "dimension=2000"));
    assert_false(taken("activations", "tokens=65536"));
    assert_false(taken("quantize", "rows=1000000;cols=1000"));
    assert_false(taken("quantize", "format=int8-tensor;group=64"));
    assert_true(taken("quantize", "format=nf4;group=3"));
    assert_false(taken("kv_quantize", "context=1000000;batch=4096"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_agrees), cmocka_unit_test(caches_of_devices),
        cmocka_unit_test(directions),   cmocka_unit_test(normal_weights),
        cmocka_unit_test(planted),      cmocka_unit_test(edges),
        cmocka_unit_test(refusals)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
