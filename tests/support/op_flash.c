/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of attention forward and backward, naive and by tiles: every level against ref, tiles of
   any size, the same bits from any number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "kernels/lab.h"
#include "kernels/lab_flash.h"
#include "tests/support/op_rig.h"

enum { OUTPUTS = 4 }; /* O, dQ, dK, dV */
static const char *const output_names[OUTPUTS] = {"O", "dQ", "dK", "dV"};

struct flash_case {
    struct lab_attention a; /* sizes */
    int64_t gap;            /* of all strides */
    float *q, *k, *v, *d_o; /* (rows, heads d_h) */
    double most_score;
};

struct flash_results {
    float *out[OUTPUTS];
    float *lse;
    int64_t n[OUTPUTS], n_lse;
};

static void results_free(struct flash_results *r) {
    for (int i = 0; i < OUTPUTS; i++) free(r->out[i]);
    free(r->lse);
}

/* Forward and backward of one of the two ways on a target. */
static void flash_run(struct op_rig *rig, struct op_target *target, const struct flash_case *c,
                      bool naive, struct flash_results *r) {
    struct device *device = target->device;
    const struct lab_flash *lab = device->lab->flash;
    struct lab_attention a = c->a;
    const int32_t queries = a.n_seq * a.queries, keys = a.n_seq * a.keys, cols = a.heads * a.d_h;
    const int64_t stride = cols + c->gap, rows = (int64_t)a.heads * queries;
    const size_t matrix = sizeof(float) * (size_t)rows * (size_t)a.keys;
    const struct tensor q = op_tensor(target, DT_F32, queries, cols, stride, c->q, false),
                        k = op_tensor(target, DT_F32, keys, cols, stride, c->k, false),
                        v = op_tensor(target, DT_F32, keys, cols, stride, c->v, false),
                        d_o = op_tensor(target, DT_F32, queries, cols, stride, c->d_o, false);
    struct tensor o = op_tensor(target, DT_F32, queries, cols, stride, NULL, false),
                  dq = op_tensor(target, DT_F32, queries, cols, stride, NULL, false),
                  dk = op_tensor(target, DT_F32, keys, cols, stride, NULL, false),
                  dv = op_tensor(target, DT_F32, keys, cols, stride, NULL, false);
    a.q = &q, a.k = &k, a.v = &v, a.d_o = &d_o;
    a.o = &o, a.dq = &dq, a.dk = &dk, a.dv = &dv;
    if (naive) a.p = op_buffer(target, matrix, NULL);
    if (naive) a.ds = op_buffer(target, matrix, NULL);
    if (!naive) a.lse = op_buffer(target, sizeof(float) * (size_t)rows, NULL);
    if (!naive) a.d = op_buffer(target, sizeof(float) * (size_t)rows, NULL);
    a.room = op_buffer(target, (size_t)lab->room_bytes(device, &a), NULL);
    (naive ? lab->naive_forward : lab->tiled_forward)(device, &a);
    (naive ? lab->naive_backward : lab->tiled_backward)(device, &a);
    const struct tensor *outputs[OUTPUTS] = {&o, &dq, &dk, &dv};
    for (int i = 0; i < OUTPUTS; i++) {
        r->out[i] = op_values(rig, target, outputs[i]);
        r->n[i] = (int64_t)outputs[i]->rows * cols;
    }
    r->n_lse = naive ? 0 : rows;
    r->lse = must_alloc(sizeof(float) * (size_t)rows);
    if (!naive) op_download(target, r->lse, a.lse, sizeof(float) * (size_t)rows);
    op_release(rig, target);
}

static double largest(const float *v, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)v[i]));
    return most;
}

static void flash_compare(struct op_rig *rig, struct op_target *target, const struct flash_case *c,
                          const char *way, const struct flash_results *got,
                          const struct flash_results *want) {
    const double tolerance = lab_flash_tolerance(&c->a, c->most_score);
    const double q = largest(c->q, got->n[1]), k = largest(c->k, got->n[2]),
                 v = largest(c->v, got->n[2]), d_o = largest(c->d_o, got->n[1]);
    const double terms[OUTPUTS] = {v, d_o * v * k, d_o * v * q, d_o};
    char what[40];
    for (int i = 0; i < OUTPUTS; i++) {
        const double term = terms[i] / c->a.keys;
        snprintf(what, sizeof what, "%s %s", way, output_names[i]);
        op_compare(rig, target, what, got->out[i], want->out[i], got->n[i], 0,
                   (float)(tolerance * fmax(largest(want->out[i], want->n[i]), term)));
    }
    for (int64_t i = 0; i < got->n_lse && i < want->n_lse; i++)
        if (isinf(want->lse[i]) && f32_bits(got->lse[i]) != f32_bits(want->lse[i]))
            op_fail(rig, target, "%s L[%lld] is %g", way, (long long)i, (double)got->lse[i]);
}

