/* SPDX-License-Identifier: Apache-2.0 */
/* embed, add_norm, gather_rows, select and the ceilings at sizes of production. */
#include "tests/cuda/shapes/rig.h"

#include "kernels/cuda/ceilings.h"

void embeds(void) {
    for (const auto &k : weight_kinds) {
        const big_weight w(k.type, k.scale, k.group, WIDE_ROWS, WIDE_COLS);
        array x("x", k.x, ALL_ROWS * WIDE_COLS, 0);
        struct rows rows(BATCH, CONTEXT, [](int64_t) { return CONTEXT; });
        for (int64_t r = 0; r < ALL_ROWS; r++)
            rows.token.push_back(int32_t(r == 0 ? WIDE_ROWS - 1 : draw(WIDE_ROWS)));
        rows.step.token = rows.token.data();
        struct tensor to = tensor_of(x, ALL_ROWS, WIDE_COLS, WIDE_COLS);
        choose_some(2);
        cuda_embed(device, &to, w.head(), &rows.step);
        run();
        compare(x, WIDE_COLS, {HALF_A_STEP, 0}, 1, 0, x.size() - 1, [&](int64_t r, double *v) {
            for (int64_t c = 0; c < WIDE_COLS; c++) v[c] = w.at(rows.token[size_t(r)], c);
            return true;
        });
    }
}

void add_norms(void) {
    const int64_t d = m13b.d_model;
    for (const enum dtype type : {DT_BF16, DT_F16}) {
        array y("y", type, ALL_ROWS * d, 0), residual("residual", DT_F32, ALL_ROWS * d, 1);
        const array delta("delta", type, ALL_ROWS * d, 2), gain("gain", DT_F32, d, 3);
        struct tensor to = tensor_of(y, ALL_ROWS, d, d), sum = tensor_of(residual, ALL_ROWS, d, d);
        const struct tensor more = tensor_of(delta, ALL_ROWS, d, d);
        choose_some(3);
        cuda_add_norm(device, &to, &sum, &more, static_cast<float *>(gain.data()), 1e-5f);
        run();
        const auto sums = [&](int64_t r, double *v) {
            for (int64_t c = 0; c < d; c++) v[c] = residual.at(r * d + c) + delta.at(r * d + c);
            return true;
        };
        compare(residual, d, {0x1p-23, 0}, 1, 0, residual.size() - 1, sums);
        compare(y, d, {HALF_A_STEP, 1e-6}, 1, 0, y.size() - 1, [&](int64_t r, double *v) {
            double squares = 0;
            sums(r, v);
            for (int64_t c = 0; c < d; c++) squares += v[c] * v[c];
            for (int64_t c = 0; c < d; c++) v[c] *= gain.at(c) / sqrt(squares / double(d) + 1e-5);
            return true;
        });
    }
}

void gathers(void) {
    const int64_t d = m13b.d_model;
    const array x("x", DT_BF16, ALL_ROWS * d, 1);
    array y("y", DT_BF16, ALL_ROWS * d, 0);
    struct rows rows(BATCH, CONTEXT, [](int64_t) { return CONTEXT; });
    std::vector<int32_t> wanted;
    for (int64_t i = 0; i < ALL_ROWS; i++) wanted.push_back(int32_t(ALL_ROWS - 1 - i));
    rows.outputs(wanted);
    const struct tensor from = tensor_of(x, ALL_ROWS, d, d);
    struct tensor to = tensor_of(y, ALL_ROWS, d, d);
    choose_some(8);
    cuda_gather_rows(device, &to, &from, &rows.step);
    run();
    const int64_t piece = 1024; /* of a row; a block takes two or its last */
    compare(y, piece, {0, 0}, 1, 0, y.size() - 1, [&](int64_t g, double *v) {
        const int64_t r = g * piece / d, first = g * piece % d;
        for (int64_t c = 0; c < piece; c++) v[c] = x.at((ALL_ROWS - 1 - r) * d + first + c);
        return true;
    });
}

