/* SPDX-License-Identifier: Apache-2.0 */
/* linear at sizes of production. */
#include "tests/cuda/shapes/rig.h"

#include "kernels/cuda/linear.h"

static const int64_t GEMM_ROWS = GEMM_TILE; /* more than are streamed */

static double dot(const array &x, int64_t x_at, const big_weight &w, int64_t data_row) {
    double sum = 0;
    for (int64_t k = 0; k < w.w.padded_cols; k++) sum += x.at(x_at + k) * w.at(data_row, k);
    return sum;
}

/* m rows of x times w, rows of both far apart; with SwiGLU gate and up interleaved by 8 rows. */
static void product(const big_weight &w, enum dtype x_type, enum dtype y_type, int64_t m,
                    int64_t x_stride, int64_t y_stride, bool swiglu, int every) {
    const int64_t cols = w.w.padded_cols, n = swiglu ? w.w.head.rows / 2 : w.w.head.rows;
    const array x("x", x_type, m * x_stride, 21);
    array y("y", y_type, m * y_stride, 0);
    const struct tensor from = tensor_of(x, m, cols, x_stride);
    struct tensor to = tensor_of(y, m, n, y_stride);
    cuda_linear(device, &to, &from, w.head(), nullptr, swiglu ? EPI_SWIGLU : EPI_NONE);
    run();
    const double size = sqrt(double(cols)) * (w.scales ? 1 : 0.4);
    compare(y, 1, {0x1p-7, size * 0x1p-9}, every, 0, (m - 1) * y_stride + n - 1,
            [&](int64_t i, double *v) {
                const int64_t row = i / y_stride, c = i % y_stride;
                if (c >= n) return false;
                if (!swiglu) {
                    *v = dot(x, row * x_stride, w, c);
                    return true;
                }
                const int64_t tile = c / 8 * 16 + c % 8;
                const double gate = dot(x, row * x_stride, w, tile);
                *v = gate / (1 + exp(-gate)) * dot(x, row * x_stride, w, tile + 8);
                return true;
            });
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
        product(w, k.x, k.x, 3, int64_t(1) << 23, int64_t(1) << 30, false, 8);
    }
    const big_weight w(DT_BF16, SCALE_NONE, 0, WIDE_ROWS, WIDE_COLS);
    product(w, DT_BF16, DT_F32, 64, int64_t(1) << 23, int64_t(1) << 26, false, 16);
}

/* Heads of the models with most words, and gates and ups. */
void products_of_models(void) {
    for (const struct model &m : {m13b, m7b, llama, seed}) {
        plan_for(m, 9, 9, 9, 64);
        choose_some(1);
        const big_weight head(DT_BF16, SCALE_NONE, 0, m.vocab, m.d_model);
        product(head, DT_BF16, DT_F32, 9, m.d_model, m.vocab, false, 4);
        const big_weight gates(DT_I4, SCALE_GROUP, 128, 2 * m.d_ff, m.d_model, true);
        product(gates, DT_BF16, DT_BF16, 9, m.d_model, m.d_ff, true, 4);
    }
}

/* All rows of 16 sequences of 32k tokens at once. */
void products_of_many_rows(void) {
    plan_for(m13b, 1, ALL_ROWS, 1, 64);
    choose_some(1);
    const big_weight w(DT_BF16, SCALE_NONE, 0, m13b.d_ff, m13b.d_model);
    product(w, DT_BF16, DT_BF16, ALL_ROWS, m13b.d_model, m13b.d_ff, false, 4000);
    const big_weight f32(DT_F32, SCALE_NONE, 0, m13b.d_model, m13b.d_model);
    product(f32, DT_F32, DT_F32, ALL_ROWS, m13b.d_model, m13b.d_model, false, 1);
}

/* Codes become bf16 slab by slab; only what the first and the last product of 128 rows need runs.
 */
void products_by_slabs(void) {
    const struct model wide = {WIDE_COLS, 1, 1, 64, 64, WIDE_ROWS};
    big_weight w(DT_I8, SCALE_ROW, 0, WIDE_ROWS, WIDE_COLS);
    w.is_rounded = true;
    plan_for(wide, 1, GEMM_ROWS, 1, 64);
    size_t launch = 0, last = 0;
    for (int pass = 0; pass < 2; pass++) { /* the first counts launches: nothing runs */
        chosen = [&](const launch_record &l, size_t n) {
            const size_t i = launch++, pair = i / 2;
            blocks list;
            const bool dequantizes = i % 2 == 0;
            if (pass == 0) last = pair;
            if (pass == 0 || (pair != 0 && pair != last)) return list;
            const size_t rows = GEMM_ROWS / 16, tiles = l.grid.x;
            if (!dequantizes) return blocks{pair == 0 ? 0 : n - 1};
            for (size_t b = 0; b < n; b++)
                if (pair == 0 ? b % tiles < rows : b % tiles >= (tiles - 1) / rows * rows)
                    list.push_back(b);
            return list;
        };
        launch = 0;
        if (pass == 0) {
            const array x("x", DT_BF16, GEMM_ROWS * WIDE_COLS, 21);
            array y("y", DT_F32, GEMM_ROWS * WIDE_ROWS, 0);
            const struct tensor from = tensor_of(x, GEMM_ROWS, WIDE_COLS, WIDE_COLS);
            struct tensor to = tensor_of(y, GEMM_ROWS, WIDE_ROWS, WIDE_ROWS);
            cuda_linear(device, &to, &from, w.head(), nullptr, EPI_NONE);
            run();
        } else {
            product(w, DT_BF16, DT_F32, GEMM_ROWS, WIDE_COLS, WIDE_ROWS, false, 500);
        }
    }
}
