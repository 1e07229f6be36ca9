/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes on any CPU, in plain C. */
#include "kernels/cpu/code_kernels.h"

#define ONE static inline __attribute__((always_inline))

typedef struct {
    int32_t lane[16];
} sums;
typedef int32_t __attribute__((may_alias)) sum_cell;
typedef float __attribute__((may_alias)) float_cell;

#define CODE_ROWS           2
#define CODE_CASES(X, TYPE) X(TYPE, 1, 1) X(TYPE, 2, 1)
#define CODE_LIST(X, TYPE)  CODE_CASES(X, TYPE)
#define CODE_PEAK           1
#define FLIP                0
#define prefetch(p)         ((void)(p))
#define OPAQUE(v)           __asm__ volatile("" : "+r"(v))
enum { word_i8 = 4, word_i4 = 8, bias_i8 = 0 };

ONE sums sums_set1(int32_t s) {
    sums v;
    for (int i = 0; i < 16; i++) v.lane[i] = s;
    return v;
}

ONE sums sums_add(sums x, sums y) {
    for (int i = 0; i < 16; i++) x.lane[i] += y.lane[i];
    return x;
}

ONE sums sums_load(const int32_t *p) {
    sums v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

ONE void sums_store(int32_t *p, sums v) { __builtin_memcpy(p, &v, sizeof v); }

ONE void sums_scale(float *c, sums v, const uint16_t *scales) {
    float_cell *to = c;
    for (int i = 0; i < 16; i++) to[i] += (float)v.lane[i] * f16_to_f32(scales[i]);
}

ONE void sums_finish(float *c, const float *by, float scale) {
    const sum_cell *from = (const sum_cell *)c;
    float_cell *to = c;
    for (int i = 0; i < 16; i++) to[i] = (float)from[i] * by[i] * scale;
}

ONE void floats_scale(float *c, float scale) {
    float_cell *to = c;
    for (int i = 0; i < 16; i++) to[i] *= scale;
}

typedef const int8_t *operand_i8;
typedef const uint8_t *operand_i4;

ONE operand_i8 load_i8(const char *w) { return (operand_i8)w; }
ONE operand_i4 load_i4(const char *w) { return (operand_i4)w; }

ONE void dot_i8(sums *sum, operand_i8 w, const char *words) {
    const int8_t *x = (const int8_t *)words;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++) sum->lane[i] += w[4 * i + k] * x[k];
}

ONE void dot_i4(sums *sum, operand_i4 w, const char *words) {
    const int8_t *x = (const int8_t *)words;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++)
            sum->lane[i] += (w[4 * i + k] & 15) * x[k] + (w[4 * i + k] >> 4) * x[4 + k];
}

#include "kernels/cpu/code_tiles.inc"

CODE_KERNELS(scalar);
