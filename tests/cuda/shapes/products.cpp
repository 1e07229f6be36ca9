/* SPDX-License-Identifier: Apache-2.0 */
/* linear at sizes of production. */
#include "tests/cuda/shapes/rig.h"

#include "kernels/cuda/linear.h"

static const int64_t GEMM_ROWS = GEMM_TILE; /* more than are streamed */

struct shape {
    int64_t m, x_stride, y_stride;
    bool swiglu;
};

static double dot(const array &x, int64_t x_at, const big_weight &w, int64_t data_row) {
    double sum = 0;
    for (int64_t k = 0; k < w.w.head.cols; k++) sum += x.at(x_at + k) * w.at(data_row, k);
    return sum;
}
/* Gate and up are interleaved by 8 rows, or stacked. */
static double swiglu(const array &x, int64_t x_at, const big_weight &w, int64_t column) {
    const bool mixed = w.w.interleaved;
    const int64_t row = mixed ? column / 8 * 16 + column % 8 : column;
    const double gate = dot(x, x_at, w, row);
    return gate / (1 + exp(-gate)) * dot(x, x_at, w, row + (mixed ? 8 : w.w.head.rows / 2));
}

static void multiply(const big_weight &w, const array &x, array &y, const struct shape &s) {
    const int64_t n = w.w.head.rows / (s.swiglu ? 2 : 1);
    const struct tensor from = tensor_of(x, s.m, w.w.head.cols, s.x_stride);
    struct tensor to = tensor_of(y, s.m, n, s.y_stride);
    cuda_linear(device, &to, &from, w.head(), nullptr, s.swiglu ? EPI_SWIGLU : EPI_NONE);
    run();
}

/* From row `first` on. */
static void product(const big_weight &w, enum dtype x_type, enum dtype y_type,
                    const struct shape &s, int every, int64_t first = 0) {
    const int64_t n = w.w.head.rows / (s.swiglu ? 2 : 1);
    const array x("x", x_type, s.m * s.x_stride, 21);
    array y("y", y_type, s.m * s.y_stride, 0);
    multiply(w, x, y, s);
    const double size = sqrt(double(w.w.head.cols)) * (w.scales ? 1 : 0.4);
    compare(y, 1, {0x1p-7, size * 0x1p-9}, every, first * s.y_stride,
            (s.m - 1) * s.y_stride + n - 1, [&](int64_t i, double *v) {
                const int64_t x_at = i / s.y_stride * s.x_stride, column = i % s.y_stride;
                if (column >= n) return false;
                *v = s.swiglu ? swiglu(x, x_at, w, column) : dot(x, x_at, w, column);
                return true;
            });
}

struct launches {
    size_t n;
    int64_t across; /* the first side of the last one's grid */
};
/* Those that a product takes; no block runs. */
static struct launches launches_of(const big_weight &w, enum dtype x_type, enum dtype y_type,
                                   const struct shape &s) {
    struct launches launches = {0, 0};
    chosen = [&](const launch_record &l, size_t) {
        launches = {launches.n + 1, l.grid.x};
        return blocks();
    };
    const array x("x", x_type, s.m * s.x_stride, 21);
    array y("y", y_type, s.m * s.y_stride, 0);
    multiply(w, x, y, s);
    return launches;
}

void streamed_products(void) {
    const struct model wide = {WIDE_COLS, 1, 1, 64, 64, WIDE_ROWS};
    plan_for(wide, 1, 64, 64, 64);
    for (const auto &k : weight_kinds) {
        const big_weight w(k.type, k.scale, k.group, WIDE_ROWS, WIDE_COLS);
        chosen = [](const launch_record &l,
                    size_t n) { /* NF4's blocks go over tiles */
                                return some_of(n, 1, {size_t(WIDE_ROWS / 16 - 1) % l.grid.x});
        };
        product(w, k.x, k.x, {3, int64_t(1) << 23, int64_t(1) << 30, false}, 8);
    }
    const big_weight w(DT_BF16, SCALE_NONE, 0, WIDE_ROWS, WIDE_COLS);
    product(w, DT_BF16, DT_F32, {64, int64_t(1) << 23, int64_t(1) << 26, false}, 16);
}

