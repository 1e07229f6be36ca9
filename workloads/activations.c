/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `activations`: a residual stream with outlier dimensions, and what one scale leaves of
 * the others. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "workloads/common/codes.h"
#include "workloads/workload.h"

enum { BINS = 12, MOST_VALUES = 1 << 24 };
enum by { BY_TENSOR, BY_TOKEN, BY_DIMENSION };
struct activations_params {
    struct ints counts;
    int64_t tokens, outlier_tokens, exclude, bits, draw;
    double largest, dimension;
    int scheme, by;
};

static const char *const scheme_words[] = {"symmetric", "affine", NULL};
static const char *const by_words[] = {"tensor", "token", "dimension", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct activations_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "counts",
     .type = OPT_INTS,
     PARAM(counts),
     .def = "[254, 283, 226, 93, 18, 9, 7, 5, 0, 0, 0, 1]",
     .min = 0,
     .max = 1 << 20,
     .unit = "dimensions",
     .help = "Dimensions whose largest magnitude lies in 0-1, 1-2, 2-4, ..., 512-1024, 1024-4096: "
             "12 numbers; E37's of layer 16."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "84",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help = "Rows of the stream."},
    {.key = "largest",
     .type = OPT_REAL,
     PARAM(largest),
     .def = "1579.6",
     .min = 0,
     .max = 4095.9,
     .unit = "",
     .help = "The largest magnitude, of one dimension of the last bin that has any; 0: drawn like "
             "the others."},
    {.key = "outlier_tokens",
     .type = OPT_INT,
     PARAM(outlier_tokens),
     .def = "1",
     .min = 1,
     .max = 1 << 16,
     .unit = "tokens",
     .help =
         "Tokens in which dimensions beyond 128 are large; in the others they are at most 1. That "
         "E38's whole stream used 14 codes says that they are few."},
    {.key = "dimension",
     .type = OPT_REAL,
     PARAM(dimension),
     .def = "0",
     .min = 0,
     .max = 4095.9,
     .unit = "",
     .help =
         "One dimension of its bin has this largest magnitude, and dimension_levels tells of it; "
         "0: none."},
    {.key = "exclude",
     .type = OPT_INT,
     PARAM(exclude),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "dimensions",
     .help = "So many of the largest dimensions are kept as they are, and do not set the scale."},
    {.key = "scheme",
     .type = OPT_WORD,
     PARAM(scheme),
     .def = "symmetric",
     .words = scheme_words,
     .unit = "",
     .help = "affine has a zero point."},
    {.key = "bits",
     .type = OPT_INT,
     PARAM(bits),
     .def = "8",
     .min = 2,
     .max = 16,
     .unit = "bits",
     .help = "Of a code."},
    {.key = "by",
     .type = OPT_WORD,
     PARAM(by),
     .def = "tensor",
     .words = by_words,
     .unit = "",
     .help = "One scale for all, for a token (as products with int8 inputs have), or for a "
             "dimension over the tokens."},
    {.key = "draw",
     .type = OPT_INT,
     PARAM(draw),
     .def = "1",
     .min = 0,
     .max = 1e9,
     .unit = "",
     .help = "Which values are drawn."},
    {0},
};
static const struct phase phases[] = {{"codes", "value"}, {0}};
#define BIN(name, range)                                                                           \
    {                                                                                              \
        name, "dimension", "Dimensions whose largest magnitude lies in " range ".", BETTER_NONE,   \
            true                                                                                   \
    }
