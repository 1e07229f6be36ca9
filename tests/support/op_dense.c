/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of embed, linear, add_norm and gather_rows against ref: odd shapes, all formats, gaps
 * between rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tests/support/op_rig.h"

static const int32_t row_counts[] = {1, 2, 3, 5, 7, 8, 9, 17, 31, 33, 64, 65};
static const int32_t few_rows[] = {1, 4, 9, 16, 20, 33, 64};
static const int32_t widths[] = {1,  2,  3,  8,  15,  16,  17,  31,  32, 33,
                                 63, 64, 65, 96, 127, 128, 129, 192, 257};
static const int32_t groups[] = {1, 7, 16, 32, 64, 128};
static const enum dtype activations[] = {DT_F32, DT_F16, DT_BF16};

/* ---- weights ---- */

struct matrix { /* on the host */
    struct weight_spec spec;
    float *w;
};

static void matrix_row(void *ctx, int64_t r, float *out) {
    const struct matrix *m = ctx;
    memcpy(out, m->w + r * m->spec.cols, (size_t)m->spec.cols * sizeof *out);
}

/* Deviation 1/sqrt(cols), a few outliers, one row of zeros. */
static struct matrix matrix_make(struct op_rig *rig, const struct weight_format *format, int group,
                                 enum dtype input, int64_t rows, int64_t cols) {
    struct matrix m = {.spec = {"op test", rows, cols, format->type, format->scale,
                                format->scale == SCALE_GROUP ? group : 0, input}};
    m.w = op_reals(rig, rows * cols, 1 / sqrtf((float)cols));
    for (int i = 0; i < 3; i++) m.w[op_int(rig, 0, (int32_t)(rows * cols) - 1)] *= 8;
    if (rows > 2)
        memset(m.w + cols * op_int(rig, 0, (int32_t)rows - 1), 0, (size_t)cols * sizeof *m.w);
    return m;
}

/* ---- linear ---- */

struct linear {
    struct matrix parts[3]; /* stacked: q, k, v; gate and up; or one */
    int n_parts;
    enum epilogue epilogue;
    enum dtype activation, y_type, input;
    int32_t rows, out, in;
    int64_t x_stride, y_stride;
    float *x, *bias; /* bias may be NULL */
};

static float *linear_run(struct op_rig *rig, struct op_target *target, const struct linear *c) {
    struct weight_spec specs[3];
    struct row_source sources[3];
    for (int i = 0; i < c->n_parts; i++) {
        specs[i] = c->parts[i].spec;
        sources[i] = (struct row_source){.row = matrix_row, .ctx = (void *)&c->parts[i]};
    }
    struct device *device = target->device;
    struct weight *weight = op_pack(rig, target, specs, c->n_parts, sources);
    float *values = NULL;
    if (weight) {
        struct tensor x =
            op_tensor(target, c->activation, c->rows, c->in, c->x_stride, c->x, false);
        struct tensor y = op_tensor(target, c->y_type, c->rows, c->out, c->y_stride, NULL, true);
        float *bias = c->bias ? op_buffer(target, (size_t)c->out * 4, c->bias) : NULL;
        device->ops->linear(device, &y, &x, weight, bias, c->epilogue);
        values = op_values(rig, target, &y);
    }
    device->kind->unpack(device, &weight);
    op_release(rig, target);
    return values;
}

/* One to three matrices on top of each other, two of them of equal height; for SwiGLU gate and up,
   as two parts or as one of both. */
static void make_parts(struct op_rig *rig, struct linear *c, const struct weight_format *format,
                       int group) {
    const bool swiglu = c->epilogue == EPI_SWIGLU;
    int32_t left = swiglu ? 2 * c->out : c->out;
    c->n_parts = swiglu ? op_int(rig, 1, 2) : op_int(rig, 0, 2) == 0 && left >= 3 ? 3 : 1;
    if (!swiglu && left % 2 == 0 && op_int(rig, 0, 4) == 0) c->n_parts = 2;
    for (int i = 0; i < c->n_parts; i++) {
        int32_t rows = left;
        if (i + 1 < c->n_parts)
            rows = swiglu            ? c->out
                   : c->n_parts == 2 ? c->out / 2
                                     : op_int(rig, 1, left - (c->n_parts - 1 - i));
        c->parts[i] = matrix_make(rig, format, group, c->input, rows, c->in);
        left -= rows;
    }
}

