/* SPDX-License-Identifier: Apache-2.0 */
/* One product of a layer, its ledger, its copies, and what its outputs should be. */
#include "workloads/common/product.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/problems.h"
#include "workloads/common/fill.h"
#include "workloads/common/plain.h"
#include "workloads/model/ledger.h"
#include "workloads/model/synth.h"

enum { MOST_COPIES = 4096, SAMPLE_COLS = 16 };

const char *const product_matrix_words[] = {"qkv", "out", "gate_up", "down", "head", "mlp", NULL};
const struct metric product_metrics[] = {
    {"weight_bits", "bit", "Bits of a weight in its format, scales included.", BETTER_LOWER, true},
    SLOW_METRICS,
    {"intensity", "FLOP/byte", "FLOPs over bytes of the ledger.", BETTER_NONE, true},
    {"copies", "copy", "Copies of the matrix that take turns.", BETTER_NONE, true},
    {"formula_flops", "FLOP",
     "The seeds' FLOPs of one product: 2BDF with B = M, D = K, F = N; of the MLP 6BDF (E25, E27).",
     BETTER_NONE, true},
    {"formula_bytes", "byte",
     "The seeds' bytes with 2-byte elements: 2BD+2DF+2BF; of the MLP 4BD+4BF+6DF.", BETTER_NONE,
     true},
    {"formula_intensity", "FLOP/byte", "formula_flops over formula_bytes.", BETTER_NONE, true},
    {0},
};

/* ---- shapes and the ledger */

struct dims {
    int64_t n, k;   /* outputs and inputs of a row */
    int parts;      /* matrices stacked: 2 with SwiGLU */
    bool then_down; /* mlp: a second product, k wide */
};

static struct dims dims_of(const struct product_params *p, const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const int64_t d = s->d_model, q = s->n_q * s->d_h;
    struct dims dims = {.parts = 1};
    switch (p->matrix) {
    case PRODUCT_QKV: dims = (struct dims){q + 2 * s->n_kv * s->d_h, d, 1, false}; break;
    case PRODUCT_OUT: dims = (struct dims){d, q, 1, false}; break;
    case PRODUCT_GATE_UP: dims = (struct dims){s->d_ff, d, 2, false}; break;
    case PRODUCT_DOWN: dims = (struct dims){d, s->d_ff, 1, false}; break;
    case PRODUCT_HEAD: dims = (struct dims){s->vocab, d, 1, false}; break;
    case PRODUCT_MLP: dims = (struct dims){s->d_ff, d, 2, true}; break;
    }
    if (p->n) dims.n = p->n;
    if (p->k) dims.k = p->k;
    return dims;
}

static struct matrix_bytes copy_bytes(const struct model_config *config, struct dims dims) {
    struct matrix_bytes sum = ledger_matrix(config, dims.n, dims.k);
    sum.payload *= dims.parts;
    sum.scales *= dims.parts;
    if (!dims.then_down) return sum;
    const struct matrix_bytes down = ledger_matrix(config, dims.k, dims.n);
    return (struct matrix_bytes){sum.payload + down.payload, sum.scales + down.scales};
}

static int64_t copies_of(const struct product_params *p, struct matrix_bytes one) {
    const int64_t bytes = one.payload + one.scales, n = (p->rotate + bytes - 1) / bytes;
    return n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : n;
}

/* Products of one execution. On a host one; a GPU takes a launch and a wait for what a product
   takes, so there the copies follow one another as layers do. */
static int64_t calls_of(const struct product_params *p, int64_t copies) {
    return p->gpu ? copies : 1;
}

static double multiplications(const struct product_params *p, struct dims dims) {
    return (double)p->m * (double)dims.n * (double)dims.k * (dims.parts + dims.then_down);
}

/* Values that enter and leave the products of one call. */
static double values_of(const struct product_params *p, struct dims dims) {
    return (double)p->m * (double)(dims.n + dims.k) * (dims.then_down ? 2 : 1);
}

void product_adapt(void *params, const struct device_kind *kind) {
    struct product_params *p = params;
    p->gpu = kind->has & DEV_GPU;
    if (p->rotate == 0) p->rotate = device_beyond_caches(kind);
}

