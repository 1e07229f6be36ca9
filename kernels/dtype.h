/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, how weights are scaled, and the scalar conversions that define them. */
#ifndef KERNELS_DTYPE_H
#define KERNELS_DTYPE_H
#include <stdint.h>
#include <string.h>

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

static inline float f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }
/* Round to nearest even; NaN stays a quiet NaN. */
static inline uint16_t bf16_from_f32(float f) {
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
float f16_to_f32(uint16_t h);   /* exact, subnormals included */
uint16_t f16_from_f32(float f); /* nearest even; overflow gives infinity */

/* NF4: 16 levels at quantiles of the normal distribution (seeds E36; QLoRA, Dettmers et al. 2023).
 */
extern const float nf4_levels[16];

/* Element i of an array of F32, F16, BF16 or I32 as float, and back (rounded to nearest even). */
float dtype_load(const void *data, enum dtype, int64_t i);
void dtype_store(void *data, enum dtype, int64_t i, float v);

#endif
