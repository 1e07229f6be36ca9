/* SPDX-License-Identifier: Apache-2.0 */
/* The reference device's record: opening, memory, and packing of weights. */
#include "kernels/ref/ref.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/facts.h"
#include "base/option.h"

static int ref_open(struct device **device, const void *params, struct err *err) {
    (void)params, (void)err;
    struct ref *ref = must_alloc(sizeof *ref);
    ref->base.ops = &ref_ops;
    ref->base.lab = &ref_lab;
    ref->base.counts = &ref->counts;
    *device = &ref->base;
    return 0;
}

static void ref_close(struct device **device) {
    free(((struct ref *)*device)->scores);
    free(*device);
    *device = NULL;
}

static void ref_describe(struct device *device, struct facts *facts) {
    (void)device;
    facts_set(facts, "device.isa", "portable C", "", "");
    facts_set(facts, "device.threads", "1", "", "");
}

static bool is_float(enum dtype type) {
    return type == DT_F32 || type == DT_F16 || type == DT_BF16;
}

/* The sentence that says why not, or NULL. */
static const char *weight_refused(enum dtype type, enum scale scale, int group, enum dtype input,
                                  int64_t cols) {
    const char *why = quant_input_refused(type, input, cols);
    if (why) return why;
    if (is_float(type)) return scale == SCALE_NONE ? NULL : "floats take no scale";
    if (type != DT_I8 && type != DT_I4 && type != DT_NF4) return "not a type of weights";
    if (scale == SCALE_NONE) return "quantized weights need a scale";
    return scale != SCALE_GROUP || group > 0 ? NULL : "a group needs at least one column";
}

static bool ref_supports(struct device *device, enum op op, const struct op_case *c,
                         const char **kernel_or_reason) {
    (void)device;
    const char *refused = NULL;
    bool ceiling = op == OP_COPY || op == OP_READ || op == OP_TRIAD || op == OP_FMA_PEAK;
    if (!ceiling && !is_float(c->activation)) refused = "activations are f32, f16 or bf16";
    if (op == OP_EMBED || op == OP_LINEAR) {
        const char *why = weight_refused(c->weight, c->scale, c->group, c->input, 0);
        if (why) refused = why;
    }
    if ((op == OP_ROPE_APPEND || op == OP_ATTENTION) && !is_float(c->kv) && c->kv != DT_I8)
        refused = "the cache is f32, f16, bf16 or int8";
    if (op == OP_LINEAR && c->input == DT_I8 && c->activation != DT_F32)
        refused = "int8 inputs are rounded from f32 activations";
    if (op == OP_FMA_PEAK && !is_float(c->activation) && c->activation != DT_I8)
        refused = "multiplies floats and int8 only";
    *kernel_or_reason = refused ? refused : "plain C";
    return !refused;
}

static int ref_plan(struct device *device, const struct step_bounds *bounds, struct err *err) {
    (void)device;
    if (bounds->d_h <= REF_MOST_HEAD) return 0;
    return err_set(err, ERR_UNSUPPORTED, "ref: heads of %d values; at most %d", (int)bounds->d_h,
                   REF_MOST_HEAD);
}

static void *ref_alloc(struct device *device, size_t bytes) {
    (void)device;
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t rounded = (bytes + 63) / 64 * 64; /* aligned_alloc wants whole multiples */
    void *p = aligned_alloc(64, rounded);
    return p ? memset(p, 0, rounded) : NULL;
}

static void ref_free(struct device *device, void *p, size_t bytes) {
    (void)device, (void)bytes;
    free(p);
}

static void ref_unpack(struct device *device, struct weight **weight) {
    struct ref_weight *w = (struct ref_weight *)*weight;
    if (!w) return;
    device_free(device, w->data);
    device_free(device, w->scales);
    free(w->part_begin);
    free(w);
    *weight = NULL;
}

/* Stores row r (of all parts) of a matrix whose codes and scales are in `codes` and `scales`, or
 * whose floats are in `row`. */
static void store_row(struct ref_weight *w, int64_t r, int part, const float *row,
                      const int8_t *codes, const float *scales) {
    uint8_t *to = w->data + r * w->row_bytes;
    for (int64_t c = 0; c < w->head.cols; c++) {
        if (is_float(w->head.type))
            dtype_store(to, w->head.type, c, row[c]);
        else if (w->head.type == DT_I8)
            to[c] = (uint8_t)codes[c];
        else
            to[c / 2] |= (uint8_t)((codes[c] & 15) << (c % 2 * 4));
    }
    if (w->head.scale == SCALE_TENSOR) ((float *)w->scales)[part] = scales[0];
    if (w->head.scale == SCALE_ROW) ((float *)w->scales)[r] = scales[0];
    if (w->head.scale == SCALE_GROUP)
        for (int64_t g = 0; g < w->groups; g++)
            ((uint16_t *)w->scales)[r * w->groups + g] = f16_from_f32(scales[g]);
}

static void fill(struct ref_weight *w, const struct weight_spec *parts, int n,
                 const struct row_source *sources) {
    float *row = must_alloc((size_t)(w->head.cols + 1) * sizeof *row);
    float *scales = must_alloc((size_t)(w->groups + 1) * sizeof *scales);
    int8_t *codes = must_alloc((size_t)w->head.cols + 1);
    for (int i = 0; i < n; i++) {
        float most = parts[i].scale == SCALE_TENSOR ? quant_absmax(&parts[i], &sources[i]) : 0;
        for (int64_t r = 0; r < parts[i].rows; r++) {
            sources[i].row(sources[i].ctx, r, row);
            if (!is_float(parts[i].type)) quant_row(&parts[i], row, most, codes, scales);
            store_row(w, w->part_begin[i] + r, i, row, codes, scales);
        }
    }
    free(row);
    free(scales);
    free(codes);
}

