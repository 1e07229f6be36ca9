/* SPDX-License-Identifier: Apache-2.0 */
/* The level that runs on any CPU: plain C over the compiler's own short vectors, without fused
 * multiply-adds. */
#include "kernels/cpu/kernels.h"

#include <math.h>
#include <string.h>

typedef float f4 __attribute__((vector_size(16)));
typedef union {
    f4 q[4];
    float e[16];
} v16;

#define ONE      static inline __attribute__((always_inline))
#define QUARTERS for (int i = 0; i < 4; i++)

#define TILE_ROWS         4
#define PANELS_OF(r)      ((r) == 1 ? 2 : 1)
#define PEAK_ACCUMULATORS 2
#define prefetch(p)       ((void)(p))

ONE v16 v16_set1(float s) {
    v16 v;
    QUARTERS v.q[i] = (f4){s, s, s, s};
    return v;
}

ONE v16 v16_zero(void) { return v16_set1(0.0f); }

ONE v16 v16_load(const float *p) {
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

ONE void v16_store(float *p, v16 v) { memcpy(p, &v, sizeof v); }

ONE v16 v16_add(v16 a, v16 b) {
    QUARTERS a.q[i] += b.q[i];
    return a;
}

ONE v16 v16_sub(v16 a, v16 b) {
    QUARTERS a.q[i] -= b.q[i];
    return a;
}

ONE v16 v16_mul(v16 a, v16 b) {
    QUARTERS a.q[i] *= b.q[i];
    return a;
}

ONE v16 v16_div(v16 a, v16 b) {
    QUARTERS a.q[i] /= b.q[i];
    return a;
}

ONE v16 v16_fma(v16 a, v16 b, v16 c) {
    QUARTERS a.q[i] *= b.q[i];
    QUARTERS c.q[i] += a.q[i];
    return c;
}

/* Of the two, `b` where either is NaN (as the x86 instruction does). */
ONE v16 v16_max(v16 a, v16 b) {
    for (int i = 0; i < 16; i++) b.e[i] = a.e[i] > b.e[i] ? a.e[i] : b.e[i];
    return b;
}

ONE v16 v16_min(v16 a, v16 b) {
    for (int i = 0; i < 16; i++) b.e[i] = a.e[i] < b.e[i] ? a.e[i] : b.e[i];
    return b;
}

ONE float v16_sum(v16 v) {
    const f4 s = (v.q[0] + v.q[1]) + (v.q[2] + v.q[3]);
    return (s[0] + s[1]) + (s[2] + s[3]);
}

ONE float v16_largest(v16 v) {
    float most = v.e[0];
    for (int i = 1; i < 16; i++) most = v.e[i] > most ? v.e[i] : most;
    return most;
}

ONE v16 v16_round(v16 v) /* |v| < 2^22 */
{
    const v16 magic = v16_set1(12582912.0f);
    return v16_sub(v16_add(v, magic), magic);
}

ONE v16 v16_exp2n(v16 p, v16 n) {
    for (int i = 0; i < 16; i++) {
        const float whole = n.e[i];
        const int32_t e = whole == whole ? (int32_t)whole : 0;
        p.e[i] *= f32_from_bits((uint32_t)(e + 127) << 23);
    }
    return p;
}

ONE v16 v16_keep_above(v16 v, v16 x, float bound) {
    for (int i = 0; i < 16; i++)
        if (x.e[i] < bound) v.e[i] = 0.0f;
    return v;
}

ONE v16 v16_bf16(const uint16_t *p) {
    float out[16];
    for (int i = 0; i < 16; i++) out[i] = bf16_to_f32(p[i]);
    return v16_load(out);
}

ONE void v16_to_bf16(uint16_t *p, v16 v) {
    for (int i = 0; i < 16; i++) p[i] = bf16_from_f32(v.e[i]);
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
    for (int i = 0; i < 16; i++) p[i] = f16_from_f32(v.e[i]);
}

ONE void v16_block(float out[16][16], const float *in, int64_t ld) {
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) out[i][j] = in[j * ld + i];
}

ONE v16 w_f32(const void *p) { return v16_load(p); }

ONE v16 w_f16(const void *p) { return v16_f16(p); }

ONE v16 w_bf16(const void *p) {
    uint32_t pair[8];
    float out[16];
    memcpy(pair, p, sizeof pair);
    for (int i = 0; i < 8; i++) out[i] = f32_from_bits(pair[i] << 16);
    for (int i = 0; i < 8; i++) out[i + 8] = f32_from_bits(pair[i] & 0xffff0000u);
    return v16_load(out);
}

#define acc_load_f32   v16_load
#define acc_load_f16   v16_load
#define acc_load_bf16  v16_load
#define acc_store_f32  v16_store
#define acc_store_f16  v16_store
#define acc_store_bf16 v16_store

static uint32_t read_all(const void *from, int64_t bytes) {
    typedef uint32_t u4 __attribute__((vector_size(16)));
    u4 sum[4] = {{0}};
    for (const char *p = from, *end = p + bytes; p < end; p += 64) {
        u4 v[4];
        memcpy(v, p, sizeof v);
        QUARTERS sum[i] += v[i];
    }
    const u4 s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
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

CPU_KERNELS(scalar);
