/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products over packed panels, from one row (bound by reading weights) to many (bound by
 * arithmetic). */
#include <string.h>

#include "kernels/cpu/linear.h"

enum {
    UNPACK_ROWS = 48,  /* more rows than this: panels of floats are widened once for all of them */
    UNPACK_CODES = 24, /* the same of codes */
};

_Static_assert((int)MOST_COLS <= (int)PAIR_PANELS * PANEL, "what multiply_pairs takes");
_Static_assert(MOST_GROUP % 2 == 0 && GROUP_PANELS % 2 == 0, "rows of sums are odd lines");

int64_t cpu_linear_wide(const struct step_bounds *b) {
    const int64_t rows = b->n_row < BLOCK_ROWS ? b->n_row : BLOCK_ROWS;
    int64_t widest = (int64_t)b->n_q * b->d_h;
    if (b->d_model > widest) widest = b->d_model;
    if (b->d_ff > widest) widest = b->d_ff;
    return b->activation == DT_F32 ? 0 : rows * (widest + PANEL); /* spread_rows adds a line */
}

void cpu_linear_blocks(struct cpu *cpu, int64_t l2_bytes) {
    enum { LARGE = 1 << 20, LEAST_K = 128, HALF_ROWS = BLOCK_ROWS / 2 };
    cpu->block_rows = l2_bytes > 0 && l2_bytes < LARGE ? HALF_ROWS : BLOCK_ROWS;
    const int64_t column = (cpu->block_rows + GROUP_PANELS * PANEL) * (int64_t)sizeof(float);
    const int64_t fits = l2_bytes * 7 / 10 / column / WORD_CODES * WORD_CODES;
    cpu->block_k = l2_bytes <= 0 || fits > BLOCK_K ? BLOCK_K : fits < LEAST_K ? LEAST_K : fits;
}

int64_t cpu_linear_scratch(void) {
    return 2 * BLOCK_ROWS * MOST_COLS + GROUP_PANELS * BLOCK_K * PANEL;
}

/* Blocks of columns. They begin where a panel can be entered: at a group of several, else at a
 * word.
 */
struct blocks {
    int64_t n, n_grains, grain, cols;
};

static struct blocks blocks_of(const struct product *job, bool one) {
    const struct cpu_weight *w = job->w;
    const int64_t block_k = job->cpu->block_k;
    struct blocks b = {.n = 1, .cols = w->head.cols};
    b.grain = w->n_groups > 1 ? w->span : WORD_CODES;
    b.n_grains = (b.cols + b.grain - 1) / b.grain;
    const int64_t most = b.grain < block_k ? block_k / b.grain : 1;
    if (!one) b.n = (b.n_grains + most - 1) / most;
    return b;
}

static int64_t block_begin(const struct blocks *b, int64_t i) {
    return i == b->n ? b->cols : b->n_grains * i / b->n * b->grain;
}

/* Columns k0 ... k0 + k - 1 of a panel as floats: out (k, 16). */
static void unpack(const struct product *job, const char *panel, int64_t k0, int64_t k,
                   float *out) {
    const struct cpu_weight *w = job->w;
    for (int64_t i = 0, some; i < k; i += some) {
        some = w->n_groups == 1 || k - i < w->span ? k - i : w->span;
        job->cpu->kernels->unpack[w->head.type](out + i * PANEL,
                                                panel + cpu_weight_column(w, k0 + i), some);
    }
}

/* A tile over whole panels in two parts: beside the last columns, behind which a panel has nothing
   that is not known already, it asks for the beginnings of the panels from `next` on, which come
   after these; reach: stream_ahead. False where panels are short. */
static bool stream(const struct cpu_weight *w, void (*tile)(const struct tile *),
                   const struct tile *whole, int64_t reach, int64_t next) {
    const int64_t grain = w->n_groups > 1 ? w->span : WORD_CODES;
    const int64_t lines = reach * w->head.cols / w->panel_bytes;
    const int64_t last = (lines + grain - 1) / grain * grain,
                  split = (whole->k - last) / grain * grain;
    if (whole->k < 3 * last) return false;
    struct tile t = *whole;
    t.k = split;
    tile(&t);
    t.k = whole->k - split;
    t.add = true;
    t.x += split;
    t.panels = (const char *)t.panels + cpu_weight_column(w, split);
    if (t.scales != NULL) t.scales += split / w->span * PANEL;
    t.ahead = w->data + next * w->panel_bytes;
    tile(&t);
    return true;
}

/* acc (m, n_panels * 16), ldc apart = x (m, K) * panels first ..., with scales of several groups
 * but without those of a whole row. */
