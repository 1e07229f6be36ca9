/* SPDX-License-Identifier: Apache-2.0 */
/* The generator of synthetic weights: branch-free per pair of weights, one rare pass for the tail.
 */
#include "workloads/model/synth.h"

#include <math.h>

#include "base/random.h"

static uint64_t square_root(uint64_t v) /* floor */
{
    uint64_t r = (uint64_t)sqrt((double)v);
    while (r > 0xffffffffu || r * r > v) r--;
    while (r < 0xffffffffu && (r + 1) * (r + 1) <= v) r++;
    return r;
}

struct synth_matrix synth_matrix(uint64_t seed, uint64_t stream, int64_t cols) {
    /* unit = 2^31 / sqrt(cols) / 148 / 2^31, cut to its 8 leading bits: integers only. Shifted up
       so that the division by 148 keeps them even for the widest matrices. */
    uint64_t m = (square_root(((uint64_t)1 << 62) / (uint64_t)cols) << 16) / 148;
    int exponent = -47;
    while (m > 255) {
        m >>= 1;
        exponent++;
    }
    return (struct synth_matrix){.tail = true,
                                 .key = random_key(seed, stream),
                                 .cols = cols,
                                 .unit = ldexpf((float)m, exponent)};
}

void synth_row(void *ctx, int64_t r, float *out) {
    const struct synth_matrix *matrix = ctx;
    const uint64_t key = synth_row_key(matrix->key, r);
    const int64_t cols = matrix->cols, pairs = cols / 2;
    const float unit = matrix->unit;
    for (int64_t j = 0; j < pairs; j++) {
        const struct synth_pair pair = synth_pair_at(key, j);
        out[2 * j] = (float)pair.even * unit;
        out[2 * j + 1] = (float)pair.odd * unit;
    }
    if (cols & 1) out[cols - 1] = (float)synth_pair_at(key, pairs).even * unit;
    for (int64_t block = 0; matrix->tail && block * SYNTH_BLOCK < cols; block++) {
        int32_t in_block, v = synth_outlier(key, block, &in_block);
        const int64_t c = block * SYNTH_BLOCK + in_block;
        if (v != 0 && c < cols) out[c] = (float)v * unit;
    }
}

struct row_source synth_source(struct synth_matrix *matrix) {
    return (struct row_source){.row = synth_row, .ctx = matrix, .recipe = matrix};
}

struct synth_matrix synth_layer_matrix(uint64_t seed, int64_t layer, enum synth_kind kind,
                                       int64_t cols) {
    struct synth_matrix matrix = synth_matrix(seed, synth_stream(layer, kind), cols);
    if (kind == SYNTH_O) matrix.unit *= 0.25f;
    if (kind == SYNTH_Q) matrix.unit *= 2.0f;
    return matrix;
}

struct synth_matrix synth_token_matrix(uint64_t seed, uint64_t stream, int64_t cols) {
    struct synth_matrix matrix = synth_matrix(seed, stream, cols);
    matrix.tail = false;
    return matrix;
}

void synth_biases(uint64_t seed, uint64_t stream, int64_t n, float *out) {
    uint64_t key = random_key(seed, stream);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)((int32_t)(random_at(key, (uint64_t)i) & 255) - 128) * 0x1p-10f;
}

void synth_gains(uint64_t seed, uint64_t stream, int64_t n, float *out) {
    uint64_t key = random_key(seed, stream);
    synth_biases(seed, stream, n, out);
    for (int64_t i = 0; i < n; i++) {
        bool negative = stream == SYNTH_NORM_LAST && (random_at(key, (uint64_t)i) >> 8 & 1);
        out[i] = negative ? -1.0f - out[i] : 1.0f + out[i];
    }
}
