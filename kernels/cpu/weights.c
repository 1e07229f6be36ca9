/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights into panels of 16 interleaved rows, by all threads, a panel at a time: no staged
 * copy of a matrix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/cpu/cpu.h"

struct room {         /* of one thread */
    float *rows;      /* (16, cols) */
    uint16_t *halves; /* (cols) */
    struct codes_room codes;
};

struct packing {
    struct cpu *cpu;
    struct cpu_weight *w;
    const struct weight_spec *parts;
    const struct row_source *sources;
    float *absmax;      /* of each part; of tensors with one scale */
    struct room *rooms; /* (threads) */
};

static bool is_float(enum dtype type) { return type < (enum dtype)FLOAT_TYPES; }

int cpu_part_of_panel(const struct cpu_weight *w, int64_t panel) {
    int part = 0;
    while (panel >= w->part_panel[part + 1]) part++;
    return part;
}

/* Whether there are two parts alike: gate and up, of which SwiGLU reads the same panels together.
 */
static bool paired(const struct cpu_weight *w) {
    return w->n_parts == 2 && w->part_panel[2] == 2 * w->part_panel[1];
}

static void pack_panel(const struct packing *job, int64_t panel, const struct room *room) {
    const struct cpu_weight *w = job->w;
    const int64_t cols = w->head.cols;
    const int part = cpu_part_of_panel(w, panel);
    const struct row_source *source = &job->sources[part];
    const int64_t first = (panel - w->part_panel[part]) * PANEL;
    const int64_t count = w->part_row[part + 1] - w->part_row[part];
    for (int64_t i = 0; i < PANEL; i++) {
        float *row = room->rows + i * cols;
        if (first + i < count && source->halves) {
            source->halves(source->ctx, first + i, room->halves);
            job->cpu->kernels->widen[source->stored](row, room->halves, cols);
        } else if (first + i < count)
            source->row(source->ctx, first + i, row);
        else
            memset(row, 0, (size_t)cols * sizeof *row);
        if (!is_float(w->head.type))
            cpu_pack_codes(job->cpu, w, &job->parts[part], panel, i, row, job->absmax[part],
                           &room->codes);
    }
    if (is_float(w->head.type))
        job->cpu->kernels->pack[w->head.type](w->data + panel * w->panel_bytes, room->rows, cols,
                                              cols);
}

/* Items are panels, or pairs of them: who reads one touches it first. */
static void pack_panels(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct packing *job = ctx;
    const struct cpu_weight *w = job->w;
    for (int64_t panel = begin; panel < end; panel++) {
        pack_panel(job, panel, &job->rooms[thread]);
        if (paired(w)) pack_panel(job, w->part_panel[1] + panel, &job->rooms[thread]);
    }
}

/* Where pages of each thread's own panels lie. */
static void look_at_pages(struct cpu *cpu, const struct cpu_weight *w) {
    const int threads = pool_threads(cpu->pool);
    const int64_t n = paired(w) ? w->part_panel[1] : w->n_panels;
    for (int i = 0; i < threads && cpu->n_nodes > 1; i++)
        for (int64_t part = 0; part < w->n_panels; part += n) {
            const int64_t begin = part + n * i / threads, end = part + n * (i + 1) / threads;
            numa_look(&cpu->pages, w->data + begin * w->panel_bytes, (end - begin) * w->panel_bytes,
                      cpu->node[i]);
        }
}

static void fill(struct cpu *cpu, struct cpu_weight *w, const struct weight_spec *parts,
                 const struct row_source *sources) {
    const int threads = pool_threads(cpu->pool);
    const size_t cols = (size_t)w->head.cols, n_groups = (size_t)w->n_groups;
    struct packing job = {.cpu = cpu, .w = w, .parts = parts, .sources = sources};
    job.absmax = must_alloc((size_t)w->n_parts * sizeof *job.absmax);
    for (int i = 0; i < w->n_parts && w->head.scale == SCALE_TENSOR; i++)
        job.absmax[i] = cpu_absmax(cpu, &parts[i], &sources[i]);
    job.rooms = must_alloc((size_t)threads * sizeof *job.rooms);
    for (int i = 0; i < threads; i++) {
        struct room *room = &job.rooms[i];
        room->rows = must_alloc((PANEL * cols + 1) * sizeof *room->rows);
        room->halves = must_alloc((cols + 1) * sizeof *room->halves);
        room->codes.codes = must_alloc(cols + 1);
        room->codes.scales = must_alloc((n_groups + 1) * sizeof *room->codes.scales);
    }
    pool_run(cpu->pool, paired(w) ? w->part_panel[1] : w->n_panels, 8, 1, pack_panels, &job);
    for (int i = 0; i < threads; i++) {
        free(job.rooms[i].rows);
        free(job.rooms[i].halves);
        free(job.rooms[i].codes.codes);
        free(job.rooms[i].codes.scales);
    }
    free(job.rooms);
    free(job.absmax);
}

const char *cpu_weight_refused(const struct weight_spec *spec) {
    const enum scale scale = spec->scale;
    const char *why = quant_input_refused(spec->type, spec->input, spec->cols);
    if (why != NULL) return why;
    if (is_float(spec->type)) return scale == SCALE_NONE ? NULL : "floats take no scale";
    if (spec->type >= (enum dtype)WEIGHT_TYPES) return "not a type of weights";
    if (scale == SCALE_NONE) return "quantized weights need a scale";
    return scale != SCALE_GROUP || spec->group > 0 ? NULL : "a group needs at least one column";
}