static void sums(const struct product *job, const float *x, int32_t m, int64_t first, int n_panels,
                 float *acc, int64_t ldc, float *wide) {
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const struct cpu_weight *w = job->w;
    const enum dtype type = w->head.type;
    const int64_t ldx = job->x.stride;
    const int64_t word_k = cpu_word_columns(type), wide_step = PANEL * (int64_t)sizeof *wide;
    const int n_tiles = (m + kernels->rows - 1) / kernels->rows;
    /* Fewer rows than a block pays for: no blocks of k, each panel once from end to end. Groups
     * larger than a block leave no choice. */
    const bool whole = n_tiles == 1 || (w->n_groups > 1 && w->span > job->cpu->block_k);
    const struct blocks blocks = blocks_of(job, whole);
    const int64_t reach = n_tiles == 1 ? stream_ahead(kernels->abreast[m]) : 0;
    const int together = n_tiles == 1 ? n_panels : GROUP_PANELS;
    const bool unpacked = !whole && kernels->unpack[type] != NULL &&
                          m > (w->scales != NULL ? UNPACK_CODES : UNPACK_ROWS);
    const int64_t step_k = unpacked || word_k < 2 ? 2 : word_k; /* of a tile's iteration */
    struct tile t = {
        .ldc = ldc,
        .ldx = ldx,
        .k_step = unpacked ? wide_step : cpu_columns_bytes(type, word_k),
        .step = w->panel_bytes,
        .scales_step = w->n_groups * PANEL,
        .group = w->span,
        .ahead_panel = w->panel_bytes,
        .ahead_step = step_k * PANEL * dtype_bits(type) / 8 / n_tiles,
    };
    void (*tile)(const struct tile *) = kernels->panels[unpacked ? DT_F32 : type];
    if (unpacked && w->scales != NULL) tile = kernels->wide;
    for (int64_t b = 0; b < blocks.n; b++) {
        const int64_t k0 = block_begin(&blocks, b);
        t.k = block_begin(&blocks, b + 1) - k0;
        t.add = b > 0;
        for (int p = 0; p < n_panels; p += together) {
            const char *panels = w->data + (first + p) * w->panel_bytes;
            t.n_panels = n_panels - p < together ? n_panels - p : together;
            t.panels = panels + cpu_weight_column(w, k0);
            if (w->n_groups > 1)
                t.scales = (const uint16_t *)w->scales +
                           ((first + p) * w->n_groups + k0 / w->span) * PANEL;
            /* One tile streams: what comes soon in each panel is asked for, which is worth a sixth
             * over asking for the panels that follow. Several: those, a share with each. */
            const char *ahead =
                (const char *)t.panels + (n_tiles == 1 ? reach : t.n_panels * w->panel_bytes);
            if (unpacked) {
                t.panels = wide;
                t.step = t.k * wide_step;
                for (int i = 0; i < t.n_panels; i++)
                    unpack(job, panels + i * w->panel_bytes, k0, t.k, wide + i * t.k * PANEL);
            }
            for (int i = 0; i < n_tiles; i++) {
                const int32_t r0 = cpu_tile_row(m, i, n_tiles, kernels);
                const int32_t r1 = cpu_tile_row(m, i + 1, n_tiles, kernels);
                t.m = r1 - r0;
                t.x = x + r0 * ldx + k0;
                t.c = acc + r0 * ldc + p * PANEL;
                t.ahead = ahead + i * (t.k / step_k) * t.ahead_step;
                if (n_tiles > 1 || !stream(w, tile, &t, reach, first + n_panels)) tile(&t);
            }
        }
    }
}

/* The same with all scales, of rows r0 ... of x. */
static void multiply_floats(const struct product *job, int32_t r0, int32_t m, int64_t first,
                            int n_panels, float *acc, int64_t ldc, float *wide) {
    const struct cpu_weight *w = job->w;
    float by[MOST_COLS];
    sums(job, cpu_row(&job->x, r0), m, first, n_panels, acc, ldc, wide);
    if (w->scales == NULL || w->n_groups > 1) return;
    cpu_weight_scales(w, first, n_panels, by);
    for (int32_t i = 0; i < m; i++)
        job->cpu->kernels->multiply(acc + i * ldc, by, n_panels * PANEL);
}