static int ref_pack(struct device *device, struct weight **weight, const struct weight_spec *parts,
                    int n, const struct row_source *sources, struct err *err) {
    *weight = NULL;
    const struct weight_spec *first = &parts[0];
    const char *refused =
        weight_refused(first->type, first->scale, first->group, first->input, first->cols);
    if (refused) return err_set(err, ERR_UNSUPPORTED, "ref: %s: %s", first->what, refused);
    struct ref_weight *w = must_alloc(sizeof *w);
    w->head = (struct weight){.cols = first->cols,
                              .type = first->type,
                              .scale = first->scale,
                              .group = first->group,
                              .input = first->input};
    w->part_begin = must_alloc((size_t)(n + 1) * sizeof *w->part_begin);
    w->n_parts = n;
    *weight = &w->head;
    for (int i = 0; i < n; i++) {
        if (parts[i].cols != first->cols || parts[i].type != first->type ||
            parts[i].scale != first->scale || parts[i].group != first->group ||
            parts[i].input != first->input) {
            ref_unpack(device, weight);
            return err_set(err, ERR_INTERNAL,
                           "ref: %s and %s differ in columns or type and cannot be stacked",
                           first->what, parts[i].what);
        }
        w->part_begin[i + 1] = w->part_begin[i] + parts[i].rows;
        w->head.bytes += quant_payload_bytes(&parts[i]);
        w->head.scale_bytes += quant_scale_bytes(&parts[i]);
    }
    w->head.rows = w->part_begin[n];
    w->row_bytes = (first->cols * dtype_bits(first->type) + 7) / 8;
    w->groups = quant_groups(first);
    w->data = device_alloc(device, (size_t)w->head.bytes, MEM_WEIGHT, first->what);
    if (w->head.scale_bytes)
        w->scales = device_alloc(device, (size_t)w->head.scale_bytes, MEM_SCALE, first->what);
    if (!w->data || (w->head.scale_bytes && !w->scales)) {
        int64_t bytes = w->head.bytes + w->head.scale_bytes;
        ref_unpack(device, weight);
        return err_set(err, ERR_MEMORY, "ref: no memory for %s (%lld bytes)", first->what,
                       (long long)bytes);
    }
    fill(w, parts, n, sources);
    return 0;
}

int8_t ref_code(const struct ref_weight *w, int64_t row, int64_t c) {
    const uint8_t *from = w->data + row * w->row_bytes;
    if (w->head.type == DT_I8) return (int8_t)from[c];
    int8_t code = (int8_t)(from[c / 2] >> (c % 2 * 4) & 15);
    return (int8_t)(w->head.type == DT_I4 && code > 7 ? code - 16 : code);
}

float ref_scale(const struct ref_weight *w, int64_t row, int64_t c) {
    if (w->head.scale == SCALE_GROUP)
        return dtype_load(w->scales, DT_F16, row * w->groups + c / w->head.group);
    int part = 0;
    while (row >= w->part_begin[part + 1]) part++;
    return ((const float *)w->scales)[w->head.scale == SCALE_ROW ? row : part];
}

void ref_decode(const struct ref_weight *w, int64_t row, int64_t begin, int64_t n, float *out) {
    const struct weight_spec spec = {.type = w->head.type};
    const bool floats = is_float(spec.type);
    for (int64_t i = 0; i < n; i++)
        out[i] =
            floats ? dtype_load(w->data + row * w->row_bytes, spec.type, begin + i)
                   : quant_value(&spec, ref_code(w, row, begin + i), ref_scale(w, row, begin + i));
}

static void ref_transfer(struct device *device, void *to, const void *from, size_t bytes) {
    (void)device;
    if (bytes) memcpy(to, from, bytes);
}

static int ref_sync(struct device *device, struct err *err) {
    struct ref *ref = (struct ref *)device;
    if (!ref->failed.code) return 0; /* the way of every sample */
    struct err failed = ref->failed;
    ref->failed = (struct err){0};
    return err_set(err, failed.code, "%s", failed.text);
}

bool ref_expects(struct device *device, bool holds, const char *sentence) {
    struct ref *ref = (struct ref *)device;
    if (!holds && !ref->failed.code) err_set(&ref->failed, ERR_INTERNAL, "ref: %s", sentence);
    return holds;
}

const struct ops ref_ops = {
    .embed = ref_embed,
    .add_norm = ref_add_norm,
    .linear = ref_linear,
    .rope_append = ref_rope_append,
    .attention = ref_attention,
    .gather_rows = ref_gather_rows,
    .select = ref_select,
    .advance = ref_advance,
    .kv_copy_block = ref_kv_copy_block,
    .copy = ref_copy,
    .read = ref_read,
    .triad = ref_triad,
    .fma_peak = ref_fma_peak,
};

static const struct option ref_params[] = {{.key = NULL}};

const struct device_kind device_ref = {
    .name = "ref",
    .brief = "plain C on one thread: the truth for tests, never fast",
    .has = DEV_HOST_CLOCK | DEV_BATCH_INVARIANT | DEV_HOST_MEMORY | DEV_COUNTS,
    .params = ref_params,
    .open = ref_open,
    .close = ref_close,
    .describe = ref_describe,
    .supports = ref_supports,
    .plan = ref_plan,
    .alloc = ref_alloc,
    .free = ref_free,
    .pack = ref_pack,
    .unpack = ref_unpack,
    .upload = ref_transfer,
    .download = ref_transfer,
    .sync = ref_sync,
};
