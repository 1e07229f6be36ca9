/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of training: every device that has them against ref, at odd sizes, between guards; the same
   bits with 1, 2 and 3 threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/lab.h"
#include "kernels/lab_train.h"
#include "kernels/ops.h"
#include "tests/support/op_rig.h"

enum { MOST_IN = 6, MOST_OUT = 4 };

struct lab_case {
    void (*call)(struct op_target *, const struct lab_case *, float **in, float **out);
    int64_t rows, cols, depth; /* as the op means them */
    int32_t n_q, n_kv, d_h, tokens, style, kind;
    bool flag;
    int32_t ids[64];
    int n_ids;
    int32_t *ids_there;
    int n_in, n_out;
    int64_t in_n[MOST_IN], out_n[MOST_OUT];
    float *in[MOST_IN];
    const float *first[MOST_OUT]; /* what an output held before; NULL: nothing */
    float rtol, atol;
};

static const struct lab_train *op_of(const struct op_target *t) { return t->device->lab->train; }

/* Values of the op's outputs, malloc'ed one behind the other. */
static float *run(struct op_rig *rig, struct op_target *target, struct lab_case *c) {
    float *in[MOST_IN], *out[MOST_OUT];
    int64_t total = 0, at = 0;
    for (int i = 0; i < c->n_in; i++)
        in[i] = op_buffer(target, (size_t)c->in_n[i] * sizeof(float), c->in[i]);
    if (c->n_ids) c->ids_there = op_buffer(target, (size_t)c->n_ids * sizeof *c->ids, c->ids);
    for (int i = 0; i < c->n_out; i++) {
        out[i] = op_inout(target, (size_t)c->out_n[i] * sizeof(float), c->first[i]);
        total += c->out_n[i];
    }
    c->call(target, c, in, out);
    float *values = must_alloc(sizeof *values * (size_t)total);
    for (int i = 0; i < c->n_out; at += c->out_n[i], i++)
        op_download(target, values + at, out[i], (size_t)c->out_n[i] * sizeof(float));
    op_release(rig, target);
    return values;
}

static void check(struct op_rig *rig, struct lab_case *c) {
    float *want = run(rig, &rig->ref, c), *first = NULL;
    int64_t total = 0;
    for (int i = 0; i < c->n_out; i++) total += c->out_n[i];
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!target->device->lab || !target->device->lab->train) continue;
        float *got = run(rig, target, c);
        op_compare(rig, target, "outputs", got, want, total, c->rtol, c->atol);
        if (first) op_equal(rig, target, "any threads", got, first, sizeof *got * (size_t)total);
        if (first)
            free(got);
        else
            first = got;
    }
    free(want);
    free(first);
    for (int i = 0; i < c->n_in; i++) free(c->in[i]);
    for (int i = 0; i < c->n_out; i++) free((void *)(uintptr_t)c->first[i]);
}

static void add_in(struct op_rig *rig, struct lab_case *c, int64_t n) {
    c->in_n[c->n_in] = n;
    c->in[c->n_in++] = op_reals(rig, n, 1);
}
static void add_out(struct op_rig *rig, struct lab_case *c, int64_t n, bool holds) {
    c->out_n[c->n_out] = n;
    c->first[c->n_out++] = holds ? op_reals(rig, n, 1) : NULL;
}

/* ---- products: x W^T, dy W, dy^T x */

static void call_product(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    const bool a_turned = c->kind == 2, b_turned = c->kind == 0;
    op_of(t)->product(t->device, &(struct lab_product){.c = out[0],
                                                       .a = in[0],
                                                       .b = in[1],
                                                       .start = c->flag       ? in[2]
                                                                : c->first[0] ? out[0]
                                                                              : NULL,
                                                       .bias = c->style ? in[c->n_in - 1] : NULL,
                                                       .rows = c->rows,
                                                       .cols = c->cols,
                                                       .depth = c->depth,
                                                       .a_row = a_turned ? 1 : c->depth,
                                                       .a_step = a_turned ? c->rows : 1,
                                                       .b_row = b_turned ? 1 : c->cols,
                                                       .b_step = b_turned ? c->depth : 1});
}