static const struct metric metrics[] = {
    {"largest_left", "", "The largest magnitude that is rounded.", BETTER_NONE, true},
    {"scale", "", "Step of a code; with several scales the largest.", BETTER_LOWER, true},
    {"levels_used", "level", "Codes that occur.", BETTER_HIGHER, true},
    {"zero_share", "", "Rounded values that become 0.", BETTER_LOWER, true},
    {"relative_error", "", "||h^ - h|| / ||h|| of all: the outliers' own size hides the rest.",
     BETTER_LOWER, true},
    {"ordinary_error", "", "relative_error of dimensions below 8.", BETTER_LOWER, true},
    {"dimension_levels", "level", "Different values that the dimension of `dimension` keeps.",
     BETTER_HIGHER, true},
    {"dimension_bound", "level",
     "The most that it can use, symmetric: 2 rint(largest / scale) + 1 (E38).", BETTER_NONE, true},
    {"dimensions", "dimension", "In all.", BETTER_NONE, true},
    BIN("to_1", "0 ... 1"),
    BIN("to_2", "1 ... 2"),
    BIN("to_4", "2 ... 4"),
    BIN("to_8", "4 ... 8"),
    BIN("to_16", "8 ... 16"),
    BIN("to_32", "16 ... 32"),
    BIN("to_64", "32 ... 64"),
    BIN("to_128", "64 ... 128"),
    BIN("to_256", "128 ... 256"),
    BIN("to_512", "256 ... 512"),
    BIN("to_1024", "512 ... 1024"),
    BIN("to_4096", "1024 ... 4096, and beyond"),
    {"below_8", "dimension", "Dimensions below 8.", BETTER_NONE, true},
    {"empty_octaves", "octave", "Empty bins below the largest dimension's.", BETTER_NONE, true},
    {"largest", "", "The largest magnitude.", BETTER_NONE, true},
    {"median", "", "The median dimension's largest magnitude.", BETTER_NONE, true},
    {"largest_over_median", "", "largest over median.", BETTER_NONE, true},
    {0},
};

/* ---- the stream */

struct stream {
    int64_t tokens, dims, looked_at; /* looked_at: the dimension that is told of, or -1 */
    float *h;                        /* (tokens, dims) */
    double *most;                    /* (dims) the largest magnitude of each */
};

/* 0-1, 1-2, 2-4, ...: the number of the bin. */
static int bin_of(double magnitude) {
    int exponent;
    if (magnitude < 1) return 0;
    frexp(magnitude, &exponent);
    return exponent < BINS - 1 ? exponent : BINS - 1;
}

static double edge(int bin) { return bin == 0 ? 0 : bin == BINS ? 4096 : ldexp(1, bin - 1); }

static int64_t dimensions_of(const struct activations_params *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->counts.n; i++) n += p->counts.v[i];
    return n;
}

/* The largest magnitudes, bin by bin: alike in logarithm within one, of the first from a quarter.
 */
static void draw_sizes(const struct activations_params *p, struct stream *s) {
    const uint64_t key = random_key((uint64_t)p->draw, 1);
    int64_t d = 0, last = -1;
    for (int bin = 0; bin < BINS; bin++)
        for (int64_t i = 0; i < p->counts.v[bin]; i++, d++) {
            const double low = bin ? edge(bin) : 0.25, high = edge(bin + 1);
            const double drawn = low * pow(high / low, 0.999 * random_unit(key, (uint64_t)d));
            s->most[d] = drawn;
            if (i == 0 && p->dimension > 0 && bin_of(p->dimension) == bin) {
                s->looked_at = d;
                s->most[d] = p->dimension;
            }
            last = d;
        }
    if (p->largest > 0 && last >= 0 && last != s->looked_at) s->most[last] = p->largest;
}

/* Each dimension normal over the tokens, stretched to its largest magnitude; those beyond 128 in
   their first tokens, and to 1 in the others. */
static void draw_stream(const struct activations_params *p, struct stream *s) {
    for (int64_t d = 0; d < s->dims; d++) {
        const uint64_t key = random_key(random_key((uint64_t)p->draw, 2), (uint64_t)d);
        const bool outlier = s->most[d] >= 128 && p->outlier_tokens < s->tokens;
        const int64_t n = outlier ? p->outlier_tokens : s->tokens;
        double most = 0, rest = 0;
        for (int64_t t = 0; t < s->tokens; t++) {
            double *of = t < n ? &most : &rest;
            *of = fmax(*of, fabs(random_normal(key, (uint64_t)t)));
        }
        for (int64_t t = 0; t < s->tokens; t++) {
            const double share = random_normal(key, (uint64_t)t) / (t < n ? most : rest);
            s->h[t * s->dims + d] = (float)(t < n ? s->most[d] * share : share);
        }
    }
}

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The largest magnitudes from the values themselves, and in falling order. */
static void measure(struct stream *s, double *sorted) {
    for (int64_t d = 0; d < s->dims; d++) {
        s->most[d] = 0;
        for (int64_t t = 0; t < s->tokens; t++)
            s->most[d] = fmax(s->most[d], fabs((double)s->h[t * s->dims + d]));
        sorted[d] = s->most[d];
    }
    qsort(sorted, (size_t)s->dims, sizeof *sorted, falling);
}

