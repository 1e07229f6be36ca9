/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with its matrices in memory, one pass over them after the other, as formulas are
   written down: scores, softmax, values; backward dP, dS, then the three gradients. A causal mask
   is laid over the whole matrix. The products are those of the ops by tiles. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/lab_flash.h"

struct pass {
    const struct flash *f;
    float *matrix;  /* (pairs, queries, keys) */
    const float *p; /* of the pass over rows that makes dS */
    const struct tensor *left, *right;
    struct tensor *out;
    float by;
};

/* Row i of a pair's matrix. */
static float *line_of(const struct pass *pass, float *matrix, int64_t pair, int64_t i) {
    const struct lab_attention *a = pass->f->a;
    return matrix + (pair * a->queries + i) * a->keys;
}

/* matrix = by left right^T, by tiles of queries. */
static void matrix_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct pass *pass = ctx;
    const struct flash *f = pass->f;
    const struct lab_attention *a = f->a;
    const struct flash_room room = flash_room(f, thread);
    const int32_t apart = f->line + PANEL;
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / f->n_rows;
        const int32_t i = (int32_t)(item % f->n_rows) * f->rows,
                      m = flash_least(f->rows, a->queries - i);
        flash_load(f, room.q, flash_at(f, pass->left, pair, a->queries, i), pass->left->stride, m,
                   pass->by);
        for (int32_t j = 0; j < a->keys; j += f->columns) {
            const int32_t n = flash_least(f->columns, a->keys - j);
            const bool whole = n % PANEL == 0; /* else a panel would reach into the next row */
            float *to = line_of(pass, pass->matrix, pair, i) + j;
            float *c = whole ? to : room.s;
            const int64_t ldc = whole ? a->keys : f->line;
            flash_turn(f, &room, room.kt, apart, flash_at(f, pass->right, pair, a->keys, j),
                       pass->right->stride, n, a->d_h);
            flash_product(f, c, ldc, room.q, f->width, m, a->d_h, room.kt, apart, n, false);
            for (int32_t r = 0; !whole && r < m; r++)
                memcpy(to + (int64_t)r * a->keys, room.s + (int64_t)r * f->line,
                       sizeof *to * (size_t)n);
        }
    }
}

/* Rows of scores become probabilities; one that sees nothing, zeros. */
static void softmax_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct pass *pass = ctx;
    const struct flash *f = pass->f;
    const struct lab_attention *a = f->a;
    const struct cpu_kernels *kernels = f->cpu->kernels;
    const struct flash_room room = flash_room(f, thread);
    const int32_t used = flash_whole(a->keys);
    for (int64_t item = begin; item < end; item++) {
        const int32_t seen = lab_keys_seen(a, (int32_t)(item % a->queries));
        float *row = pass->matrix + item * a->keys;
        memcpy(room.row, row, sizeof *row * (size_t)a->keys);
        float most = kernels->mask(room.row, used, 0, seen < 0 ? 0 : seen);
        if (!(most > -INFINITY) && flash_any_nan(room.row, seen)) most = NAN;
        const float sum = kernels->exps(room.row, used, most);
        kernels->scale(row, room.row, most == -INFINITY ? 0.0f : 1.0f / sum, a->keys);
    }
}

static void gradient_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct pass *pass = ctx;
    const int32_t n = pass->f->a->keys;
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        float *restrict ds = pass->matrix + item * n;
        const float *restrict p = pass->p + item * n;
        const float d = cpu_dot(p, ds, n);
        int32_t i = 0;
        for (; i + PANEL <= n; i += PANEL)
            for (int32_t u = 0; u < PANEL; u++) ds[i + u] = p[i + u] * (ds[i + u] - d);
        for (; i < n; i++) ds[i] = p[i] * (ds[i] - d);
    }
}

static void store(const struct pass *pass, float *to, const float *from, int32_t n) {
    const struct flash *f = pass->f;
    for (int32_t r = 0; r < n; r++, to += pass->out->stride, from += f->width)
        f->cpu->kernels->scale(to, from, pass->by, f->a->d_h);
}