/* cpu of one level: the same bits as with another number of threads. */
static bool same_level(const struct op_target *a, const struct op_target *b) {
    const char *end = strstr(a->name, " threads=");
    return end && !strncmp(a->name, b->name, (size_t)(end - a->name) + 9);
}

static void flash_targets(struct op_rig *rig, const struct flash_case *c) {
    struct flash_results plain, tiled, naive_of[OP_TARGETS] = {0}, tiled_of[OP_TARGETS] = {0};
    flash_run(rig, &rig->ref, c, true, &plain);
    flash_run(rig, &rig->ref, c, false, &tiled);
    flash_compare(rig, &rig->ref, c, "tiled", &tiled, &plain);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!target->device->lab) continue;
        flash_run(rig, target, c, true, &naive_of[t]);
        flash_run(rig, target, c, false, &tiled_of[t]);
        flash_compare(rig, target, c, "naive", &naive_of[t], &plain);
        flash_compare(rig, target, c, "tiled", &tiled_of[t], &tiled);
        flash_compare(rig, target, c, "tiled, of naive,", &tiled_of[t], &naive_of[t]);
        for (int u = 0; u < t; u++)
            for (int i = 0; i < OUTPUTS && same_level(&rig->targets[u], target); i++) {
                const size_t bytes = sizeof(float) * (size_t)plain.n[i];
                op_equal(rig, target, "naive with other threads", naive_of[t].out[i],
                         naive_of[u].out[i], bytes);
                op_equal(rig, target, "tiled with other threads", tiled_of[t].out[i],
                         tiled_of[u].out[i], bytes);
            }
    }
    for (int t = 0; t < rig->n_targets; t++) {
        results_free(&naive_of[t]);
        results_free(&tiled_of[t]);
    }
    results_free(&plain);
    results_free(&tiled);
}

/* size: of queries, which makes that of scores. */
static void flash_case(struct op_rig *rig, struct lab_attention a, float size) {
    if (op_enough(rig)) return;
    struct flash_case c = {.a = a, .gap = op_int(rig, 0, 3)};
    const int64_t queries = (int64_t)a.n_seq * a.queries * a.heads * a.d_h,
                  keys = (int64_t)a.n_seq * a.keys * a.heads * a.d_h;
    c.a.scale = 1 / sqrtf((float)a.d_h);
    c.q = op_reals(rig, queries, size);
    c.k = op_reals(rig, keys, 1);
    c.v = op_reals(rig, keys, 1);
    c.d_o = op_reals(rig, queries, 1);
    /* Of a device that rounds each term a score errs by no more than its terms' sum does. */
    c.most_score = 3.5 * (double)size * 3.5 * sqrt(a.d_h);
    op_case_name(rig, "flash %d x %d queries, %d keys, %d heads of %d, tiles %d x %d%s, size %g",
                 (int)a.n_seq, (int)a.queries, (int)a.keys, (int)a.heads, (int)a.d_h, (int)a.rows,
                 (int)a.columns, a.causal ? ", causal" : "", (double)size);
    flash_targets(rig, &c);
    free(c.q);
    free(c.k);
    free(c.v);
    free(c.d_o);
}

void op_check_flash(struct op_rig *rig) {
    static const int32_t sizes[] = {1, 2, 3, 5, 15, 16, 17, 31, 33, 48, 65, 80},
                         tiles[] = {1, 2, 3, 7, 13, 16, 17, 32, 40, 64, 100, 1000000},
                         widths[] = {1, 2, 3, 7, 16, 17, 32, 40, 64};
    for (int i = 0; i < 60; i++) {
        const int32_t keys = OP_PICK(rig, sizes);
        flash_case(rig,
                   (struct lab_attention){.n_seq = op_int(rig, 1, 2),
                                          .queries = i % 3 ? keys : OP_PICK(rig, sizes),
                                          .keys = keys,
                                          .heads = op_int(rig, 1, 3),
                                          .d_h = OP_PICK(rig, widths),
                                          .causal = i % 2,
                                          .rows = OP_PICK(rig, tiles),
                                          .columns = OP_PICK(rig, tiles)},
                   i % 5 ? 1.0f : 0.01f);
    }
    /* Scores of +-1e4: probabilities of 0 and 1. */
    for (int i = 0; i < 6; i++)
        flash_case(rig,
                   (struct lab_attention){.n_seq = 1,
                                          .queries = 33,
                                          .keys = 33,
                                          .heads = 1,
                                          .d_h = 16,
                                          .causal = i % 2,
                                          .rows = OP_PICK(rig, tiles),
                                          .columns = OP_PICK(rig, tiles)},
                   i < 3 ? 100.0f : 3000.0f);
    /* One that spans several tiles of each kind and more than a panel's rows. */
    flash_case(rig,
               (struct lab_attention){.n_seq = 1,
                                      .queries = 200,
                                      .keys = 200,
                                      .heads = 1,
                                      .d_h = 64,
                                      .causal = true,
                                      .rows = 64,
                                      .columns = 64},
               1.0f);
}

