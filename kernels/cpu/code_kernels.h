/* SPDX-License-Identifier: Apache-2.0 */
/* What one instruction set offers to products of codes with codes: the inner loops, exact in int32,
   and the few roundings to f32 in one fixed order, so that all sets give the same bits. */
#ifndef KERNELS_CPU_CODE_KERNELS_H
#define KERNELS_CPU_CODE_KERNELS_H
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/topology.h"
#include "kernels/dtype.h"

/* A panel whose input is int8 is made of words of 16 x 4 bytes: of int8 four columns of each of the
   16 rows; of int4 eight, code + 8, byte i having column i in its low and column 4 + i in its high
   half. Columns that share a scale begin a new word. A row of x lies in words of as many columns,
   zeros where a group ends within one. */
enum { WORD_INT8 = 4, WORD_INT4 = 8 };

struct code_tile { /* c (m, 16 n_panels) = [c +] codes of x (m, k) * panels^T */
    void *c;       /* int32; with scales f32 */
    const char *x, *panels;
    const int32_t *start; /* (m, groups), start_step apart: what each sum begins with; NULL: 0 */
    int64_t ldc;          /* values */
    int64_t ldx, step;    /* bytes from row to row, from panel to panel */
    int64_t start_step;
    int64_t words; /* of a row */
    int m, n_panels;
    int add; /* whether c is added to */
    /* NULL, or 16 f16 for each `group` of words, scales_step from panel to panel: c = [c +] sum
     * over groups of scale * (float)sum. */
    const uint16_t *scales;
    int64_t scales_step, group;
    /* What will be read next: with every word a line for each panel, ahead_step behind the one
     * before, ahead_panel from panel to panel. */
    const char *ahead;
    int64_t ahead_panel, ahead_step; /* bytes */
};

struct cpu_code_kernels {
    const char *name;             /* the instructions: "vnni" */
    int rows;                     /* most rows of a tile */
    int panels;                   /* that are best done together */
    const unsigned char *abreast; /* by rows of a tile: the panels that it streams side by side;
                                     NULL: all of them */
    int flip;                 /* what int8 codes of weights are xored with as they lie in panels */
    int bias[N_DTYPES];       /* of DT_I8 and DT_I4: how much too large the tile's codes are */
    int word_bytes[N_DTYPES]; /* of a word of x beside such weights */
    /* n codes as words; the last is filled up with zeros. */
    void (*arrange[N_DTYPES])(void *words, const int8_t *codes, int64_t n);
    void (*tile[N_DTYPES])(const struct code_tile *);
    /* n int32, a multiple of 16, to (float)sum * by * scale; by NULL: of f32 to value * scale. */
    void (*finish)(void *c, const float *by, float scale, int64_t n);
    uint32_t (*peak)(int64_t flops); /* a multiple of 256 */
};

extern const struct cpu_code_kernels cpu_codes_scalar, cpu_codes_avx2, cpu_codes_avx512,
    cpu_codes_vnni, cpu_codes_amx, cpu_codes_neon, cpu_codes_dotprod;

/* pairs.c: whether products of int8 are right, in sums of two pieces. */
bool cpu_codes_right(const struct cpu_code_kernels *);

/* The best of a level that isa_best allows. */
const struct cpu_code_kernels *cpu_code_kernels_of(enum isa);
/* All that this machine can run; returns how many. */
enum { CODE_SETS = 8 };
int cpu_code_kernels_all(const struct cpu_code_kernels *out[CODE_SETS]);

#endif
