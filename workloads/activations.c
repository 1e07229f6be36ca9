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
#include "workloads/common/dimensions.h"
#include "workloads/workload.h"

enum { MOST_VALUES = 1 << 24 };
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
    DIMENSION_BINS,
    DIMENSION_SIZES,
    {0},
};

/* ---- the stream */

struct stream {
    int64_t tokens, dims, looked_at; /* looked_at: the dimension that is told of, or -1 */
    float *h;                        /* (tokens, dims) */
    double *most;                    /* (dims) the largest magnitude of each */
};

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
    for (int bin = 0; bin < OCTAVES; bin++)
        for (int64_t i = 0; i < p->counts.v[bin]; i++, d++) {
            const double low = bin ? octave_edge(bin) : 0.25, high = octave_edge(bin + 1);
            const double drawn = low * pow(high / low, 0.999 * random_unit(key, (uint64_t)d));
            s->most[d] = drawn;
            if (i == 0 && p->dimension > 0 && octave_of(p->dimension) == bin) {
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

/* ---- numbers */

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct activations_params *p = params_;
    const int64_t dims = dimensions_of(p);
    int last = -1;
    (void)config;
    if (p->counts.n != OCTAVES) {
        problem(problems, "workload.counts", NULL, "there are %d bins, not %d: 0-1, 1-2, 2-4, ...",
                OCTAVES, (int)p->counts.n);
        return;
    }
    for (int i = 0; i < OCTAVES; i++)
        if (p->counts.v[i]) last = i;
    if (last < 0) problem(problems, "workload.counts", NULL, "there is no dimension");
    if (dims * p->tokens > MOST_VALUES)
        problem(problems, "workload.tokens", "workload.counts",
                "%" PRId64 " values are more than 2^24", dims * p->tokens);
    if (p->largest > 0 && last >= 0 && octave_of(p->largest) != last)
        problem(problems, "workload.largest", "workload.counts",
                "the last bin with dimensions is %g ... %g", octave_edge(last),
                octave_edge(last + 1));
    if (p->dimension > 0 && !p->counts.v[octave_of(p->dimension)])
        problem(problems, "workload.dimension", "workload.counts", "no dimension lies in %g ... %g",
                octave_edge(octave_of(p->dimension)), octave_edge(octave_of(p->dimension) + 1));
    else if (p->largest > 0 && p->dimension > 0 && octave_of(p->dimension) == last &&
             p->counts.v[last] == 1)
        problem(problems, "workload.dimension", "workload.largest",
                "the one dimension of %g ... %g has the largest magnitude", octave_edge(last),
                octave_edge(last + 1));
    if (p->exclude >= dims && dims > 0)
        problem(problems, "workload.exclude", "workload.counts",
                "there are only %lld dimensions, and one must be left", (long long)dims);
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    static const enum code_by by[] = {BY_ALL, BY_ROW, BY_COLUMN};
    const struct activations_params *p = params_;
    const struct code_spec spec = {
        .scheme = p->scheme ? CODE_AFFINE : CODE_SYMMETRIC, .bits = (int)p->bits, .by = by[p->by]};
    struct stream s = {.tokens = p->tokens, .dims = dimensions_of(p), .looked_at = -1};
    struct code_sums *sums = must_alloc(sizeof *sums);
    const size_t n = (size_t)(s.tokens * s.dims);
    (void)config;
    s.most = must_alloc(sizeof *s.most * (size_t)s.dims);
    s.h = must_alloc(2 * sizeof *s.h * n);
    float *rounded = s.h + n;
    draw_sizes(p, &s);
    draw_stream(p, &s);
    struct dimensions of = {.rows = s.tokens, .dims = s.dims, .x = s.h};
    dimensions_open(&of);
    const double left = dimensions_round(&of, &spec, p->exclude, rounded, sums);
    const bool told = s.looked_at >= 0, bounded = told && p->by == BY_TENSOR && !p->scheme;
    const double at = told ? of.most[s.looked_at] : 0;
    dimensions_report(&of, 1, v);
    values_set(v, "largest_left", left);
    values_set(v, "scale", sums->scale);
    values_set(v, "levels_used", (double)code_levels_used(sums));
    values_set(v, "zero_share", (double)sums->zeros / (double)sums->n);
    values_set(v, "relative_error", dimensions_error(&of, rounded, INFINITY));
    values_set(v, "ordinary_error", dimensions_error(&of, rounded, 8));
    values_set(v, "dimension_levels",
               told ? (double)dimensions_values(&of, rounded, s.looked_at) : (double)NAN);
    values_set(v, "dimension_bound", bounded ? 2 * rint(at / sums->scale) + 1 : (double)NAN);
    dimensions_close(&of);
    free(sums);
    free(s.most);
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
