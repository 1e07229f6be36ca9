/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes with AVX-512 VNNI: one instruction multiplies and adds four columns of 16 rows.
   It wants one side without sign: the weights, with 128 more than their code. */
#include "kernels/cpu/avx512/codes.inc"

#define FLIP 128
enum { word_i8 = 4, word_i4 = 8, bias_i8 = 128 };

typedef __m512i operand_i8;

ONE operand_i8 load_i8(const char *w) { return _mm512_loadu_si512(w); }

ONE void dot_i8(sums *sum, operand_i8 w, const char *x) {
    *sum = _mm512_dpbusd_epi32(*sum, w, word_x(x));
}

ONE void dot_i4(sums *sum, operand_i4 w, const char *x) {
    *sum = _mm512_dpbusd_epi32(*sum, w.low, word_x(x));
    *sum = _mm512_dpbusd_epi32(*sum, w.high, word_x(x + 4));
}

#include "kernels/cpu/code_tiles.inc"

CODE_KERNELS(vnni);
