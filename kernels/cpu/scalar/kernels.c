/* SPDX-License-Identifier: Apache-2.0 */
/* The level that runs on any CPU: plain C over the compiler's own short vectors, without fused
 * multiply-adds. */
#include "kernels/cpu/kernels.h"

#include <math.h>
#include <string.h>

/* Four vectors of four, which every compiler keeps in registers where a CPU has them. */
typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef struct {
    f4 a, b, c, d;
} v16;

#define ONE static inline __attribute__((always_inline))

#define TILE_ROWS           2
#define TILE_CASES(X, TYPE) X(TYPE, 1, 1) X(TYPE, 2, 1)
#define TILE_LIST(X, TYPE)  TILE_CASES(X, TYPE)
#define TILE_BY_ROWS        0
#define TILES_EVEN          1
#define TILE_FEW            2
#define PEAK_ACCUMULATORS   2
#define prefetch_near(p)    ((void)(p))
#define prefetch(p)         ((void)(p))

ONE v16 v16_set1(float s) {
    const f4 v = {s, s, s, s};
    return (v16){v, v, v, v};
}

ONE v16 v16_zero(void) { return v16_set1(0.0f); }

ONE v16 v16_load(const float *p) {
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ONE void v16_store(float *p, v16 v) { memcpy(p, &v, sizeof v); }

ONE v16 v16_add(v16 x, v16 y) { return (v16){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }

ONE v16 v16_sub(v16 x, v16 y) { return (v16){x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }

ONE v16 v16_mul(v16 x, v16 y) { return (v16){x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }

ONE v16 v16_div(v16 x, v16 y) { return (v16){x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d}; }

ONE v16 v16_fma(v16 x, v16 y, v16 z) { return v16_add(v16_mul(x, y), z); }

ONE void v16_accumulate(v16 *acc, v16 x, v16 y) { *acc = v16_fma(x, y, *acc); }

/* x where the mask is set, else y. */
ONE f4 choose(i4 mask, f4 x, f4 y) { return (f4)(((i4)x & mask) | ((i4)y & ~mask)); }

/* Of the two, y where either is NaN (as the x86 instructions do). */
ONE v16 v16_max(v16 x, v16 y) {
    return (v16){choose(x.a > y.a, x.a, y.a), choose(x.b > y.b, x.b, y.b),
                 choose(x.c > y.c, x.c, y.c), choose(x.d > y.d, x.d, y.d)};
}

ONE v16 v16_min(v16 x, v16 y) {
    return (v16){choose(x.a < y.a, x.a, y.a), choose(x.b < y.b, x.b, y.b),
                 choose(x.c < y.c, x.c, y.c), choose(x.d < y.d, x.d, y.d)};
}

ONE float v16_sum(v16 v) {
    const f4 s = (v.a + v.b) + (v.c + v.d);
    return (s[0] + s[1]) + (s[2] + s[3]);
}

ONE float v16_largest(v16 v) {
    const f4 ab = choose(v.a > v.b, v.a, v.b), cd = choose(v.c > v.d, v.c, v.d);
    const f4 s = choose(ab > cd, ab, cd);
    const float x = s[0] > s[1] ? s[0] : s[1], y = s[2] > s[3] ? s[2] : s[3];
    return x > y ? x : y;
}

ONE v16 v16_round(v16 v) { /* |v| < 2^22 */
    const v16 magic = v16_set1(12582912.0f);
    return v16_sub(v16_add(v, magic), magic);
}

ONE f4 exp2n(f4 p, f4 n) { /* n + 1.5 * 2^23 has n + a constant in its low bits; NaN stays in p */
    const i4 e = (i4)(n + 12582912.0f) - (0x4b400000 - 127);
    return p * (f4)(e << 23);
}

ONE v16 v16_exp2n(v16 p, v16 n) {
    return (v16){exp2n(p.a, n.a), exp2n(p.b, n.b), exp2n(p.c, n.c), exp2n(p.d, n.d)};
}

ONE v16 v16_keep_above(v16 v, v16 x, float bound) {
    const f4 zero = {0};
    return (v16){choose(x.a < bound, zero, v.a), choose(x.b < bound, zero, v.b),
                 choose(x.c < bound, zero, v.c), choose(x.d < bound, zero, v.d)};
}

ONE v16 v16_bf16(const uint16_t *p) {
    float out[16];
    for (int i = 0; i < 16; i++) out[i] = bf16_to_f32(p[i]);
    return v16_load(out);
}

ONE void v16_to_bf16(uint16_t *p, v16 v) {
    float from[16];
    v16_store(from, v);
    for (int i = 0; i < 16; i++) p[i] = bf16_from_f32(from[i]);
}

/* Exact, by integers and one multiplication: 2^112 moves f16's exponent to f32's, subnormals
 * included. */
ONE v16 v16_f16(const uint16_t *p) {
    float out[16];
    for (int i = 0; i < 16; i++) {
        const uint32_t magnitude = (uint32_t)(p[i] & 0x7fffu) << 13;
        const uint32_t special = magnitude >= 0x0f800000u ? 0x70000000u : 0;
        const float v =
            special ? f32_from_bits(magnitude | special | (magnitude > 0x0f800000u ? 0x400000u : 0))
                    : f32_from_bits(magnitude) * 0x1p112f;
        out[i] = f32_from_bits(f32_bits(v) | (uint32_t)(p[i] & 0x8000u) << 16);
    }
    return v16_load(out);
}

ONE void v16_to_f16(uint16_t *p, v16 v) {
    float from[16];
    v16_store(from, v);
    for (int i = 0; i < 16; i++) p[i] = f16_from_f32(from[i]);
}

ONE void v16_to_i8(int8_t *p, v16 v) {
    float from[16];
    v16_store(from, v);
    for (int i = 0; i < 16; i++) p[i] = (int8_t)(int)from[i];
}

ONE void v16_block(void *to, int64_t apart, const void *from, int64_t ld, const char *ahead,
                   const char *near) {
    (void)ahead, (void)near;
    word *out = to;
    const word *in = from;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) out[apart * i + j] = in[j * ld + i];
}

ONE v16 w_f32(const void *p) { return v16_load(p); }

ONE v16 w_f16(const void *p) { return v16_f16(p); }

ONE v16 w_bf16(const void *p) {
    i4 pair[2];
    memcpy(pair, p, sizeof pair);
    const i4 high = {(int32_t)0xffff0000, (int32_t)0xffff0000, (int32_t)0xffff0000,
                     (int32_t)0xffff0000};
    return (v16){(f4)(pair[0] << 16), (f4)(pair[1] << 16), (f4)(pair[0] & high),
                 (f4)(pair[1] & high)};
}

ONE v16 w_i8(const void *p) {
    const int8_t *codes = p;
    float out[16];
    for (int i = 0; i < 16; i++) out[i] = (float)codes[i];
    return v16_load(out);
}

ONE v16 word_bf16(const void *p, int u) {
    const word *words = p;
    float out[16];
    for (int i = 0; i < 16; i++)
        out[i] = f32_from_bits(u == 0 ? words[i] << 16 : words[i] & 0xffff0000u);
    return v16_load(out);
}

ONE v16 word_f16(const void *p, int u) {
    const word *words = p;
    uint16_t halves[16];
    for (int i = 0; i < 16; i++) halves[i] = (uint16_t)(words[i] >> (16 * u));
    return v16_f16(halves);
}

ONE v16 word_i8(const void *p, int u) {
    const word *words = p;
    float out[16];
    for (int i = 0; i < 16; i++) out[i] = (float)(int8_t)(uint8_t)(words[i] >> (8 * u));
    return v16_load(out);
}

static const float int4_levels[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

ONE v16 nibble(const void *p, int u, const float *levels) {
    const word *words = p;
    float out[16];
    for (int i = 0; i < 16; i++) out[i] = levels[words[i] >> (4 * u) & 15];
    return v16_load(out);
}

ONE v16 nibble_i4(const void *p, int u) { return nibble(p, u, int4_levels); }
ONE v16 nibble_nf4(const void *p, int u) { return nibble(p, u, nf4_levels); }

#define acc_load_bf16  v16_load
#define acc_store_bf16 v16_store

static uint32_t read_all(const void *from, int64_t bytes) {
    typedef uint32_t u4 __attribute__((vector_size(16)));
    u4 a = {0}, b = {0}, c = {0}, d = {0}; /* written out: an array of them would live in memory */
    for (const char *p = from, *end = p + bytes; p < end; p += 64) {
        u4 v;
        memcpy(&v, p, sizeof v);
        a += v;
        memcpy(&v, p + 16, sizeof v);
        b += v;
        memcpy(&v, p + 32, sizeof v);
        c += v;
        memcpy(&v, p + 48, sizeof v);
        d += v;
    }
    const u4 s = (a + b) + (c + d);
    return s[0] + s[1] + s[2] + s[3];
}

static void copy_all(void *to, const void *from, int64_t bytes, int past_caches) {
    (void)past_caches;
    memcpy(to, from, (size_t)bytes);
}

static void triad_all(float *a, const float *b, const float *c, float s, int64_t n,
                      int past_caches) {
    (void)past_caches;
    const v16 by = v16_set1(s);
    for (int64_t i = 0; i < n; i += 16)
        v16_store(a + i, v16_fma(by, v16_load(c + i), v16_load(b + i)));
}

#include "kernels/cpu/kernels_body.inc"

CPU_KERNELS(scalar, );