/* Row r of all parts as a device computes with it. */
static void weight_row(const struct linear *c, int64_t r, const float *absmax, float *out) {
    int part = 0;
    while (r >= c->parts[part].spec.rows) r -= c->parts[part++].spec.rows;
    memcpy(out, c->parts[part].w + r * c->in, (size_t)c->in * sizeof *out);
    quant_roundtrip(&c->parts[part].spec, out, absmax[part]);
}

/* What a product may lose where a device multiplies quantized weights as bf16: each is off by at
   most 2^-9 of itself; weights of one code and scale are off alike, their products with x are not.
   So the deviation is at most 2^-9 of the root of the sum of squares: eight of them. */
static float lost(const float *x, const float *w, int32_t n, float *sum) {
    float squares = 0;
    *sum = 0;
    for (int32_t k = 0; k < n; k++) {
        *sum += x[k] * w[k];
        squares += x[k] * w[k] * (x[k] * w[k]);
    }
    return 0x1p-9f * 8 * sqrtf(squares);
}

/* NF4's levels are no bf16 numbers, and many rows are worth a product of bf16 only: differences
   that come of it become none. */
static void forgive_bf16_weights(const struct linear *c, float *got, const float *want,
                                 float rtol) {
    const enum dtype type = c->parts[0].spec.type;
    if (c->activation != DT_BF16 || (type != DT_NF4 && (type == DT_BF16 || c->rows <= 64))) return;
    float *gate = must_alloc((size_t)c->in * sizeof *gate);
    float *up = must_alloc((size_t)c->in * sizeof *up), absmax[3];
    for (int i = 0; i < c->n_parts; i++) {
        const struct row_source source = {.row = matrix_row,
                                          .ctx = (void *)(uintptr_t)&c->parts[i]};
        absmax[i] = quant_absmax(&c->parts[i].spec, &source);
    }
    for (int32_t n = 0; n < c->out; n++) {
        weight_row(c, n, absmax, gate);
        if (c->epilogue == EPI_SWIGLU) weight_row(c, n + c->out, absmax, up);
        for (int32_t m = 0; m < c->rows; m++) {
            const float *x = c->x + (int64_t)m * c->in;
            float v, u, slack = lost(x, gate, c->in, &v);
            if (c->epilogue == EPI_SWIGLU) { /* silu's slope is at most 1.1 */
                const float of_up = lost(x, up, c->in, &u);
                slack = 1.1f * slack * (fabsf(u) + of_up) + (fabsf(v) + slack) * of_up;
            }
            const int64_t i = (int64_t)m * c->out + n;
            if (fabsf(got[i] - want[i]) <= slack + rtol * fabsf(want[i])) got[i] = want[i];
        }
    }
    free(gate);
    free(up);
}

/* Products with codes for inputs: the same bits everywhere, and NaN in rows that had one. */
static void compare_codes(struct op_rig *rig, struct op_target *target, const struct linear *c,
                          float *got, const float *ref) {
    const int64_t n = (int64_t)c->rows * c->out;
    float *want = must_alloc((size_t)n * sizeof *want);
    memcpy(want, ref, (size_t)n * sizeof *want);
    for (int64_t i = 0; i < n; i++) {
        bool odd = false;
        for (int32_t k = 0; k < c->in; k++) odd = odd || !isfinite(c->x[i / c->out * c->in + k]);
        if (odd != (isnan(got[i]) != 0) || odd != (isnan(want[i]) != 0))
            op_fail(rig, target, "row %d %s NaN, y is %g, ref %g", (int)(i / c->out),
                    odd ? "has" : "has no", (double)got[i], (double)want[i]);
        if (odd) got[i] = want[i] = 1; /* whatever NaN */
    }
    if (c->epilogue == EPI_NONE)
        op_equal(rig, target, "y", got, want, (size_t)n * sizeof *got);
    else
        op_compare(rig, target, "y", got, want, n, 2e-5f, 1e-6f);
    free(want);
}

