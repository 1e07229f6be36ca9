/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' records of quantization that workloads compute: codes, scales, levels, bits, expected
   errors, outliers. Those that test_seed_theory.c has (codes by the packers, bits of formats) are
   computed here a second way, in double. */
#include "base/interval.h"
#include "results/analysis.h"
#include "results/stats.h"
#include "tests/golden/seed_records.h"
#include "workloads/common/codes.h"
#include "workloads/common/dimensions.h"
#include "workloads/common/rounding.h"
#include "workloads/workload.h"

static struct arena *arena;
#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* A metric of a workload that computes; settings apart by ';'. */
static double computed(const char *workload, const char *settings, const char *metric) {
    const struct workload *w = workload_find(workload);
    const struct model_config config = drive_config("tiny", arena);
    void *params = arena_alloc(arena, w->params_size);
    struct problems *problems = problems_create();
    struct values values = {0};
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, ";", arena);
    if (w->check) w->check(params, &config, problems);
    if (problems_count(problems)) fail_msg("'%s' is refused", settings);
    problems_close(&problems);
    w->compute(params, &config, &values);
    return values_get(&values, metric);
}

static double codes(const char *settings, const char *metric) {
    return computed("codes", settings, metric);
}

/* "1.5, -2": the numbers of an input. */
static const char *list_of(const struct record *r, const char *name) {
    const cJSON *item, *list = cJSON_GetObjectItem(r->inputs, name);
    struct text t = {0};
    cJSON_ArrayForEach(item, list) text_printf(&t, "%s%.17g", t.len ? ", " : "", item->valuedouble);
    const char *copy = arena_text(arena, t.data);
    text_free(&t);
    return copy;
}

/* The same metric of every value of a list. */
static void expect_each(const struct record *r, const char *settings, const char *metric,
                        int digits) {
    const int n = cJSON_GetArraySize(r->value);
    double ours[32];
    assert_true(n <= 32);
    for (int i = 0; i < n; i++) {
        ours[i] = codes(TEXT("%s;at=%d", settings, i + 1), metric);
        if (digits) ours[i] = rint(ours[i] * pow(10, digits)) / pow(10, digits);
    }
    expect_list(r, ours, n);
}

static double rounded(double v) { return rint(v * 1e6) / 1e6; }

/* ---- E31: what prints as 1.98, 0.99 and 0.49 GB */

static bool prints(double parameters) {
    static const char *const types[] = {"f32", "f16", "int8"}, *const printed[] = {"1.98", "0.99",
                                                                                   "0.49"};
    const struct workload *w = workload_find("ledger");
    for (int i = 0; i < 3; i++) {
        struct model_config config = drive_config("tiny", arena);
        void *params = arena_alloc(arena, w->params_size);
        struct values v = {0};
        char text[32];
        option_defaults(w->params, params, arena);
        drive_model(&config, "type", types[i], arena);
        drive_set(w->params, params, "parameters", TEXT("%.0f", parameters), arena);
        w->compute(params, &config, &v);
        snprintf(text, sizeof text, "%.2f", values_get(&v, "weight_bytes") / 1e9);
        if (strcmp(text, printed[i])) return false;
    }
    return true;
}

static bool weight_bytes(const struct record *r) {
    if (r->n != 4 && r->n != 5) return false;
    double in = 494032768, out = r->n == 4 ? 4e8 : 6e8;
    while (fabs(out - in) > 1) {
        const double middle = floor((in + out) / 2);
        *(prints(middle) ? &in : &out) = middle;
    }
    expect(r, in); /* the upper bound itself still prints so: 0.495 is a little less in binary */
    return true;
}

/* ---- E32, E36, E40, E41: lists */

static bool lists(const struct record *r) {
    const char *bits = TEXT("bits=%lld", (long long)whole(r, "bits"));
    if (!has(r, "x")) {
        expect(r, codes(bits, "top"));
        return true;
    }
    const char *settings = TEXT("%s;values=%s", bits, list_of(r, "x"));
    switch (r->n % 5) {
    case 2: expect(r, codes(settings, "scale")); return true;
    case 3: expect_each(r, settings, "code", 0); return true;
    case 4: expect_each(r, settings, "value", 0); return true;
    default: expect(r, codes(settings, "relative_error")); return true;
    }
}

