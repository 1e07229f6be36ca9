/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX2 level, with FMA and F16C: v16 is a pair of ymm registers. */
#include "kernels/cpu/kernels.h"

#include <immintrin.h>
#include <stdint.h>

typedef struct {
    __m256 a, b;
} v16;

#define ONE static inline __attribute__((always_inline))

/* 16 registers: 12 accumulators (two a row and panel), the widened panel values and one broadcast.
 */
#define TILE_ROWS 6
#define TILE_CASES(X, TYPE)                                                                        \
    X(TYPE, 1, 4) X(TYPE, 2, 2) X(TYPE, 3, 1) X(TYPE, 4, 1) X(TYPE, 5, 1) X(TYPE, 6, 1)
#define TILE_LIST(X, TYPE) TILE_CASES(X, TYPE) X(TYPE, 1, 1) X(TYPE, 2, 1)
#define TILES_EVEN         0
#define TILE_FEW           2
#define TILE_BY_ROWS       0
#define PEAK_ACCUMULATORS  6
#define prefetch_near(p)   _mm_prefetch((const char *)(p), _MM_HINT_T0)
#define prefetch(p)        _mm_prefetch((const char *)(p), _MM_HINT_T1)

#define PAIR(expr_a, expr_b) ((v16){(expr_a), (expr_b)})

ONE v16 v16_set1(float s) {
    const __m256 v = _mm256_set1_ps(s);
    return PAIR(v, v);
}

ONE v16 v16_zero(void) { return PAIR(_mm256_setzero_ps(), _mm256_setzero_ps()); }

ONE v16 v16_load(const float *p) { return PAIR(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }

ONE void v16_store(float *p, v16 v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}

ONE v16 v16_add(v16 x, v16 y) { return PAIR(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)); }

ONE v16 v16_sub(v16 x, v16 y) { return PAIR(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)); }

ONE v16 v16_mul(v16 x, v16 y) { return PAIR(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)); }

ONE v16 v16_div(v16 x, v16 y) { return PAIR(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)); }

ONE v16 v16_fma(v16 x, v16 y, v16 z) {
    return PAIR(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}

/* acc += x * y in place. As instructions, since compilers choose forms that move accumulators about
 * and then spill them. */
ONE void v16_accumulate(v16 *acc, v16 x, v16 y) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(acc->a) : "x"(x.a), "x"(y.a));
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(acc->b) : "x"(x.b), "x"(y.b));
}

ONE v16 v16_max(v16 x, v16 y) /* y where either is NaN */
{
    return PAIR(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b));
}

ONE v16 v16_min(v16 x, v16 y) /* y where either is NaN */
{
    return PAIR(_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b));
}

ONE float v16_sum(v16 v) {
    const __m256 eight = _mm256_add_ps(v.a, v.b);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

ONE float v16_largest(v16 v) {
    const __m256 eight = _mm256_max_ps(v.a, v.b);
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

ONE v16 v16_round(v16 v) {
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return PAIR(_mm256_round_ps(v.a, NEAREST), _mm256_round_ps(v.b, NEAREST));
}

ONE __m256 exp2n(__m256 p, __m256 n) {
    const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}

ONE v16 v16_exp2n(v16 p, v16 n) { return PAIR(exp2n(p.a, n.a), exp2n(p.b, n.b)); }

ONE v16 v16_keep_above(v16 v, v16 x, float bound) {
    const __m256 b = _mm256_set1_ps(bound);
    return PAIR(_mm256_andnot_ps(_mm256_cmp_ps(x.a, b, _CMP_LT_OQ), v.a),
                _mm256_andnot_ps(_mm256_cmp_ps(x.b, b, _CMP_LT_OQ), v.b));
}

ONE __m256 widen_half(const uint16_t *p) {
    const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}

ONE v16 v16_bf16(const uint16_t *p) { return PAIR(widen_half(p), widen_half(p + 8)); }

ONE v16 v16_f16(const uint16_t *p) {
    return PAIR(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}

/* Each 32-bit lane becomes its bf16 in the low half: nearest even; NaN keeps its sign and stays
 * quiet. */
ONE __m256i round_bf16(__m256 v) {
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

ONE void v16_to_bf16(uint16_t *p, v16 v) {
    const __m256i both = _mm256_packus_epi32(round_bf16(v.a), round_bf16(v.b));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(both, 0xd8));
}

ONE void v16_to_f16(uint16_t *p, v16 v) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}

ONE void v16_to_i8(int8_t *p, v16 v) {
    const __m256i a = _mm256_cvtps_epi32(v.a), b = _mm256_cvtps_epi32(v.b);
    const __m128i low = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i high = _mm_packs_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(low, high));
}

ONE v16 w_f32(const void *p) { return v16_load(p); }

ONE v16 w_f16(const void *p) { return v16_f16(p); }

ONE v16 w_bf16(const void *p) {
    const __m256i v = _mm256_loadu_si256(p);
    const __m256i high = _mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000));
    return PAIR(_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)), _mm256_castsi256_ps(high));
}

