/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one head in double, as the formulas of kernels/lab_flash.h have it: what the ops of
   ref round, and what tests compare with records of 12 digits. */
#ifndef KERNELS_REF_LAB_FLASH_H
#define KERNELS_REF_LAB_FLASH_H
#include <stdbool.h>
#include <stdint.h>

struct flash_head { /* all matrices row by row without gaps */
    int32_t queries, keys, d_h, rows, columns;
    double scale;
    bool causal;                 /* query i sees i + keys - queries + 1 keys */
    const double *q, *k, *v;     /* (queries, d_h), (keys, d_h), (keys, d_h) */
    const double *d_o;           /* backward */
    double *o, *dq, *dk, *dv;    /* gradients are zero before a backward pass */
    double *p, *ds;              /* naive: (queries, keys) */
    double *lse, *d;             /* tiled: (queries) */
    int64_t macs;                /* multiply-adds of the products: the loops add theirs */
    /* Optional: the running maximum, sum and accumulator (d_h) of a row after each tile of keys. */
    void (*seen)(void *ctx, int32_t row, int32_t tile, double m, double l, const double *a);
    void *ctx;
};

void flash_head_naive_forward(struct flash_head *);
void flash_head_naive_backward(struct flash_head *);
void flash_head_tiled_forward(struct flash_head *);
void flash_head_tiled_backward(struct flash_head *);

#endif
