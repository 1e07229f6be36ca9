/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights into panels of 16 interleaved rows, by all threads, a panel at a time: no staged
 * copy of a matrix. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/cpu/cpu.h"

struct packing {
    struct cpu *cpu;
    struct cpu_weight *w;
    const struct row_source *sources;
    float **rows; /* (threads) 16 rows each */
};

static int part_of_panel(const struct cpu_weight *w, int64_t panel) {
    int part = 0;
    while (panel >= w->part_panel[part + 1]) part++;
    return part;
}

static void pack_panels(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct packing *job = ctx;
    const struct cpu_weight *w = job->w;
    const int64_t cols = w->head.cols;
    float *rows = job->rows[thread];
    for (int64_t panel = begin; panel < end; panel++) {
        const int part = part_of_panel(w, panel);
        const struct row_source *source = &job->sources[part];
        const int64_t first = (panel - w->part_panel[part]) * PANEL;
        const int64_t count = w->part_row[part + 1] - w->part_row[part];
        for (int64_t i = 0; i < PANEL; i++) {
            if (first + i < count)
                source->row(source->ctx, first + i, rows + i * cols);
            else
                memset(rows + i * cols, 0, (size_t)cols * sizeof *rows);
        }
        job->cpu->kernels->pack[w->head.type](w->data + panel * w->panel_bytes, rows, cols, cols);
    }
}

static void fill(struct cpu *cpu, struct cpu_weight *w, const struct row_source *sources) {
    const int threads = pool_threads(cpu->pool);
    struct packing job = {.cpu = cpu, .w = w, .sources = sources};
    job.rows = must_alloc((size_t)threads * sizeof *job.rows);
    for (int i = 0; i < threads; i++)
        job.rows[i] = must_alloc((size_t)(PANEL * w->head.cols + 1) * sizeof(float));
    pool_run(cpu->pool, w->n_panels, 8, 1, pack_panels, &job);
    for (int i = 0; i < threads; i++) free(job.rows[i]);
    free(job.rows);
}

static int check_parts(const struct weight_spec *parts, int n, struct err *err) {
    const struct weight_spec *first = &parts[0];
    if (first->type != DT_F32 && first->type != DT_F16 && first->type != DT_BF16)
        return err_set(err, ERR_UNSUPPORTED, "cpu: %s: weights of type %s are not on this device",
                       first->what, dtype_names[first->type]);
    for (int i = 0; i < n; i++)
        if (parts[i].cols != first->cols || parts[i].type != first->type ||
            parts[i].scale != first->scale || parts[i].group != first->group)
            return err_set(err, ERR_INTERNAL,
                           "cpu: %s and %s differ in columns or type and cannot be stacked",
                           first->what, parts[i].what);
    return 0;
}

int cpu_pack(struct device *device, struct weight **weight, const struct weight_spec *parts, int n,
             const struct row_source *sources, struct err *err) {
    struct cpu *cpu = cpu_of(device);
    *weight = NULL;
    const int code = check_parts(parts, n, err);
    if (code != 0) return code;
    struct cpu_weight *w = must_alloc(sizeof *w);
    w->n_parts = n;
    w->part_row = must_alloc((size_t)(n + 1) * sizeof *w->part_row);
    w->part_panel = must_alloc((size_t)(n + 1) * sizeof *w->part_panel);
    for (int i = 0; i < n; i++) {
        w->part_row[i + 1] = w->part_row[i] + parts[i].rows;
        w->part_panel[i + 1] = w->part_panel[i] + (parts[i].rows + PANEL - 1) / PANEL;
    }
    w->n_panels = w->part_panel[n];
    w->panel_bytes = PANEL * (parts[0].cols + (parts[0].type == DT_BF16 && parts[0].cols % 2)) *
                     dtype_bits(parts[0].type) / 8;
    w->head = (struct weight){.rows = w->part_row[n],
                              .cols = parts[0].cols,
                              .type = parts[0].type,
                              .scale = parts[0].scale,
                              .bytes = w->n_panels * w->panel_bytes};
    cpu->touch =
        false; /* packing is the first touch, in the order in which the threads will read */
    w->data = device_alloc(device, (size_t)w->head.bytes, MEM_WEIGHT, parts[0].what);
    cpu->touch = true;
    *weight = &w->head;
    if (w->data == NULL) {
        const int64_t bytes = w->head.bytes;
        cpu_unpack(device, weight);
        return err_set(err, ERR_MEMORY, "cpu: no memory for %s (%lld bytes)", parts[0].what,
                       (long long)bytes);
    }
    fill(cpu, w, sources);
    return 0;
}

void cpu_unpack(struct device *device, struct weight **weight) {
    struct cpu_weight *w = (struct cpu_weight *)*weight;
    if (w == NULL) return;
    device_free(device, w->data);
    free(w->part_row);
    free(w->part_panel);
    free(w);
    *weight = NULL;
}

int64_t cpu_weight_place(const struct cpu_weight *w, int64_t row) {
    int part = 0;
    while (part + 1 < w->n_parts && row >= w->part_row[part + 1]) part++;
    return w->part_panel[part] * PANEL + row - w->part_row[part];
}

void cpu_weight_row(const struct cpu *cpu, const struct cpu_weight *w, int64_t row, float *out) {
    (void)cpu;
    const int64_t place = cpu_weight_place(w, row), lane = place % PANEL, cols = w->head.cols;
    const char *panel = w->data + place / PANEL * w->panel_bytes;
    const uint16_t *half = (const uint16_t *)panel;
    switch (w->head.type) {
    case DT_F32:
        for (int64_t k = 0; k < cols; k++) out[k] = ((const float *)panel)[k * PANEL + lane];
        break;
    case DT_F16:
        for (int64_t k = 0; k < cols; k++) out[k] = f16_to_f32(half[k * PANEL + lane]);
        break;
    default: /* bf16, in pairs */
        for (int64_t k = 0; k < cols; k++)
            out[k] = bf16_to_f32(half[k / 2 * 2 * PANEL + 2 * lane + k % 2]);
    }
}
