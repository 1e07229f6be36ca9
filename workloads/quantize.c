/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `quantize`: what a weight format does to a matrix with outliers, and what a product over
 * it costs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/common/codes.h"
#include "workloads/common/fill.h"
#include "workloads/common/outliers.h"
#include "workloads/common/product.h"
#include "workloads/common/rounding.h"

enum { MOST_COPIES = 4096, SAMPLE_COLS = 64 };
struct quantize_params {
    int64_t rows, cols, group, m, rotate, draw;
    double deviation, share, scale;
    int format, outliers;
    bool gpu;              /* no options: a launch and a wait cost more than a product; */
    enum dtype activation; /* of x and y: what the device keeps beside such weights */
};
struct quantize_self {
    struct run *run;
    struct device *device;
    struct quantize_params params;
    struct weight_spec spec;
    struct matrix_rows matrix;
    float *w; /* (rows, cols) as they were */
    struct rounding rounding;
    struct weight **copies;
    int32_t n_copies, next;
    struct tensor x, y;
    struct slow slow;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct quantize_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "rows",
     .type = OPT_INT,
     PARAM(rows),
     .def = "896",
     .min = 1,
     .max = 1 << 20,
     .unit = "rows",
     .help = "Outputs of the matrix."},
    {.key = "cols",
     .type = OPT_INT,
     PARAM(cols),
     .def = "4864",
     .min = 1,
     .max = 1 << 20,
     .unit = "values",
     .help = "Inputs: consecutive weights of a row share scales."},
    {.key = "format",
     .type = OPT_WORD,
     PARAM(format),
     .def = "int8",
     .words = weight_format_names,
     .unit = "",
     .help = "As model.type: int8 is one scale a row, int4 one for `group` weights."},
    {.key = "group",
     .type = OPT_INT,
     PARAM(group),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "weights",
     .help = "Weights per scale of int8-group, int4 and nf4; 0: 128, or 64 for nf4."},
    {.key = "outliers",
     .type = OPT_WORD,
     PARAM(outliers),
     .def = "weights",
     .words = outlier_words,
     .unit = "",
     .help =
         "weights: single ones, as trained matrices have them (E34); columns, rows: whole input "
         "or output channels; one: a single weight; none: normal weights."},
    {.key = "outlier_share",
     .type = OPT_REAL,
     PARAM(share),
     .def = "0.00016",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "Of all weights, columns or rows."},
    {.key = "outlier_scale",
     .type = OPT_REAL,
     PARAM(scale),
     .def = "24.1",
     .min = 0,
     .max = 500,
     .unit = "",
     .help = "Of weights and one: the largest, in deviations (the others down to a quarter of it); "
             "of columns and rows: how many times as large their weights are."},
    {.key = "deviation",
     .type = OPT_REAL,
     PARAM(deviation),
     .def = "0.018",
     .min = 1e-6,
     .max = 10,
     .unit = "",
     .help = "Of the normal weights; at most 10, so that no weight leaves f16."},
    {.key = "draw",
     .type = OPT_INT,
     PARAM(draw),
     .def = "1",
     .min = 0,
     .max = 1e9,
     .unit = "",
     .help = "Which matrix is drawn: formats of one draw round the same weights."},
    {.key = "m",
     .type = OPT_INT,
     PARAM(m),
     .def = "1",
     .min = 1,
     .max = 1024,
     .unit = "rows",
     .help = "M: rows of the product's input."},
    {.key = "rotate",
     .type = OPT_BYTES,
     PARAM(rotate),
     .def = "0",
     .min = 0,
     .max = 0x1p42,
     .unit = "",
     .help =
         "Copies of the matrix in turn, as many as fill this, 4096 at most; 0: 256 MiB, or twice "
         "all caches of the last level; 1 B: one, as warm as they keep it."},
    {0},
};
static const struct only only[] = {{"outlier_share", "outliers", "weights columns rows"},
                                   {"outlier_scale", "outliers", "weights columns rows one"},
                                   {0}};
