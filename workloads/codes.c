/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `codes`: a list of values as codes: scale, zero point, levels, what comes back. */
#include <math.h>
#include <string.h>

#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "base/text.h"
#include "kernels/dtype.h"
#include "workloads/common/codes.h"
#include "workloads/workload.h"

enum { MOST = 128, MOST_LEVELS = 1 << 8 };
struct codes_params {
    const char *values;
    int64_t bits, at, count, draw, group;
    int64_t scale_bits, zero_bits, from_bits;
    double deviation, scale, zero, quantile;
    int scheme;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct codes_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "values",
     .type = OPT_TEXT,
     PARAM(values),
     .def = "",
     .unit = "",
     .help = "At most 128 numbers with commas between them; empty: `count` of them, drawn."},
    {.key = "count",
     .type = OPT_INT,
     PARAM(count),
     .def = "100",
     .min = 1,
     .max = MOST,
     .unit = "values",
     .help = "Without `values`: how many are drawn, normal, `deviation` wide."},
    {.key = "deviation",
     .type = OPT_REAL,
     PARAM(deviation),
     .def = "10",
     .min = 0,
     .max = 1e30,
     .unit = "",
     .help = "Standard deviation of what is drawn, and of what the list stands for: half_step and "
             "largest are told in it; 0: unknown."},
    {.key = "draw",
     .type = OPT_INT,
     PARAM(draw),
     .def = "1",
     .min = 0,
     .max = 1e9,
     .unit = "",
     .help = "Which values are drawn."},
    {.key = "scheme",
     .type = OPT_WORD,
     PARAM(scheme),
     .def = "symmetric",
     .words = code_scheme_words,
     .unit = "",
     .help = "symmetric: code * scale; affine: (code - zero point) * scale, from least to most; "
             "nf4: 16 levels at quantiles of the normal distribution."},
    {.key = "bits",
     .type = OPT_INT,
     PARAM(bits),
     .def = "8",
     .min = 2,
     .max = 16,
     .unit = "bits",
     .help = "Of a code; nf4 has 4."},
    {.key = "scale",
     .type = OPT_REAL,
     PARAM(scale),
     .def = "0",
     .min = 0,
     .max = 1e30,
     .unit = "",
     .help = "Of a code; 0: from the values."},
    {.key = "zero",
     .type = OPT_REAL,
     PARAM(zero),
     .def = "0",
     .min = -65536,
     .max = 65536,
     .unit = "",
     .help = "affine with a scale: the zero point, a whole number."},
    {.key = "at",
     .type = OPT_INT,
     PARAM(at),
     .def = "1",
     .min = 1,
     .max = MOST,
     .unit = "",
     .help = "Which value's code is told: 1 is the first; for levels, which level."},
    {.key = "group",
     .type = OPT_INT,
     PARAM(group),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "values",
     .help = "Values with one scale, in weight_bits and expected_error; 0: as many as there are."},
    {.key = "scale_bits",
     .type = OPT_INT,
     PARAM(scale_bits),
     .def = "16",
     .min = 0,
     .max = 64,
     .unit = "bits",
     .help = "Of a stored scale."},
    {.key = "zero_bits",
     .type = OPT_INT,
     PARAM(zero_bits),
     .def = "0",
     .min = 0,
     .max = 64,
     .unit = "bits",
     .help = "Of a stored zero point, or of a minimum."},
    {.key = "from_bits",
     .type = OPT_INT,
     PARAM(from_bits),
     .def = "16",
     .min = 1,
     .max = 64,
     .unit = "bits",
     .help = "Of a value before."},
    {.key = "quantile",
     .type = OPT_REAL,
     PARAM(quantile),
     .def = "0.9677083",
     .min = 0.51,
     .max = 0.9999999,
     .unit = "",
     .help = "nf4: where its outermost quantile lies (level_quantile)."},
    {0},
};
static const struct only only[] = {{"bits", "scheme", "symmetric affine"},
                                   {"zero", "scheme", "affine"},
                                   {"quantile", "scheme", "nf4"},
                                   {0}};
