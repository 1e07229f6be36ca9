/* SPDX-License-Identifier: Apache-2.0 */
/* Names and widths of element types, half precision, and the levels of NF4. */
#include "kernels/dtype.h"

#include <math.h>
#include <stddef.h>

const char *const dtype_names[N_DTYPES + 1] = {
    [DT_F32] = "f32", [DT_F16] = "f16", [DT_BF16] = "bf16", [DT_I8] = "int8",
    [DT_I4] = "int4", [DT_NF4] = "nf4", [DT_I32] = "i32",
};
const char *const scale_names[N_SCALES + 1] = {
    [SCALE_NONE] = "none",
    [SCALE_TENSOR] = "tensor",
    [SCALE_ROW] = "row",
    [SCALE_GROUP] = "group",
};

/* The unqualified words mean the usual choice: int8 per row, int4 in groups. */
const struct weight_format weight_formats[] = {
    {"f32", DT_F32, SCALE_NONE},          {"f16", DT_F16, SCALE_NONE},
    {"bf16", DT_BF16, SCALE_NONE},        {"int8", DT_I8, SCALE_ROW},
    {"int8-tensor", DT_I8, SCALE_TENSOR}, {"int8-group", DT_I8, SCALE_GROUP},
    {"int4", DT_I4, SCALE_GROUP},         {"int4-tensor", DT_I4, SCALE_TENSOR},
    {"int4-row", DT_I4, SCALE_ROW},       {"nf4", DT_NF4, SCALE_GROUP},
    {NULL, DT_F32, SCALE_NONE},
};
const char *const weight_format_names[] = {
    "f32",  "f16",         "bf16",     "int8", "int8-tensor", "int8-group",
    "int4", "int4-tensor", "int4-row", "nf4",  NULL,
};

int dtype_bits(enum dtype type) {
    static const int bits[N_DTYPES] = {
        [DT_F32] = 32, [DT_F16] = 16, [DT_BF16] = 16, [DT_I8] = 8,
        [DT_I4] = 4,   [DT_NF4] = 4,  [DT_I32] = 32,
    };
    return bits[type];
}

float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 31) return f32_from_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent > 0) return f32_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    /* Zero and subnormals: an integer count of 2^-24, exact in f32. */
    float v = (float)mantissa * 0x1p-24f;
    return f32_from_bits(f32_bits(v) | sign);
}

uint16_t f16_from_f32(float f) {
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

/* Quantiles of the standard normal at linspace(0.9677083, 0.5): 8 positive, 7 negative and zero,
 * divided by the largest. */
const float nf4_levels[16] = {
    -1.0f,          -0.69619292f, -0.525073051f, -0.394917488f, -0.284441352f, -0.18477343f,
    -0.0910499915f, 0.0f,         0.0795803294f, 0.160930172f,  0.246112287f,  0.337915182f,
    0.4407098f,     0.562616944f, 0.722956717f,  1.0f,
};

float dtype_load(const void *data, enum dtype type, int64_t i) {
    switch (type) {
    case DT_F32: return ((const float *)data)[i];
    case DT_F16: return f16_to_f32(((const uint16_t *)data)[i]);
    case DT_BF16: return bf16_to_f32(((const uint16_t *)data)[i]);
    case DT_I32: return (float)((const int32_t *)data)[i];
    default: return NAN; /* quantized elements mean nothing without their scale */
    }
}

/* The nearest int32, ties to even; what does not fit saturates, NaN is 0. */
static int32_t i32_from_f32(float v) {
    double r = rint((double)v);
    if (!(r == r)) return 0;
    return r >= INT32_MAX ? INT32_MAX : r <= INT32_MIN ? INT32_MIN : (int32_t)r;
}

void dtype_store(void *data, enum dtype type, int64_t i, float v) {
    switch (type) {
    case DT_F32: ((float *)data)[i] = v; break;
    case DT_F16: ((uint16_t *)data)[i] = f16_from_f32(v); break;
    case DT_BF16: ((uint16_t *)data)[i] = bf16_from_f32(v); break;
    case DT_I32: ((int32_t *)data)[i] = i32_from_f32(v); break;
    default: break;
    }
}