/* ---- rows that see nothing or no number ---- */

static void expect_row(struct op_rig *rig, struct op_target *target, const char *what,
                       const float *row, int32_t n, float value) {
    for (int32_t i = 0; i < n; i++) {
        const bool same = isnan(value) ? isnan(row[i]) : f32_bits(row[i]) == f32_bits(value);
        if (!same) op_fail(rig, target, "%s: %g at %d", what, (double)row[i], (int)i);
    }
}

/* All scores of row 0 are `score`: O of it must be `o` and L `l`; the other rows stay numbers. */
static void odd_scores(struct op_rig *rig, struct op_target *target, float q0, float k0, float o,
                       float l) {
    struct flash_case c = {.a = {.n_seq = 1,
                                 .queries = 3,
                                 .keys = 20,
                                 .heads = 1,
                                 .d_h = 1,
                                 .scale = 1,
                                 .rows = 2,
                                 .columns = 8}};
    c.q = op_reals(rig, 3, 0);
    c.k = op_reals(rig, 20, 0);
    c.v = op_reals(rig, 20, 1);
    c.d_o = op_reals(rig, 3, 1);
    c.q[0] = q0;
    for (int i = 0; i < 20; i++) c.k[i] = k0;
    for (int naive = 0; naive < 2; naive++) {
        struct flash_results r;
        flash_run(rig, target, &c, naive, &r);
        expect_row(rig, target, "O of the odd row", r.out[0], 1, o);
        if (!naive) expect_row(rig, target, "L of the odd row", r.lse, 1, l);
        for (int i = 1; i < 3; i++)
            if (!isfinite(r.out[0][i])) op_fail(rig, target, "row %d is no number", i);
        results_free(&r);
    }
    free(c.q);
    free(c.k);
    free(c.v);
    free(c.d_o);
}

/* Fewer keys than queries: with a causal mask the first rows see none. */
static void blind_rows(struct op_rig *rig, struct op_target *target) {
    struct flash_case c = {.a = {.n_seq = 1,
                                 .queries = 21,
                                 .keys = 4,
                                 .heads = 1,
                                 .d_h = 3,
                                 .scale = 1,
                                 .rows = 5,
                                 .columns = 3,
                                 .causal = true}};
    c.q = op_reals(rig, 63, 1);
    c.k = op_reals(rig, 12, 1);
    c.v = op_reals(rig, 12, 1);
    c.d_o = op_reals(rig, 63, 1);
    for (int naive = 0; naive < 2; naive++) {
        struct flash_results r;
        flash_run(rig, target, &c, naive, &r);
        expect_row(rig, target, "O of rows that see nothing", r.out[0], 17 * 3, 0.0f);
        expect_row(rig, target, "dQ of rows that see nothing", r.out[1], 17 * 3, 0.0f);
        if (!naive) expect_row(rig, target, "L of rows that see nothing", r.lse, 17, -INFINITY);
        for (int i = 0; i < 12; i++)
            if (!isfinite(r.out[2][i]) || !isfinite(r.out[3][i]))
                op_fail(rig, target, "a gradient of keys is no number");
        results_free(&r);
    }
    free(c.q);
    free(c.k);
    free(c.v);
    free(c.d_o);
}

void op_check_flash_edges(struct op_rig *rig) {
    for (int t = -1; t < rig->n_targets; t++) {
        struct op_target *target = t < 0 ? &rig->ref : &rig->targets[t];
        if (!target->device->lab) continue;
        op_case_name(rig, "flash, odd rows");
        odd_scores(rig, target, -INFINITY, 1, 0, -INFINITY);
        odd_scores(rig, target, INFINITY, 1, NAN, NAN);
        odd_scores(rig, target, NAN, 1, NAN, NAN);
        blind_rows(rig, target);
    }
}
