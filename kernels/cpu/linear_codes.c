/* SPDX-License-Identifier: Apache-2.0 */
/* Products of weights whose input is int8: rows of x become codes, which are multiplied with the
   weights' own. */
#include <string.h>

#include "kernels/cpu/linear.h"

enum {
    BLOCK_CODES = 4096, /* columns of a block: of a group of panels a quarter of a MiB */
    LINE = 64,
};

/* Words of one group of columns that share a scale, and of a row. */
static int64_t group_words(const struct cpu_weight *w) {
    const int64_t word_k = cpu_weight_word(&w->head);
    return (w->span + word_k - 1) / word_k;
}

static int64_t row_words(const struct cpu_weight *w) { return w->panel_bytes / LINE; }

static int64_t row_bytes(const struct cpu *cpu, const struct cpu_weight *w) {
    const int64_t bytes = row_words(w) * cpu->codes->word_bytes[w->head.type];
    return ((bytes + LINE - 1) / LINE | 1) * LINE; /* odd: rows do not share sets of a cache */
}

/* ---- room ---- */

bool cpu_inputs_open(struct cpu *cpu, const struct cpu_weight *w) {
    struct inputs *in = &cpu->inputs;
    if (w->head.input != DT_I8) return true;
    const int64_t of_words = BLOCK_ROWS * row_bytes(cpu, w);
    const int64_t of_start = BLOCK_ROWS * w->n_groups * (int64_t)sizeof *in->start;
    const int64_t bytes = of_words + of_start + BLOCK_ROWS * (int64_t)sizeof *in->scales;
    in->n_weights++;
    if (bytes <= in->bytes) return true;
    device_free(&cpu->base, in->words);
    in->words = device_alloc(&cpu->base, (size_t)bytes, MEM_WORKSPACE, "cpu int8 inputs");
    in->bytes = in->words != NULL ? bytes : 0;
    return in->words != NULL;
}

void cpu_inputs_close(struct cpu *cpu) {
    struct inputs *in = &cpu->inputs;
    if (--in->n_weights > 0) return;
    device_free(&cpu->base, in->words);
    *in = (struct inputs){0};
}

/* ---- rows of x ---- */

/* The sum of n codes, eight at once: with the sign turned over they are 0 ... 255, and 16 bits hold
 * 257 of them. */
static int32_t sum_of(const int8_t *codes, int64_t n) {
    const uint64_t low = 0x00ff00ff00ff00ffu;
    int64_t i = 0;
    int32_t sum = 0;
    while (n - i >= 8) {
        uint64_t sums = 0, eight;
        const int64_t begin = i, end = n - i < 8 * 128 ? n - 7 : i + 8 * 128;
        for (; i < end; i += 8) {
            memcpy(&eight, codes + i, sizeof eight);
            eight ^= 0x8080808080808080u;
            sums += (eight & low) + (eight >> 8 & low);
        }
        sums = (sums & 0x0000ffff0000ffffu) + (sums >> 16 & 0x0000ffff0000ffffu);
        sum += (int32_t)((sums & 0xffffffffu) + (sums >> 32)) - 128 * (int32_t)(i - begin);
    }
    for (; i < n; i++) sum += codes[i];
    return sum;
}

static void make_inputs(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct product *job = ctx;
    const struct cpu_weight *w = job->w;
    const struct cpu_code_kernels *kernels = job->cpu->codes;
    const struct inputs *in = &job->cpu->inputs;
    const enum dtype type = w->head.type;
    const int64_t group_bytes = group_words(w) * kernels->word_bytes[type];
    int8_t *codes = (int8_t *)cpu_scratch(job->cpu, thread);
    for (int64_t r = begin; r < end; r++) {
        char *words = in->words + r * row_bytes(job->cpu, w);
        in->scales[r] = job->cpu->kernels->input(codes, cpu_row(&job->x, r), w->head.cols);
        for (int64_t g = 0; g < w->n_groups; g++) {
            const int64_t k = g * w->span, left = w->head.cols - k;
            const int64_t n = left < w->span ? left : w->span;
            kernels->arrange[type](words + g * group_bytes, codes + k, n);
            in->start[r * w->n_groups + g] =
                kernels->bias[type] == 0 ? 0 : -kernels->bias[type] * sum_of(codes + k, n);
        }
    }
}

/* ---- products ---- */

