/* SPDX-License-Identifier: Apache-2.0 */
/* The NEON level, which every 64-bit Arm processor has: v16 is four registers. */
#include "kernels/cpu/kernels.h"

#include <arm_neon.h>
#include <stdint.h>

typedef struct {
    float32x4_t a, b, c, d;
} v16;

#define ONE static inline __attribute__((always_inline))

/* 32 registers: up to 24 accumulators (four a row and panel), the operand of a panel and the
   values of x. */
#define TILE_ROWS 6
#define TILE_CASES(X, TYPE)                                                                        \
    X(TYPE, 1, 4) X(TYPE, 2, 2) X(TYPE, 3, 2) X(TYPE, 4, 1) X(TYPE, 5, 1) X(TYPE, 6, 1)
#define TILE_LIST(X, TYPE) TILE_CASES(X, TYPE) X(TYPE, 1, 1) X(TYPE, 2, 1) X(TYPE, 3, 1)
#define TILE_BY_ROWS       0
#define TILES_EVEN         1
#define TILE_FEW           2
#define PEAK_ACCUMULATORS  6
#define prefetch_near(p)   __builtin_prefetch((p), 0, 3)
#define prefetch(p)        __builtin_prefetch((p), 0, 2)

/* Each quarter of v16 by EXPR(quarter). */
#define QUARTERS(EXPR) ((v16){EXPR(a), EXPR(b), EXPR(c), EXPR(d)})

ONE v16 v16_set1(float s) {
    const float32x4_t v = vdupq_n_f32(s);
    return (v16){v, v, v, v};
}

ONE v16 v16_zero(void) { return v16_set1(0.0f); }

