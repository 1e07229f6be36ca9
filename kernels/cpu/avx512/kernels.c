/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX-512 level (F, BW, DQ, VL): v16 is one zmm register. */
#include "kernels/cpu/kernels.h"

#include <immintrin.h>
#include <stdint.h>

typedef __m512 v16;

#define ONE static inline __attribute__((always_inline))

/* 32 registers: up to 24 accumulators, the operands of four panels and a broadcast; seven and eight
   rows take each panel once instead of twice. Fewer loads for
   a multiply-add than with one panel, whose broadcasts alone keep both load ports busy. */
#define TILE_ROWS 6
#define TILE_CASES(X, TYPE)                                                                        \
    X(TYPE, 1, 4)                                                                                  \
    X(TYPE, 2, 4)                                                                                  \
    X(TYPE, 3, 4) X(TYPE, 4, 4) X(TYPE, 5, 4) X(TYPE, 6, 4) X(TYPE, 7, 2) X(TYPE, 8, 2)
#define TILE_LIST(X, TYPE)                                                                         \
    TILE_CASES(X, TYPE)                                                                            \
    X(TYPE, 1, 1)                                                                                  \
    X(TYPE, 2, 1)                                                                                  \
    X(TYPE, 3, 1) X(TYPE, 4, 1) X(TYPE, 5, 1) X(TYPE, 6, 1) X(TYPE, 7, 1) X(TYPE, 8, 1)
#define TILE_BY_ROWS 1
#define TILES_EVEN   1
#define TILE_FEW     8
/* Panels of bf16 are woven in pairs where there are four, singly behind them: the same for all
   rows. */
#define TILE_WHOLE(n_panels, MOST) ((n_panels) / 4 * 4)
#define WOVEN_PAIRS(n)             (((n) + PANEL - 1) / PANEL / 4 * 4 * PANEL)
#define PEAK_ACCUMULATORS          12
#define prefetch_near(p)           _mm_prefetch((const char *)(p), _MM_HINT_T0)
#define prefetch(p)                _mm_prefetch((const char *)(p), _MM_HINT_T1)

ONE v16 v16_set1(float s) { return _mm512_set1_ps(s); }
ONE v16 v16_zero(void) { return _mm512_setzero_ps(); }
ONE v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
ONE void v16_store(float *p, v16 v) { _mm512_storeu_ps(p, v); }
ONE v16 v16_add(v16 x, v16 y) { return _mm512_add_ps(x, y); }
ONE v16 v16_sub(v16 x, v16 y) { return _mm512_sub_ps(x, y); }
ONE v16 v16_mul(v16 x, v16 y) { return _mm512_mul_ps(x, y); }
ONE v16 v16_div(v16 x, v16 y) { return _mm512_div_ps(x, y); }
ONE v16 v16_fma(v16 x, v16 y, v16 z) { return _mm512_fmadd_ps(x, y, z); }
ONE void v16_accumulate(v16 *acc, v16 x, v16 y) { *acc = _mm512_fmadd_ps(x, y, *acc); }
/* The same as an instruction: beside many accumulators compilers choose forms that move them about,
 * which costs prompts over bf16 a twentieth. Few rows want their loads folded into it instead. */
ONE void v16_accumulate_kept(v16 *acc, v16 x, v16 y) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(*acc) : "v"(x), "v"(y));
}
#define v16_accumulate_kept v16_accumulate_kept
ONE v16 v16_max(v16 x, v16 y) { return _mm512_max_ps(x, y); } /* y where either is NaN */
ONE v16 v16_min(v16 x, v16 y) { return _mm512_min_ps(x, y); }

ONE float v16_sum(v16 v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

ONE float v16_largest(v16 v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

ONE v16 v16_round(v16 v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

ONE v16 v16_exp2n(v16 p, v16 n) {
    const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_mul_ps(p, _mm512_castsi512_ps(_mm512_slli_epi32(e, 23)));
}

ONE v16 v16_keep_above(v16 v, v16 x, float bound) {
    const __mmask16 low = _mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(v, low, _mm512_setzero_ps());
}

ONE v16 v16_bf16(const uint16_t *p) {
    const __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

ONE v16 v16_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

/* Nearest even; NaN keeps its sign and stays quiet. */
ONE void v16_to_bf16(uint16_t *p, v16 v) {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i high = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16);
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(high));
}

ONE void v16_to_f16(uint16_t *p, v16 v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

ONE void v16_to_i8(int8_t *p, v16 v) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}

ONE v16 w_f32(const void *p) { return _mm512_loadu_ps(p); }
ONE v16 w_f16(const void *p) { return v16_f16(p); }

/* The even columns and then the odd ones: one permutation that leaves the low halves zero. */
ONE v16 w_bf16(const void *p) {
    const __m512i weave = _mm512_setr_epi32(0 << 16, 2 << 16, 4 << 16, 6 << 16, 8 << 16, 10 << 16,
                                            12 << 16, 14 << 16, 1 << 16, 3 << 16, 5 << 16, 7 << 16,
                                            9 << 16, 11 << 16, 13 << 16, 15 << 16);
    const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256(p));
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, weave, v));
}