static void check_product(struct op_rig *rig) {
    static const int64_t sizes[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 50, 65, 100};
    for (int i = 0; i < 60; i++) {
        struct lab_case c = {.call = call_product,
                             .rows = OP_PICK(rig, sizes),
                             .cols = OP_PICK(rig, sizes),
                             .depth = i % 8 ? OP_PICK(rig, sizes) : 256 + op_int(rig, 0, 300),
                             .kind = i % 3,
                             .flag = op_int(rig, 0, 3) == 0,
                             .style = op_int(rig, 0, 1),
                             .rtol = 1e-5f};
        if (op_enough(rig)) continue;
        add_in(rig, &c, c.rows * c.depth);
        add_in(rig, &c, c.depth * c.cols);
        if (c.flag) add_in(rig, &c, c.rows * c.cols);
        if (c.style) add_in(rig, &c, c.cols);
        add_out(rig, &c, c.rows * c.cols, !c.flag && op_int(rig, 0, 1));
        c.atol = 1e-6f * (float)(16 + c.depth);
        op_case_name(rig, "product %d: %d x %d of depth %d", c.kind, (int)c.rows, (int)c.cols,
                     (int)c.depth);
        check(rig, &c);
    }
}

/* ---- norms */

static void call_norm(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->norm(t->device, &(struct lab_norm){.y = out[0],
                                                 .inverse = out[1],
                                                 .sum = c->flag ? out[2] : NULL,
                                                 .x = in[0],
                                                 .gain = in[1],
                                                 .delta = c->flag ? in[2] : NULL,
                                                 .rows = c->rows,
                                                 .cols = c->cols,
                                                 .eps = 1e-5f});
}

static void call_norm_back(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->norm_back(t->device, &(struct lab_norm_back){.dx = out[0],
                                                           .dgain = out[1],
                                                           .parts = out[2],
                                                           .dy = in[0],
                                                           .x = in[1],
                                                           .inverse = in[2],
                                                           .gain = in[3],
                                                           .start = c->flag       ? in[4]
                                                                    : c->first[0] ? out[0]
                                                                                  : NULL,
                                                           .rows = c->rows,
                                                           .cols = c->cols});
    /* What is left there is nobody's. */
    void *zeros = must_alloc(sizeof(float) * (size_t)c->out_n[2]);
    t->device->kind->upload(t->device, out[2], zeros, sizeof(float) * (size_t)c->out_n[2]);
    free(zeros);
}

static void check_norms(struct op_rig *rig) {
    static const int64_t rows[] = {1, 2, 3, 16, 17, 40, 200}, cols[] = {1, 2, 5, 16, 17, 64, 257};
    for (int i = 0; i < 40; i++) {
        struct lab_case c = {.call = i % 2 ? call_norm_back : call_norm,
                             .rows = OP_PICK(rig, rows),
                             .cols = OP_PICK(rig, cols),
                             .flag = op_int(rig, 0, 1),
                             .rtol = 2e-5f};
        const int64_t n = c.rows * c.cols;
        if (op_enough(rig)) continue;
        c.atol = i % 2 ? 1e-5f * (float)(4 + c.rows / 4) : 1e-6f;
        add_in(rig, &c, n);
        add_in(rig, &c, i % 2 ? n : c.cols);
        if (i % 2) add_in(rig, &c, c.rows);
        if (i % 2) add_in(rig, &c, c.cols);
        if (c.flag) add_in(rig, &c, n);
        add_out(rig, &c, n, i % 2 && !c.flag && op_int(rig, 0, 1));
        add_out(rig, &c, i % 2 ? c.cols : c.rows, false);
        if (i % 2 || c.flag) add_out(rig, &c, i % 2 ? LAB_PARTS * c.cols : n, false);
        op_case_name(rig, "norm%s %d x %d", i % 2 ? " back" : "", (int)c.rows, (int)c.cols);
        check(rig, &c);
    }
}

/* ---- rotation and attention */

static void call_rope(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    (void)in;
    op_of(t)->rope(t->device, &(struct lab_rope){.x = out[0],
                                                 .rows = c->rows,
                                                 .stride = (c->n_q + 2 * c->n_kv) * c->d_h,
                                                 .tokens = c->tokens,
                                                 .heads = c->n_q + c->n_kv,
                                                 .d_h = c->d_h,
                                                 .style = c->style,
                                                 .base = 10000,
                                                 .back = c->flag});
}

