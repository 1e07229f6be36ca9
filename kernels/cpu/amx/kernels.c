/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX level's products of bf16 by bf16 in tiles, and its peak.

   A panel of bf16 is a row of B tiles as it lies there: 16 pairs of k by 16 rows of weights are
   1024 bytes. Every sum goes over k in steps of 32, the last filled with zeros, whatever the shape
   of the tiles and wherever sums were laid down in between: a row has the same bits in any batch.
   TDPBF16PS takes subnormal numbers for zero and makes none; NaN and infinity pass as in f32.

   No machine with AMX was there when this was written: the shapes of tiles, the blocks and how far
   ahead is asked for follow from the sizes of registers and caches and are not measured. */
#include <stdbool.h>
#include <string.h>

#include "kernels/cpu/kernels.h"

#ifndef TILES_HEADER
#define TILES_HEADER "kernels/cpu/amx/tiles.inc"
#endif
#include TILES_HEADER

#define INLINE static inline __attribute__((always_inline))

enum {
    SIDE = 16,         /* rows of a tile, and pairs of k */
    LINE = 64,         /* bytes of its rows */
    STEP_K = 2 * SIDE, /* columns that a tile holds */
    TILE_BYTES = SIDE * LINE,
    BLOCK_STEPS = 16,    /* two panels of so many fill two thirds of 48 KiB of L1 */
    STREAM_AHEAD = 4096, /* bytes of each panel of those that are streamed together */
    MOST_PANELS = PAIR_PANELS,
};

struct rest { /* the last columns, where they do not fill a tile */
    uint16_t x[SIDE * 2][STEP_K];
    word panels[MOST_PANELS][SIDE][PANEL];
};

struct job {
    struct pairs p;
    int64_t full, steps; /* steps whose columns are all there, and all */
    struct rest *rest;
};

static void fill_panels(const struct job *job) {
    const int64_t words = (job->p.k + 1) / 2 - job->full * SIDE;
    memset(job->rest->panels, 0, sizeof job->rest->panels);
    for (int i = 0; i < job->p.n_panels; i++)
        memcpy(job->rest->panels[i],
               (const char *)job->p.panels + i * job->p.step + job->full * TILE_BYTES,
               (size_t)words * LINE);
}

static void fill_rows(const struct job *job, int r, int n) {
    const int64_t done = job->full * STEP_K;
    memset(job->rest->x, 0, sizeof job->rest->x);
    for (int i = 0; i < n; i++)
        memcpy(job->rest->x[i], job->p.x + (r + i) * job->p.ldx + done,
               (size_t)(job->p.k - done) * sizeof *job->p.x);
}

/* What a step reads: `last` is the one with the rest. */
INLINE const char *rows_at(const struct job *job, int r, int half, int64_t s, bool last) {
    return last ? (const char *)job->rest->x[half * SIDE]
                : (const char *)(job->p.x + (r + half * SIDE) * job->p.ldx + s * STEP_K);
}

INLINE const char *panel_at(const struct job *job, int p, int64_t s, bool last) {
    return last ? (const char *)job->rest->panels[p]
                : (const char *)job->p.panels + p * job->p.step + s * TILE_BYTES;
}

/* Up to 32 rows by up to two panels: four loads for four products. */
/* Digits: compilers paste them into instructions. */
#define C00 0
#define C01 1
#define C10 2
#define C11 3
#define A0  4
#define A1  5
#define B0  6
#define B1  7