static bool nf4(const struct record *r) {
    if (r->n == 1) {
        expect_each(r, TEXT("scheme=nf4;quantile=%.17g", input(r, "offset")), "level_quantile", 6);
        expect_each(r, "scheme=nf4", "level", 6);
        return true;
    }
    const char *settings = TEXT("scheme=nf4;values=%s", list_of(r, "x"));
    expect_each(r, settings, r->n == 2 ? "code" : "value", r->n == 2 ? 0 : 6);
    assert_true(codes(settings, "scale") == input(r, "scale"));
    return true;
}

static bool affine(const struct record *r) {
    const char *settings = "scheme=affine;values=5.2342;scale=0.1;zero=4";
    static const char *const metrics[] = {"code", "value", "error", "error_bound"};
    if (r->family == 40) {
        expect(r, codes(settings, metrics[r->n - 1]));
        return true;
    }
    static const char *const demo[] = {[4] = "scale", "code", "mean_error", "scale",
                                       "zero_point",  "code", "value",      "value_zero_forgotten"};
    if (r->n <= 3) {
        static const char *const bytes[] = {"bytes_before", "bytes_after", "smaller"};
        expect(r, codes("count=100;from_bits=64;scale_bits=0", bytes[r->n - 1]));
    } else if (r->n == 12) {
        /* smooth: every part of a step alike */
        expect(r, codes("values=0, 0.25, 0.5, 0.75;scale=1", "mean_error_scales"));
    } else {
        settings = TEXT("values=%s;scheme=%s", list_of(r, "x"), r->n <= 6 ? "symmetric" : "affine");
        if (cJSON_IsArray(r->value))
            expect_each(r, settings, demo[r->n], 0);
        else
            expect(r, codes(settings, demo[r->n]));
    }
    return true;
}

/* ---- E33, E34: errors and outliers of matrices */

static bool errors(const struct record *r) {
    if (r->n == 1) return false; /* arithmetic on two printed errors */
    const char *scheme = strstr(r->what, "NF4")    ? "scheme=nf4"
                         : strstr(r->what, "INT4") ? "bits=4"
                                                   : "bits=8";
    if (has(r, "group"))
        expect(r, rounded(codes(TEXT("%s;group=%lld", scheme, (long long)whole(r, "group")),
                                "expected_error")));
    else
        expect(r,
               rounded(codes(TEXT("%s;deviation=1;values=%.17g", scheme, input(r, "max_over_std")),
                             "expected_outlier_error")));
    return true;
}

/* The printed matrix: 692 of 896 x 4,864 weights as large as the largest, the others within. */
static void printed_row(void *ctx, int64_t row, float *out) {
    (void)ctx;
    for (int64_t c = 0; c < 4864; c++) {
        out[c] = (row + c) % 2 ? 0.0175f : -0.0175f;
        if (row < 692 && c == row * 7) out[c] = 0.43945f;
    }
}

static struct rounding printed_matrix(void) {
    const struct row_source source = {.row = printed_row};
    const struct weight_spec spec = {
        .what = "", .rows = 896, .cols = 4864, .type = DT_I4, .scale = SCALE_TENSOR};
    struct rounding rounding;
    rounding_of(&spec, &source, &rounding);
    return rounding;
}

static bool outliers(const struct record *r) {
    const char *settings = "values=0.43945;deviation=0.01822";
    if (r->n == 1 || r->n == 3 || r->n == 4) {
        const struct rounding m = printed_matrix();
        expect(r, r->n == 1   ? (double)m.n
                  : r->n == 3 ? 100 * (double)m.beyond_six / (double)m.n
                              : (double)m.n / (double)m.beyond_six);
        assert_true(m.levels_used == 2 && m.zeros == m.n - 692); /* all others are nothing */
        return true;
    }
    if (r->n == 5) { /* one weight of the printed mean magnitude stands for all */
        expect(r, codes(TEXT("values=%.17g;deviation=%.17g", input(r, "mean_abs"), input(r, "std")),
                        "mean_sigma"));
        return true;
    }
    settings = TEXT("%s;bits=%d", settings, r->n == 6 || r->n == 7 || r->n == 10 ? 8 : 4);
    expect(r, codes(settings, r->n == 2    ? "largest_sigma"
                              : r->n >= 10 ? "levels"
                              : r->n % 2   ? "half_step_sigma"
                                           : "scale"));
    return true;
}

/* ---- E35: bits, also of formats that we do not pack */