/* ---- numbers */

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct activations_params *p = params_;
    const int64_t dims = dimensions_of(p);
    int last = -1;
    (void)config;
    if (p->counts.n != BINS) {
        problem(problems, "workload.counts", NULL, "there are %d bins, not %d: 0-1, 1-2, 2-4, ...",
                BINS, (int)p->counts.n);
        return;
    }
    for (int i = 0; i < BINS; i++)
        if (p->counts.v[i]) last = i;
    if (last < 0) problem(problems, "workload.counts", NULL, "there is no dimension");
    if (dims * p->tokens > MOST_VALUES)
        problem(problems, "workload.tokens", "workload.counts",
                "%" PRId64 " values are more than 2^24", dims * p->tokens);
    if (p->largest > 0 && last >= 0 && bin_of(p->largest) != last)
        problem(problems, "workload.largest", "workload.counts",
                "the last bin with dimensions is %g ... %g", edge(last), edge(last + 1));
    if (p->dimension > 0 && !p->counts.v[bin_of(p->dimension)])
        problem(problems, "workload.dimension", "workload.counts", "no dimension lies in %g ... %g",
                edge(bin_of(p->dimension)), edge(bin_of(p->dimension) + 1));
    else if (p->largest > 0 && p->dimension > 0 && bin_of(p->dimension) == last &&
             p->counts.v[last] == 1)
        problem(problems, "workload.dimension", "workload.largest",
                "the one dimension of %g ... %g has the largest magnitude", edge(last),
                edge(last + 1));
    if (p->exclude >= dims && dims > 0)
        problem(problems, "workload.exclude", "workload.counts",
                "there are only %lld dimensions, and one must be left", (long long)dims);
}

static void set_histogram(struct values *v, const struct stream *s, const double *sorted) {
    static const char *const names[BINS] = {"to_1",   "to_2",   "to_4",    "to_8",
                                            "to_16",  "to_32",  "to_64",   "to_128",
                                            "to_256", "to_512", "to_1024", "to_4096"};
    int64_t counts[BINS] = {0};
    int empty = 0, last = bin_of(sorted[0]);
    for (int64_t d = 0; d < s->dims; d++) counts[bin_of(s->most[d])]++;
    for (int i = last - 1; i > 0 && !counts[i]; i--) empty++;
    for (int i = 0; i < BINS; i++) values_set(v, names[i], (double)counts[i]);
    const double median = 0.5 * (sorted[(s->dims - 1) / 2] + sorted[s->dims / 2]);
    values_set(v, "dimensions", (double)s->dims);
    values_set(v, "below_8", (double)(counts[0] + counts[1] + counts[2] + counts[3]));
    values_set(v, "empty_octaves", empty);
    values_set(v, "largest", sorted[0]);
    values_set(v, "median", median);
    values_set(v, "largest_over_median", median > 0 ? sorted[0] / median : (double)NAN);
}

/* ||h^ - h|| / ||h|| of dimensions below a limit. */
static double error_below(const struct stream *s, const float *rounded, double limit) {
    double error = 0, value = 0;
    for (int64_t i = 0; i < s->tokens * s->dims; i++) {
        const double h = (double)s->h[i], e = (double)rounded[i] - h;
        if (!(s->most[i % s->dims] < limit)) continue;
        error += e * e;
        value += h * h;
    }
    return value > 0 ? sqrt(error / value) : (double)NAN;
}

/* The array without its excluded dimensions; where each column came from. */
static float *kept_columns(const struct stream *s, const double *sorted, int64_t exclude,
                           int64_t *n, int64_t *from) {
    float *kept = must_alloc(sizeof *kept * (size_t)(s->tokens * (s->dims - exclude)));
    int64_t out = 0, left = exclude;
    *n = 0;
    for (int64_t d = 0; d < s->dims; d++) {
        const bool goes = left > 0 && s->most[d] >= sorted[exclude - 1];
        left -= goes;
        if (!goes) from[(*n)++] = d;
    }
    for (int64_t t = 0; t < s->tokens; t++)
        for (int64_t i = 0; i < *n; i++) kept[out++] = s->h[t * s->dims + from[i]];
    return kept;
}

