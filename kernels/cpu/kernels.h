/* SPDX-License-Identifier: Apache-2.0 */
/* What one instruction-set level offers: the inner loops. Within a level a row's result has the
   same bits whatever rows, panels and threads it is computed with: every sum runs over k, or over
   positions, in one fixed order. */
#ifndef KERNELS_CPU_KERNELS_H
#define KERNELS_CPU_KERNELS_H
#include <stdbool.h>
#include <stdint.h>

#include "kernels/dtype.h"

/* A panel is 16 weight rows interleaved: f32 and f16, for each k the 16 values of column k; bf16,
   for each two k the 16 pairs of their values (the last with a 0 if k is odd), so that a shift and
   a mask widen them; int8, for each k the 16 codes; 4 bits, for each eight k the 16 words of their
   codes, the first lowest, int4 as code + 8. Columns that share a scale begin a new word. */
enum { PANEL = 16, RUN = 16 };

enum {                   /* all lengths below are of floats unless said */
       FLOAT_TYPES = 3,  /* DT_F32, DT_F16, DT_BF16 index the tables */
       CACHE_TYPES = 4,  /* and DT_I8 those of attention */
       WEIGHT_TYPES = 6, /* and DT_I4, DT_NF4 those of weights */
       WORD_CODES = 8,   /* codes of 4 bits in a word */
};

enum { WORD = 4 };                                /* bytes of a word */
typedef uint32_t __attribute__((may_alias)) word; /* 4 bytes of a cache: 1, 2 or 4 values */

struct tile { /* c (m, 16 n_panels) = [c +] x (m, k) * panels^T */
    float *c;
    const float *x;
    const void *panels;
    int64_t ldc, ldx, k;
    int64_t k_step; /* bytes from k to k + 1: 16 values in a panel; of words, from word to word */
    int64_t step;   /* bytes from panel to panel */
    int m, n_panels;
    int add; /* whether c is added to */
    /* Of codes and `wide`: NULL (c is the sum of x * code, or of x * level), or 16 f16 for each
     * `group` of k, scales_step from panel to panel: c = [c +] sum over groups of scale * sum. */
    const uint16_t *scales;
    int64_t scales_step, group;
    /* What will be read next. With every two k (of words: every k_step) and for each panel a line
     * of it is asked for, ahead_step behind the one before; for the next panel from ahead_panel on.
     */
    const void *ahead;
    int64_t ahead_panel, ahead_step; /* bytes */
    /* Of `tile`: NULL (panels and ahead are one piece), or for each RUN of k where its rows begin,
     * k starting at row `first_row` of the first, and what is asked for meanwhile, ahead_at behind.
     */
    const char *const *runs, *const *ahead_runs;
    int64_t first_row, ahead_at;
};

enum { PAIR_PANELS = 17 };

struct pairs { /* c (m, 16 n_panels) = x (m, k) * panels^T, x and panels of bf16 */
    float *c;
    const uint16_t *x;
    const void *panels;
    int64_t ldc, ldx, k;
    int64_t step;    /* bytes from panel to panel */
    int m, n_panels; /* n_panels <= PAIR_PANELS */
};

