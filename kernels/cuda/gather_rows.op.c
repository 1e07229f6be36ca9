/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows of the CUDA device. */
#include <stddef.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gather_rows.h"
#include "kernels/cuda/launches.h"

bool cuda_gather_rows_supports(const struct op_case *c, const char **kernel_or_reason) {
    const bool is = c->activation == DT_BF16 || c->activation == DT_F16 || c->activation == DT_F32;
    *kernel_or_reason = is ? "16 bytes a thread" : "activations are bf16, f16 or f32";
    return is;
}

int64_t cuda_gather_rows_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

void cuda_gather_rows(struct device *device, struct tensor *y, const struct tensor *x,
                      const struct step *step) {
    struct cuda *c = cuda_of(device);
    const int64_t size = dtype_bits(x->type) / 8;
    const struct op_case ask = {.activation = x->type};
    const char *said;
    if (!cuda_expects(c, cuda_gather_rows_supports(&ask, &said) && y->type == x->type,
                      "gather_rows: x and y have one type: bf16, f16 or f32") ||
        !cuda_expects(c, y->cols <= x->cols && step->n_out <= y->rows,
                      "gather_rows: x and y do not fit"))
        return;
    struct gather_rows_args args = {
        .y = y->data,
        .x = x->data,
        .out_row = step->out_row,
        .y_stride = y->stride * size,
        .x_stride = x->stride * size,
        .row_bytes = y->cols * size,
    };
    const uint64_t all = (uint64_t)(uintptr_t)y->data | (uint64_t)(uintptr_t)x->data |
                         (uint64_t)(args.y_stride | args.x_stride | args.row_bytes);
    args.aligned = all % 16 == 0;
    const struct gather_rows_shape shape = {.rows = step->n_out, .row_bytes = args.row_bytes};
    struct launch l;
    gather_rows_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, gather_rows_launch(&l, c->stream, c->params.pdl, &args));
}