void selects(void) {
    const int64_t n_out = 65536 + 1000, vocab = seed.vocab; /* 10 billion logits */
    const array logits("logits", DT_F32, n_out * vocab, 61);
    struct rows rows(n_out, 1, [](int64_t s) { return int32_t(1 + s % CONTEXT); });
    std::vector<int32_t> all;
    for (int64_t i = 0; i < n_out; i++) all.push_back(int32_t(i));
    const struct tensor from = tensor_of(logits, n_out, vocab, vocab);
    plan_for(seed, 1, 1, n_out, 1);
    for (const float temperature : {0.0f, 0.7f}) {
        rows.outputs(all);
        const struct sampler sampler = {temperature, -1};
        const std::vector<size_t> ran = some_of(size_t(n_out), 1);
        chosen = [&](const launch_record &l, size_t n) { /* all pieces of a row */
                                                         blocks list;
                                                         for (size_t row : ran)
                                                             for (size_t b = row; b < n;
                                                                  b += l.grid.x)
                                                                 list.push_back(b);
                                                         return list;
        };
        cuda_select(device, &rows.step, &from, &sampler);
        run();
        for (int64_t o = 0; o < n_out; o++) {
            const bool has_run = std::count(ran.begin(), ran.end(), size_t(o)) > 0;
            int64_t best = -1;
            double most = -INFINITY;
            for (int64_t i = 0; has_run && i < vocab; i++) {
                double v = logits.at(o * vocab + i);
                if (temperature > 0) {
                    const uint64_t counter = uint64_t(rows.pos[size_t(o)]) << 32 | uint64_t(i);
                    const double u = random_unit(rows.rng[size_t(o)], counter);
                    v = v / double(temperature) - log(-log(u + 0x1p-54));
                }
                if (v > most) most = v, best = i;
            }
            if (rows.next[size_t(o)] != best)
                wrong("output %lld is %d, not %lld", (long long)o, rows.next[size_t(o)],
                      (long long)best);
        }
        n_written += int64_t(ran.size());
    }
}

void ceilings(void) {
    const int64_t n = int64_t(1) << 31; /* floats: 8 GiB an array */
    const array b("b", DT_F32, n, 71), c("c", DT_F32, n, 72);
    chosen = [](const launch_record &l,
                size_t of) { /* also the block of the last page */
                             return some_of(of, 1, {size_t(n * 4 / CEILING_PAGE - 1) % l.grid.x});
    };
    {
        array a("a", DT_F32, n, 0);
        cuda_copy(device, a.data(), b.data(), n * 4);
        run();
        compare(a, 1, {0, 0}, 64, 0, n - 1, [&](int64_t i, double *v) {
            *v = b.at(i);
            return true;
        });
    }
    {
        array a("a", DT_F32, n, 0);
        cuda_triad(device, static_cast<float *>(a.data()), static_cast<float *>(b.data()),
                   static_cast<float *>(c.data()), 0.5f, n);
        run();
        compare(a, 1, {0x1p-23, 1e-7}, 64, 0, n - 1, [&](int64_t i, double *v) {
            *v = b.at(i) + 0.5 * c.at(i);
            return true;
        });
    }
    const array read("read", DT_F32, n, 73);
    float sink = -1;
    size_t ran = 0, all = 0;
    chosen = [&](const launch_record &, size_t blocks_of) {
        const blocks list = some_of(blocks_of, 1);
        ran = list.size(), all = blocks_of;
        return list;
    };
    cuda_read(device, read.data(), n * 4, &sink);
    run();
    const double share = double(read.touched_pages()) * 4096 / (double(n) * 4) * double(all);
    if (!(sink >= 0) || fabs(share / double(ran) - 1) > 0.01)
        wrong("%zu of %zu blocks read the pages of %g", ran, all, share);
}