static const struct phase phases[] = {{"product", "byte"}, {0}};
static const struct metric metrics[] = {
    {"weight_error", "", "||w^ - w|| / ||w|| of the whole matrix (E33).", BETTER_LOWER, true},
    {"expected_error", "",
     "weight_error by theory: of independent normal weights, where there are no outliers or one (E33).",
     BETTER_LOWER, true},
    {"weight_bits", "bit", "Bits of a weight, scales included (E35).", BETTER_LOWER, true},
    {"worst_row_error", "", "weight_error of the row where it is largest.", BETTER_LOWER, true},
    {"mean_error", "sigma", "Mean |w^ - w| in deviations of the matrix.", BETTER_LOWER, true},
    {"rms_error", "sigma", "Root mean square of w^ - w in deviations of the matrix.", BETTER_LOWER,
     true},
    {"worst_error", "sigma", "The largest |w^ - w| in deviations of the matrix.", BETTER_LOWER,
     true},
    {"half_steps", "",
     "The largest |w^ - w| over half its scale: at most 1 (E32), but for the rounding of f16 "
     "scales.",
     BETTER_LOWER, true},
    {"levels_used", "level", "Codes that occur in the matrix.", BETTER_NONE, true},
    {"levels_most", "level", "Codes of 99 of 100 weights.", BETTER_NONE, true},
    {"levels_alike", "level",
     "2^entropy of the codes: as many, all as frequent, would tell as much.", BETTER_HIGHER, true},
    {"zero_share", "", "Weights that become 0.", BETTER_LOWER, true},
    {"weights", "weight", "rows cols.", BETTER_NONE, true},
    {"largest_sigma", "sigma", "The largest weight in deviations of the matrix (E34).", BETTER_NONE,
     true},
    {"mean_sigma", "sigma", "Mean |w| in deviations: 0.798 of normal weights (E34).", BETTER_NONE,
     true},
    {"beyond_six", "weight", "Weights beyond 6 deviations (E34).", BETTER_NONE, true},
    SLOW_METRICS,
    {"copies", "copy", "Copies of the matrix that take turns.", BETTER_NONE, true},
    {0},
};

/* ---- the ledger */

static struct weight_spec spec_of(const struct quantize_params *p) {
    const struct weight_format *format = &weight_formats[p->format];
    const int group = p->group > 0 ? (int)p->group : format->type == DT_NF4 ? 64 : 128;
    return (struct weight_spec){.what = "matrix",
                                .rows = p->rows,
                                .cols = p->cols,
                                .type = format->type,
                                .scale = format->scale,
                                .group = format->scale == SCALE_GROUP ? group : 0,
                                .input = DT_F32};
}

static int64_t copies_of(const struct quantize_params *p) {
    const struct weight_spec spec = spec_of(p);
    const int64_t bytes = quant_payload_bytes(&spec) + quant_scale_bytes(&spec);
    const int64_t n = (p->rotate + bytes - 1) / bytes;
    return n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : n;
}

static int64_t calls_of(const struct quantize_params *p) { return p->gpu ? copies_of(p) : 1; }

static void adapt(void *params_, const struct device_kind *kind) {
    struct quantize_params *p = params_;
    p->gpu = kind->has & DEV_GPU;
    p->activation = device_activation(kind, weight_formats[p->format].type);
    if (p->rotate == 0) p->rotate = device_beyond_caches(kind);
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct quantize_params *p = params_;
    (void)config;
    if (p->rows * p->cols > 1 << 28)
        problem(problems, "workload.rows", "workload.cols",
                "%" PRId64 " weights are more than 2^28", p->rows * p->cols);
    if (p->group > 0 && weight_formats[p->format].scale != SCALE_GROUP)
        problem(problems, "workload.group", "workload.format", "%s has no groups",
                weight_format_names[p->format]);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct quantize_params *p = params_;
    const struct weight_spec spec = spec_of(p);
    const int64_t values = dtype_bits(p->activation) / 8 * p->m * (p->rows + p->cols);
    const int64_t copies = copies_of(p);
    const double calls = (double)calls_of(p);
    struct work *work = &plan->work[0];
    (void)config;
    work->flops = calls * 2 * (double)p->m * (double)p->rows * (double)p->cols;
    work->bytes[MEM_WEIGHT] = calls * (double)quant_payload_bytes(&spec);
    work->bytes[MEM_SCALE] = calls * (double)quant_scale_bytes(&spec);
    work->bytes[MEM_ACTIVATION] = calls * (double)values;
    work->items = work->bytes[MEM_WEIGHT] + work->bytes[MEM_SCALE] + work->bytes[MEM_ACTIVATION];
    plan->bytes[MEM_WEIGHT] = copies * quant_payload_bytes(&spec);
    plan->bytes[MEM_SCALE] = copies * quant_scale_bytes(&spec);
    plan->bytes[MEM_ACTIVATION] = values;
    plan->host_bytes = (int64_t)sizeof(float) * p->rows * p->cols;
    plan->binding_type = p->activation;
}

/* ---- before the clock starts */