ONE v16 v16_load(const float *p) {
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

ONE void v16_store(float *p, v16 v) {
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}

#define ADD(q) vaddq_f32(x.q, y.q)
#define SUB(q) vsubq_f32(x.q, y.q)
#define MUL(q) vmulq_f32(x.q, y.q)
#define DIV(q) vdivq_f32(x.q, y.q)
#define FMA(q) vfmaq_f32(z.q, x.q, y.q)
ONE v16 v16_add(v16 x, v16 y) { return QUARTERS(ADD); }
ONE v16 v16_sub(v16 x, v16 y) { return QUARTERS(SUB); }
ONE v16 v16_mul(v16 x, v16 y) { return QUARTERS(MUL); }
ONE v16 v16_div(v16 x, v16 y) { return QUARTERS(DIV); }
ONE v16 v16_fma(v16 x, v16 y, v16 z) { return QUARTERS(FMA); }

ONE void v16_accumulate(v16 *acc, v16 x, v16 y) { *acc = v16_fma(x, y, *acc); }

/* By one lane of a register: a broadcast would take a place in the pipes that multiply. As
   instructions, since compilers broadcast first a value that they use four times; in this order,
   since gcc else brings loads forward until the accumulators of six rows are spilled. */
ONE void v16_accumulate_by(v16 *acc, v16 v, float by) {
    __asm__ volatile("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(acc->a) : "w"(v.a), "w"(by));
    __asm__ volatile("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(acc->b) : "w"(v.b), "w"(by));
    __asm__ volatile("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(acc->c) : "w"(v.c), "w"(by));
    __asm__ volatile("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(acc->d) : "w"(v.d), "w"(by));
}
#define v16_accumulate_by v16_accumulate_by

/* Of the two, y where either is NaN: Arm's own maximum would be NaN, or the number. */
ONE float32x4_t larger(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }

ONE float32x4_t smaller(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }

#define MAX(q) larger(x.q, y.q)
#define MIN(q) smaller(x.q, y.q)
ONE v16 v16_max(v16 x, v16 y) { return QUARTERS(MAX); }
ONE v16 v16_min(v16 x, v16 y) { return QUARTERS(MIN); }

ONE float v16_sum(v16 v) { return vaddvq_f32(vaddq_f32(vaddq_f32(v.a, v.b), vaddq_f32(v.c, v.d))); }

ONE float v16_largest(v16 v) {
    const float32x4_t s = larger(larger(v.a, v.b), larger(v.c, v.d));
    const float32x4_t pairs = larger(s, vextq_f32(s, s, 2));
    return vgetq_lane_f32(larger(pairs, vextq_f32(pairs, pairs, 1)), 0);
}

#define ROUND(q) vrndnq_f32(v.q)
ONE v16 v16_round(v16 v) { return QUARTERS(ROUND); }

ONE float32x4_t exp2n(float32x4_t p, float32x4_t n) {
    const int32x4_t e = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
    return vmulq_f32(p, vreinterpretq_f32_s32(vshlq_n_s32(e, 23)));
}

#define EXP2N(q) exp2n(p.q, n.q)
ONE v16 v16_exp2n(v16 p, v16 n) { return QUARTERS(EXP2N); }

ONE float32x4_t keep_above(float32x4_t v, float32x4_t x, float bound) {
    return vreinterpretq_f32_u32(
        vbicq_u32(vreinterpretq_u32_f32(v), vcltq_f32(x, vdupq_n_f32(bound))));
}

#define KEEP(q) keep_above(v.q, x.q, bound)
ONE v16 v16_keep_above(v16 v, v16 x, float bound) { return QUARTERS(KEEP); }

/* ---- stored types ---- */

/* Whatever lies there: as bytes, for those may be read as any type. */
ONE uint32x4_t words4(const void *p, int i) {
    return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p + 16 * i));
}

ONE v16 as_floats(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    return (v16){vreinterpretq_f32_u32(a), vreinterpretq_f32_u32(b), vreinterpretq_f32_u32(c),
                 vreinterpretq_f32_u32(d)};
}

ONE v16 v16_bf16(const uint16_t *p) {
    return as_floats(vshll_n_u16(vld1_u16(p), 16), vshll_n_u16(vld1_u16(p + 4), 16),
                     vshll_n_u16(vld1_u16(p + 8), 16), vshll_n_u16(vld1_u16(p + 12), 16));
}

/* Nearest even; NaN keeps its sign and stays quiet. */
ONE uint16x4_t round_bf16(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}

ONE void v16_to_bf16(uint16_t *p, v16 v) {
    vst1_u16(p, round_bf16(v.a));
    vst1_u16(p + 4, round_bf16(v.b));
    vst1_u16(p + 8, round_bf16(v.c));
    vst1_u16(p + 12, round_bf16(v.d));
}

ONE float32x4_t widen_f16x4(uint16x4_t v) { return vcvt_f32_f16(vreinterpret_f16_u16(v)); }

ONE v16 v16_f16(const uint16_t *p) {
    return (v16){widen_f16x4(vld1_u16(p)), widen_f16x4(vld1_u16(p + 4)),
                 widen_f16x4(vld1_u16(p + 8)), widen_f16x4(vld1_u16(p + 12))};
}

ONE void v16_to_f16(uint16_t *p, v16 v) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v.a)));
    vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(v.b)));
    vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(v.c)));
    vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(v.d)));
}

ONE int16x8_t whole8(float32x4_t low, float32x4_t high) {
    return vcombine_s16(vmovn_s32(vcvtq_s32_f32(low)), vmovn_s32(vcvtq_s32_f32(high)));
}

ONE void v16_to_i8(int8_t *p, v16 v) {
    vst1_s8(p, vmovn_s16(whole8(v.a, v.b)));
    vst1_s8(p + 8, vmovn_s16(whole8(v.c, v.d)));
}

/* ---- values of a panel ---- */

ONE v16 w_f32(const void *p) { return v16_load(p); }

ONE v16 w_f16(const void *p) { return v16_f16(p); }

ONE uint32x4_t low_half(uint32x4_t v) { return vshlq_n_u32(v, 16); }

ONE uint32x4_t high_half(uint32x4_t v) { return vandq_u32(v, vdupq_n_u32(0xffff0000)); }

ONE v16 w_bf16(const void *p) {
    const uint32x4_t v = words4(p, 0), w = words4(p, 1);
    return as_floats(low_half(v), low_half(w), high_half(v), high_half(w));
}

ONE v16 w_i8(const void *p) {
    const int8x16_t codes = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}

ONE uint32x4_t half_of(uint32x4_t v, int u) { return u == 0 ? low_half(v) : high_half(v); }

ONE v16 word_bf16(const void *p, int u) {
    return as_floats(half_of(words4(p, 0), u), half_of(words4(p, 1), u), half_of(words4(p, 2), u),
                     half_of(words4(p, 3), u));
}