static const struct phase phases[] = {{"codes", "value"}, {0}};
static const struct metric metrics[] = {
    {"x", "", "The value that `at` names.", BETTER_NONE, true},
    {"code", "", "Code of x.", BETTER_NONE, true},
    {"value", "", "What the code means: x as it comes back.", BETTER_NONE, true},
    {"error", "", "x - value.", BETTER_NONE, true},
    {"scale", "", "Step of a code; nf4: the largest magnitude.", BETTER_LOWER, true},
    {"zero_point", "", "The code of 0.", BETTER_NONE, true},
    {"weight_bits", "bit", "b + (scale_bits + zero_bits) / group (E35).", BETTER_LOWER, true},
    {"expected_error", "",
     "Relative error of independent normal values in runs of `group`, by integration (E33).",
     BETTER_LOWER, true},
    {"relative_error", "", "||x - value|| / ||x||.", BETTER_LOWER, true},
    {"mean_error", "", "Mean |x - value| of all values.", BETTER_LOWER, true},
    {"worst_error", "", "The largest |x - value|.", BETTER_LOWER, true},
    {"levels", "level", "Codes that a fitted scale can produce: 2 qmax + 1, not 2^b (E34).",
     BETTER_NONE, true},
    {"levels_used", "level", "Codes that occur among the values.", BETTER_NONE, true},
    {"levels_share", "", "levels_used over 2^b.", BETTER_NONE, true},
    {"levels_bound", "level",
     "Codes that values no larger than |x| can take, symmetric: 2 rint(|x| / scale) + 1 (E38).",
     BETTER_NONE, true},
    {"level", "", "Level `at` of nf4, as the kernels have it.", BETTER_NONE, true},
    {"level_quantile", "", "level by its construction from quantiles (E36).", BETTER_NONE, true},
    {"error_bound", "",
     "Half the scale: no value within the codes' range is off by more (not nf4).", BETTER_LOWER,
     true},
    {"value_zero_forgotten", "",
     "code * scale: what a dequantizer returns that forgets the zero point (E41's own).",
     BETTER_NONE, true},
    {"top", "", "The largest code: qmax = 2^(b-1) - 1, or 2^b - 1.", BETTER_NONE, true},
    {"largest_value", "", "What the largest code means.", BETTER_NONE, true},
    {"largest_sigma", "sigma", "The largest magnitude over `deviation`.", BETTER_NONE, true},
    {"mean_sigma", "sigma", "Mean magnitude over `deviation`: 0.798 of normal values (E34).",
     BETTER_NONE, true},
    {"half_step_sigma", "sigma", "Half the scale over `deviation`.", BETTER_LOWER, true},
    {"mean_error_scales", "", "mean_error over the scale: near 1/4 for smooth values (E41).",
     BETTER_NONE, true},
    {"smaller", "", "from_bits over weight_bits.", BETTER_HIGHER, true},
    {"bytes_before", "byte", "Bytes of all values.", BETTER_NONE, true},
    {"bytes_after", "byte", "Bytes of their codes, scales apart.", BETTER_LOWER, true},
    {"expected_outlier_error", "",
     "expected_error with one scale for all, set by an outlier at largest_sigma (E33).",
     BETTER_LOWER, true},
    {0},
};

/* The numbers of the list, or those drawn; 0: something else stands in it, or too much. */
static int values_of(const struct codes_params *p, double *x) {
    const char *text = p->values;
    int n = 0;
    if (!text[strspn(text, " ")]) {
        const uint64_t key = random_key((uint64_t)p->draw, 0);
        for (; n < p->count; n++) x[n] = p->deviation * random_normal(key, (uint64_t)n);
        return n;
    }
    for (bool more = true; more;) {
        char word[40];
        size_t len = strcspn(text, ",");
        more = text[len] == ',';
        const char *rest = text + len + more;
        while (len && *text == ' ') text++, len--;
        while (len && text[len - 1] == ' ') len--;
        if (n == MOST || !len || len >= sizeof word) return 0;
        memcpy(word, text, len);
        word[len] = 0;
        if (!parse_f64(word, &x[n]) || !(fabs(x[n]) <= 1e30)) return 0;
        n++;
        text = rest;
    }
    return n;
}

/* No infinity leaves: where a given scale or deviation is next to nothing, there is no number. */
static double known(double v) { return isfinite(v) ? v : (double)NAN; }

static int bits_of(const struct codes_params *p) {
    return p->scheme == CODE_NF4 ? 4 : (int)p->bits;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct codes_params *p = params_;
    double x[MOST];
    const int n = values_of(p, x);
    (void)config;
    if (!n)
        problem(problems, "workload.values", NULL,
                "'%.60s' is no list of 1 to %d numbers within 1e30, with commas between them",
                p->values, MOST);
    else if (p->at > n && p->scheme != CODE_NF4)
        problem(problems, "workload.at", "workload.values", "there are only %d values", n);
    else if (p->at > n && p->at > 16)
        problem(problems, "workload.at", "workload.values", "there are only %d values, 16 levels",
                n);
    if (p->zero != 0 && (p->scheme != CODE_AFFINE || p->scale == 0))
        problem(problems, "workload.zero", "workload.scheme",
                "a zero point is for affine codes of a given scale");
    else if (p->zero != rint(p->zero))
        problem(problems, "workload.zero", NULL, "a zero point is a code: a whole number");
}

static void set_list(struct values *v, const struct coder *c, const double *x, int n) {
    double sum = 0, worst = 0, squares = 0, all = 0;
    bool used[1 << 17] = {0};
    int levels = 0;
    for (int i = 0; i < n; i++) {
        const double code = coder_code(c, x[i]), error = fabs(x[i] - coder_value(c, code));
        bool *mark = &used[(int)code + (1 << 16)];
        levels += !*mark;
        *mark = true;
        sum += error;
        worst = fmax(worst, error);
        squares += error * error;
        all += x[i] * x[i];
    }
    values_set(v, "levels_used", levels);
    values_set(v, "levels_share", levels / ldexp(1, c->bits));
    values_set(v, "mean_error", sum / n);
    values_set(v, "mean_error_scales", known(sum / n / c->scale));
    values_set(v, "worst_error", worst);
    values_set(v, "relative_error", all > 0 ? sqrt(squares / all) : (double)NAN);
}

