/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of GGUF to floats. Every product here (an f16 scale, a small integer scale, a code) has at
 * most 24 bits and is exact in f32; only the subtraction or addition of a minimum rounds, once,
 * with or without fused multiply-adds. */
#include "workloads/model/stored.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/dtype.h"

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static float half(const uint8_t *p) { return f16_to_f32(u16(p)); }
static uint32_t u32(const uint8_t *p) { return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16; }

static void decode_f32(const uint8_t *p, int64_t n, float *out) {
    memcpy(out, p, (size_t)n * sizeof *out); /* all devices' hosts are little-endian */
}

/* As f16_to_f32, without branches, so that compilers make vectors of it: where the exponent is 0,
 * the mantissa counts 2^-24, which lie between 2^-14 and 2^-13 as they do below 2^-14. */
static float half_without_branches(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t small = f32_bits(f32_from_bits(rest + 0x38800000u) - 0x1p-14f);
    const uint32_t usual = rest + 0x38000000u, special = rest | 0x7f800000u;
    const uint32_t finite = rest < 0x00800000u ? small : usual;
    return f32_from_bits(sign | (rest >= 0x0f800000u ? special : finite));
}

enum { AT_ONCE = 256 }; /* halves: copied first, since they may lie at odd places */
static void decode_f16(const uint8_t *p, int64_t n, float *out) {
    uint16_t halves[AT_ONCE];
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t m = n - at < AT_ONCE ? n - at : AT_ONCE;
        memcpy(halves, p + 2 * at, (size_t)m * 2);
        for (int64_t i = 0; i < m; i++) out[at + i] = half_without_branches(halves[i]);
    }
}
static void decode_bf16(const uint8_t *p, int64_t n, float *out) {
    uint16_t halves[AT_ONCE];
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t m = n - at < AT_ONCE ? n - at : AT_ONCE;
        memcpy(halves, p + 2 * at, (size_t)m * 2);
        for (int64_t i = 0; i < m; i++) out[at + i] = bf16_to_f32(halves[i]);
    }
}

/* ---- blocks of 32: a scale, maybe a minimum, maybe fifth bits, codes ---------------------------
 */

/* Values i and i + 16 of a block share byte i. */
static void nibbles(const uint8_t *codes, uint32_t fifth, float d, int offset, float m,
                    float *out) {
    for (int i = 0; i < 16; i++) {
        const int low = (codes[i] & 15) | (int)(fifth >> i & 1) << 4;
        const int high = codes[i] >> 4 | (int)(fifth >> (i + 16) & 1) << 4;
        out[i] = (float)(low - offset) * d + m;
        out[i + 16] = (float)(high - offset) * d + m;
    }
}

static void decode_q4_0(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 18, out += 32) nibbles(p + 2, 0, half(p), 8, 0, out);
}
static void decode_q4_1(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 20, out += 32) nibbles(p + 4, 0, half(p), 0, half(p + 2), out);
}
static void decode_q5_0(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 22, out += 32) nibbles(p + 6, u32(p + 2), half(p), 16, 0, out);
}
static void decode_q5_1(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 24, out += 32) nibbles(p + 8, u32(p + 4), half(p), 0, half(p + 2), out);
}
static void decode_q8_0(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 34, out += 32) {
        const float d = half(p);
        for (int i = 0; i < 32; i++) out[i] = (float)(int8_t)p[2 + i] * d;
    }
}

/* ---- blocks of 256: scales of scales -----------------------------------------------------------
 */

/* 16 bytes of scale (low) and minimum (high nibble), 64 of codes, d, dmin. */
static void decode_q2_k(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 84, out += 256) {
        const float d = half(p + 80), dmin = half(p + 82);
        for (int g = 0; g < 16; g++) {
            const uint8_t *codes = p + 16 + g / 8 * 32 + g % 2 * 16;
            const float scale = d * (float)(p[g] & 15), min = dmin * (float)(p[g] >> 4);
            const int shift = g / 2 % 4 * 2;
            for (int i = 0; i < 16; i++)
                out[16 * g + i] = scale * (float)(codes[i] >> shift & 3) - min;
        }
    }
}

/* 32 bytes of third bits (clear: minus 4), 64 of two bits, 12 of 6-bit scales, d. */
static void decode_q3_k(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 110, out += 256) {
        const uint8_t *s = p + 96;
        const float d = half(p + 108);
        for (int g = 0; g < 16; g++) {
            const uint8_t *codes = p + 32 + g / 8 * 32 + g % 2 * 16, *third = p + g % 2 * 16;
            const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
            const int high = s[8 + g % 4] >> (g / 4 * 2) & 3;
            const float scale = d * (float)((low | high << 4) - 32);
            const int shift = g / 2 % 4 * 2, bit = g / 2;
            for (int i = 0; i < 16; i++)
                out[16 * g + i] =
                    scale * (float)((codes[i] >> shift & 3) + (third[i] >> bit & 1) * 4 - 4);
        }
    }
}

