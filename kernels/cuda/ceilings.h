/* SPDX-License-Identifier: Apache-2.0 */
/* copy, read, triad and fma_peak: what their kernels take, and how sizes become launches. */
#ifndef KERNELS_CUDA_CEILINGS_H
#define KERNELS_CUDA_CEILINGS_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ceilings_args {
    void *to;                /* copy, triad */
    const void *from, *more; /* triad: b and c */
    float *sink;             /* read: a sum; fma_peak: never written */
    int64_t n;               /* pages of 4096 bytes, or steps of a block in all */
    uint32_t factor;         /* bits of a float: of triad, or what fma_peak multiplies by */
    uint32_t summand;        /* bits of a float that fma_peak adds; a value that sums do not have */
};

enum ceiling {
    CEILING_COPY,
    CEILING_READ,
    CEILING_TRIAD,
    CEILING_FMA
};                                                     /* rows of the cards; FMA + type */
enum { CEILING_PAGE = 4096, CEILING_FLOPS = 1 << 22 }; /* sizes are multiples of these */
extern const struct card ceilings_cards[];
/* bytes: of one array; for fma_peak flops. steps of fma_peak, for n: see ceilings_steps. */
void ceilings_plan(const struct gpu *, enum ceiling, enum dtype, int64_t bytes_or_flops,
                   struct launch *);
/* Steps that all blocks together make of so many flops: exact. */
int64_t ceilings_steps(enum dtype, int64_t flops);

#ifdef __cplusplus
}
#endif
#endif