INLINE void square(const struct job *job, int r, int p, int64_t begin, int64_t end, const int P) {
    const int64_t ldc = job->p.ldc * (int64_t)sizeof(float);
    char *c = (char *)(job->p.c + r * job->p.ldc + p * PANEL), *low = c + SIDE * ldc;
    if (begin == 0) {
        tile_zero(C00);
        tile_zero(C10);
        if (P > 1) tile_zero(C01);
        if (P > 1) tile_zero(C11);
    } else {
        tile_load(C00, c, ldc);
        tile_load(C10, low, ldc);
        if (P > 1) tile_load(C01, c + LINE, ldc);
        if (P > 1) tile_load(C11, low + LINE, ldc);
    }
    for (int64_t s = begin; s < end; s++) {
        const bool last = s == job->full;
        const int64_t ldx = last ? LINE : job->p.ldx * (int64_t)sizeof(uint16_t);
        tile_load(B0, panel_at(job, p, s, last), LINE);
        tile_load(A0, rows_at(job, r, 0, s, last), ldx);
        tile_multiply_bf16(C00, A0, B0);
        tile_load(A1, rows_at(job, r, 1, s, last), ldx);
        tile_multiply_bf16(C10, A1, B0);
        if (P < 2) continue;
        tile_load(B1, panel_at(job, p + 1, s, last), LINE);
        tile_multiply_bf16(C01, A0, B1);
        tile_multiply_bf16(C11, A1, B1);
    }
    tile_store(C00, c, ldc);
    tile_store(C10, low, ldc);
    if (P > 1) tile_store(C01, c + LINE, ldc);
    if (P > 1) tile_store(C11, low + LINE, ldc);
}

/* Up to 16 rows by up to four panels, each of which is read once. */
#define F0  0
#define F1  1
#define F2  2
#define F3  3
#define FA  4
#define FB0 5
#define FB1 6
#define FB2 7

