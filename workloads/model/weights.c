/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights: asked for, generated or read from a file, and packed once on a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/file_rows.h"
#include "workloads/model/ledger.h"
#include "workloads/model/rope.h"
#include "workloads/model/synth.h"
#include "workloads/model/transformer.h"

int model_supported(struct device *device, const struct model_config *config, struct err *err) {
    static const struct {
        enum op op;
        enum epilogue epilogue;
    } needed[] = {{OP_EMBED, EPI_NONE},       {OP_ADD_NORM, EPI_NONE},    {OP_LINEAR, EPI_NONE},
                  {OP_LINEAR, EPI_SWIGLU},    {OP_ROPE_APPEND, EPI_NONE}, {OP_ATTENTION, EPI_NONE},
                  {OP_GATHER_ROWS, EPI_NONE}, {OP_SELECT, EPI_NONE},      {OP_ADVANCE, EPI_NONE}};
    const struct weight_format *format = model_weight_format(&config->params);
    struct op_case op_case = {.weight = format->type,
                              .scale = format->scale,
                              .group = model_group(&config->params),
                              .input = model_input(&config->params),
                              .activation = config->activation,
                              .kv = model_kv_type(&config->params),
                              .paged = config->params.layout == 1,
                              .window = config->params.window > 0};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const char *reason = NULL;
        op_case.epilogue = needed[i].epilogue;
        if (!device->kind->supports(device, needed[i].op, &op_case, &reason))
            return err_set(err, ERR_UNSUPPORTED, "%s cannot run this model: %s: %s",
                           device->kind->name, op_names[needed[i].op],
                           reason ? reason : "no reason given");
    }
    return 0;
}

struct part {
    enum synth_kind kind;
    const char *name;
    int64_t rows;
};

/* Stacks parts of one layer (or, with layer -1, one matrix outside of layers) into a weight. */
static int pack(struct model *model, struct weight **weight, int64_t layer,
                const struct part *parts, int n, int64_t cols, struct err *err) {
    const struct weight_format *format = model_weight_format(&model->config.params);
    uint64_t seed = (uint64_t)model->config.params.seed;
    struct weight_spec specs[3];
    struct synth_matrix matrices[3];
    struct file_array arrays[3];
    struct row_source sources[3];
    char names[3][32];
    for (int i = 0; i < n; i++) {
        if (layer < 0)
            snprintf(names[i], sizeof names[i], "%s", parts[i].name);
        else
            snprintf(names[i], sizeof names[i], "layer %d %s", (int)layer, parts[i].name);
        specs[i] = (struct weight_spec){.what = names[i],
                                        .rows = parts[i].rows,
                                        .cols = cols,
                                        .type = format->type,
                                        .scale = format->scale,
                                        .group = model_group(&model->config.params),
                                        .input = model_input(&model->config.params)};
        if (model->rows) {
            sources[i] =
                file_rows_source(model->rows, &arrays[i], layer, (int)parts[i].kind, format->type);
            continue;
        }
        matrices[i] = layer < 0 ? synth_token_matrix(seed, (uint64_t)parts[i].kind, cols)
                                : synth_layer_matrix(seed, layer, parts[i].kind, cols);
        sources[i] = synth_source(&matrices[i]);
    }
    int code = model->device->kind->pack(model->device, weight, specs, n, sources, err);
    return !code && model->rows ? file_rows_fault(model->rows, err) : code;
}

static int pack_layer(struct model *model, int64_t l, struct err *err) {
    const struct model_shape *s = &model->config.shape;
    struct layer *layer = &model->layers[l];
    int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    int code = pack(model, &layer->qkv, l,
                    (struct part[]){{SYNTH_Q, "q", q}, {SYNTH_K, "k", kv}, {SYNTH_V, "v", kv}}, 3,
                    s->d_model, err);
    if (!code)
        code = pack(model, &layer->o, l, (struct part[]){{SYNTH_O, "o", s->d_model}}, 1, q, err);
    if (!code)
        code = pack(model, &layer->gate_up, l,
                    (struct part[]){{SYNTH_GATE, "gate", s->d_ff}, {SYNTH_UP, "up", s->d_ff}}, 2,
                    s->d_model, err);
    if (!code)
        code = pack(model, &layer->down, l, (struct part[]){{SYNTH_DOWN, "down", s->d_model}}, 1,
                    s->d_ff, err);
    return code;
}