struct cpu_kernels {
    const char *name;
    int rows; /* most rows of a tile */
    int few;  /* rows of attention that are bound by memory; so many are one tile */
    const unsigned char *abreast; /* by rows of a tile: the panels that it streams side by side */
    int even; /* whether tiles about equally high are best; else a rest of one or two rows is a tile
                 of two */
    /* Panels of weights; k_step of bf16 and of 4 bits is that of a word, 64 bytes. */
    void (*panels[WEIGHT_TYPES])(const struct tile *);
    /* Codes that `unpack` made floats: the same bits as `panels` makes of the codes. */
    void (*wide)(const struct tile *);
    /* Plain rows for panels: step is that of 16 values; bf16: the columns of c come woven, as
     * scale_woven takes them; int8: codes without their scales. */
    void (*tile[CACHE_TYPES])(const struct tile *);
    /* Panels of 16 keys, as `transpose` makes them of the words of 16 rows: step is 64 bytes,
     * k_step that from word to word, each 1, 2 or 4 k, and k a whole number of words. Here and in
     * `tile` lines are asked for in order, ahead_step apart; ahead_panel is what those of a panel
     * cover. */
    void (*keys[CACHE_TYPES])(const struct tile *);
    /* 16 rows of k floats, ld apart, into one panel. */
    void (*pack[FLOAT_TYPES])(void *panel, const float *rows, int64_t ld, int64_t k);
    /* k (from the first of a word on) of a panel as f32, of codes without scales; NULL for f32. */
    void (*unpack[WEIGHT_TYPES])(float *out, const void *panel, int64_t k);
    void (*widen[FLOAT_TYPES])(float *out, const void *in, int64_t n);
    void (*narrow[FLOAT_TYPES])(void *out, const float *in, int64_t n);
    /* quant_input, of which the codes and the scale are. */
    float (*input)(int8_t *codes, const float *x, int64_t n);
    void (*add)(float *y, const float *a, const float *b, int64_t n); /* y = a + b; y may be a */
    void (*swiglu)(float *y, const float *gate, const float *up,
                   int64_t n); /* y = silu(gate) * up; y may be gate */
    void (*scale)(float *y, const float *x, float by, int64_t n); /* y = x * by; y may be x */
    /* The same, in place too, of a whole row as a tile leaves it that took plain rows of bf16 for
     * panels: 16s, or 32s, hold the even columns and then the odd ones. */
    void (*scale_woven)(float *y, const float *x, float by, int64_t n);
    void (*multiply)(float *y, const float *by, int64_t n); /* y *= by */
    /* residual += delta (or NULL); y = residual / sqrt(mean(residual^2) + eps) * gain, unless y is
     * NULL. */
    void (*add_norm)(float *y, float *residual, const float *delta, const float *gain, float eps,
                     int64_t n);
    void (*rope_halves)(float *out, const float *in, const float *cosine, const float *sine,
                        int64_t half);
    /* Of words: out (n, 16), its lines `apart` words apart: out[i][j] = in[j][i]; 16 rows of `in`,
     * ld apart. With every word a line from `ahead` on is asked for, and the same words of 16 rows
     * from `near` on, for the first-level cache. */
    void (*transpose)(void *out, int64_t apart, const void *in, int64_t ld, int64_t n,
                      const void *ahead, const void *near);
    /* The two halves of softmax over s (n, a multiple of 16). Where outside of lo ... hi-1 is -inf
     * from now on; the maximum. Then exp(s - max), or zeros where max is -inf; their sum. */
    float (*mask)(float *s, int64_t n, int64_t lo, int64_t hi);
    float (*exps)(float *s, int64_t n, float max);
    /* Joins the softmax part (o, m, l) of later positions into the running one; m is -inf where
     * nothing is in yet. */
    void (*join)(float *o, float *m, float *l, const float *part, float part_m, float part_l,
                 int64_t n);
    int64_t (*argmax)(
        const float *x,
        int64_t n); /* the first of the largest; NaN is never larger; 0 if all are NaN */
    uint32_t (*read)(const void *from, int64_t bytes);
    void (*copy)(void *to, const void *from, int64_t bytes, int past_caches);
    void (*triad)(float *a, const float *b, const float *c, float s, int64_t n, int past_caches);
    float (*fma_peak)(int64_t flops); /* a multiple of 32 */
    /* Of a level that multiplies bf16 by bf16 as they are, else NULL: products, and the peak of
     * them, a multiple of 2^14 FLOPs. */
    void (*pairs)(const struct pairs *);
    float (*pairs_peak)(int64_t flops);
};

extern const struct cpu_kernels cpu_kernels_scalar, cpu_kernels_avx2, cpu_kernels_avx512,
    cpu_kernels_amx, cpu_kernels_neon;

/* amx/kernels.c: only where topology_tiles says nothing. */
void cpu_amx_product(const struct pairs *);
float cpu_amx_peak(int64_t flops);

/* pairs.c: whether such products are right, on whole numbers, whose sums are exact in any order,
   and on infinity and NaN. */
bool cpu_pairs_right(void (*)(const struct pairs *));

#endif
