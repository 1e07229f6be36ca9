/* SPDX-License-Identifier: Apache-2.0 */
/* embed: what its kernel takes, and how a shape becomes a launch. */
#ifndef KERNELS_CUDA_EMBED_H
#define KERNELS_CUDA_EMBED_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embed_args {
    const void *w, *scales;
    void *x;
    const int32_t *token;
    int64_t x_stride; /* elements */
    int32_t vocab, d; /* rows and columns of the weight */
    int32_t padded_cols;
    int32_t weight, type;  /* types of w and x */
    int32_t groups, group; /* scales of a row, columns of each; 0: one f32 per row */
    int32_t half;          /* rows of a part where two are interleaved by 8 rows, else 0 */
};

extern const struct card embed_cards[];
void embed_plan(const struct gpu *, const struct embed_args *, int32_t rows, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