static void call_attend(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->attend(t->device, &(struct lab_attend){.o = out[0],
                                                     .p = out[1],
                                                     .qkv = in[0],
                                                     .sequences = c->rows / c->tokens,
                                                     .tokens = c->tokens,
                                                     .n_q = c->n_q,
                                                     .n_kv = c->n_kv,
                                                     .d_h = c->d_h,
                                                     .scale = 1 / sqrtf((float)c->d_h)});
}

/* o and p are what the forward pass makes of qkv on this device. */
static void call_attend_back(struct op_target *t, const struct lab_case *c, float **in,
                             float **out) {
    call_attend(t, c, in, out);
    op_of(t)->attend_back(t->device, &(struct lab_attend_back){.dqkv = out[2],
                                                               .d_o = in[1],
                                                               .o = out[0],
                                                               .p = out[1],
                                                               .qkv = in[0],
                                                               .sequences = c->rows / c->tokens,
                                                               .tokens = c->tokens,
                                                               .n_q = c->n_q,
                                                               .n_kv = c->n_kv,
                                                               .d_h = c->d_h,
                                                               .scale = 1 / sqrtf((float)c->d_h)});
}

static void check_attention(struct op_rig *rig) {
    static const int32_t groups[] = {1, 2, 3}, widths[] = {2, 4, 6, 16, 18, 40};
    static const int32_t tokens[] = {1, 2, 7, 16, 33};
    for (int i = 0; i < 36; i++) {
        struct lab_case c = {.call = i % 3 == 0   ? call_rope
                                     : i % 3 == 1 ? call_attend
                                                  : call_attend_back,
                             .n_kv = op_int(rig, 1, 3),
                             .d_h = OP_PICK(rig, widths),
                             .tokens = OP_PICK(rig, tokens),
                             .style = op_int(rig, 0, 1),
                             .flag = op_int(rig, 0, 1),
                             .rtol = 1e-5f,
                             .atol = i % 3 == 2 ? 1e-4f : 1e-5f};
        c.n_q = c.n_kv * OP_PICK(rig, groups);
        c.rows = c.tokens * op_int(rig, 1, 3);
        const int64_t qkv = c.rows * (c.n_q + 2 * c.n_kv) * c.d_h;
        if (op_enough(rig)) continue;
        if (i % 3 == 0) {
            add_out(rig, &c, qkv, true);
        } else {
            add_in(rig, &c, qkv);
            if (i % 3 == 2) add_in(rig, &c, c.rows * c.n_q * c.d_h);
            add_out(rig, &c, c.rows * c.n_q * c.d_h, false);
            add_out(rig, &c, c.rows * c.n_q * c.tokens, false);
            if (i % 3 == 2) add_out(rig, &c, qkv, false);
        }
        op_case_name(rig, "%s of %d rows, %d tokens, %d and %d heads of %d",
                     i % 3 ? "attention" : "rotation", (int)c.rows, (int)c.tokens, (int)c.n_q,
                     (int)c.n_kv, (int)c.d_h);
        check(rig, &c);
    }
}

/* ---- the rest */

static void call_swiglu(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->swiglu(t->device, out[0], in[0], c->rows, c->cols);
    op_of(t)->swiglu_back(t->device, out[1], in[1], in[0], c->rows, c->cols);
}
static void call_cross_entropy(struct op_target *t, const struct lab_case *c, float **in,
                               float **out) {
    (void)in;
    op_of(t)->cross_entropy(t->device, out[0], out[1], c->ids_there, c->rows, c->cols, 0.25f);
}
static void call_embed(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->embed(t->device, out[0], in[0], c->ids_there, c->rows, c->cols);
    op_of(t)->embed_back(t->device, out[1], in[1], c->ids_there, c->rows, c->cols);
}
static void call_adamw(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->adamw(t->device, &(struct lab_adamw){.w = out[0],
                                                   .m = out[1],
                                                   .v = out[2],
                                                   .g = in[0],
                                                   .n = c->rows,
                                                   .step = c->kind,
                                                   .rate = 0.01f,
                                                   .beta1 = 0.9f,
                                                   .beta2 = 0.99f,
                                                   .eps = 1e-3f,
                                                   .decay = 0.1f});
}

