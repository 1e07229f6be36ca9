/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product on its way through the panels: what products with floats and with codes share.
 */
#ifndef KERNELS_CPU_LINEAR_H
#define KERNELS_CPU_LINEAR_H
#include "kernels/cpu/cpu.h"

/* The scratch of a thread: rows of x times a group of panels, and for SwiGLU the matching group of
   `up`, which may begin inside a panel and then reaches into one more. */
enum { MOST_COLS = (MOST_GROUP + 1) * PANEL };

/* From row to row of it: an odd number of lines, so that rows do not share sets of a cache. */
#define SUM_COLS(job) ((int64_t)((job)->group + 1) * PANEL)

struct product {
    struct cpu *cpu;
    const struct cpu_weight *w;
    /* acc (m, n_panels * 16), ldc apart = rows r0 ... of x * panels first ..., with all scales;
       wide: room of cpu_linear_scratch behind the results. */
    void (*multiply)(const struct product *, int32_t r0, int32_t m, int64_t first, int n_panels,
                     float *acc, int64_t ldc, float *wide);
    struct tensor x, y; /* m rows */
    const float *bias;
    int32_t m, n_blocks; /* rows, and pieces of them */
    int group;           /* most panels of one call of multiply but for one more, of `up` */
    int64_t n_panels;    /* panels with results: those of the gate for SwiGLU */
    int64_t n, up;       /* columns of y; SwiGLU: the place of the first row of `up`, or 0 */
};

/* How far ahead, in bytes, a tile asks in each of the panels that it streams side by side. One or
   two streams have to reach further than a share of the same distance, since only what was asked
   for is underway: with 1,024 for all, products of 3 to 6 rows, one panel at a time, took twice as
   long on Zen 4. */
static inline int64_t stream_ahead(int abreast) {
    return abreast > 2 ? 1024 : abreast == 2 ? 4096 : 8192;
}

/* For the pool, over a product: items are panels, all panels of one block of rows after those of
 * the former. */
void cpu_linear_panels(void *product, int64_t begin, int64_t end, int thread);
/* The product of a weight whose input is int8. */
void cpu_linear_codes(struct product *);

#endif