#define EACH_PANEL(X) X(0, FB0) X(1, FB1) X(2, FB2) X(3, FB0)
#define FLAT_ZERO(i, B)                                                                            \
    if (i < P) tile_zero(F##i);
#define FLAT_LOAD(i, B)                                                                            \
    if (i < P) tile_load(F##i, c + i * LINE, ldc);
#define FLAT_STORE(i, B)                                                                           \
    if (i < P) tile_store(F##i, c + i * LINE, ldc);
#define FLAT_STEP(i, B)                                                                            \
    if (i < P) {                                                                                   \
        const char *panel = panel_at(job, p + i, s, last);                                         \
        tile_load(B, panel, LINE);                                                                 \
        tile_multiply_bf16(F##i, FA, B);                                                           \
        if (!last) ask_for(panel + STREAM_AHEAD);                                                  \
    }

INLINE void ask_for(const char *from) {
    for (int i = 0; i < TILE_BYTES; i += LINE) __builtin_prefetch(from + i, 0, 2);
}

INLINE void flat(const struct job *job, int r, int p, int64_t begin, int64_t end, const int P) {
    const int64_t ldc = job->p.ldc * (int64_t)sizeof(float);
    char *c = (char *)(job->p.c + r * job->p.ldc + p * PANEL);
    if (begin == 0) {
        EACH_PANEL(FLAT_ZERO)
    } else {
        EACH_PANEL(FLAT_LOAD)
    }
    for (int64_t s = begin; s < end; s++) {
        const bool last = s == job->full;
        const int64_t ldx = last ? LINE : job->p.ldx * (int64_t)sizeof(uint16_t);
        tile_load(FA, rows_at(job, r, 0, s, last), ldx);
        EACH_PANEL(FLAT_STEP)
    }
    EACH_PANEL(FLAT_STORE)
}

/* All tiles 64 bytes wide, with so many rows: of c and x as many as there are, else 16. */
static void configure(int rows0, int rows1, bool is_flat) {
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        const bool is_high = is_flat ? i <= FA : i == C00 || i == C01 || i == A0;
        const bool is_low = !is_flat && (i == C10 || i == C11 || i == A1);
        config.rows[i] = (uint8_t)(is_high ? rows0 : is_low ? rows1 : SIDE);
        config.row_bytes[i] = LINE;
    }
    tiles_configure(&config);
}

static void flat_rows(const struct job *job, int r, int n, int64_t begin, int64_t end) {
    int p = 0;
    if (end > job->full) fill_rows(job, r, n);
    configure(n, 0, true);
    for (; p + 4 <= job->p.n_panels; p += 4) flat(job, r, p, begin, end, 4);
    if (job->p.n_panels - p == 3) flat(job, r, p, begin, end, 3);
    if (job->p.n_panels - p == 2) flat(job, r, p, begin, end, 2);
    if (job->p.n_panels - p == 1) flat(job, r, p, begin, end, 1);
}

static void square_rows(const struct job *job, int r, int n, int p, int64_t begin, int64_t end) {
    if (end > job->full) fill_rows(job, r, n);
    __asm__ volatile("" : : "r"(job->rest) : "memory"); /* tiles are loaded from it */
    if (p + 1 < job->p.n_panels)
        square(job, r, p, begin, end, 2);
    else
        square(job, r, p, begin, end, 1);
}

void cpu_amx_product(const struct pairs *pairs) {
    struct rest rest;
    const struct job job = {.p = *pairs,
                            .full = pairs->k / STEP_K,
                            .steps = (pairs->k + STEP_K - 1) / STEP_K,
                            .rest = &rest};
    const int whole = pairs->m / (2 * SIDE) * (2 * SIDE), left = pairs->m - whole;
    /* Few rows: panels from end to end, as they come from memory. */
    const int64_t block = whole == 0 ? job.steps : BLOCK_STEPS;
    if (job.steps > job.full) fill_panels(&job);
    for (int64_t begin = 0, end; begin == 0 || begin < job.steps; begin = end) {
        end = begin + block < job.steps ? begin + block : job.steps;
        if (end == begin) end = begin + 1; /* of no columns: zeros */
        const int64_t until = end < job.steps ? end : job.steps;
        if (whole > 0) configure(SIDE, SIDE, false);
        for (int p = 0; p < pairs->n_panels && whole > 0; p += 2)
            for (int r = 0; r < whole; r += 2 * SIDE)
                square_rows(&job, r, 2 * SIDE, p, begin, until);
        if (left > SIDE) configure(SIDE, left - SIDE, false);
        for (int p = 0; p < pairs->n_panels && left > SIDE; p += 2)
            square_rows(&job, whole, left, p, begin, until);
        if (left > 0 && left <= SIDE) flat_rows(&job, whole, left, begin, until);
    }
    tiles_release();
}

/* Four sums that do not wait for each other, each product 2^14 FLOPs. Their lanes begin elsewhere
   and grow too slowly to overflow. */
float cpu_amx_peak(int64_t flops) {
    float c[4][SIDE * SIDE], sum = 0;
    uint16_t x[SIDE * STEP_K], panel[SIDE * STEP_K];
    for (int i = 0; i < SIDE * STEP_K; i++) {
        x[i] = bf16_from_f32(1 + (float)(i % 7) / 8);
        panel[i] = bf16_from_f32((1 + (float)(i % 5) / 4) * 0x1p-20f);
    }
    for (int i = 0; i < 4 * SIDE * SIDE; i++) c[i / (SIDE * SIDE)][i % (SIDE * SIDE)] = (float)i;
    __asm__ volatile("" : : "r"(x), "r"(panel), "r"(c) : "memory");
    configure(SIDE, SIDE, false);
    tile_load(C00, c[0], LINE);
    tile_load(C01, c[1], LINE);
    tile_load(C10, c[2], LINE);
    tile_load(C11, c[3], LINE);
    tile_load(A0, x, LINE);
    tile_load(A1, x, LINE);
    tile_load(B0, panel, LINE);
    tile_load(B1, panel, LINE);
    int64_t n = flops / (2 * SIDE * SIDE * STEP_K);
    for (; n >= 4; n -= 4) {
        tile_multiply_bf16(C00, A0, B0);
        tile_multiply_bf16(C01, A0, B1);
        tile_multiply_bf16(C10, A1, B0);
        tile_multiply_bf16(C11, A1, B1);
    }
    for (; n > 0; n--) tile_multiply_bf16(C00, A0, B0);
    tile_store(C00, c[0], LINE);
    tile_store(C01, c[1], LINE);
    tile_store(C10, c[2], LINE);
    tile_store(C11, c[3], LINE);
    tiles_release();
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < SIDE * SIDE; j++) sum += c[i][j];
    return sum;
}