/* A NaN or an infinity somewhere, a row of zeros, one of the smallest numbers. */
static void spoil_rows(struct op_rig *rig, const struct linear *c) {
    const int32_t r = op_int(rig, 0, c->rows - 1);
    float *row = c->x + (int64_t)r * c->in;
    const int kind = op_int(rig, 0, 4);
    if (kind == 0) row[op_int(rig, 0, c->in - 1)] = NAN;
    if (kind == 1) row[op_int(rig, 0, c->in - 1)] = op_int(rig, 0, 1) ? INFINITY : -INFINITY;
    for (int32_t k = 0; kind == 2 && k < c->in; k++) row[k] = 0;
    for (int32_t k = 0; kind == 3 && k < c->in; k++) row[k] *= 0x1p-141f;
    if (c->in < QUANT_INPUT_COLS) return;
    /* The largest sums that there are: all codes at the ends of their range. */
    for (int64_t i = 0; i < (int64_t)c->rows * c->in; i++) c->x[i] = i < c->in ? 1 : -1;
    for (int p = 0; p < c->n_parts; p++)
        for (int64_t i = 0; i < c->parts[p].spec.rows * c->in; i++) c->parts[p].w[i] = 1;
}

/* group 0: any, and rows that begin anywhere. */
static void linear_with(struct op_rig *rig, const struct weight_format *format,
                        enum dtype activation, enum dtype input, bool swiglu, int32_t rows,
                        int32_t out, int32_t in, int32_t group) {
    if (op_enough(rig)) return;
    struct linear c = {.epilogue = swiglu ? EPI_SWIGLU : EPI_NONE,
                       .activation = activation,
                       .input = input,
                       .y_type = op_int(rig, 0, 4) ? activation : DT_F32, /* logits are f32 */
                       .rows = rows,
                       .out = out,
                       .in = in};
    make_parts(rig, &c, format, group ? group : OP_PICK(rig, groups));
    c.x = op_reals(rig, (int64_t)rows * in, 1);
    if (input == DT_I8) spoil_rows(rig, &c);
    if (!swiglu && op_int(rig, 0, 1)) c.bias = op_reals(rig, out, 1);
    c.x_stride = in + (group ? 0 : OP_PICK(rig, ((const int32_t[]){0, 0, 3, 16})));
    c.y_stride = out + (group ? 0 : OP_PICK(rig, ((const int32_t[]){0, 0, 5, 16})));
    op_case_name(rig, "linear %s group %d, %s%s, %s of %d parts%s, M %d N %d K %d", format->name,
                 c.parts[0].spec.group, dtype_names[activation], input == DT_I8 ? " by codes" : "",
                 swiglu ? "swiglu" : "plain", c.n_parts, c.bias ? " + bias" : "", rows, out, in);
    const struct op_case ask = {.weight = format->type,
                                .scale = format->scale,
                                .group = c.parts[0].spec.group,
                                .input = input,
                                .activation = activation,
                                .epilogue = c.epilogue};
    float *want =
        op_supported(rig, &rig->ref, OP_LINEAR, &ask) ? linear_run(rig, &rig->ref, &c) : NULL;
    if (!want) op_fail(rig, &rig->ref, "ref must do every format");
    for (int t = 0; want && t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_LINEAR, &ask)) continue;
        float *got = linear_run(rig, target, &c);
        /* The sum's order: a few 1e-6 of outputs near 1; then one rounding may fall the other way.
         */
        float rtol = 2e-5f + (c.y_type == DT_F32 ? 0 : op_ulp(c.y_type));
        if (got && input == DT_I8) compare_codes(rig, target, &c, got, want);
        if (got) forgive_bf16_weights(&c, got, want, rtol);
        if (got && input == DT_F32)
            op_compare(rig, target, "y", got, want, (int64_t)rows * out, rtol, 3e-5f);
        free(got);
    }
    free(want);
    free(c.x);
    free(c.bias);
    for (int i = 0; i < c.n_parts; i++) free(c.parts[i].w);
}

static void linear_of(struct op_rig *rig, const struct weight_format *format, enum dtype activation,
                      bool swiglu, int32_t rows, int32_t out, int32_t in, int32_t group) {
    linear_with(rig, format, activation, DT_F32, swiglu, rows, out, in, group);
}

static void linear_case(struct op_rig *rig, const struct weight_format *format,
                        enum dtype activation, bool swiglu, int32_t rows, int32_t out, int32_t in) {
    linear_of(rig, format, activation, swiglu, rows, out, in, 0);
}