/* Sums of all columns, block by block; int32, or with scales of several groups f32. */
static void sums(const struct product *job, int32_t r0, int32_t m, int64_t first, int n_panels,
                 float *acc, int64_t ldc) {
    const struct cpu_weight *w = job->w;
    const struct cpu_code_kernels *kernels = job->cpu->codes;
    const struct inputs *in = &job->cpu->inputs;
    const int64_t words = row_words(w), x_bytes = kernels->word_bytes[w->head.type];
    const int64_t ldx = row_bytes(job->cpu, w), group = group_words(w);
    const int64_t grain = w->n_groups > 1 ? group : 1;
    const int64_t most = BLOCK_CODES / cpu_weight_word(&w->head) / grain;
    const int n_tiles = (m + kernels->rows - 1) / kernels->rows;
    const unsigned char *abreast = kernels->abreast;
    const int64_t reach = n_tiles == 1 ? stream_ahead(abreast ? abreast[m] : n_panels) : 0;
    const int64_t block = n_tiles == 1 ? words : (most > 1 ? most : 1) * grain;
    struct code_tile t = {.ldc = ldc,
                          .ldx = ldx,
                          .step = w->panel_bytes,
                          .start_step = w->n_groups,
                          .n_panels = n_panels,
                          .scales_step = w->n_groups * PANEL,
                          .group = group,
                          .ahead_panel = w->panel_bytes,
                          .ahead_step = LINE / n_tiles};
    for (int64_t at = 0; at < words; at += block) {
        const int64_t g = w->n_groups > 1 ? at / group : 0;
        t.words = words - at < block ? words - at : block;
        t.panels = w->data + first * w->panel_bytes + at * LINE;
        t.add = at > 0;
        if (w->n_groups > 1)
            t.scales = (const uint16_t *)w->scales + (first * w->n_groups + g) * PANEL;
        /* One tile streams, and asks for what comes soon in each panel; several for the panels that
         * follow, a share with each. */
        const char *ahead = t.panels + (n_tiles == 1 ? reach : n_panels * w->panel_bytes);
        for (int i = 0; i < n_tiles; i++) {
            const int32_t begin = m * i / n_tiles, row = r0 + begin;
            t.m = m * (i + 1) / n_tiles - begin;
            t.x = in->words + row * ldx + at * x_bytes;
            t.start = in->start + row * w->n_groups + g;
            if (kernels->bias[w->head.type] == 0 || (w->n_groups == 1 && at > 0)) t.start = NULL;
            t.c = acc + begin * ldc;
            t.ahead = ahead + i * t.words * t.ahead_step;
            kernels->tile[w->head.type](&t);
        }
    }
}

static void multiply_codes(const struct product *job, int32_t r0, int32_t m, int64_t first,
                           int n_panels, float *acc, int64_t ldc, float *wide) {
    const struct cpu_weight *w = job->w;
    float by[MOST_COLS];
    (void)wide;
    sums(job, r0, m, first, n_panels, acc, ldc);
    if (w->n_groups == 1) cpu_weight_scales(w, first, n_panels, by);
    for (int32_t i = 0; i < m; i++)
        job->cpu->codes->finish(acc + i * ldc, w->n_groups == 1 ? by : NULL,
                                job->cpu->inputs.scales[r0 + i], n_panels * PANEL);
}

/* A block of rows of x at a time becomes codes, by all threads, and is multiplied. */
void cpu_linear_codes(struct product *job) {
    const struct cpu_weight *w = job->w;
    struct inputs *in = &job->cpu->inputs;
    const int32_t rows = job->m;
    if (!cpu_expects(job->cpu, job->x.type == DT_F32, "linear: int8 inputs are rounded from f32"))
        return;
    in->start = (int32_t *)(in->words + BLOCK_ROWS * row_bytes(job->cpu, w));
    in->scales = (float *)(in->start + BLOCK_ROWS * w->n_groups);
    job->multiply = multiply_codes;
    job->group = job->cpu->codes->panels;
    job->n_blocks = 1;
    for (int32_t at = 0; at < rows; at += job->m) {
        job->m = rows - at < BLOCK_ROWS ? rows - at : BLOCK_ROWS;
        const int64_t macs = job->m * w->head.rows * w->head.cols;
        const int64_t values = job->m * w->head.cols, grain = 1 + 4096 / (w->head.cols + 1);
        pool_run(job->cpu->pool, job->m, grain, values < 1 << 15 ? job->m : 1, make_inputs, job);
        pool_run(job->cpu->pool, job->n_panels, job->group, macs < 16384 ? job->n_panels : 1,
                 cpu_linear_panels, job);
        job->x.data = cpu_row(&job->x, job->m);
        job->y.data = cpu_row(&job->y, job->m);
    }
}
