/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes with AVX-512 without VNNI: as with AVX2, twice as wide. */
#include "kernels/cpu/avx512/codes.inc"

#define FLIP 0
enum { word_i8 = 8, word_i4 = 8, bias_i8 = 0 };

typedef struct {
    __m512i even, odd;
} operand_i8;

ONE operand_i8 load_i8(const char *w) {
    const __m512i v = _mm512_loadu_si512(w);
    return (operand_i8){_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8), _mm512_srai_epi16(v, 8)};
}

ONE void dot_i8(sums *sum, operand_i8 w, const char *x) {
    const __m512i even = _mm512_madd_epi16(w.even, word_x(x));
    const __m512i odd = _mm512_madd_epi16(w.odd, word_x(x + 4));
    *sum = _mm512_add_epi32(*sum, _mm512_add_epi32(even, odd));
}

ONE void dot_i4(sums *sum, operand_i4 w, const char *x) {
    const __m512i low = _mm512_maddubs_epi16(w.low, word_x(x));
    const __m512i high = _mm512_maddubs_epi16(w.high, word_x(x + 4));
    const __m512i pairs = _mm512_add_epi16(low, high);
    *sum = _mm512_add_epi32(*sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#include "kernels/cpu/avx2/arrange.inc"
#include "kernels/cpu/code_tiles.inc"

CODE_KERNELS(avx512);