/* Inputs of int8: every format of codes that takes them. */
void op_check_linear_codes(struct op_rig *rig) {
    op_plan_dense(rig);
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        if (f->type != DT_I8 && f->type != DT_I4) continue;
        for (int swiglu = 0; swiglu < 2; swiglu++) {
            for (size_t m = 0; m < sizeof row_counts / sizeof *row_counts; m++)
                for (int i = 0; i < 3; i++)
                    linear_with(rig, f, DT_F32, DT_I8, swiglu, row_counts[m], OP_PICK(rig, widths),
                                OP_PICK(rig, widths), 0);
            for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
                linear_with(rig, f, DT_F32, DT_I8, swiglu, 5, 100, 333, groups[g]);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, 1, 896, 896, 128);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, 9, 33, op_int(rig, 4090, 5600), 0);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, 6, 20, 9000, 4100);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, 2, 17, 1 << 17, 0);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, op_int(rig, 289, 700), 18, 65, 0);
            linear_with(rig, f, DT_F32, DT_I8, swiglu, 130, 136 + op_int(rig, 0, 1), 192, 0);
        }
    }
}

void op_check_linear(struct op_rig *rig) {
    op_plan_dense(rig);
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        for (size_t a = 0; a < sizeof activations / sizeof *activations; a++) {
            if (rig->quiet && activations[a] != DT_F32) continue; /* the wrong habits are in f32 */
            bool main_path = activations[a] == DT_F32 && f->scale == SCALE_NONE;
            for (int swiglu = 0; swiglu < 2; swiglu++) {
                for (size_t m = 0; m < sizeof row_counts / sizeof *row_counts; m++)
                    for (int i = 0; i < (main_path ? 6 : 1); i++)
                        linear_case(rig, f, activations[a], swiglu, row_counts[m],
                                    OP_PICK(rig, widths), OP_PICK(rig, widths));
                /* Every number of tiles of 8 rows, aligned, with a group that all devices know. */
                for (int32_t m = 8; m <= 64; m *= 2)
                    linear_of(rig, f, activations[a], swiglu, m, 48, 128, 128);
                linear_case(rig, f, activations[a], swiglu, 1, 896,
                            896); /* several blocks of any tiling */
                linear_case(rig, f, activations[a], swiglu, 9, 129, 896);
                linear_case(rig, f, activations[a], swiglu, 3, 1153, 64);
                linear_case(rig, f, activations[a], swiglu, 5, 33, op_int(rig, 1000, 2100));
                for (int i = 0; i < (f->scale == SCALE_GROUP ? 3 : 1); i++) /* loops that wrap */
                    linear_case(rig, f, activations[a], swiglu, OP_PICK(rig, few_rows), 17,
                                op_int(rig, 4200, 5600));
                linear_case(rig, f, activations[a], swiglu, op_int(rig, 140, 300), 18, 65);
                linear_case(rig, f, activations[a], swiglu, 130, 136 + op_int(rig, 0, 1), 192);
            }
        }
    }
    /* Workspace for less than comes: what is made there is made in pieces. */
    const struct step_bounds few = {.n_seq = 1,
                                    .n_row = 65,
                                    .n_out = 1,
                                    .most_q = 65,
                                    .most_kv = 65,
                                    .n_q = 1,
                                    .n_kv = 1,
                                    .d_h = 64,
                                    .d_model = 65,
                                    .d_ff = 64,
                                    .vocab = 64,
                                    .activation = DT_BF16};
    for (int t = 0; t < rig->n_targets; t++) op_plan(rig, &rig->targets[t], &few);
    for (const struct weight_format *f = weight_formats; f->name; f++)
        for (int swiglu = 0; swiglu < 2; swiglu++)
            linear_case(rig, f, f->type == DT_F32 || f->type == DT_F16 ? f->type : DT_BF16, swiglu,
                        150, 140, 96);
    op_plan_dense(rig);
}

/* ---- embed ---- */

static float *embed_run(struct op_rig *rig, struct op_target *target, const struct matrix *table,
                        enum dtype activation, const struct op_step *step, int64_t stride) {
    struct row_source source = {.row = matrix_row, .ctx = (void *)table};
    struct device *device = target->device;
    struct weight *weight = op_pack(rig, target, &table->spec, 1, &source);
    float *values = NULL;
    if (weight) {
        struct step on = op_step_on(target, step);
        struct tensor x =
            op_tensor(target, activation, on.n_row, (int32_t)table->spec.cols, stride, NULL, true);
        device->ops->embed(device, &x, weight, &on);
        values = op_values(rig, target, &x);
    }
    device->kind->unpack(device, &weight);
    op_release(rig, target);
    return values;
}