/* Scale and minimum j of eight, 6 bits each, in 12 bytes. */
static void scale_min(const uint8_t *s, int j, int *scale, int *min) {
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

/* d, dmin, 12 bytes of scales, for Q5_K 32 of fifth bits, 128 of nibbles. */
static void blocks_45(const uint8_t *p, int64_t n, int bytes, float *out) {
    const bool five = bytes == 176;
    for (; n > 0; n--, p += bytes, out += 256) {
        const float d = half(p), dmin = half(p + 2);
        for (int g = 0; g < 8; g++) {
            const uint8_t *codes = p + bytes - 128 + g / 2 * 32, *fifth = p + 16;
            const int shift = g % 2 * 4;
            int scale, min;
            scale_min(p + 4, g, &scale, &min);
            const float times = d * (float)scale, less = dmin * (float)min;
            for (int i = 0; i < 32; i++) {
                const int high = five ? (fifth[i] >> g & 1) << 4 : 0;
                out[32 * g + i] = times * (float)((codes[i] >> shift & 15) | high) - less;
            }
        }
    }
}
static void decode_q4_k(const uint8_t *p, int64_t n, float *out) { blocks_45(p, n, 144, out); }
static void decode_q5_k(const uint8_t *p, int64_t n, float *out) { blocks_45(p, n, 176, out); }

/* 128 bytes of nibbles, 64 of two more bits, 16 signed scales, d. */
static void decode_q6_k(const uint8_t *p, int64_t n, float *out) {
    for (; n > 0; n--, p += 210, out += 256) {
        const float d = half(p + 208);
        for (int g = 0; g < 16; g++) {
            const int quarter = g / 2 % 4, at = g % 2 * 16;
            const uint8_t *low = p + g / 8 * 64 + quarter % 2 * 32 + at;
            const uint8_t *high = p + 128 + g / 8 * 32 + at;
            const float scale = d * (float)(int8_t)p[192 + g];
            const int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
            for (int i = 0; i < 16; i++) {
                const int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
                out[16 * g + i] = scale * (float)(code - 32);
            }
        }
    }
}

const struct stored_type stored_types[N_STORED] = {
    [STORED_F32] = {"F32", 1, 4, decode_f32, "f32", 0},
    [STORED_F16] = {"F16", 1, 2, decode_f16, "f16", 0},
    [STORED_BF16] = {"BF16", 1, 2, decode_bf16, "bf16", 0},
    [STORED_Q4_0] = {"Q4_0", 32, 18, decode_q4_0, "int4", 32},
    [STORED_Q4_1] = {"Q4_1", 32, 20, decode_q4_1, "int4", 32},
    [STORED_Q5_0] = {"Q5_0", 32, 22, decode_q5_0, "int8-group", 32},
    [STORED_Q5_1] = {"Q5_1", 32, 24, decode_q5_1, "int8-group", 32},
    [STORED_Q8_0] = {"Q8_0", 32, 34, decode_q8_0, "int8-group", 32},
    [STORED_Q2_K] = {"Q2_K", 256, 84, decode_q2_k, "int4", 16},
    [STORED_Q3_K] = {"Q3_K", 256, 110, decode_q3_k, "int4", 16},
    [STORED_Q4_K] = {"Q4_K", 256, 144, decode_q4_k, "int4", 32},
    [STORED_Q5_K] = {"Q5_K", 256, 176, decode_q5_k, "int8-group", 32},
    [STORED_Q6_K] = {"Q6_K", 256, 210, decode_q6_k, "int8-group", 16},
};

int stored_of_gguf(uint32_t type, const char **name) {
    /* Numbers of ggml.h; those without a reader here have a name only. */
    static const struct {
        const char *name;
        int stored;
    } known[] = {
        [0] = {"F32", STORED_F32},
        [1] = {"F16", STORED_F16},
        [2] = {"Q4_0", STORED_Q4_0},
        [3] = {"Q4_1", STORED_Q4_1},
        [6] = {"Q5_0", STORED_Q5_0},
        [7] = {"Q5_1", STORED_Q5_1},
        [8] = {"Q8_0", STORED_Q8_0},
        [9] = {"Q8_1", -1},
        [10] = {"Q2_K", STORED_Q2_K},
        [11] = {"Q3_K", STORED_Q3_K},
        [12] = {"Q4_K", STORED_Q4_K},
        [13] = {"Q5_K", STORED_Q5_K},
        [14] = {"Q6_K", STORED_Q6_K},
        [15] = {"Q8_K", -1},
        [16] = {"IQ2_XXS", -1},
        [17] = {"IQ2_XS", -1},
        [18] = {"IQ3_XXS", -1},
        [19] = {"IQ1_S", -1},
        [20] = {"IQ4_NL", -1},
        [21] = {"IQ3_S", -1},
        [22] = {"IQ2_S", -1},
        [23] = {"IQ4_XS", -1},
        [24] = {"I8", -1},
        [25] = {"I16", -1},
        [26] = {"I32", -1},
        [27] = {"I64", -1},
        [28] = {"F64", -1},
        [29] = {"IQ1_M", -1},
        [30] = {"BF16", STORED_BF16},
        [34] = {"TQ1_0", -1},
        [35] = {"TQ2_0", -1},
        [39] = {"MXFP4", -1},
    };
    *name = type < sizeof known / sizeof *known ? known[type].name : NULL;
    return *name ? known[type].stored : -1;
}

int stored_of_word(const char *dtype) {
    for (int i = STORED_F32; i <= STORED_BF16; i++)
        if (!strcmp(dtype, stored_types[i].name)) return i;
    return -1;
}