static int check_parts(const struct weight_spec *parts, int n, struct err *err) {
    const struct weight_spec *first = &parts[0];
    const char *refused = cpu_weight_refused(first);
    if (refused != NULL) return err_set(err, ERR_UNSUPPORTED, "cpu: %s: %s", first->what, refused);
    for (int i = 0; i < n; i++)
        if (parts[i].cols != first->cols || parts[i].type != first->type ||
            parts[i].scale != first->scale || parts[i].group != first->group ||
            parts[i].input != first->input)
            return err_set(err, ERR_INTERNAL,
                           "cpu: %s and %s differ in columns or type and cannot be stacked",
                           first->what, parts[i].what);
    return 0;
}

static int64_t scale_bytes(const struct cpu_weight *w) {
    switch (w->head.scale) {
    case SCALE_TENSOR: return w->n_parts * (int64_t)sizeof(float);
    case SCALE_ROW: return w->n_panels * PANEL * (int64_t)sizeof(float);
    case SCALE_GROUP: return w->n_panels * w->n_groups * PANEL * (int64_t)sizeof(uint16_t);
    default: return 0;
    }
}

/* The weight without its memory. */
static struct cpu_weight *outline(const struct weight_spec *parts, int n) {
    struct cpu_weight *w = must_alloc(sizeof *w);
    w->n_parts = n;
    w->part_row = must_alloc((size_t)(n + 1) * sizeof *w->part_row);
    w->part_panel = must_alloc((size_t)(n + 1) * sizeof *w->part_panel);
    for (int i = 0; i < n; i++) {
        w->part_row[i + 1] = w->part_row[i] + parts[i].rows;
        w->part_panel[i + 1] = w->part_panel[i] + (parts[i].rows + PANEL - 1) / PANEL;
    }
    w->n_panels = w->part_panel[n];
    w->head = (struct weight){.rows = w->part_row[n],
                              .cols = parts[0].cols,
                              .type = parts[0].type,
                              .scale = parts[0].scale,
                              .group = parts[0].group,
                              .input = parts[0].input};
    const bool in_groups = w->head.scale == SCALE_GROUP && w->head.group < w->head.cols;
    w->span = in_groups ? w->head.group : w->head.cols > 0 ? w->head.cols : 1;
    w->n_groups = (w->head.cols + w->span - 1) / w->span;
    w->panel_bytes = cpu_weight_column(w, w->head.cols);
    w->head.bytes = w->n_panels * w->panel_bytes;
    w->head.scale_bytes = scale_bytes(w);
    return w;
}

int cpu_pack(struct device *device, struct weight **weight, const struct weight_spec *parts, int n,
             const struct row_source *sources, struct err *err) {
    struct cpu *cpu = cpu_of(device);
    *weight = NULL;
    const int code = check_parts(parts, n, err);
    if (code != 0) return code;
    struct cpu_weight *w = outline(parts, n);
    const long long bytes = w->head.bytes, of_scales = w->head.scale_bytes;
    char scales[80];
    snprintf(scales, sizeof scales, "scales of %s", parts[0].what);
    w->data = device_packed(device, (size_t)bytes, MEM_WEIGHT, parts[0].what);
    w->scales = device_packed(device, (size_t)of_scales, MEM_SCALE, scales);
    *weight = &w->head;
    const bool room = cpu_inputs_open(cpu, w);
    if (room && w->data != NULL && (of_scales == 0 || w->scales != NULL)) {
        look_at_pages(cpu, w);
        return 0;
    }
    device_free(device, w->data);
    device_free(device, w->scales);
    w->scales = NULL;
    cpu->touch =
        false; /* packing is the first touch, in the order in which the threads will read */
    w->data = device_alloc(device, (size_t)bytes, MEM_WEIGHT, parts[0].what);
    if (of_scales > 0)
        w->scales = device_alloc(device, (size_t)of_scales, MEM_SCALE, parts[0].what);
    cpu->touch = true;
    if (w->data == NULL || (of_scales > 0 && w->scales == NULL) || !room) {
        cpu_unpack(device, weight);
        return err_set(err, ERR_MEMORY, "cpu: no memory for %s (%lld bytes)", parts[0].what,
                       bytes + of_scales);
    }
    fill(cpu, w, parts, sources);
    w->data = device_share(device, w->data, (size_t)bytes, MEM_WEIGHT, parts[0].what);
    if (of_scales > 0)
        w->scales = device_share(device, w->scales, (size_t)of_scales, MEM_SCALE, scales);
    look_at_pages(cpu, w);
    return 0;
}

void cpu_unpack(struct device *device, struct weight **weight) {
    struct cpu_weight *w = (struct cpu_weight *)*weight;
    if (w == NULL) return;
    if (w->head.input == DT_I8) cpu_inputs_close(cpu_of(device));
    device_free(device, w->data);
    device_free(device, w->scales);
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
    case DT_BF16: /* in pairs */
        for (int64_t k = 0; k < cols; k++)
            out[k] = bf16_to_f32(half[k / 2 * 2 * PANEL + 2 * lane + k % 2]);
        break;
    default: cpu_codes_row(cpu, w, place, out);
    }
}
