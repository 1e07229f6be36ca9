/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes with AVX2: sums are a pair of ymm registers. Codes of 8 bits are multiplied in
   16 (two products of bytes do not fit 16 bits), those of 4 as bytes, whose four products do. */
#include "kernels/cpu/code_kernels.h"

#include <immintrin.h>

#define ONE static inline __attribute__((always_inline))

typedef struct {
    __m256i a, b;
} sums;

#define CODE_ROWS           4
#define CODE_CASES(X, TYPE) X(TYPE, 1, 4) X(TYPE, 2, 2) X(TYPE, 3, 1) X(TYPE, 4, 1)
#define CODE_LIST(X, TYPE)  CODE_CASES(X, TYPE) X(TYPE, 1, 1) X(TYPE, 2, 1)
#define CODE_PEAK           4
#define FLIP                0
#define prefetch(p)         _mm_prefetch((const char *)(p), _MM_HINT_T1)
#define OPAQUE(v)                                                                                  \
    __asm__ volatile("" : "+x"((v).low_a), "+x"((v).low_b), "+x"((v).high_a), "+x"((v).high_b))
enum { word_i8 = 8, word_i4 = 8, bias_i8 = 0 };

ONE __m256i load(const void *p, int i) { return _mm256_loadu_si256((const __m256i *)p + i); }

ONE sums sums_set1(int32_t s) { return (sums){_mm256_set1_epi32(s), _mm256_set1_epi32(s)}; }

ONE sums sums_add(sums x, sums y) {
    return (sums){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}

ONE sums sums_load(const int32_t *p) { return (sums){load(p, 0), load(p, 1)}; }

ONE void sums_store(int32_t *p, sums v) {
    _mm256_storeu_si256((__m256i *)p, v.a);
    _mm256_storeu_si256((__m256i *)(p + 8), v.b);
}

ONE void scale8(float *c, __m256i sum, const uint16_t *scales) {
    const __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales));
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale);
    _mm256_storeu_ps(c, _mm256_add_ps(_mm256_loadu_ps(c), product));
}

ONE void sums_scale(float *c, sums v, const uint16_t *scales) {
    scale8(c, v.a, scales);
    scale8(c + 8, v.b, scales + 8);
}

ONE void finish8(float *c, const float *by, float scale) {
    const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(load(c, 0)), _mm256_loadu_ps(by));
    _mm256_storeu_ps(c, _mm256_mul_ps(v, _mm256_set1_ps(scale)));
}

ONE void sums_finish(float *c, const float *by, float scale) {
    finish8(c, by, scale);
    finish8(c + 8, by + 8, scale);
}

ONE void floats_scale(float *c, float scale) {
    const __m256 by = _mm256_set1_ps(scale);
    _mm256_storeu_ps(c, _mm256_mul_ps(_mm256_loadu_ps(c), by));
    _mm256_storeu_ps(c + 8, _mm256_mul_ps(_mm256_loadu_ps(c + 8), by));
}

ONE __m256i word_x(const char *x) {
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Columns 0 and 2 of a word in 16 bits, and columns 1 and 3. */
typedef struct {
    __m256i even_a, odd_a, even_b, odd_b;
} operand_i8;

ONE operand_i8 load_i8(const char *w) {
    const __m256i a = load(w, 0), b = load(w, 1);
    return (operand_i8){_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), _mm256_srai_epi16(a, 8),
                        _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), _mm256_srai_epi16(b, 8)};
}

ONE __m256i dot_16(__m256i sum, __m256i even, __m256i x_even, __m256i odd, __m256i x_odd) {
    const __m256i products =
        _mm256_add_epi32(_mm256_madd_epi16(even, x_even), _mm256_madd_epi16(odd, x_odd));
    return _mm256_add_epi32(sum, products);
}

ONE void dot_i8(sums *sum, operand_i8 w, const char *x) {
    const __m256i even = word_x(x), odd = word_x(x + 4);
    sum->a = dot_16(sum->a, w.even_a, even, w.odd_a, odd);
    sum->b = dot_16(sum->b, w.even_b, even, w.odd_b, odd);
}

typedef struct {
    __m256i low_a, high_a, low_b, high_b;
} operand_i4;

ONE operand_i4 load_i4(const char *w) {
    const __m256i a = load(w, 0), b = load(w, 1), mask = _mm256_set1_epi8(15);
    return (operand_i4){_mm256_and_si256(a, mask), _mm256_and_si256(_mm256_srli_epi16(a, 4), mask),
                        _mm256_and_si256(b, mask), _mm256_and_si256(_mm256_srli_epi16(b, 4), mask)};
}

ONE __m256i dot_8(__m256i sum, __m256i low, __m256i x_low, __m256i high, __m256i x_high) {
    const __m256i pairs =
        _mm256_add_epi16(_mm256_maddubs_epi16(low, x_low), _mm256_maddubs_epi16(high, x_high));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

ONE void dot_i4(sums *sum, operand_i4 w, const char *x) {
    const __m256i low = word_x(x), high = word_x(x + 4);
    sum->a = dot_8(sum->a, w.low_a, low, w.high_a, high);
    sum->b = dot_8(sum->b, w.low_b, low, w.high_b, high);
}

#include "kernels/cpu/avx2/arrange.inc"
#include "kernels/cpu/code_tiles.inc"

CODE_KERNELS(avx2);
