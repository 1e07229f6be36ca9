/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: which forms take a step, and how its splits are counted. */
#include "kernels/cuda/attention.h"

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

bool attention_is_fast(const struct attention_shape *s) {
    const bool pair = (s->q_type == DT_BF16 && (s->kv_type == DT_BF16 || s->kv_type == DT_I8)) ||
                      (s->q_type == DT_F16 && s->kv_type == DT_F16);
    const int32_t most_d = s->kv_type == DT_I8 ? 128 : 256;
    return pair && s->aligned && s->o_type == s->q_type && s->d % 16 == 0 && s->d <= most_d;
}

int32_t attention_few(int32_t n_q, int32_t n_kv) { return most(1, 16 / (n_q / n_kv)); }

bool attention_some_are_few(const struct attention_shape *s) {
    const bool all_long =
        s->most_q > attention_few(s->n_q, s->n_kv) && s->n_row == (int64_t)s->n_seq * s->most_q;
    return s->n_row > 0 && !all_long;
}

int32_t attention_seen(const struct attention_shape *s, int32_t rows) {
    const bool all = s->window == 0 || s->window >= s->most_kv;
    return all ? s->most_kv : least(s->most_kv, s->window + rows - 1);
}

static int32_t splits_of(int32_t keys) { return (keys + ATTENTION_SPLIT - 1) / ATTENTION_SPLIT; }

/* A window's first tile may begin up to 15 keys before it. */
int32_t attention_splits(const struct attention_shape *s) {
    if (s->d % 4 != 0 || s->d > 256) return 1; /* plain's alone */
    const int32_t rows = least(s->most_q, attention_few(s->n_q, s->n_kv));
    if (s->window == 0 || s->window >= s->most_kv) return splits_of(s->most_kv);
    return least(splits_of(s->most_kv), splits_of(s->window + rows - 1 + ATTENTION_TILE - 1));
}

int64_t attention_part_floats(const struct attention_shape *s, bool states) {
    const int32_t rows = least(s->most_q, attention_few(s->n_q, s->n_kv)),
                  splits = attention_splits(s);
    if (splits <= 1) return 0;
    return (int64_t)s->n_seq * rows * s->n_q * splits * (states ? 2 : s->d);
}

double attention_bytes(const struct attention_shape *s, int32_t rows) {
    const double keys = (double)s->n_seq * attention_seen(s, s->most_q) * s->n_kv;
    const double of_key = s->d * (double)dtype_bits(s->kv_type) / 8 + (s->kv_type == DT_I8 ? 4 : 0);
    const double of_row =
        (double)s->n_q * s->d * (dtype_bits(s->q_type) + dtype_bits(s->o_type)) / 8;
    return 2 * keys * of_key + rows * of_row;
}

/* Two products of 2 d operations for each key that a row sees. */
double attention_flops(const struct attention_shape *s) {
    const double last = s->most_kv, first = most(1, s->most_kv - s->most_q + 1);
    double keys = (first + last) / 2;
    if (s->window > 0 && keys > s->window) keys = s->window;
    return 4.0 * s->n_row * s->n_q * s->d * keys;
}
