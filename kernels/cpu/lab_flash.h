/* SPDX-License-Identifier: Apache-2.0 */
/* What the naive ops and those by tiles share: the same products of the same tiles, so that what
   differs between them is where scores and probabilities lie. */
#ifndef KERNELS_CPU_LAB_FLASH_H
#define KERNELS_CPU_LAB_FLASH_H
#include "kernels/cpu/cpu.h"
#include "kernels/lab_flash.h"

struct flash {
    struct cpu *cpu;
    const struct lab_attention *a;
    int32_t rows, columns; /* of a tile, at most what there is */
    int32_t width, line;   /* d_h and columns rounded up to whole panels */
    int32_t n_rows, n_columns; /* tiles of a sequence's queries and keys */
    int64_t room_floats;       /* of one thread */
};

struct flash_room {      /* one thread's; anything behind d_h where the width is more */
    float *q, *d_o, *o;  /* (rows, width) */
    float *k, *v;        /* (columns, width) */
    float *dk, *dv;      /* (columns, width) */
    float *kt, *vt;      /* (d_h, line + PANEL) keys and values, column by column */
    float *s, *ds;       /* (rows, line), room for whole panels of rows */
    float *turned;       /* (columns, rows + PANEL), likewise */
    float *pad;          /* (PANEL, width or line) rows of a panel that is not whole */
    float *row;          /* (keys) naive: of the matrix */
    float *m, *l;        /* (rows) running maximum and sum */
};

static inline int32_t flash_least(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t flash_whole(int32_t n) { return (n + PANEL - 1) / PANEL * PANEL; }

static inline bool flash_any_nan(const float *s, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (isnan(s[i])) return true;
    return false;
}

/* naive: the tiles are those that these ops choose themselves. False, and the reason is kept for
   sync, where the operands do not fit. */
bool flash_begin(struct flash *, struct device *, const struct lab_attention *, bool naive,
                 bool backward);
struct flash_room flash_room(const struct flash *, int thread);
void flash_run(const struct flash *, int64_t items, int64_t grain, pool_fn *, void *job);

/* c (m, columns) = [c +] x (m, k) w (k, columns), in whole panels of columns. */
void flash_product(const struct flash *, float *c, int64_t ldc, const float *x, int64_t ldx,
                   int32_t m, int64_t k, const float *w, int64_t ldw, int32_t columns, bool add);
/* out (n, rows) = in (rows, n) turned; in whole panels of rows, zeros behind the last. */
void flash_turn(const struct flash *, const struct flash_room *, float *out, int64_t apart,
                const float *in, int64_t ld, int32_t rows, int32_t n);
/* n rows times `by`, d_h of each. What lies behind makes columns of products that nobody reads. */
void flash_load(const struct flash *, float *to, const float *from, int64_t stride, int32_t n,
                float by);

/* Where row i (of a sequence) of a pair (sequence, head) begins. */
static inline float *flash_at(const struct flash *f, const struct tensor *t, int64_t pair,
                              int64_t n, int64_t i) {
    return (float *)t->data + (pair / f->a->heads * n + i) * t->stride +
           pair % f->a->heads * f->a->d_h;
}

/* lab_naive.c */
void cpu_naive_forward(struct device *, const struct lab_attention *);
void cpu_naive_backward(struct device *, const struct lab_attention *);

#endif