void product_check(const void *params, const struct model_config *config,
                   struct problems *problems) {
    const struct product_params *p = params;
    const struct dims dims = dims_of(p, config);
    if (p->m * (dims.n > dims.k ? dims.n : dims.k) > INT32_MAX)
        problem(problems, "workload.m", "workload.n",
                "%" PRId64 " rows of %" PRId64 " values are more than 2^31", p->m,
                dims.n > dims.k ? dims.n : dims.k);
}

void product_plan(const struct product_params *p, const struct model_config *config,
                  bool item_is_byte, struct plan *plan) {
    const struct dims dims = dims_of(p, config);
    const struct matrix_bytes one = copy_bytes(config, dims);
    const int64_t copies = copies_of(p, one), size = dtype_bits(config->activation) / 8;
    const double calls = (double)calls_of(p, copies);
    struct work *work = &plan->work[0];
    work->flops = calls * 2 * multiplications(p, dims);
    work->bytes[MEM_WEIGHT] = calls * (double)one.payload;
    work->bytes[MEM_SCALE] = calls * (double)one.scales;
    work->bytes[MEM_ACTIVATION] = calls * (double)size * values_of(p, dims);
    work->items = work->flops;
    if (item_is_byte)
        work->items =
            work->bytes[MEM_WEIGHT] + work->bytes[MEM_SCALE] + work->bytes[MEM_ACTIVATION];
    plan->bytes[MEM_WEIGHT] = copies * one.payload;
    plan->bytes[MEM_SCALE] = copies * one.scales;
    plan->bytes[MEM_ACTIVATION] =
        size * p->m * (dims.then_down ? 2 * dims.k + dims.n : dims.k + dims.n);
    plan->binding_type = model_binding(config);
}

/* ---- what is there before the clock starts */

static struct weight_spec spec_of(const struct model_config *config, const char *what, int64_t rows,
                                  int64_t cols) {
    const struct weight_format *format = model_weight_format(&config->params);
    return (struct weight_spec){.what = what,
                                .rows = rows,
                                .cols = cols,
                                .type = format->type,
                                .scale = format->scale,
                                .group = model_group(&config->params),
                                .input = model_input(&config->params)};
}

enum { STREAM_FIRST, STREAM_UP, STREAM_DOWN };

static struct synth_matrix matrix_of(const struct product_self *self, int stream, int64_t cols) {
    return synth_matrix(run_seed(self->run), (uint64_t)stream, cols);
}

static int pack(struct product_self *self, struct weight **weight, const char *what, int parts,
                int64_t rows, int64_t cols, int stream, struct err *err) {
    struct synth_matrix matrices[2];
    struct weight_spec specs[2];
    struct row_source sources[2];
    for (int i = 0; i < parts; i++) {
        matrices[i] = matrix_of(self, stream + i, cols);
        sources[i] = synth_source(&matrices[i]);
        specs[i] = spec_of(&self->config, what, rows, cols);
    }
    return self->device->kind->pack(self->device, weight, specs, parts, sources, err);
}

/* All copies have the same content: only where they lie differs, so every product has one result.
 */
static int pack_copies(struct product_self *self, struct dims dims, struct err *err) {
    int code = 0;
    self->n_copies = (int32_t)copies_of(&self->params, copy_bytes(&self->config, dims));
    self->first = must_alloc(sizeof(void *) * (size_t)self->n_copies);
    self->down = must_alloc(sizeof(void *) * (size_t)self->n_copies);
    for (int32_t i = 0; !code && i < self->n_copies; i++) {
        code = pack(self, &self->first[i], product_matrix_words[self->params.matrix], dims.parts,
                    dims.n, dims.k, STREAM_FIRST, err);
        if (!code && dims.then_down)
            code = pack(self, &self->down[i], "down", 1, dims.k, dims.n, STREAM_DOWN, err);
    }
    return code;
}

