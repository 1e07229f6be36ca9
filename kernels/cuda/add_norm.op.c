/* SPDX-License-Identifier: Apache-2.0 */
/* add_norm of the CUDA device. */
#include <stddef.h>

#include "kernels/cuda/add_norm.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"

bool cuda_add_norm_supports(const struct op_case *c, const char **kernel_or_reason) {
    const bool is = c->activation == DT_BF16 || c->activation == DT_F16 || c->activation == DT_F32;
    *kernel_or_reason = is ? "a row per block" : "activations are bf16, f16 or f32";
    return is;
}

int64_t cuda_add_norm_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

/* Whether every row begins at a multiple of 16 bytes. */
static bool aligned(const struct tensor *t) {
    return t == NULL ||
           (((uintptr_t)t->data | (uintptr_t)(t->stride * (dtype_bits(t->type) / 8))) & 15) == 0;
}

void cuda_add_norm(struct device *device, struct tensor *y, struct tensor *residual,
                   const struct tensor *delta, const float *gain, float eps) {
    struct cuda *c = cuda_of(device);
    const struct add_norm_shape shape = {.rows = residual->rows,
                                         .d = residual->cols,
                                         .type = y       ? y->type
                                                 : delta ? delta->type
                                                         : DT_F32,
                                         .delta = delta != NULL,
                                         .y = y != NULL,
                                         .aligned = aligned(y) && aligned(residual) &&
                                                    aligned(delta) && (uintptr_t)gain % 16 == 0};
    const struct op_case ask = {.activation = shape.type};
    const char *said;
    if (!cuda_expects(c, residual->type == DT_F32, "add_norm: the residual is f32") ||
        !cuda_expects(c, cuda_add_norm_supports(&ask, &said),
                      "add_norm: activations are bf16, f16 or f32") ||
        !cuda_expects(c, !delta || delta->type == shape.type,
                      "add_norm: delta and y differ in type") ||
        !cuda_expects(c,
                      (!y || (y->cols == shape.d && y->rows == shape.rows)) &&
                          (!delta || (delta->cols == shape.d && delta->rows == shape.rows)),
                      "add_norm: the tensors do not fit"))
        return;
    const struct add_norm_args args = {
        .residual = residual->data,
        .delta = delta ? delta->data : NULL,
        .y = y ? y->data : NULL,
        .gain = gain,
        .residual_stride = residual->stride,
        .delta_stride = delta ? delta->stride : 0,
        .y_stride = y ? y->stride : 0,
        .d = shape.d,
        .type = (int32_t)shape.type,
        .eps = f32_bits(eps),
    };
    struct launch l;
    add_norm_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, add_norm_launch(&l, c->stream, c->params.pdl, &args));
}