static int pack_copies(struct quantize_self *self, struct err *err) {
    const struct row_source source = matrix_source(&self->matrix);
    int code = 0;
    self->n_copies = (int32_t)copies_of(&self->params);
    self->copies = must_alloc(sizeof(void *) * (size_t)self->n_copies);
    for (int32_t i = 0; !code && i < self->n_copies; i++)
        code =
            self->device->kind->pack(self->device, &self->copies[i], &self->spec, 1, &source, err);
    return code;
}

static void make_matrix(struct quantize_self *self) {
    const struct quantize_params *p = &self->params;
    const struct outliers outliers = {(enum outlier_kind)p->outliers, p->share, p->scale};
    self->w = must_alloc(sizeof *self->w * (size_t)(p->rows * p->cols));
    outliers_fill(self->w, p->rows, p->cols, p->deviation, &outliers,
                  random_key((uint64_t)p->draw, 0x9a7));
    self->matrix = (struct matrix_rows){self->w, p->cols};
    const struct row_source source = matrix_source(&self->matrix);
    rounding_of(&self->spec, &source, &self->rounding);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct quantize_self *self = s;
    const struct quantize_params *p = &self->params;
    (void)config;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct quantize_params *)params_;
    self->spec = spec_of(p);
    slow_begin(&self->slow);
    const struct step_bounds bounds = product_bounds(p->m, p->cols, p->rows, p->activation);
    int code = product_supported(self->device, &self->spec, weight_format_names[p->format],
                                 p->activation, EPI_NONE, err);
    if (code) return code;
    make_matrix(self);
    code = pack_copies(self, err);
    if (!code) code = tensor_create(&self->x, self->device, p->activation, p->m, p->cols, "x", err);
    if (!code) code = tensor_create(&self->y, self->device, p->activation, p->m, p->rows, "y", err);
    if (code) return code;
    fill_uniform(self->device, self->x.data, p->activation, p->m * p->cols, run_seed(run));
    return self->device->kind->plan(self->device, &bounds, err);
}

static void execute(void *s) {
    struct quantize_self *self = s;
    for (int64_t i = 0; i < calls_of(&self->params); i++) {
        self->device->ops->linear(self->device, &self->y, &self->x, self->copies[self->next], NULL,
                                  EPI_NONE);
        self->next = self->next + 1 == self->n_copies ? 0 : self->next + 1;
    }
}

/* ---- witness */

/* Output c of a row of x: from the weights as the packers round them, and as they were. */
static void sample_output(struct quantize_self *self, float absmax, int64_t c, const float *x,
                          float y, int64_t position) {
    const int64_t cols = self->spec.cols;
    const float *original = self->w + c * cols;
    float *w = must_alloc(sizeof *w * (size_t)cols);
    double exact = 0, was = 0, spread = 0;
    for (int64_t i = 0; i < cols; i++) w[i] = original[i];
    quant_roundtrip(&self->spec, w, absmax);
    for (int64_t i = 0; i < cols; i++) {
        const double term = (double)x[i] * (double)w[i];
        exact += term;
        was += (double)x[i] * (double)original[i];
        spread += term * term;
    }
    const double allowed = product_sum_allowed(&self->spec, sqrt(spread)) +
                           product_rounding(self->params.activation) * fabs(exact) + 1e-30;
    slow_add(&self->slow, (double)y, exact, was, allowed, position);
    free(w);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct quantize_self *self = s;
    const struct quantize_params *p = &self->params;
    const int64_t row = p->m - 1, count = p->rows < SAMPLE_COLS ? p->rows : SAMPLE_COLS;
    float *x = must_alloc(sizeof *x * (size_t)p->cols),
          *y = must_alloc(sizeof *y * (size_t)p->rows);
    (void)err;
    tensor_download(self->device, &self->x, row, x);
    tensor_download(self->device, &self->y, row, y);
    *w = (struct witness){.contract = slow_applies(self->device) ? CONTRACT_CLOSE : CONTRACT_NONE,
                          .holds = true,
                          .compared = count,
                          .first_difference = -1,
                          .max_error = NAN,
                          .hash = hash_bytes(y, sizeof *y * (size_t)p->rows, 1)};
    snprintf(w->note, sizeof w->note, "outputs against a slow computation from the packers' codes");
    slow_begin(&self->slow);
    for (int64_t i = 0; slow_applies(self->device) && i < count; i++) {
        const int64_t c = count > 1 ? i * (p->rows - 1) / (count - 1) : 0;
        sample_output(self, (float)self->rounding.largest, c, x, y[c], row * p->rows + c);
    }
    slow_judge(&self->slow, w);
    free(x);
    free(y);
    return 0;
}

/* ---- report */