int product_supported(struct device *device, const struct weight_spec *spec, const char *format,
                      enum dtype activation, enum epilogue epilogue, struct err *err) {
    const struct op_case op_case = {.weight = spec->type,
                                    .scale = spec->scale,
                                    .group = spec->group,
                                    .input = spec->input,
                                    .activation = activation,
                                    .kv = DT_F32,
                                    .epilogue = epilogue};
    const char *reason = "";
    if (device->kind->supports(device, OP_LINEAR, &op_case, &reason)) return 0;
    return err_set(err, ERR_UNSUPPORTED, "linear %s is not supported by %s: %s", format,
                   device->kind->name, reason);
}

struct step_bounds product_bounds(int64_t m, int64_t k, int64_t n, enum dtype activation) {
    return (struct step_bounds){.n_seq = (int32_t)m,
                                .n_row = (int32_t)m,
                                .n_out = 1,
                                .most_q = 1,
                                .most_kv = 1,
                                .n_q = 1,
                                .n_kv = 1,
                                .d_h = 2,
                                .d_model = (int32_t)k,
                                .d_ff = (int32_t)n,
                                .vocab = 2,
                                .activation = activation};
}

int product_prepare(void *s, const void *params, const struct model_config *config, struct run *run,
                    struct err *err) {
    struct product_self *self = s;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct product_params *)params;
    self->config = *config;
    slow_begin(&self->slow);
    const struct dims dims = dims_of(&self->params, config);
    const int64_t m = self->params.m;
    const enum dtype type = config->activation;
    const struct step_bounds bounds = product_bounds(m, dims.k, dims.n, type);
    const struct weight_spec spec = spec_of(config, "", dims.n, dims.k);
    int code = product_supported(self->device, &spec, model_weight_format(&config->params)->name,
                                 type, dims.parts == 2 ? EPI_SWIGLU : EPI_NONE, err);
    if (!code) code = pack_copies(self, dims, err);
    if (!code) code = tensor_create(&self->x, self->device, type, m, dims.k, "x", err);
    if (!code && dims.then_down)
        code = tensor_create(&self->hidden, self->device, type, m, dims.n, "hidden", err);
    if (!code)
        code = tensor_create(&self->y, self->device, type, m, dims.then_down ? dims.k : dims.n, "y",
                             err);
    if (code) return code;
    fill_uniform(self->device, self->x.data, type, m * dims.k, run_seed(run));
    return self->device->kind->plan(self->device, &bounds, err);
}

/* ---- one call */

static void multiply(struct product_self *self, const struct tensor *x, struct tensor *hidden,
                     struct tensor *y, int32_t copy) {
    const struct ops *op = self->device->ops;
    const enum epilogue epilogue = self->params.matrix == PRODUCT_GATE_UP ? EPI_SWIGLU : EPI_NONE;
    if (self->params.matrix != PRODUCT_MLP) {
        op->linear(self->device, y, x, self->first[copy], NULL, epilogue);
        return;
    }
    op->linear(self->device, hidden, x, self->first[copy], NULL, EPI_SWIGLU);
    op->linear(self->device, y, hidden, self->down[copy], NULL, EPI_NONE);
}

void product_execute(void *s) {
    struct product_self *self = s;
    const int64_t calls = calls_of(&self->params, self->n_copies);
    for (int64_t i = 0; i < calls; i++) {
        multiply(self, &self->x, &self->hidden, &self->y, self->next);
        self->next = self->next + 1 == self->n_copies ? 0 : self->next + 1;
    }
}

/* ---- witness */

/* out: (y.cols) on the host. Another copy than the last call's, where there are several. */
static int row_alone(struct product_self *self, int64_t row, float *out, struct err *err) {
    const struct tensor x = tensor_row(self->x, row);
    struct tensor y = {0}, hidden = {0};
    int code = tensor_create(&y, self->device, self->y.type, 1, self->y.cols, "row alone", err);
    if (!code && self->hidden.data)
        code = tensor_create(&hidden, self->device, self->y.type, 1, self->hidden.cols,
                             "hidden row alone", err);
    if (!code) {
        multiply(self, &x, &hidden, &y, self->next);
        code = self->device->kind->sync(self->device, err);
    }
    if (!code) tensor_download(self->device, &y, 0, out);
    device_free(self->device, hidden.data);
    device_free(self->device, y.data);
    return code;
}

