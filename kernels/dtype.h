/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, how weights are scaled, and the scalar conversions that define them. */
#ifndef KERNELS_DTYPE_H
#define KERNELS_DTYPE_H
#include <stdint.h>
#include <string.h>

#include "base/everywhere.h"

enum dtype { DT_F32, DT_F16, DT_BF16, DT_I8, DT_I4, DT_NF4, DT_I32, N_DTYPES };
enum scale { SCALE_NONE, SCALE_TENSOR, SCALE_ROW, SCALE_GROUP, N_SCALES };

extern const char
    *const dtype_names[N_DTYPES + 1]; /* "f32", "f16", "bf16", "int8", "int4", "nf4", "i32", NULL */
extern const char *const scale_names[N_SCALES + 1]; /* "none", "tensor", "row", "group", NULL */
int dtype_bits(enum dtype);                         /* 32, 16, 16, 8, 4, 4, 32 */

/* How a model's matrices are stored: the words of model.type. */
struct weight_format {
    const char *name; /* "bf16", "int8" (per row), "int8-tensor", "int8-group", "int4" (group),
                         "int4-tensor", "int4-row", "nf4" */
    enum dtype type;
    enum scale scale;
};
extern const struct weight_format weight_formats[]; /* ends with name NULL; f32, f16, bf16 first */
extern const char
    *const weight_format_names[]; /* the same names, NULL-terminated: OPT_WORD words */

EVERYWHERE float f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
EVERYWHERE uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
EVERYWHERE float bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }
/* Round to nearest even; NaN stays a quiet NaN. */
EVERYWHERE uint16_t bf16_from_f32(float f) {
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
/* Exact, subnormals included. */
EVERYWHERE float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 31) return f32_from_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent > 0) return f32_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    /* Zero and subnormals: an integer count of 2^-24, exact in f32. */
    float v = (float)mantissa * 0x1p-24f;
    return f32_from_bits(f32_bits(v) | sign);
}
/* Round to nearest even; overflow gives infinity. */
EVERYWHERE uint16_t f16_from_f32(float f) {
    uint32_t u = f32_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu)); /* quiet NaN */
    if (a >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* from 65520 on the nearest is infinity */
    if (a >= 0x38800000u) {                /* normal: from 2^-14 */
        uint32_t r = a + 0xfffu + ((a >> 13) & 1u);
        return (uint16_t)(sign | ((r - 0x38000000u) >> 13));
    }
    /* Subnormal: adding 0.5 leaves 24 bits of which the last counts 2^-24, rounded to even by the
     * addition itself. */
    float sum = f32_from_bits(a) + 0.5f;
    return (uint16_t)(sign | (f32_bits(sum) - 0x3f000000u));
}

/* NF4: 16 levels at quantiles of the normal distribution (seeds E36; QLoRA, Dettmers et al. 2023):
   of the standard normal at linspace(0.9677083, 0.5), 8 positive, 7 negative and zero, divided by
   the largest. */
#define NF4_LEVELS                                                                                 \
    -1.0f, -0.69619292f, -0.525073051f, -0.394917488f, -0.284441352f, -0.18477343f,                \
        -0.0910499915f, 0.0f, 0.0795803294f, 0.160930172f, 0.246112287f, 0.337915182f, 0.4407098f, \
        0.562616944f, 0.722956717f, 1.0f
extern const float nf4_levels[16];

/* Element i of an array of F32, F16, BF16 or I32 as float, and back (rounded to nearest even). */
float dtype_load(const void *data, enum dtype, int64_t i);
void dtype_store(void *data, enum dtype, int64_t i, float v);

#endif