static void embed_case(struct op_rig *rig, const struct weight_format *format,
                       enum dtype activation, enum dtype input) {
    if (op_enough(rig)) return;
    int32_t d = OP_PICK(rig, widths), vocab = op_int(rig, 1, 70);
    int32_t before[3] = {0, 4, 9}, rows[3] = {op_int(rig, 1, 9), 1, 1};
    struct matrix table = matrix_make(rig, format, OP_PICK(rig, groups), input, vocab, d);
    struct op_step step;
    op_step_make(rig, &step, op_int(rig, 1, 3), before, rows, vocab);
    op_case_name(rig, "embed %s group %d, %s%s, d %d, %d rows", format->name, table.spec.group,
                 dtype_names[activation], input == DT_I8 ? " for codes" : "", d, step.host.n_row);
    const struct op_case ask = {.weight = format->type,
                                .scale = format->scale,
                                .group = table.spec.group,
                                .input = input,
                                .activation = activation};
    int64_t stride = d + OP_PICK(rig, ((const int32_t[]){0, 0, 7}));
    op_supported(rig, &rig->ref, OP_EMBED, &ask);
    float *want = embed_run(rig, &rig->ref, &table, activation, &step, stride);
    for (int t = 0; want && t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_EMBED, &ask)) continue;
        float *got = embed_run(rig, target, &table, activation, &step, stride);
        if (got)
            op_equal(rig, target, "x", got, want,
                     (size_t)step.host.n_row * (size_t)d * sizeof *got);
        free(got);
    }
    free(want);
    free(table.w);
}

void op_check_embed(struct op_rig *rig) {
    for (const struct weight_format *f = weight_formats; f->name; f++)
        for (size_t a = 0; a < sizeof activations / sizeof *activations; a++)
            for (int i = 0; i < 6; i++) embed_case(rig, f, activations[a], DT_F32);
    for (const struct weight_format *f = weight_formats; f->name; f++)
        for (int i = 0; (f->type == DT_I8 || f->type == DT_I4) && i < 12; i++)
            embed_case(rig, f, DT_F32, DT_I8);
}

/* ---- add_norm ---- */

struct add_norm {
    enum dtype y_type, delta_type;
    int32_t rows, d;
    bool has_y, has_delta;
    int64_t y_stride, residual_stride, delta_stride;
    float *residual, *delta, *gain, eps;
};

/* y's values, then the residual's. */
static float *add_norm_run(struct op_rig *rig, struct op_target *target, const struct add_norm *c) {
    struct device *device = target->device;
    int64_t n = (int64_t)c->rows * c->d;
    struct tensor residual =
        op_tensor(target, DT_F32, c->rows, c->d, c->residual_stride, c->residual, true);
    struct tensor delta =
        op_tensor(target, c->delta_type, c->rows, c->d, c->delta_stride, c->delta, false);
    struct tensor y = op_tensor(target, c->y_type, c->rows, c->d, c->y_stride, NULL, true);
    float *gain = c->has_y ? op_buffer(target, (size_t)c->d * 4, c->gain) : NULL; /* adds only */
    device->ops->add_norm(device, c->has_y ? &y : NULL, &residual, c->has_delta ? &delta : NULL,
                          gain, c->eps);
    float *both = must_alloc((size_t)n * 8), *part = op_values(rig, target, &residual);
    memcpy(both + n, part, (size_t)n * 4);
    free(part);
    part = op_values(rig, target, &y);
    if (c->has_y) memcpy(both, part, (size_t)n * 4);
    free(part);
    op_release(rig, target);
    return both;
}