struct dot {
    double exact, original;
    double spread; /* root of the sum of squared terms: what independent roundings scale with */
};
struct rows { /* of one matrix, as stored and as they were */
    struct weight_spec spec;
    struct synth_matrix matrix;
    float absmax, *w, *original; /* (cols) */
};

static struct rows rows_open(struct product_self *self, int64_t rows, int64_t cols, int stream) {
    struct rows r = {.spec = spec_of(&self->config, "", rows, cols),
                     .matrix = matrix_of(self, stream, cols)};
    const struct row_source source = synth_source(&r.matrix);
    if (r.spec.scale == SCALE_TENSOR) r.absmax = quant_absmax(&r.spec, &source);
    r.w = must_alloc(2 * sizeof(float) * (size_t)cols);
    r.original = r.w + cols;
    return r;
}

/* x: as products take it; original: as it was. */
static struct dot dot_row(struct rows *r, int64_t row, const float *x, const float *original) {
    struct dot dot = {0};
    const int64_t cols = r->spec.cols;
    synth_row(&r->matrix, row, r->original);
    for (int64_t i = 0; i < cols; i++) r->w[i] = r->original[i];
    quant_roundtrip(&r->spec, r->w, r->absmax);
    for (int64_t i = 0; i < cols; i++) {
        const double term = (double)x[i] * (double)r->w[i];
        dot.exact += term;
        dot.original += (double)original[i] * (double)r->original[i];
        dot.spread += term * term;
    }
    dot.spread = sqrt(dot.spread);
    return dot;
}

double product_sum_allowed(const struct weight_spec *spec, double spread) {
    const double sum = 8 * sqrt((double)spec->cols) * 0x1p-24;
    if (spec->type == DT_F32 || spec->input == DT_I8) return sum * spread;
    return (sum + (spec->type == DT_F16 || spec->type == DT_BF16 ? 6 * 0x1p-9 : 0.05)) * spread;
}

double product_rounding(enum dtype activation) {
    return activation == DT_F32 ? 0x1p-23 : activation == DT_F16 ? 0x1p-10 : 0x1p-7;
}

static double silu(double z) { return z / (1 + exp(-z)); }

static int64_t spread_over(int64_t n, int64_t i, int64_t of) {
    return of > 1 ? i * (n - 1) / (of - 1) : 0;
}

/* A row of x as products of such weights take it; malloc'ed. */
static float *as_input(const struct weight_spec *spec, const float *x) {
    const size_t n = (size_t)spec->cols;
    float *as = must_alloc(n * sizeof *as);
    memcpy(as, x, n * sizeof *as);
    if (spec->input != DT_I8) return as;
    int8_t *codes = must_alloc(n);
    const float scale = quant_input(x, spec->cols, codes);
    for (size_t i = 0; i < n; i++) as[i] = scale * (float)codes[i];
    free(codes);
    return as;
}

/* Sampled outputs of one product: given and y are host rows. up: SwiGLU's other half, or NULL.
 */
static void sample_row(struct product_self *self, struct rows *first, struct rows *up,
                       const float *given, const float *y, int64_t n, int64_t position) {
    float *x = as_input(&first->spec, given);
    const int64_t count = n < SAMPLE_COLS ? n : SAMPLE_COLS;
    const double round = product_rounding(self->config.activation);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = spread_over(n, i, count);
        struct dot a = dot_row(first, c, x, given);
        double exact = a.exact, original = a.original,
               allowed = product_sum_allowed(&first->spec, a.spread);
        if (up) {
            const struct dot b = dot_row(up, c, x, given);
            const double error = product_sum_allowed(&up->spec, b.spread);
            /* The slope of silu is below 1.1. */
            allowed = 1.1 * allowed * (fabs(b.exact) + error) + fabs(silu(a.exact)) * error;
            exact = silu(a.exact) * b.exact;
            original = silu(a.original) * b.original;
        }
        slow_add(&self->slow, (double)y[c], exact, original, allowed + round * fabs(exact) + 1e-30,
                 position + c);
    }
    free(x);
}