/* Of independent normal weights; with an outlier that sets the one scale, of those below it. */
static double expected_error(const struct quantize_self *self) {
    const struct quantize_params *p = &self->params;
    const struct weight_spec *spec = &self->spec;
    double levels[256];
    if (spec->scale == SCALE_NONE || p->outliers > OUTLIERS_ONE) return (double)NAN;
    const bool nf4 = spec->type == DT_NF4, whole = spec->scale == SCALE_TENSOR;
    const int n = code_level_list(nf4 ? CODE_NF4 : CODE_SYMMETRIC, dtype_bits(spec->type), levels);
    if (p->outliers == OUTLIERS_ONE)
        return whole && p->scale > 0 ? normal_error_at(levels, n, p->scale) : (double)NAN;
    const int64_t run = whole                      ? p->rows * p->cols
                        : spec->scale == SCALE_ROW ? p->cols
                        : spec->group < p->cols    ? spec->group
                                                   : p->cols;
    return normal_error(levels, n, (double)run);
}

static void report(void *s, struct values *values) {
    struct quantize_self *self = s;
    const struct rounding *r = &self->rounding;
    const double n = (double)r->n, sigma = r->deviation > 0 ? r->deviation : (double)NAN;
    const double bytes =
        (double)(quant_payload_bytes(&self->spec) + quant_scale_bytes(&self->spec));
    const bool coded = self->spec.scale != SCALE_NONE;
    values_set(values, "weight_bits", 8 * bytes / n);
    values_set(values, "weight_error", r->relative);
    values_set(values, "expected_error", expected_error(self));
    values_set(values, "worst_row_error", r->worst_row);
    values_set(values, "mean_error", r->mean_error / sigma);
    values_set(values, "rms_error", r->rms_error / sigma);
    values_set(values, "worst_error", r->worst_error / sigma);
    values_set(values, "half_steps", r->half_steps);
    values_set(values, "levels_used", coded ? (double)r->levels_used : (double)NAN);
    values_set(values, "levels_most", coded ? (double)r->levels_most : (double)NAN);
    values_set(values, "levels_alike", coded ? r->levels_alike : (double)NAN);
    values_set(values, "zero_share", (double)r->zeros / n);
    values_set(values, "weights", n);
    values_set(values, "largest_sigma", r->largest / sigma);
    values_set(values, "mean_sigma", r->mean_abs / sigma);
    values_set(values, "beyond_six", (double)r->beyond_six);
    values_set(values, "kernel_error", slow_kernel_error(&self->slow));
    values_set(values, "format_error", slow_format_error(&self->slow));
    values_set(values, "copies", self->n_copies);
}

static void dispose(void *s) {
    struct quantize_self *self = s;
    if (!self->device) return;
    for (int32_t i = 0; i < self->n_copies; i++)
        self->device->kind->unpack(self->device, &self->copies[i]);
    free(self->copies);
    free(self->w);
    device_free(self->device, self->x.data);
    device_free(self->device, self->y.data);
}

const struct workload workload_quantize = {
    .name = "quantize",
    .brief =
        "a weight format over a matrix with outliers: error, levels, bits, and a product's time",
    .help =
        "Question: what does a weight format lose on weights like trained ones, for how many bits, "
        "and what does a product over it cost? (seeds E32-E36)\n\n"
        "The matrix is drawn: normal weights, and outliers as declared; formats of one draw round "
        "the same weights. Its codes and scales are the packers' own (every device packs exactly "
        "these), and errors are counted over all of its weights.\n\n"
        "Inside the timing: y (M, rows) = x (M, cols) W^T by the device's own linear over the packed "
        "weights, each time with the next of several copies; on a GPU with each of them.\n\n"
        "Outside: the matrix, its errors, packing.\n\n"
        "Ledger: W once with its scales, x and y once; 2 M rows cols FLOPs. weight_bits is what the "
        "codes and scales take: 4 bits and a 16-bit scale for 128 weights are 4.125 (E35); scales "
        "of rows and of the whole have 32.\n\n"
        "expected_error integrates a normal density (E33): a random matrix agrees within 2 %. "
        "Errors in sigma are over the matrix's own deviation, outliers among its weights.\n\n"
        "Expect: one scale for the whole matrix is set by its largest weight; with 4 bits nearly "
        "all others fall on two or three levels. Outlier rows cost a scale per row nothing, outlier "
        "columns cost it as much as the whole matrix; only groups confine those.\n\n"
        "Witness: 64 outputs of the last row agree with a slow computation in double from the "
        "packers' codes, within six deviations of the roundings that the types allow.\n",
    .params = params,
    .only = only,
    .params_size = sizeof(struct quantize_params),
    .self_size = sizeof(struct quantize_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .adapt = adapt,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