/* out = by matrix right: a row for each query. */
static void rows_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct pass *pass = ctx;
    const struct flash *f = pass->f;
    const struct lab_attention *a = f->a;
    const struct flash_room room = flash_room(f, thread);
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / f->n_rows;
        const int32_t i = (int32_t)(item % f->n_rows) * f->rows,
                      m = flash_least(f->rows, a->queries - i);
        for (int32_t j = 0; j < a->keys; j += f->columns) {
            const int32_t n = flash_least(f->columns, a->keys - j);
            flash_load(f, room.v, flash_at(f, pass->right, pair, a->keys, j), pass->right->stride,
                       n, 1.0f);
            flash_product(f, room.o, f->width, line_of(pass, pass->matrix, pair, i) + j, a->keys, m,
                          n, room.v, f->width, f->width, j > 0);
        }
        store(pass, flash_at(f, pass->out, pair, a->queries, i), room.o, m);
    }
}

/* out = by matrix^T right: a row for each key. */
static void columns_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct pass *pass = ctx;
    const struct flash *f = pass->f;
    const struct lab_attention *a = f->a;
    const struct flash_room room = flash_room(f, thread);
    const int64_t high = flash_whole(f->rows) + PANEL;
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / f->n_columns;
        const int32_t j = (int32_t)(item % f->n_columns) * f->columns,
                      n = flash_least(f->columns, a->keys - j);
        for (int32_t i = 0; i < a->queries; i += f->rows) {
            const int32_t m = flash_least(f->rows, a->queries - i);
            flash_load(f, room.q, flash_at(f, pass->right, pair, a->queries, i),
                       pass->right->stride, m, 1.0f);
            flash_turn(f, &room, room.turned, high, line_of(pass, pass->matrix, pair, i) + j,
                       a->keys, m, n);
            flash_product(f, room.dk, f->width, room.turned, high, n, m, room.q, f->width, f->width,
                          i > 0);
        }
        store(pass, flash_at(f, pass->out, pair, a->keys, j), room.dk, n);
    }
}

void cpu_naive_forward(struct device *device, const struct lab_attention *a) {
    const int64_t pairs = (int64_t)a->n_seq * a->heads;
    struct flash f;
    if (!flash_begin(&f, device, a, true, false)) return;
    struct pass scores = {&f, .matrix = a->p, .left = a->q, .right = a->k, .by = a->scale};
    struct pass values = {&f, .matrix = a->p, .right = a->v, .out = a->o, .by = 1.0f};
    flash_run(&f, pairs * f.n_rows, 1, matrix_items, &scores);
    flash_run(&f, pairs * a->queries, 16, softmax_items, &scores);
    flash_run(&f, pairs * f.n_rows, 1, rows_items, &values);
}

void cpu_naive_backward(struct device *device, const struct lab_attention *a) {
    const int64_t pairs = (int64_t)a->n_seq * a->heads;
    struct flash f;
    if (!flash_begin(&f, device, a, true, true)) return;
    struct pass dp = {&f, .matrix = a->ds, .p = a->p, .left = a->d_o, .right = a->v, .by = 1.0f};
    struct pass dv = {&f, .matrix = a->p, .right = a->d_o, .out = a->dv, .by = 1.0f};
    struct pass dq = {&f, .matrix = a->ds, .right = a->k, .out = a->dq, .by = a->scale};
    struct pass dk = {&f, .matrix = a->ds, .right = a->q, .out = a->dk, .by = a->scale};
    flash_run(&f, pairs * f.n_columns, 1, columns_items, &dv);
    flash_run(&f, pairs * f.n_rows, 1, matrix_items, &dp);
    flash_run(&f, pairs * a->queries, 16, gradient_items, &dp);
    flash_run(&f, pairs * f.n_rows, 1, rows_items, &dq);
    flash_run(&f, pairs * f.n_columns, 1, columns_items, &dk);
}