static void sample_outputs(struct product_self *self) {
    const struct dims dims = dims_of(&self->params, &self->config);
    const int64_t m = self->params.m, count = m < 3 ? m : 3;
    struct rows first = rows_open(self, dims.n, dims.k, STREAM_FIRST), up = {0}, down = {0};
    float *x = must_alloc(sizeof *x * (size_t)dims.k), *y = must_alloc(sizeof *y * (size_t)dims.n),
          *last = must_alloc(sizeof *last * (size_t)dims.k);
    if (dims.parts == 2) up = rows_open(self, dims.n, dims.k, STREAM_UP);
    if (dims.then_down) down = rows_open(self, dims.k, dims.n, STREAM_DOWN);
    slow_begin(&self->slow);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = spread_over(m, i, count);
        tensor_download(self->device, &self->x, row, x);
        tensor_download(self->device, dims.then_down ? &self->hidden : &self->y, row, y);
        sample_row(self, &first, dims.parts == 2 ? &up : NULL, x, y, dims.n, row * dims.n);
        if (!dims.then_down) continue;
        /* From the device's own hidden values: what lies between them was looked at above. */
        tensor_download(self->device, &self->y, row, last);
        sample_row(self, &down, NULL, y, last, dims.k, row * dims.k);
    }
    free(first.w);
    free(up.w);
    free(down.w);
    free(x);
    free(y);
    free(last);
}

int product_witness(void *s, struct witness *w, struct err *err) {
    struct product_self *self = s;
    const int64_t rows = self->params.m, cols = self->y.cols;
    float *fast = must_alloc(2 * sizeof *fast * (size_t)cols), *alone = fast + cols;
    int code = 0;
    plain_begin(w, self->device, "first and last row against each computed alone");
    for (int64_t row = 0; !code && row<rows; row += rows> 1 ? rows - 1 : 1) {
        tensor_download(self->device, &self->y, row, fast);
        code = row_alone(self, row, alone, err);
        if (!code) witness_row(w, fast, alone, cols, row * cols, plain_tolerance(&self->config));
    }
    free(fast);
    if (code || !slow_applies(self->device)) return code;
    sample_outputs(self);
    slow_judge(&self->slow, w);
    return 0;
}

void product_report(void *s, struct values *values) {
    struct product_self *self = s;
    const struct product_params *p = &self->params;
    const struct dims dims = dims_of(p, &self->config);
    const struct matrix_bytes one = copy_bytes(&self->config, dims);
    const double weights = (double)(dims.n * dims.k) * (dims.parts + dims.then_down);
    const struct block_cost cost = dims.then_down
                                       ? ledger_mlp(p->m, 1, dims.k, dims.n, 2, 2)
                                       : ledger_gemm(p->m, dims.k, dims.parts * dims.n, 2, 2);
    struct plan plan = {0};
    product_plan(p, &self->config, true, &plan);
    values_set(values, "weight_bits", 8 * (double)(one.payload + one.scales) / weights);
    values_set(values, "kernel_error", slow_kernel_error(&self->slow));
    values_set(values, "format_error", slow_format_error(&self->slow));
    values_set(values, "intensity", plan.work[0].flops / plan.work[0].items);
    values_set(values, "copies", self->n_copies);
    values_set(values, "formula_flops", cost.flops);
    values_set(values, "formula_bytes", ledger_bytes(cost));
    values_set(values, "formula_intensity", ledger_intensity(cost));
}

void product_dispose(void *s) {
    struct product_self *self = s;
    if (!self->device) return;
    for (int32_t i = 0; i < self->n_copies; i++) {
        self->device->kind->unpack(self->device, &self->first[i]);
        self->device->kind->unpack(self->device, &self->down[i]);
    }
    free(self->first);
    free(self->down);
    device_free(self->device, self->x.data);
    device_free(self->device, self->hidden.data);
    device_free(self->device, self->y.data);
}