/* Different values of a column. */
static int64_t values_in(const struct stream *s, const float *rounded, int64_t column) {
    double *sorted = must_alloc(sizeof *sorted * (size_t)s->tokens);
    int64_t n = 1;
    for (int64_t t = 0; t < s->tokens; t++) sorted[t] = (double)rounded[t * s->dims + column];
    qsort(sorted, (size_t)s->tokens, sizeof *sorted, falling);
    for (int64_t t = 1; t < s->tokens; t++) n += sorted[t] < sorted[t - 1];
    free(sorted);
    return n;
}

/* Rounds what is kept; excluded dimensions stay as they are. Returns the largest that is rounded.
 */
static double round_stream(const struct activations_params *p, const struct stream *s,
                           const double *sorted, float *rounded, struct code_sums *sums) {
    static const enum code_by by[] = {BY_ALL, BY_ROW, BY_COLUMN};
    const struct code_spec spec = {
        .scheme = p->scheme ? CODE_AFFINE : CODE_SYMMETRIC, .bits = (int)p->bits, .by = by[p->by]};
    int64_t *from = must_alloc(sizeof *from * (size_t)s->dims), n;
    float *kept = kept_columns(s, sorted, p->exclude, &n, from);
    const struct code_array array = {kept, s->tokens, n};
    double most = 0;
    code_round(&spec, &array, kept, sums);
    memcpy(rounded, s->h, sizeof *rounded * (size_t)(s->tokens * s->dims));
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, s->most[from[i]]);
        for (int64_t t = 0; t < s->tokens; t++) rounded[t * s->dims + from[i]] = kept[t * n + i];
    }
    free(from);
    free(kept);
    return most;
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct activations_params *p = params_;
    struct stream s = {.tokens = p->tokens, .dims = dimensions_of(p), .looked_at = -1};
    struct code_sums *sums = must_alloc(sizeof *sums);
    const size_t n = (size_t)(s.tokens * s.dims);
    double *sorted = must_alloc(2 * sizeof *sorted * (size_t)s.dims);
    float *rounded;
    (void)config;
    s.most = sorted + s.dims;
    s.h = must_alloc(2 * sizeof *s.h * n);
    rounded = s.h + n;
    draw_sizes(p, &s);
    draw_stream(p, &s);
    measure(&s, sorted);
    const double left = round_stream(p, &s, sorted, rounded, sums);
    const bool told = s.looked_at >= 0, bounded = told && p->by == BY_TENSOR && !p->scheme;
    const double at = told ? s.most[s.looked_at] : 0;
    set_histogram(v, &s, sorted);
    values_set(v, "largest_left", left);
    values_set(v, "scale", sums->scale);
    values_set(v, "levels_used", (double)code_levels_used(sums));
    values_set(v, "zero_share", (double)sums->zeros / (double)sums->n);
    values_set(v, "relative_error", error_below(&s, rounded, INFINITY));
    values_set(v, "ordinary_error", error_below(&s, rounded, 8));
    values_set(v, "dimension_levels",
               told ? (double)values_in(&s, rounded, s.looked_at) : (double)NAN);
    values_set(v, "dimension_bound", bounded ? 2 * rint(at / sums->scale) + 1 : (double)NAN);
    free(sums);
    free(sorted);
    free(s.h);
}

const struct workload workload_activations = {
    .name = "activations",
    .brief = "a residual stream with outlier dimensions, and what one scale leaves of the others",
    .help =
        "Question: what becomes of ordinary dimensions where a few are a thousand times as large? "
        "(seeds E37, E38)\n\n"
        "Theory: nothing runs. A stream of `tokens` rows is drawn whose dimensions have largest "
        "magnitudes as `counts` says, bin by bin (octaves, the first from 0 to 1, the last from 1024 "
        "to 4096), each normal over the tokens; then it is rounded to codes. A trained model has "
        "such dimensions, always the same ones; a randomly made one has none, so they are planted.\n\n"
        "Formulas: scale = largest / qmax, 1579.6 / 127 = 12.44; a dimension whose largest "
        "magnitude is m can use 2 rint(m / scale) + 1 codes, one where m is below half the scale. "
        "Without the largest four, or with a scale a dimension, the others get their codes back.\n",
    .flags = WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct activations_params),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .compute = compute,
};