/* x and the weight of bf16 as they are. */
static void multiply_pairs(const struct product *job, int32_t r0, int32_t m, int64_t first,
                           int n_panels, float *acc, int64_t ldc, float *wide) {
    const struct cpu_weight *w = job->w;
    (void)wide;
    job->cpu->kernels->pairs(&(struct pairs){.c = acc,
                                             .x = cpu_row(&job->x, r0),
                                             .panels = w->data + first * w->panel_bytes,
                                             .ldc = ldc,
                                             .ldx = job->x.stride,
                                             .k = w->head.cols,
                                             .step = w->panel_bytes,
                                             .m = m,
                                             .n_panels = n_panels});
}

/* n results of row r from column c on, in their type. */
static void put(const struct product *job, int64_t r, int64_t c, const float *from, int64_t n) {
    job->cpu->kernels->narrow[job->y.type](
        (char *)cpu_row(&job->y, r) + c * (dtype_bits(job->y.type) / 8), from, n);
}

/* Whole panels of one part without a bias go straight to y; of tiles of pairs, which come back to
   their sums, only those of few rows, since y's rows may share sets of a cache. */
static bool goes_straight(const struct product *job, int32_t m, int64_t end) {
    return job->w->n_parts == 1 && job->bias == NULL && end * PANEL <= job->n &&
           job->y.type == DT_F32 && (job->group == GROUP_PANELS || m <= PANEL);
}

/* Panels first ... first + n - 1 for rows r0 ... r0 + m - 1. */
static void plain_group(const struct product *job, int32_t r0, int32_t m, int64_t first, int n,
                        float *acc) {
    const struct cpu_weight *w = job->w;
    const int64_t ld = SUM_COLS(job);
    float *wide = acc + 2 * BLOCK_ROWS * ld;
    if (goes_straight(job, m, first + n)) {
        job->multiply(job, r0, m, first, n, (float *)cpu_row(&job->y, r0) + first * PANEL,
                      job->y.stride, wide);
        return;
    }
    job->multiply(job, r0, m, first, n, acc, ld, wide);
    int64_t p = 0;
    for (int part = 0; p < n; part++) {
        const int64_t most = w->part_panel[part + 1] - first, end = most < n ? most : n;
        if (end <= p) continue;
        const int64_t row = w->part_row[part] + (first + p - w->part_panel[part]) * PANEL;
        const int64_t left = w->part_row[part + 1] - row, room = (end - p) * PANEL;
        const int64_t count = left < room ? left : room;
        for (int32_t i = 0; i < m; i++) {
            float *sum = acc + i * ld + p * PANEL;
            if (job->bias != NULL) job->cpu->kernels->add(sum, sum, job->bias + row, count);
            put(job, r0 + i, row, sum, count);
        }
        p = end;
    }
}

static void swiglu_group(const struct product *job, int32_t r0, int32_t m, int64_t first, int n,
                         float *acc) {
    const int64_t column = first * PANEL, left = job->n - column,
                  count = left < n * PANEL ? left : n * PANEL;
    const int64_t place = job->up + column, shift = place % PANEL;
    const int n_up = (int)((shift + count + PANEL - 1) / PANEL);
    const int64_t ld = SUM_COLS(job);
    float *up = acc + BLOCK_ROWS * ld, *wide = up + BLOCK_ROWS * ld;
    job->multiply(job, r0, m, first, n, acc, ld, wide);
    job->multiply(job, r0, m, place / PANEL, n_up, up, ld, wide);
    for (int32_t i = 0; i < m; i++) {
        float *gate = acc + i * ld;
        job->cpu->kernels->swiglu(gate, gate, up + i * ld + shift, count);
        put(job, r0 + i, column, gate, count);
    }
}

/* Items are panels, all panels of one block of rows after those of the former. */
void cpu_linear_panels(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct product *job = ctx;
    float *acc = cpu_scratch(job->cpu, thread);
    for (int64_t item = begin; item < end;) {
        const int64_t block = item / job->n_panels, first = item % job->n_panels;
        const int32_t r0 = (int32_t)(job->m * block / job->n_blocks);
        const int32_t r1 = (int32_t)(job->m * (block + 1) / job->n_blocks);
        int64_t n = end - item;
        if (n > job->n_panels - first) n = job->n_panels - first;
        if (n > job->group) n = job->group;
        if (job->up > 0)
            swiglu_group(job, r0, r1 - r0, first, (int)n, acc);
        else
            plain_group(job, r0, r1 - r0, first, (int)n, acc);
        item += n;
    }
}

/* Rows of x as f32: (rows, K) of job->wide. */
struct widening {
    const struct cpu *cpu;
    const struct tensor *x;
    int64_t first, row_bytes;
};

static void widen_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct widening *job = ctx;
    const int64_t k = job->x->cols;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        job->cpu->kernels->widen[job->x->type](job->cpu->wide + r * k,
                                               cpu_row(job->x, job->first + r), k);
}