/* Gains or biases, of a layer or (-1) the last norm's. */
static float *vector(const struct model *model, int64_t layer, int kind, int64_t n, float *at) {
    const uint64_t seed = (uint64_t)model->config.params.seed;
    const uint64_t stream = layer < 0 ? (uint64_t)kind : synth_stream(layer, (enum synth_kind)kind);
    if (model->rows)
        file_rows_vector(model->rows, layer, kind, at);
    else if (layer >= 0 && kind >= SYNTH_BIAS_Q)
        synth_biases(seed, stream, n, at);
    else
        synth_gains(seed, stream, n, at);
    return at + n;
}

/* Norms and biases lie in one piece: gains of all layers, the last gain, biases of all layers. */
static int make_vectors(struct model *model, struct err *err) {
    const struct model_shape *s = &model->config.shape;
    size_t bytes = (size_t)ledger_vector_bytes(s);
    int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    model->vectors = device_alloc(model->device, bytes, MEM_WEIGHT, "norms and biases");
    if (!model->vectors)
        return err_set(err, ERR_MEMORY, "no memory for norms and biases (%zu bytes)", bytes);
    float *host = must_alloc(bytes), *at = host;
    for (int64_t l = 0; l < s->n_layers; l++) {
        model->layers[l].norm_1 = model->vectors + (at - host);
        at = vector(model, l, SYNTH_NORM_1, s->d_model, at);
        model->layers[l].norm_2 = model->vectors + (at - host);
        at = vector(model, l, SYNTH_NORM_2, s->d_model, at);
    }
    model->norm_last = model->vectors + (at - host);
    at = vector(model, -1, SYNTH_NORM_LAST, s->d_model, at);
    for (int64_t l = 0; s->qkv_bias && l < s->n_layers; l++) {
        model->layers[l].bias = model->vectors + (at - host);
        at = vector(model, l, SYNTH_BIAS_Q, q, at);
        at = vector(model, l, SYNTH_BIAS_K, kv, at);
        at = vector(model, l, SYNTH_BIAS_V, kv, at);
    }
    model->device->kind->upload(model->device, model->vectors, host, bytes);
    free(host);
    return 0;
}

static int read_factors(struct model *model, struct err *err) {
    const int64_t n = model->config.shape.d_h / 2;
    model->rope_factor = must_alloc((size_t)n * sizeof *model->rope_factor);
    return file_rows_factors(model->rows, n, model->rope_factor, err);
}

int model_create(struct model **out, struct device *device, const struct model_config *config,
                 struct err *err) {
    const struct model_shape *s = &config->shape;
    *out = NULL;
    int code = model_supported(device, config, err);
    if (code) return code;
    struct model *model = must_alloc(sizeof *model);
    model->device = device;
    model->config = *config;
    model->layers = must_alloc(sizeof *model->layers * (size_t)s->n_layers);
    if (model_from_file(&config->params)) code = file_rows_open(&model->rows, config, err);
    if (!code)
        code = pack(model, &model->embedding, -1,
                    (struct part[]){{(enum synth_kind)SYNTH_EMBEDDING, "embedding", s->vocab}}, 1,
                    s->d_model, err);
    if (!code && !s->tied)
        code = pack(model, &model->head, -1,
                    (struct part[]){{(enum synth_kind)SYNTH_HEAD, "head", s->vocab}}, 1, s->d_model,
                    err);
    if (s->tied) model->head = model->embedding;
    for (int64_t l = 0; !code && l < s->n_layers; l++) code = pack_layer(model, l, err);
    if (!code) code = make_vectors(model, err);
    if (!code && model->rows && s->rope_scaling == ROPE_FILE) code = read_factors(model, err);
    if (!code) code = device->kind->sync(device, err);
    if (!code && model->rows) code = file_rows_finish(model->rows, err);
    file_rows_close(&model->rows);
    if (code)
        model_close(&model);
    else
        *out = model;
    return code;
}

void model_close(struct model **out) {
    struct model *model = *out;
    if (!model) return;
    struct device *device = model->device;
    if (model->head != model->embedding) device->kind->unpack(device, &model->head);
    device->kind->unpack(device, &model->embedding);
    for (int64_t l = 0; l < model->config.shape.n_layers; l++) {
        struct layer *layer = &model->layers[l];
        device->kind->unpack(device, &layer->qkv);
        device->kind->unpack(device, &layer->o);
        device->kind->unpack(device, &layer->gate_up);
        device->kind->unpack(device, &layer->down);
    }
    device_free(device, model->vectors);
    free(model->rope_factor);
    free(model->layers);
    free(model);
    *out = NULL;
}