/* Of two panels the even columns, or the odd ones. A permutation or zero extension would go to the
   one port that all shuffles share. */
ONE v16 pair_bf16(const void *p, int odd) {
    const __m512i v = _mm512_loadu_si512(p);
    return _mm512_castsi512_ps(odd ? _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000))
                                   : _mm512_slli_epi32(v, 16));
}
#define pair_bf16 pair_bf16

ONE v16 w_i8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))); }

ONE v16 word_bf16(const void *p, int u) {
    const __m512i v = _mm512_loadu_si512(p);
    return _mm512_castsi512_ps(u == 0 ? _mm512_slli_epi32(v, 16)
                                      : _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)));
}

ONE v16 word_f16(const void *p, int u) {
    const __m512i v = _mm512_loadu_si512(p);
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(u == 0 ? v : _mm512_srli_epi32(v, 16)));
}

ONE v16 word_i8(const void *p, int u) {
    const __m512i v = _mm512_slli_epi32(_mm512_loadu_si512(p), (unsigned)(24 - 8 * u));
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(v, 24));
}

static const float int4_levels[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

/* The permutation looks at the lowest 4 bits of each index only: no mask. */
ONE v16 nibble(const void *p, int u, const float *levels) {
    const __m512i v = _mm512_srli_epi32(_mm512_loadu_si512(p), (unsigned)(4 * u));
    return _mm512_permutexvar_ps(v, _mm512_loadu_ps(levels));
}

ONE v16 nibble_i4(const void *p, int u) { return nibble(p, u, int4_levels); }
ONE v16 nibble_nf4(const void *p, int u) { return nibble(p, u, nf4_levels); }

#define acc_load_bf16  v16_load
#define acc_store_bf16 v16_store

#include "kernels/cpu/avx2/ceilings.inc"

/* Four words each of a row and of those 4, 8 and 12 behind it. */
ONE __m512 four_rows(const float *a, const float *b, const float *c, const float *d, int64_t at) {
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(a + at));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(b + at), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(c + at), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(d + at), 3);
}

ONE void v16_block(void *to, int64_t apart, const void *from, int64_t ld, const char *ahead,
                   const char *near) {
    float *out = to;
    const float *r0 = from, *r4 = r0 + 4 * ld, *r8 = r4 + 4 * ld, *r12 = r8 + 4 * ld;
    for (int i = 0; i < 4; i++) {
        prefetch(ahead);
        prefetch_near(near);
        const __m512 a = four_rows(r0, r4, r8, r12, 0);
        prefetch_near(near + 4 * ld);
        const __m512 b = four_rows(r0, r4, r8, r12, ld);
        prefetch(ahead + 64);
        prefetch_near(near + 8 * ld);
        const __m512 c = four_rows(r0, r4, r8, r12, 2 * ld);
        const __m512 d = four_rows(r0, r4, r8, r12, 3 * ld);
        prefetch_near(near + 12 * ld);
        const __m512 ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
        prefetch(ahead + 128);
        const __m512 ab2 = _mm512_unpackhi_ps(a, b), cd2 = _mm512_unpackhi_ps(c, d);
        prefetch(ahead + 192);
        _mm512_storeu_ps(out, _mm512_shuffle_ps(ab, cd, 0x44));
        _mm512_storeu_ps(out + apart, _mm512_shuffle_ps(ab, cd, 0xee));
        _mm512_storeu_ps(out + 2 * apart, _mm512_shuffle_ps(ab2, cd2, 0x44));
        _mm512_storeu_ps(out + 3 * apart, _mm512_shuffle_ps(ab2, cd2, 0xee));
        r0 += 4, r4 += 4, r8 += 4, r12 += 4, out += 4 * apart, near += 16 * ld, ahead += 256;
    }
}

#include "kernels/cpu/kernels_body.inc"

CPU_KERNELS(avx512, );
#ifdef BENCH_CPU_AMX
CPU_KERNELS(amx, .pairs = cpu_amx_product, .pairs_peak = cpu_amx_peak);
#endif
