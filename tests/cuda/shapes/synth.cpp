/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic weights at sizes of production. */
#include "tests/cuda/shapes/rig.h"

#include "base/synthetic.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/synth.h"
#include "kernels/quant_code.h"

/* Columns col ... col + 127 of a row by base/synthetic.h. */
static void synthetic_values(const struct synth_part &part, int64_t row, int64_t col, float *v) {
    const uint64_t key = synth_row_key(part.key, row);
    for (int64_t i = 0; i < SYNTH_BLOCK; i += 2) {
        const struct synth_pair pair = synth_pair_at(key, (col + i) / 2);
        v[i] = float(pair.even) * part.unit;
        v[i + 1] = float(pair.odd) * part.unit;
    }
    int32_t at, outlier = synth_outlier(key, col / SYNTH_BLOCK, &at);
    if (outlier != 0) v[at] = float(outlier) * part.unit;
}
static float synthetic_scale(const float *v, int n, enum dtype type) {
    float most = 0;
    for (int i = 0; i < n; i++) most = std::max(most, fabsf(v[i]));
    return quant_scale(most, quant_top(type), true);
}

/* The bytes of 16 rows and 128 columns, which lie together. */
static void synthetic_codes(const struct synth_part &part, enum dtype type, int group, int64_t row,
                            int64_t col, double *bytes) {
    const int bits = int(dtype_bits(type));
    unsigned char codes[FRAG_ROWS * SYNTH_BLOCK] = {};
    for (int r = 0; r < FRAG_ROWS; r++) {
        float v[SYNTH_BLOCK];
        synthetic_values(part, row + r, col, v);
        for (int c = 0; c < SYNTH_BLOCK; c++) {
            const float over = v[c] / synthetic_scale(v + c / group * group, group, type);
            if (type == DT_I8) {
                codes[c / 32 * 512 + frag_int8_byte(r, c % 32)] =
                    uint8_t(quant_int(over, quant_top(type)));
                continue;
            }
            const int code =
                type == DT_I4 ? quant_int(over, quant_top(type)) + INT4_BIAS : quant_nf4(over);
            const int place = c / 64 * 1024 + (type == DT_I4 ? frag_int4_nibble(r, c % 64)
                                                             : frag_nf4_nibble(r, c % 64));
            codes[place / 2] |= uint8_t(code << (place % 2 * 4));
        }
    }
    for (int i = 0; i < FRAG_ROWS * SYNTH_BLOCK * bits / 8; i++) bytes[i] = int8_t(codes[i]);
}

void synthetic_weights(void) {
    const struct synth_part part = {77, 0x1p-10f, 1, int32_t(WIDE_ROWS)};
    for (const auto &k : weight_kinds) {
        if (k.scale == SCALE_ROW) continue; /* takes scales from another kernel */
        const big_weight w(k.type, k.scale, k.group, WIDE_ROWS, WIDE_COLS);
        array data("data", w.data->type, w.data->size(), 0);
        std::unique_ptr<array> scales;
        if (k.group) scales.reset(new array("scales", DT_F16, w.scales->size(), 0));
        struct synth_args a = {};
        a.data = data.data();
        a.scales = scales ? scales->data() : nullptr;
        a.part[0] = part;
        a.rows = int32_t(WIDE_ROWS);
        a.cols = a.real_cols = int32_t(WIDE_COLS);
        a.type = int32_t(k.type);
        a.group = k.group;
        a.groups = int32_t(w.w.groups);
        struct launch l;
        synth_plan(&gpu_h200, k.group ? TASK_CODES : TASK_FLOATS, &a, &l);
        choose_some(6);
        const cudaError_t refused = synth_launch(&l, cuda_of(device)->stream, false, &a);
        if (refused) wrong("the launch is refused: %s", cudaGetErrorName(refused));
        run();
        if (!k.group) {
            compare(data, SYNTH_BLOCK, {HALF_A_STEP, 0}, 1, 0, data.size() - 1,
                    [&](int64_t g, double *v) {
                        float made[SYNTH_BLOCK];
                        const int64_t at = g * SYNTH_BLOCK;
                        synthetic_values(part, at / WIDE_COLS, at % WIDE_COLS, made);
                        for (int i = 0; i < SYNTH_BLOCK; i++) v[i] = double(made[i]);
                        return true;
                    });
            continue;
        }
        const int64_t strip = FRAG_ROWS * SYNTH_BLOCK * dtype_bits(k.type) / 8;
        const int64_t strips = WIDE_COLS / SYNTH_BLOCK;
        compare(data, strip, {0, 0}, 1, 0, data.size() - 1, [&](int64_t g, double *v) {
            synthetic_codes(part, k.type, k.group, g / strips * FRAG_ROWS, g % strips * SYNTH_BLOCK,
                            v);
            return true;
        });
        const int64_t last = scales->size() - 1;
        compare(*scales, 1, {0, 0}, 1, 0, last, [&](int64_t i, double *v) {
            float made[SYNTH_BLOCK];
            const int64_t col = i % w.w.groups * k.group;
            synthetic_values(part, i / w.w.groups, col / SYNTH_BLOCK * SYNTH_BLOCK, made);
            *v = double(synthetic_scale(made + col % SYNTH_BLOCK, k.group, k.type));
            return true;
        });
    }
}