/* even: rows begin at whole vectors, else anywhere. */
static void add_norm_case(struct op_rig *rig, enum dtype activation, int32_t rows, int32_t d,
                          bool even) {
    if (op_enough(rig)) return;
    struct add_norm c = {.y_type = activation, .delta_type = activation, .rows = rows, .d = d};
    c.has_y = op_int(rig, 0, 5) > 0;
    c.has_delta = !c.has_y || op_int(rig, 0, 3) > 0;
    c.y_stride = d + (even ? 8 : 3) * op_int(rig, 0, 1);
    c.residual_stride = d + (even ? 8 : 1) * op_int(rig, 0, 1);
    c.delta_stride = d + (even ? 8 : 5) * op_int(rig, 0, 1);
    c.residual = op_reals(rig, (int64_t)rows * d, OP_PICK(rig, ((const float[]){1e-3f, 1, 300})));
    c.delta = op_reals(rig, (int64_t)rows * d, 1);
    c.gain = op_reals(rig, d, 1);
    c.eps = OP_PICK(rig, ((const float[]){1e-6f, 1e-5f}));
    op_case_name(rig, "add_norm %s%s%s, %d rows of %d", dtype_names[activation],
                 c.has_y ? "" : " no y", c.has_delta ? "" : " no delta", rows, d);
    const struct op_case ask = {.activation = activation};
    int64_t n = (int64_t)rows * d;
    op_supported(rig, &rig->ref, OP_ADD_NORM, &ask);
    float *want = add_norm_run(rig, &rig->ref, &c);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_ADD_NORM, &ask)) continue;
        float *got = add_norm_run(rig, target, &c);
        float rtol = 1e-5f + (activation == DT_F32 ? 0 : op_ulp(activation));
        op_compare(rig, target, "y", got, want, c.has_y ? n : 0, rtol, 1e-7f);
        op_equal(rig, target, "residual", got + n, want + n, (size_t)n * 4);
        free(got);
    }
    free(want);
    free(c.residual);
    free(c.delta);
    free(c.gain);
}

void op_check_add_norm(struct op_rig *rig) {
    static const int32_t wide[] = {896, 1024, 2048, 2056, 4096, 5120, 8192, 8200};
    for (size_t a = 0; a < sizeof activations / sizeof *activations; a++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int i = 0; i < 4; i++)
                add_norm_case(rig, activations[a], OP_PICK(rig, row_counts), widths[w], i % 2);
        add_norm_case(rig, activations[a], 3, 4865, false);
        for (size_t w = 0; w < sizeof wide / sizeof *wide; w++)
            add_norm_case(rig, activations[a], op_int(rig, 1, 3), wide[w], true);
    }
}

/* ---- gather_rows ---- */

static float *gather_run(struct op_rig *rig, struct op_target *target, enum dtype type, int32_t d,
                         int32_t gap, const float *x, const struct op_step *step) {
    struct device *device = target->device;
    struct step on = op_step_on(target, step);
    struct tensor from = op_tensor(target, type, on.n_row, d, d + 3 * gap, x, false);
    struct tensor y = op_tensor(target, type, on.n_out, d, d + gap, NULL, true);
    device->ops->gather_rows(device, &y, &from, &on);
    float *values = op_values(rig, target, &y);
    op_release(rig, target);
    return values;
}

void op_check_gather(struct op_rig *rig) {
    for (int i = 0; i < 60; i++) {
        enum dtype type = activations[i % 3];
        int32_t d = OP_PICK(rig, widths), n_seq = op_int(rig, 1, 9), before[9], rows[9];
        int32_t gap = OP_PICK(rig, ((const int32_t[]){0, 1, 8}));
        for (int32_t s = 0; s < n_seq; s++) {
            before[s] = op_int(rig, 0, 20);
            rows[s] = OP_PICK(rig, ((const int32_t[]){1, 1, 4, 13}));
        }
        struct op_step step;
        op_step_make(rig, &step, n_seq, before, rows, 10);
        step.host.n_out = op_int(rig, 1, n_seq); /* any rows, in any order, also twice */
        for (int32_t o = 0; o < step.host.n_out; o++)
            step.host.out_row[o] = op_int(rig, 0, step.host.n_row - 1);
        float *x = op_reals(rig, (int64_t)step.host.n_row * d, 1);
        op_case_name(rig, "gather_rows %s, %d of %d rows of %d", dtype_names[type], step.host.n_out,
                     step.host.n_row, d);
        const struct op_case ask = {.activation = type};
        op_supported(rig, &rig->ref, OP_GATHER_ROWS, &ask);
        float *want = gather_run(rig, &rig->ref, type, d, gap, x, &step);
        for (int t = 0; t < rig->n_targets; t++) {
            struct op_target *target = &rig->targets[t];
            if (!op_supported(rig, target, OP_GATHER_ROWS, &ask)) continue;
            float *got = gather_run(rig, target, type, d, gap, x, &step);
            op_equal(rig, target, "y", got, want,
                     (size_t)step.host.n_out * (size_t)d * sizeof *got);
            free(got);
        }
        free(want);
        free(x);
    }
}