static void product_run(struct product *job) {
    struct cpu *cpu = job->cpu;
    job->n_blocks = (job->m + cpu->block_rows - 1) / cpu->block_rows;
    /* Serial when a dispatch would cost more than it saves. */
    const int64_t macs = job->m * job->w->head.rows * job->w->head.cols;
    const int64_t items = job->n_blocks * job->n_panels;
    pool_run(cpu->pool, items, job->group, macs < 16384 ? items : 1, cpu_linear_panels, job);
}

/* The same with the rows as they are, but apart by an odd number of lines. */
static void spread_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct widening *job = ctx;
    const int64_t bytes = job->x->cols * (dtype_bits(job->x->type) / 8);
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        memcpy((char *)job->cpu->wide + r * job->row_bytes, cpu_row(job->x, job->first + r),
               (size_t)bytes);
}

/* By pieces of rows that are made anew once for all panels. */
static void wide_product(struct product *job, const struct tensor *x, pool_fn *make,
                         enum dtype type, int64_t stride) {
    struct cpu *cpu = job->cpu;
    const int32_t rows = job->m;
    const int64_t k = x->cols, row_bytes = stride * (dtype_bits(type) / 8);
    const int64_t most = k > 0 ? cpu->wide_floats * (int64_t)sizeof(float) / row_bytes : rows + 1;
    struct tensor *y = &job->y;
    if (!cpu_expects(cpu, most > 0, "linear: activations other than planned")) return;
    job->x = (struct tensor){.data = cpu->wide, .type = type, .stride = stride};
    const int64_t n = (rows + most - 1) / most; /* even pieces */
    for (int64_t i = 0; i < n; i++) {
        const int32_t r = (int32_t)(rows * i / n);
        job->m = (int32_t)(rows * (i + 1) / n) - r;
        struct widening widening = {cpu, x, r, row_bytes};
        const int64_t grain = 1 + 4096 / (k + 1);
        pool_run(cpu->pool, job->m, grain, job->m * k < 16384 ? job->m : 1, make, &widening);
        product_run(job);
        y->data = cpu_row(y, job->m);
    }
}

/* Rows for tiles: more than one whose stride is an even number of lines share the sets of a cache,
   and each of their lines is read from the next one as often as there are panels. */
static void pair_product(struct product *job, const struct tensor *x) {
    enum { LINE_PAIRS = 32 };
    const int64_t lines = (x->cols + LINE_PAIRS - 1) / LINE_PAIRS;
    const bool apart = x->stride % (2 * LINE_PAIRS) == LINE_PAIRS;
    if (job->m == 1 || apart)
        product_run(job);
    else
        wide_product(job, x, spread_rows, DT_BF16, (lines | 1) * LINE_PAIRS);
}

void cpu_linear(struct device *device, struct tensor *y, const struct tensor *x,
                const struct weight *weight, const float *bias, enum epilogue epilogue) {
    struct cpu *cpu = cpu_of(device);
    const struct cpu_weight *w = (const struct cpu_weight *)weight;
    const bool swiglu = epilogue == EPI_SWIGLU;
    const int64_t n = swiglu ? w->head.rows / 2 : w->head.rows;
    if (!cpu_expects(cpu, cpu->scratch != NULL, "linear before plan") ||
        !cpu_expects(cpu, cpu_is_float(x->type) && cpu_is_float(y->type),
                     "linear: activations are floats") ||
        !cpu_expects(cpu, x->cols == w->head.cols && y->cols == n && x->rows == y->rows,
                     "linear: x, the weight and y do not fit"))
        return;
    const bool pairs = cpu->kernels->pairs != NULL && x->type == DT_BF16 && w->head.type == DT_BF16;
    struct product job = {.cpu = cpu,
                          .w = w,
                          .multiply = pairs ? multiply_pairs : multiply_floats,
                          .x = *x,
                          .y = *y,
                          .bias = bias,
                          .m = x->rows,
                          .group = pairs ? MOST_GROUP : GROUP_PANELS,
                          .n = n,
                          .n_panels = swiglu ? (n + PANEL - 1) / PANEL : w->n_panels,
                          .up = swiglu ? cpu_weight_place(w, n) : 0};
    if (job.m == 0 || n == 0) return;
    if (weight->input == DT_I8)
        cpu_linear_codes(&job);
    else if (pairs)
        pair_product(&job, x);
    else if (x->type == DT_F32)
        product_run(&job);
    else
        wide_product(&job, x, widen_rows, DT_F32, x->cols);
}
