/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix by matrix, as the model is packed: from the file, or as they are generated. */
#include "workloads/common/weight_error.h"

#include <math.h>

#include "base/err.h"
#include "workloads/common/rounding.h"
#include "workloads/model/file_rows.h"
#include "workloads/model/ledger.h"
#include "workloads/model/synth.h"

struct matrix {
    int64_t layer; /* -1: outside of layers */
    int kind;      /* enum synth_kind, or SYNTH_EMBEDDING */
    int64_t rows, cols;
};

static int error_of(const struct model_config *config, struct file_rows *rows,
                    const struct matrix *m, double *value, struct err *err) {
    const struct weight_format *format = model_weight_format(&config->params);
    const uint64_t seed = (uint64_t)config->params.seed;
    const struct weight_spec spec = {.what = "matrix",
                                     .rows = m->rows,
                                     .cols = m->cols,
                                     .type = format->type,
                                     .scale = format->scale,
                                     .group = model_group(&config->params),
                                     .input = model_input(&config->params)};
    struct file_array array;
    struct synth_matrix matrix;
    struct row_source source;
    if (rows) {
        source = file_rows_source(rows, &array, m->layer, m->kind, format->type);
    } else {
        matrix = m->layer < 0
                     ? synth_token_matrix(seed, (uint64_t)m->kind, m->cols)
                     : synth_layer_matrix(seed, m->layer, (enum synth_kind)m->kind, m->cols);
        source = synth_source(&matrix);
    }
    *value = rounding_relative(&spec, &source);
    return rows ? file_rows_fault(rows, err) : 0;
}

static double bits_of(const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    const struct matrix_bytes layer = ledger_layer_weights(config),
                              token = ledger_matrix(config, s->vocab, s->d_model);
    const int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h, heads = s->tied ? 1 : 2;
    const double weights =
        (double)s->n_layers * (double)s->d_model * (double)(2 * q + 2 * kv + 3 * s->d_ff) +
        (double)(heads * s->vocab) * (double)s->d_model;
    const double bytes = (double)s->n_layers * (double)(layer.payload + layer.scales) +
                         (double)heads * (double)(token.payload + token.scales);
    return 8 * bytes / weights;
}

int weight_error_of(const struct model_config *config, struct weight_error *e, struct err *err) {
    const struct model_shape *s = &config->shape;
    const int64_t d = s->d_model, q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    struct file_rows *rows = NULL;
    *e = (struct weight_error){.bits = bits_of(config)};
    if (model_weight_format(&config->params)->type == DT_F32) { /* as they are */
        e->matrices = 7 * s->n_layers;
        return 0;
    }
    int code = model_from_file(&config->params) ? file_rows_open(&rows, config, err) : 0;
    for (int64_t l = 0; !code && l < s->n_layers; l++) {
        const struct matrix matrices[] = {{l, SYNTH_Q, q, d},          {l, SYNTH_K, kv, d},
                                          {l, SYNTH_V, kv, d},         {l, SYNTH_O, d, q},
                                          {l, SYNTH_GATE, s->d_ff, d}, {l, SYNTH_UP, s->d_ff, d},
                                          {l, SYNTH_DOWN, d, s->d_ff}};
        for (size_t i = 0; !code && i < sizeof matrices / sizeof *matrices; i++) {
            double value = 0;
            code = error_of(config, rows, &matrices[i], &value, err);
            e->matrices++;
            e->mean += value;
            e->worst = fmax(e->worst, value);
        }
    }
    if (!code)
        code = error_of(config, rows, &(struct matrix){-1, SYNTH_EMBEDDING, s->vocab, d},
                        &e->embedding, err);
    e->mean /= (double)(e->matrices ? e->matrices : 1);
    file_rows_close(&rows);
    return code;
}
