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

const float nf4_levels[16] = {NF4_LEVELS};

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