ONE __m256 widen_codes(const char *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

ONE v16 w_i8(const void *p) { return PAIR(widen_codes(p), widen_codes((const char *)p + 8)); }

ONE __m256i words8(const void *p, int i) { return _mm256_loadu_si256((const __m256i *)p + i); }

ONE __m256 half_of(__m256i v, int u) {
    return _mm256_castsi256_ps(u == 0 ? _mm256_slli_epi32(v, 16)
                                      : _mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000)));
}

ONE v16 word_bf16(const void *p, int u) {
    return PAIR(half_of(words8(p, 0), u), half_of(words8(p, 1), u));
}

/* The low halves of 8 words to the lower 128 bits, the high ones to the upper. */
ONE __m256 f16_of(__m256i v, int u) {
    const __m256i halves = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0,
                                            1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i sorted = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, halves), 0xd8);
    return _mm256_cvtph_ps(u == 0 ? _mm256_castsi256_si128(sorted)
                                  : _mm256_extracti128_si256(sorted, 1));
}

ONE v16 word_f16(const void *p, int u) {
    return PAIR(f16_of(words8(p, 0), u), f16_of(words8(p, 1), u));
}

ONE __m256 code_of(__m256i v, int u) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(v, 24 - 8 * u), 24));
}

ONE v16 word_i8(const void *p, int u) {
    return PAIR(code_of(words8(p, 0), u), code_of(words8(p, 1), u));
}

/* A code that lies within a mantissa is put below the exponent that makes its last bit one: 2^(23 -
 * its bit) + code + 8, less what is too much. Cheaper than a conversion, which wants the sign
 * spread by two shifts first. */
ONE __m256 code4_of(__m256i v, int u) {
    const int over = u > 4 ? 12 : 0, at = 4 * u - over;
    const __m256i w = over > 0 ? _mm256_srli_epi32(v, 12) : v;
    const __m256i code = _mm256_and_si256(w, _mm256_set1_epi32(15 << at));
    const __m256i put = _mm256_or_si256(code, _mm256_set1_epi32((127 + 23 - at) << 23));
    return _mm256_sub_ps(_mm256_castsi256_ps(put), _mm256_set1_ps((float)(1 << (23 - at)) + 8.0f));
}

ONE v16 nibble_i4(const void *p, int u) {
    return PAIR(code4_of(words8(p, 0), u), code4_of(words8(p, 1), u));
}

/* Two tables of 8; the code's highest bit, as a sign, tells which. */
ONE __m256 level_of(__m256i v, int u) {
    const __m256i at = _mm256_srli_epi32(v, 4 * u);
    const __m256i sign = _mm256_slli_epi32(v, 28 - 4 * u);
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(nf4_levels), at);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(nf4_levels + 8), at);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(sign));
}

ONE v16 nibble_nf4(const void *p, int u) {
    return PAIR(level_of(words8(p, 0), u), level_of(words8(p, 1), u));
}

#define acc_load_bf16  v16_load
#define acc_store_bf16 v16_store

#include "kernels/cpu/avx2/ceilings.inc"
#include "kernels/cpu/avx2/transpose.inc"
#include "kernels/cpu/kernels_body.inc"

CPU_KERNELS(avx2, );