static bool bits_of(const struct record *r) {
    if (has(r, "bytes")) { /* codes, a 16-bit scale, and of Q4_1 a 16-bit minimum */
        const char *settings =
            TEXT("bits=%d;group=%lld;zero_bits=%d", input(r, "bytes") > 20 ? 8 : 4,
                 (long long)whole(r, "group"), input(r, "bytes") == 20 ? 16 : 0);
        expect(r, codes(settings, "weight_bits"));
        return true;
    }
    expect(r, codes(TEXT("bits=%lld;group=%lld;scale_bits=%lld;zero_bits=%lld",
                         (long long)whole(r, "bits"), (long long)whole(r, "group"),
                         (long long)whole(r, "scale_bits"),
                         (long long)(has(r, "zero_bits") ? whole(r, "zero_bits") : 0)),
                    "weight_bits"));
    return true;
}

/* ---- E37, E38: activations */

static bool stream(const struct record *r) {
    static const char *const bins[] = {"to_1",  "to_2",   "to_4",   "to_8",   "to_16",   "to_32",
                                       "to_64", "to_128", "to_256", "to_512", "to_1024", "to_4096"};
    static const char *const metrics[] = {"dimensions", "below_8", "empty_octaves"};
    double counts[12];
    if (r->n == 5) { /* as the analysis `histogram` draws them */
        const cJSON *list = cJSON_GetObjectItem(r->inputs, "counts");
        for (int i = 0; i < 12; i++)
            counts[i] = analysis_bar(cJSON_GetArrayItem(list, i)->valuedouble, 40);
        expect_list(r, counts, 12);
        return true;
    }
    if (r->n == 6) { /* three dimensions, of which the middle one is the bound that was printed */
        double most[] = {1, input(r, "median_below"), input(r, "max")};
        double sorted[] = {most[2], most[1], most[0]};
        const struct dimensions of = {
            .dims = 3, .most = most, .sorted = sorted, .largest = sorted[0], .median = sorted[1]};
        struct values values = {0};
        dimensions_report(&of, 1, &values);
        expect(r, values_get(&values, "largest_over_median"));
        return true;
    }
    if (r->n > 1) {
        expect(r, computed("activations", "draw=3", metrics[r->n - 2]));
        return true;
    }
    for (int i = 0; i < 12; i++) counts[i] = computed("activations", "draw=3", bins[i]);
    expect_list(r, counts, 12);
    return true;
}

static bool levels(const struct record *r) {
    static const char *fourteen = "values=0,1,2,3,4,5,6,7,8,9,10,11,12,13;scale=1";
    switch (r->n) {
    case 1:
    case 2: expect(r, codes("values=1579.6", "scale")); return true;
    case 3: expect(r, codes("values=1;scale=0.5749", "largest_value")); return true;
    case 4:
        expect(r, codes("values=1;scale=12.4378", "largest_value") /
                      codes("values=1;scale=0.5749", "largest_value"));
        return true;
    case 11:
    case 12: expect(r, codes(TEXT("values=%.17g, 1579.6", input(r, "x")), "code")); return true;
    case 13: expect(r, codes(fourteen, "levels_share")); return true;
    default: break;
    }
    /* Of one dimension: by formula, and counted in a stream that has it. */
    const double most = input(r, "absmax");
    expect(r, r->n % 2 ? codes(TEXT("values=%.17g, 1579.6", most), "levels_bound")
                       : codes(TEXT("values=%.17g;scale=%.17g", most, input(r, "scale")),
                               "levels_bound"));
    if (r->n % 2)
        expect(r, computed("activations", TEXT("dimension=%.17g", most), "dimension_levels"));
    return true;
}

/* ---- E39: intervals of shares; the rest is arithmetic on printed perplexities */

static bool quality(const struct record *r) {
    double bounds[2];
    if (!has(r, "k")) return false;
    interval_wilson(whole(r, "k"), whole(r, "n"), &bounds[0], &bounds[1]);
    for (int i = 0; i < 2; i++) bounds[i] = rounded(bounds[i]);
    expect_list(r, bounds, 2);
    return true;
}

static const struct product products[] = {
    {31, weight_bytes}, {32, lists},  {33, errors},  {34, outliers}, {35, bits_of}, {36, nf4},
    {37, stream},       {38, levels}, {39, quality}, {40, affine},   {41, affine},  {0}};

static void every_record(void **state) {
    (void)state;
    assert_int_equal(each_record(products), 90);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