static void check_rest(struct op_rig *rig) {
    static const int64_t cols[] = {1, 3, 16, 17, 100, 1000};
    static const int64_t lengths[] = {1, 15, 16, 17, 4096, 4097, 20000};
    for (int i = 0; i < 40; i++) {
        struct lab_case c = {.rows = op_int(rig, 1, 64),
                             .cols = OP_PICK(rig, cols),
                             .kind = op_int(rig, 1, 9),
                             .rtol = 2e-5f,
                             .atol = 2e-6f};
        const int64_t n = c.rows * c.cols;
        if (op_enough(rig)) continue;
        if (i % 4 == 0) {
            c.call = call_swiglu;
            add_in(rig, &c, 2 * n);
            add_in(rig, &c, n);
            add_out(rig, &c, n, false);
            add_out(rig, &c, 2 * n, false);
        } else if (i % 4 == 1) {
            c.call = call_cross_entropy;
            c.n_ids = (int)c.rows;
            for (int r = 0; r < c.n_ids; r++) c.ids[r] = op_int(rig, 0, (int32_t)c.cols - 1);
            add_out(rig, &c, c.rows, false);
            add_out(rig, &c, n, true);
        } else if (i % 4 == 2) {
            const int32_t table = op_int(rig, 1, 40);
            c.call = call_embed;
            c.n_ids = (int)c.rows;
            for (int r = 0; r < c.n_ids; r++) c.ids[r] = op_int(rig, 0, table - 1);
            add_in(rig, &c, table * c.cols);
            add_in(rig, &c, n);
            add_out(rig, &c, n, false);
            add_out(rig, &c, table * c.cols, true);
        } else {
            c.call = call_adamw;
            c.atol = 1e-5f;
            c.rows = OP_PICK(rig, lengths);
            add_in(rig, &c, c.rows);
            for (int k = 0; k < 3; k++) add_out(rig, &c, c.rows, true);
            for (int64_t k = 0; k < c.rows; k++) { /* second moments are not negative */
                float *v = (float *)(uintptr_t)c.first[2];
                v[k] = fabsf(v[k]);
            }
        }
        op_case_name(rig, "%s of %d x %d",
                     (const char *[]){"swiglu", "cross entropy", "embedding", "adamw"}[i % 4],
                     (int)c.rows, (int)c.cols);
        check(rig, &c);
    }
}

static void call_map(struct op_target *t, const struct lab_case *c, float **in, float **out) {
    op_of(t)->map(t->device, (enum lab_map)c->kind, out[0], in[0], c->n_in > 1 ? in[1] : NULL,
                  c->rows, c->cols, 0.5f);
}

static void check_maps(struct op_rig *rig) {
    static const int64_t rows[] = {1, 2, 17, 100}, cols[] = {1, 3, 16, 17, 100, 1025};
    for (int i = 0; i < 4 * N_LAB_MAPS; i++) {
        struct lab_case c = {.call = call_map,
                             .rows = OP_PICK(rig, rows),
                             .cols = OP_PICK(rig, cols),
                             .kind = i % N_LAB_MAPS,
                             .rtol = 1e-5f,
                             .atol = 2e-5f};
        const enum lab_map map = (enum lab_map)c.kind;
        const int64_t n = c.rows * c.cols;
        const bool unary = map == MAP_SQUARE || map == MAP_SIGMOID || map == MAP_RSQRT ||
                           map == MAP_SPREAD || map >= MAP_ROW_MEAN;
        if (op_enough(rig)) continue;
        add_in(rig, &c, map == MAP_SPREAD ? c.rows : n);
        if (!unary)
            add_in(rig, &c, map == MAP_SCALE_ROWS ? c.rows : map == MAP_SCALE_COLS ? c.cols : n);
        for (int64_t k = 0; map == MAP_RSQRT && k < n; k++) c.in[0][k] = fabsf(c.in[0][k]);
        add_out(rig, &c, map == MAP_COL_SUM ? c.cols : map >= MAP_ROW_MEAN ? c.rows : n, false);
        op_case_name(rig, "map %d of %d x %d", c.kind, (int)c.rows, (int)c.cols);
        check(rig, &c);
    }
}

int main(void) {
    static const char *const threads[] = {"1", "2", "3", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    check_product(&rig);
    check_norms(&rig);
    check_attention(&rig);
    check_rest(&rig);
    check_maps(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