static void set_value(struct values *v, const struct coder *c, double x) {
    const double code = coder_code(c, x), bound = 2 * rint(fabs(x) / c->scale) + 1;
    const bool nf4 = c->scheme == CODE_NF4, bounded = c->scheme == CODE_SYMMETRIC;
    values_set(v, "x", x);
    values_set(v, "code", code);
    values_set(v, "value", coder_value(c, code));
    values_set(v, "error", x - coder_value(c, code));
    values_set(v, "error_bound", nf4 ? (double)NAN : c->scale / 2);
    values_set(v, "value_zero_forgotten", nf4 ? (double)NAN : code * c->scale);
    values_set(v, "levels_bound", bounded ? fmin(bound, coder_levels(c)) : (double)NAN);
}

static void set_theory(struct values *v, const struct codes_params *p, double sigmas, double run) {
    double levels[MOST_LEVELS];
    double expected = (double)NAN, outlier = (double)NAN;
    const int bits = bits_of(p);
    if (bits <= 8) {
        const int n = code_level_list((enum code_scheme)p->scheme, bits, levels);
        expected = normal_error(levels, n, run);
        if (sigmas > 0 && sigmas <= 1e6) outlier = normal_error_at(levels, n, sigmas);
    }
    values_set(v, "expected_error", expected);
    values_set(v, "expected_outlier_error", outlier);
}

static void set_levels(struct values *v, const struct codes_params *p) {
    double levels[16];
    const bool nf4 = p->scheme == CODE_NF4 && p->at <= 16;
    nf4_quantiles(p->quantile, levels);
    values_set(v, "level", nf4 ? (double)nf4_levels[p->at - 1] : (double)NAN);
    values_set(v, "level_quantile", nf4 ? levels[p->at - 1] : (double)NAN);
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct codes_params *p = params_;
    double x[MOST], least = INFINITY, most = -INFINITY, sum = 0;
    const int n = values_of(p, x);
    (void)config;
    if (!n) return;
    for (int i = 0; i < n; i++) {
        sum += fabs(x[i]);
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
    }
    const double largest = fmax(fabs(least), fabs(most));
    struct coder c = coder_fit((enum code_scheme)p->scheme, bits_of(p), least, most);
    if (p->scale > 0) {
        c.scale = p->scale;
        c.zero = p->zero;
    }
    const double run = p->group > 0 ? (double)p->group : n;
    const double bits = c.bits + (double)(p->scale_bits + p->zero_bits) / run;
    const double sigma = p->deviation > 0 ? p->deviation : (double)NAN;
    set_value(v, &c, x[p->at <= n ? p->at - 1 : 0]);
    set_list(v, &c, x, n);
    set_theory(v, p, largest / sigma, run);
    set_levels(v, p);
    values_set(v, "scale", c.scale);
    values_set(v, "zero_point", c.scheme == CODE_NF4 ? (double)NAN : c.zero);
    values_set(v, "top", coder_top(&c));
    values_set(v, "largest_value", coder_value(&c, coder_top(&c)));
    values_set(v, "levels", coder_levels(&c));
    values_set(v, "largest_sigma", known(largest / sigma));
    values_set(v, "mean_sigma", known(sum / n / sigma));
    values_set(v, "half_step_sigma",
               c.scheme == CODE_NF4 ? (double)NAN : known(c.scale / 2 / sigma));
    values_set(v, "weight_bits", bits);
    values_set(v, "smaller", (double)p->from_bits / bits);
    values_set(v, "bytes_before", ceil(n * (double)p->from_bits / 8));
    values_set(v, "bytes_after", ceil(n * (double)c.bits / 8));
}

const struct workload workload_codes = {
    .name = "codes",
    .brief = "values as codes: scale, zero point, levels, error, bits: theory",
    .help =
        "Question: what do a scale, a zero point and so many levels make of a list of values? "
        "(seeds E32-E36, E38, E40-E42)\n\n"
        "Theory: nothing runs; all in double. `quantize` measures the kernels' own packers, which "
        "keep scales in f32 and f16.\n\n"
        "Formulas: symmetric scale = max|x| / qmax, qmax = 2^(b-1) - 1, code = clamp(rint(x / "
        "scale)); affine scale = (max - min) / (2^b - 1), zero point = -rint(min / scale), code = "
        "clamp(rint(x / scale) + zero point, 0, 2^b - 1), value = (code - zero point) scale; nf4: "
        "the nearest of 16 levels of x / max|x|, ties to the lower. rint is half to even. Zeros "
        "alone have scale 1; equal values of affine have their own magnitude, and come back.\n\n"
        "expected_error integrates over the largest of `group` normal values what rounding does to "
        "those below it; bits up to 8.\n",
    .flags = WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct codes_params),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .compute = compute,
};