/* Heads of the models with most words, and gates and ups. */
void products_of_models(void) {
    for (const struct model &m : {m13b, m7b, llama, seed}) {
        plan_for(m, 9, 9, 9, 64);
        choose_some(1);
        const big_weight head(DT_BF16, SCALE_NONE, 0, m.vocab, m.d_model);
        product(head, DT_BF16, DT_F32, {9, m.d_model, m.vocab, false}, 4);
        const big_weight gates(DT_I4, SCALE_GROUP, 128, 2 * m.d_ff, m.d_model, true);
        product(gates, DT_BF16, DT_BF16, {9, m.d_model, m.d_ff, true}, 4);
    }
}

/* All rows of 16 sequences of 32k tokens at once. */
void products_of_many_rows(void) {
    plan_for(m13b, 1, ALL_ROWS, 1, 64);
    choose_some(1);
    const big_weight w(DT_BF16, SCALE_NONE, 0, m13b.d_ff, m13b.d_model);
    product(w, DT_BF16, DT_BF16, {ALL_ROWS, m13b.d_model, m13b.d_ff, false}, 4000);
    const big_weight f32(DT_F32, SCALE_NONE, 0, m13b.d_model, m13b.d_model);
    product(f32, DT_F32, DT_F32, {ALL_ROWS, m13b.d_model, m13b.d_model, false}, 1);
}

/* Codes become bf16 slab by slab, each before its product; only what the first and the last product
   of 128 rows need runs. */
void products_by_slabs(void) {
    const struct model wide = {WIDE_COLS, 1, 1, 64, 64, WIDE_ROWS};
    const struct shape s = {GEMM_ROWS, WIDE_COLS, WIDE_ROWS, false};
    big_weight w(DT_I8, SCALE_ROW, 0, WIDE_ROWS, WIDE_COLS);
    w.is_rounded = true;
    plan_for(wide, 1, GEMM_ROWS, 1, 64);
    const size_t last = launches_of(w, DT_BF16, DT_F32, s).n / 2 - 1;
    size_t launch = 0;
    chosen = [&](const launch_record &l, size_t n) {
        const size_t i = launch++, pair = i / 2, rows = GEMM_ROWS / 16, tiles = l.grid.x;
        if (pair != 0 && pair != last) return blocks();
        if (i % 2 == 1) return blocks{pair == 0 ? 0 : n - 1};
        blocks list;
        for (size_t b = 0; b < n; b++)
            if (pair == 0 ? b % tiles < rows : b % tiles >= (tiles - 1) / rows * rows)
                list.push_back(b);
        return list;
    };
    product(w, DT_BF16, DT_F32, s, 500);
}

/* Rows of x are padded, and gates and ups multiplied apart, as many rows at a time as the workspace
   takes; only the last of these passes runs. */
void products_with_ends(void) {
    const struct model narrow = {56, 1, 1, 56, m13b.d_ff, 64};
    const struct shape s = {ALL_ROWS, m13b.d_model, m13b.d_ff, true};
    big_weight w(DT_BF16, SCALE_NONE, 0, 2 * narrow.d_ff, 64);
    w.w.head.cols = narrow.d_model;
    plan_for(narrow, 1, ALL_ROWS, 1, 64);
    const struct launches all = launches_of(w, DT_BF16, DT_BF16, s);
    size_t launch = 0; /* pad, multiply, finish, which takes a row a block */
    chosen = [&](const launch_record &, size_t n) {
        return launch++ / 3 == all.n / 3 - 1 ? all_of(n) : blocks();
    };
    product(w, DT_BF16, DT_BF16, s, 4000, ALL_ROWS - all.across);
}
