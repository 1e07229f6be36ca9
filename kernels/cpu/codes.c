/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized weights in panels: the codes and scales that quant.h defines, where kernels.h puts
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/cpu/cpu.h"

enum { ABSMAX_ROWS = 64 };

static bool has_words(const struct cpu_weight *w) { return dtype_bits(w->head.type) == 4; }

/* The bits of a 4-bit code: int4 from 0 up. */
static uint32_t code_bits(enum dtype type, int8_t code) {
    return (uint32_t)(type == DT_I4 ? code + 8 : code) & 15;
}

/* Which 4 bits of a word code i of it has: where the input is int8, the low and the high half of
 * byte i and i - 4. */
static int64_t nibble(const struct cpu_weight *w, int64_t i) {
    return w->head.input == DT_I8 ? i % 4 * 2 + i / 4 : i;
}

static word word_of(const struct cpu_weight *w, const int8_t *codes, int64_t n) {
    word bits = 0;
    for (int64_t i = 0; i < n; i++) bits |= code_bits(w->head.type, codes[i]) << (4 * nibble(w, i));
    return bits;
}

/* Words of int8 codes, one a byte. */
static void place_bytes(const struct cpu_weight *w, int flip, char *panel, int64_t lane,
                        const int8_t *codes) {
    for (int64_t k = 0; k < w->head.cols; k++)
        panel[cpu_weight_byte(w, k) + lane * WORD_INT8] = (char)(codes[k] ^ flip);
}

static void place_codes(const struct cpu_weight *w, int flip, char *panel, int64_t lane,
                        const int8_t *codes) {
    const int64_t cols = w->head.cols;
    if (w->head.input == DT_I8 && !has_words(w)) {
        place_bytes(w, flip, panel, lane, codes);
        return;
    }
    if (!has_words(w)) {
        for (int64_t k = 0; k < cols; k++) panel[k * PANEL + lane] = codes[k];
        return;
    }
    word *to = (word *)panel + lane;
    for (int64_t k = 0, n; k < cols; k += n, to += PANEL) {
        const int64_t left = w->span - k % w->span;
        n = left < WORD_CODES ? left : WORD_CODES;
        if (n > cols - k) n = cols - k;
        *to = word_of(w, codes + k, n);
    }
}

static void place_scales(const struct cpu_weight *w, int64_t panel, int part, int64_t lane,
                         const float *scales) {
    if (w->head.scale == SCALE_TENSOR) ((float *)w->scales)[part] = scales[0];
    if (w->head.scale == SCALE_ROW) ((float *)w->scales)[panel * PANEL + lane] = scales[0];
    if (w->head.scale != SCALE_GROUP) return;
    uint16_t *to = (uint16_t *)w->scales + panel * w->n_groups * PANEL + lane;
    for (int64_t g = 0; g < w->n_groups; g++) to[g * PANEL] = f16_from_f32(scales[g]);
}

void cpu_pack_codes(const struct cpu *cpu, const struct cpu_weight *w,
                    const struct weight_spec *spec, int64_t panel, int64_t lane, const float *row,
                    float tensor_absmax, const struct codes_room *room) {
    quant_row(spec, row, tensor_absmax, room->codes, room->scales);
    place_codes(w, cpu->codes->flip, w->data + panel * w->panel_bytes, lane, room->codes);
    place_scales(w, panel, cpu_part_of_panel(w, panel), lane, room->scales);
}

/* ---- the largest of a matrix, by all threads ---- */

struct largest {
    const struct weight_spec *spec;
    const struct row_source *source;
    float *of_thread;
};

struct rows_from {
    const struct row_source *source;
    int64_t first;
};

static void row_from(void *ctx, int64_t r, float *out) {
    const struct rows_from *from = ctx;
    from->source->row(from->source->ctx, from->first + r, out);
}

static void find_largest(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct largest *job = ctx;
    struct rows_from from = {job->source, begin};
    struct weight_spec some = *job->spec;
    some.rows = end - begin;
    const float most = quant_absmax(&some, &(struct row_source){.row = row_from, .ctx = &from});
    if (most > job->of_thread[thread]) job->of_thread[thread] = most;
}

float cpu_absmax(struct cpu *cpu, const struct weight_spec *spec, const struct row_source *source) {
    const int threads = pool_threads(cpu->pool);
    struct largest job = {
        .spec = spec,
        .source = source,
        .of_thread = must_alloc((size_t)threads * sizeof *job.of_thread),
    };
    float most = 0;
    pool_run(cpu->pool, spec->rows, ABSMAX_ROWS, 1, find_largest, &job);
    for (int i = 0; i < threads; i++)
        if (job.of_thread[i] > most) most = job.of_thread[i];
    free(job.of_thread);
    return most;
}

/* ---- back to floats ---- */

static float scale_at(const struct cpu_weight *w, int64_t panel, int64_t lane, int64_t group) {
    if (w->head.scale == SCALE_TENSOR)
        return ((const float *)w->scales)[cpu_part_of_panel(w, panel)];
    if (w->head.scale == SCALE_ROW) return ((const float *)w->scales)[panel * PANEL + lane];
    const uint16_t *scales = w->scales;
    return f16_to_f32(scales[(panel * w->n_groups + group) * PANEL + lane]);
}

void cpu_weight_scales(const struct cpu_weight *w, int64_t panel, int n, float *out) {
    for (int p = 0; p < n; p++)
        for (int i = 0; i < PANEL; i++) out[p * PANEL + i] = scale_at(w, panel + p, i, 0);
}

static int8_t code_at(const struct cpu_weight *w, int flip, const char *columns, int64_t lane,
                      int64_t i) {
    if (w->head.input == DT_I8 && !has_words(w))
        return (int8_t)(columns[cpu_weight_byte(w, i) + lane * WORD_INT8] ^ flip);
    if (!has_words(w)) return (int8_t)columns[i * PANEL + lane];
    const word bits = ((const word *)columns)[i / WORD_CODES * PANEL + lane];
    const int8_t code = (int8_t)(bits >> (4 * nibble(w, i % WORD_CODES)) & 15);
    return (int8_t)(w->head.type == DT_I4 ? code - 8 : code);
}

void cpu_codes_row(const struct cpu *cpu, const struct cpu_weight *w, int64_t place, float *out) {
    const int64_t panel = place / PANEL, lane = place % PANEL, cols = w->head.cols;
    const struct weight_spec spec = {.type = w->head.type};
    for (int64_t g = 0, k = 0; g < w->n_groups; g++) {
        const char *columns = w->data + panel * w->panel_bytes + cpu_weight_column(w, k);
        const float scale = scale_at(w, panel, lane, g);
        const int64_t n = cols - k < w->span ? cols - k : w->span;
        for (int64_t i = 0; i < n; i++)
            out[k + i] = quant_value(&spec, code_at(w, cpu->codes->flip, columns, lane, i), scale);
        k += n;
    }
}