ONE float32x4_t f16_of(uint32x4_t v, int u) {
    return widen_f16x4(u == 0 ? vmovn_u32(v) : vshrn_n_u32(v, 16));
}

ONE v16 word_f16(const void *p, int u) {
    return (v16){f16_of(words4(p, 0), u), f16_of(words4(p, 1), u), f16_of(words4(p, 2), u),
                 f16_of(words4(p, 3), u)};
}

/* Shifts as operators: of the functions for a variable count compilers make no immediate one. */
ONE float32x4_t code_of(uint32x4_t v, int u) {
    return vcvtq_f32_s32((int32x4_t)(v << (24 - 8 * u)) >> 24);
}

ONE v16 word_i8(const void *p, int u) {
    return (v16){code_of(words4(p, 0), u), code_of(words4(p, 1), u), code_of(words4(p, 2), u),
                 code_of(words4(p, 3), u)};
}

/* With the highest bit turned over code + 8 is the code in 4 bits. No constant but one: masks and
   exponents of eight places would not stay in registers. */
ONE float32x4_t code4_of(uint32x4_t v, int u) {
    const uint32x4_t codes = v ^ vdupq_n_u32(0x88888888);
    return vcvtq_f32_s32((int32x4_t)(codes << (28 - 4 * u)) >> 28);
}

ONE v16 nibble_i4(const void *p, int u) {
    return (v16){code4_of(words4(p, 0), u), code4_of(words4(p, 1), u), code4_of(words4(p, 2), u),
                 code4_of(words4(p, 3), u)};
}

/* The 16 levels are a table of 64 bytes; of level n those from 4 n on. */
ONE float32x4_t level_of(uint32x4_t v, int u, uint8x16x4_t levels) {
    const uint32x4_t first = (v >> (4 * u) & vdupq_n_u32(15)) * vdupq_n_u32(0x04040404);
    const uint8x16_t bytes = vreinterpretq_u8_u32(first + vdupq_n_u32(0x03020100));
    return vreinterpretq_f32_u8(vqtbl4q_u8(levels, bytes));
}

ONE v16 nibble_nf4(const void *p, int u) {
    const uint8x16x4_t levels = vld1q_u8_x4((const uint8_t *)nf4_levels);
    return (v16){level_of(words4(p, 0), u, levels), level_of(words4(p, 1), u, levels),
                 level_of(words4(p, 2), u, levels), level_of(words4(p, 3), u, levels)};
}

#define acc_load_bf16  v16_load
#define acc_store_bf16 v16_store

/* 4 x 4 words transposed, from rows ld apart to rows `apart`. */
ONE void block4(word *out, int64_t apart, const word *in, int64_t ld) {
    const uint32x4_t a = words4(in, 0), b = words4(in + ld, 0);
    const uint32x4_t c = words4(in + 2 * ld, 0), d = words4(in + 3 * ld, 0);
    const uint64x2_t ab = vreinterpretq_u64_u32(vtrn1q_u32(a, b));
    const uint64x2_t ab2 = vreinterpretq_u64_u32(vtrn2q_u32(a, b));
    const uint64x2_t cd = vreinterpretq_u64_u32(vtrn1q_u32(c, d));
    const uint64x2_t cd2 = vreinterpretq_u64_u32(vtrn2q_u32(c, d));
    vst1q_u8((uint8_t *)out, vreinterpretq_u8_u64(vtrn1q_u64(ab, cd)));
    vst1q_u8((uint8_t *)(out + apart), vreinterpretq_u8_u64(vtrn1q_u64(ab2, cd2)));
    vst1q_u8((uint8_t *)(out + 2 * apart), vreinterpretq_u8_u64(vtrn2q_u64(ab, cd)));
    vst1q_u8((uint8_t *)(out + 3 * apart), vreinterpretq_u8_u64(vtrn2q_u64(ab2, cd2)));
}

ONE void v16_block(void *to, int64_t apart, const void *from, int64_t ld, const char *ahead,
                   const char *near) {
    for (int i = 0; i < 16; i++) prefetch(ahead + i * 64), prefetch_near(near + 4 * i * ld);
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 16; j += 4)
            block4((word *)to + apart * i + j, apart, (const word *)from + j * ld + i, ld);
}

#include "kernels/cpu/neon/ceilings.inc"
#include "kernels/cpu/kernels_body.inc"

CPU_KERNELS(neon, );
