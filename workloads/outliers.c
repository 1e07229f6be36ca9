/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `outliers`: which values of a model's weights and activations are far larger than the
 * others, and what they cost codes that share a scale with them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "workloads/common/outlying.h"
#include "workloads/common/plain.h"
#include "workloads/common/slow.h"
#include "workloads/common/text_tokens.h"
#include "workloads/model/file_rows.h"
#include "workloads/model/ledger.h"
#include "workloads/model/synth.h"
#include "workloads/model/taps.h"
#include "workloads/workload.h"

/* Activations by tap, then the matrices of a layer in the order of enum synth_kind. */
enum { OF_RESIDUAL, OF_QKV, OF_OUT, OF_MLP, OF_DOWN, OF_WEIGHTS };
static const char *const of_words[] = {
    "residual", "qkv_input", "o_input", "mlp_input", "down_input", "q", "k",
    "v",        "o",         "gate",    "up",        "down",       NULL};
enum { CHUNK = 256 };
struct outliers_params {
    struct text_choice choice;
    int64_t layer, tokens, bits, exclude;
    double stands_out, sigmas;
    int of;
};
struct outliers_self {
    struct run *run;
    struct outliers_params params;
    struct model_config config;
    int32_t layer; /* counted from 0: that is looked at */
    int64_t rows, cols;
    const float *most; /* activations: (n_layers, cols) largest magnitudes */
    float *x;          /* (rows, cols) */
    void *own;         /* activations, where the run had no room for them */
    struct values values;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct outliers_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "of",
     .type = OPT_WORD,
     PARAM(of),
     .def = "residual",
     .words = of_words,
     .unit = "",
     .help =
         "Activations: the residual stream behind a layer, or the input of q, k and v, of o, of "
         "gate and up (mlp_input), of down. Weights: a matrix of a layer."},
    {.key = "layer",
     .type = OPT_INT,
     PARAM(layer),
     .def = "0",
     .min = 0,
     .max = 4096,
     .unit = "",
     .help =
         "1 is the first, and one that the model lacks is skipped; 0: the one where the largest value stands out most, over the median "
         "dimension's (activations) or in deviations (weights). at_layer tells it."},
    TEXT_OPTIONS(PARAM),
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "84",
     .min = 1,
     .max = 4096,
     .unit = "tokens",
     .help = "Activations: tokens that are read; E37's prompt has 84."},
    {.key = "stands_out",
     .type = OPT_REAL,
     PARAM(stands_out),
     .def = "32",
     .min = 1,
     .max = 1e9,
     .unit = "",
     .help = "A dimension stands out whose largest magnitude is so many times that of the median "
             "dimension: 32 is five octaves."},
    {.key = "exclude",
     .type = OPT_INT,
     PARAM(exclude),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "dimensions",
     .help = "Activations: so many of the largest dimensions are set aside in what ends in "
             "_without; 0: those that stand out. E38 has 4."},
    {.key = "sigmas",
     .type = OPT_REAL,
     PARAM(sigmas),
     .def = "6",
     .min = 0.1,
     .max = 1000,
     .unit = "sigma",
     .help = "Beyond so many deviations values are counted; weights there are what _without sets "
             "aside."},
    {.key = "bits",
     .type = OPT_INT,
     PARAM(bits),
     .def = "8",
     .min = 2,
     .max = 16,
     .unit = "bits",
     .help = "Of a code: symmetric, scale = largest / (2^(bits - 1) - 1)."},
    {0},
};
static const struct phase phases[] = {{"look", "value"}, {0}};
static const struct metric metrics[] = {
    {"at_layer", "", "The layer that is looked at; 1 is the first.", BETTER_NONE, true},
    DIMENSION_SIZES,
    {"first_layers", "layer", "Layers in which the largest dimension of this one stands out.",
     BETTER_NONE, true},
    {"recurring_dims", "dimension", "Dimensions that stand out in at least half of the layers.",
     BETTER_NONE, true},
    OUTLYING_METRICS,
    DIMENSION_BINS,
    {0},
};

/* ---- before anything runs */

static bool of_weights(const struct outliers_params *p) { return p->of >= OF_WEIGHTS; }

static enum tap tap_of(const struct outliers_params *p) {
    static const enum tap taps[] = {TAP_RESIDUAL, TAP_QKV, TAP_OUT, TAP_MLP, TAP_DOWN};
    return taps[p->of];
}

static void shape_of(const struct outliers_params *p, const struct model_shape *s, int64_t *rows,
                     int64_t *cols) {
    const int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    *cols = s->d_model;
    if (!of_weights(p)) {
        *rows = p->tokens;
        *cols = tap_cols(s, tap_of(p));
        return;
    }
    switch (p->of - OF_WEIGHTS) {
    case SYNTH_Q: *rows = q; break;
    case SYNTH_K:
    case SYNTH_V: *rows = kv; break;
    case SYNTH_O: *rows = s->d_model, *cols = q; break;
    case SYNTH_DOWN: *rows = s->d_model, *cols = s->d_ff; break;
    default: *rows = s->d_ff; break;
    }
}

static struct session_spec spec_of(const struct outliers_params *p) {
    const int32_t tokens = (int32_t)p->tokens, chunk = tokens < CHUNK ? tokens : CHUNK;
    return (struct session_spec){.cache = {.n_seq = 1, .capacity = tokens, .most_q = chunk},
                                 .most_rows = chunk,
                                 .most_out = 1};
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct outliers_params *p = params_;
    int64_t rows, cols;
    shape_of(p, &config->shape, &rows, &cols);
    if (of_weights(p) && p->exclude > 0)
        problem(problems, "workload.exclude", "workload.of",
                "of weights, values beyond workload.sigmas are set aside, not dimensions");
    else if (p->exclude >= cols)
        problem(problems, "workload.exclude", "workload.of",
                "there are only %" PRId64 " dimensions, and one must be left", cols);
    if (!of_weights(p)) text_tokens_check(&p->choice, config, problems);
}

/* Largest magnitudes of all layers, then their values: (n_layers, cols), (n_layers, tokens, cols).
 */
static size_t kept_bytes(const struct outliers_params *p, const struct model_shape *shape) {
    return sizeof(float) * (size_t)(shape->n_layers * (p->tokens + 1) * tap_cols(shape, tap_of(p)));
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct outliers_params *p = params_;
    const struct session_spec spec = spec_of(p);
    int64_t rows, cols, scales = 0;
    shape_of(p, &config->shape, &rows, &cols);
    plan->work[0].items = (double)(rows * cols);
    plan->host_bytes = 4 * (int64_t)sizeof(float) * rows * cols;
    plan->peak_bytes = -1;
    plan->binding_type = model_binding(config);
    if (of_weights(p)) return; /* they are read, not packed */
    ledger_prompt(&plan->prepare, config, 1, 0, p->tokens, spec.most_rows, false);
    plan->bytes[MEM_WEIGHT] += model_weight_bytes(config, &scales);
    plan->bytes[MEM_SCALE] += scales;
    session_bytes(config, &spec, plan->bytes);
    plan->bytes[MEM_STATE] += inputs_bytes(1, 1, spec.most_rows, 1);
    plan->host_bytes +=
        (int64_t)kept_bytes(p, &config->shape) + cache_host_bytes(config, &spec.cache);
}

/* ---- activations */

struct keep {
    float *to; /* (n_layers, tokens, cols) */
    int64_t tokens;
    enum tap tap;
};

static void keep_rows(void *ctx, const struct tapped *t) {
    const struct keep *k = ctx;
    if (t->tap != k->tap) return;
    memcpy(k->to + (t->layer * k->tokens + t->first) * t->cols, t->x,
           sizeof(float) * (size_t)t->rows * (size_t)t->cols);
}

static int read_prompt(struct outliers_self *self, struct session *session, struct taps *taps,
                       const int32_t *tokens, struct err *err) {
    const int32_t n = (int32_t)self->params.tokens, chunk = session->spec.most_rows;
    struct inputs *inputs = NULL;
    int code = inputs_create(&inputs, session, 1, chunk, 1, err);
    for (int32_t at = 0; !code && at < n; at += chunk) {
        const struct span span = {
            .begin = at, .rows = n - at < chunk ? n - at : chunk, .tokens = tokens + at};
        inputs_clear(inputs);
        code = inputs_add(inputs, &span, 1, err);
        if (code) break;
        inputs_upload(inputs);
        code = taps_run(taps, inputs, 0, err);
    }
    inputs_close(&inputs);
    return code;
}

/* The forward pass, with every layer's values at the tap into a piece of kept_bytes. */
static int tap_prompt(struct outliers_self *self, const int32_t *tokens, float *piece,
                      struct err *err) {
    const struct session_spec spec = spec_of(&self->params);
    const int64_t maxima = self->config.shape.n_layers * self->cols;
    struct keep keep = {piece + maxima, self->params.tokens, tap_of(&self->params)};
    struct session *session = NULL;
    struct taps *taps = NULL;
    struct model *model;
    int code = run_model(self->run, &model, err);
    if (!code) code = session_create(&session, model, &self->config, &spec, err);
    if (!code) {
        taps_open(&taps, session, keep_rows, &keep);
        code = read_prompt(self, session, taps, tokens, err);
    }
    if (!code) memcpy(piece, taps_most(taps, keep.tap), sizeof(float) * (size_t)maxima);
    taps_close(&taps);
    session_close(&session);
    return code;
}

static double over_median(const float *most, int64_t n) {
    struct dimensions of = {.rows = 1, .dims = n, .x = most};
    dimensions_open(&of);
    const double over = of.median > 0 ? of.largest / of.median : 0;
    dimensions_close(&of);
    return over;
}

static int load_activations(struct outliers_self *self, struct err *err) {
    const struct outliers_params *p = &self->params;
    struct device *device = run_device(self->run);
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)p->tokens);
    const size_t values = (size_t)(self->rows * self->cols);
    bool ready;
    char key[160];
    if (!slow_applies(device)) {
        free(tokens);
        return err_set(err, ERR_UNSUPPORTED, "%s computes nothing: there are no activations",
                       device->kind->name);
    }
    int code = text_tokens(&p->choice, &self->config, run_seed(self->run), (int32_t)p->tokens,
                           tokens, err);
    snprintf(key, sizeof key, "taps %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %d",
             model_hash(&self->config), plain_device_hash(device),
             hash_bytes(tokens, sizeof *tokens * (size_t)p->tokens, 1), p->of);
    float *piece =
        plain_piece(self->run, key, kept_bytes(p, &self->config.shape), &ready, &self->own);
    if (!code && !ready) {
        code = tap_prompt(self, tokens, piece, err);
        if (!code && !self->own) run_snapshot_ready(self->run, key);
    }
    free(tokens);
    if (code) return code;
    self->most = piece;
    double most = -1;
    for (int32_t l = 0; p->layer == 0 && l < (int32_t)self->config.shape.n_layers; l++) {
        const double over = over_median(piece + l * self->cols, self->cols);
        if (over > most) self->layer = l;
        most = fmax(most, over);
    }
    memcpy(self->x,
           piece + self->config.shape.n_layers * self->cols + self->layer * (int64_t)values,
           sizeof *self->x * values);
    return 0;
}

/* ---- weights: as the file stores them, or as they are drawn */

static void read_matrix(const struct outliers_self *self, struct file_rows *file, int32_t layer,
                        float *x) {
    const enum synth_kind kind = (enum synth_kind)(self->params.of - OF_WEIGHTS);
    struct synth_matrix drawn =
        synth_layer_matrix((uint64_t)self->config.params.seed, layer, kind, self->cols);
    struct file_array array;
    const struct row_source source =
        file ? file_rows_source(file, &array, layer, kind, DT_F32) : synth_source(&drawn);
    for (int64_t r = 0; r < self->rows; r++) source.row(source.ctx, r, x + r * self->cols);
}

static struct outlying outlying_of(const struct outliers_self *self) {
    const struct outliers_params *p = &self->params;
    return (struct outlying){.x = self->x,
                             .rows = self->rows,
                             .cols = self->cols,
                             .stands_out = p->stands_out,
                             .sigmas = p->sigmas,
                             .single = of_weights(p),
                             .exclude = p->exclude,
                             .bits = (int)p->bits};
}

static int load_weights(struct outliers_self *self, struct err *err) {
    struct file_rows *file = NULL;
    int code = 0;
    double most = -1;
    if (model_from_file(&self->config.params)) code = file_rows_open(&file, &self->config, err);
    for (int32_t l = 0;
         !code && self->params.layer == 0 && l < (int32_t)self->config.shape.n_layers; l++) {
        read_matrix(self, file, l, self->x);
        const struct outlying outlying = outlying_of(self);
        const struct rounding r = outlying_spread(&outlying);
        const double sigmas = r.deviation > 0 ? r.largest / r.deviation : 0;
        if (sigmas > most) self->layer = l;
        most = fmax(most, sigmas);
    }
    if (!code) read_matrix(self, file, self->layer, self->x);
    if (!code && file) code = file_rows_finish(file, err);
    file_rows_close(&file);
    return code;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct outliers_self *self = s;
    self->run = run;
    self->params = *(const struct outliers_params *)params_;
    self->config = *config;
    self->layer = (int32_t)(self->params.layer > 0 ? self->params.layer - 1 : 0);
    /* A sweep over one model's layers goes on with another's that has fewer. */
    if (self->layer >= config->shape.n_layers)
        return err_set(err, ERR_UNSUPPORTED, "the model has only %" PRId64 " layers",
                       config->shape.n_layers);
    shape_of(&self->params, &config->shape, &self->rows, &self->cols);
    self->x = must_alloc(sizeof *self->x * (size_t)(self->rows * self->cols));
    return of_weights(&self->params) ? load_weights(self, err) : load_activations(self, err);
}

/* ---- numbers */

/* Over all layers: where the largest dimension of this one stands out, and how many do so in half
   of the layers. */
static void set_recurring(struct outliers_self *self) {
    const int64_t layers = self->config.shape.n_layers;
    const int64_t first = (int64_t)values_get(&self->values, "first_dim");
    int32_t *often = must_alloc(sizeof *often * (size_t)self->cols);
    int64_t recurring = 0;
    for (int64_t l = 0; l < layers; l++) {
        struct dimensions of = {.rows = 1, .dims = self->cols, .x = self->most + l * self->cols};
        dimensions_open(&of);
        const int64_t n = dimensions_beyond(&of, self->params.stands_out);
        for (int64_t d = 0; n && d < of.dims; d++) often[d] += of.most[d] >= of.sorted[n - 1];
        dimensions_close(&of);
    }
    for (int64_t d = 0; d < self->cols; d++) recurring += 2 * often[d] >= layers;
    values_set(&self->values, "first_layers", often[first]);
    values_set(&self->values, "recurring_dims", (double)recurring);
    free(often);
}

static void execute(void *s) {
    struct outliers_self *self = s;
    const struct outlying outlying = outlying_of(self);
    const int64_t bad = outlying_report(&outlying, &self->values);
    if (bad) {
        run_fail(self->run, "%" PRId64 " of %" PRId64 " values of layer %d are no numbers", bad,
                 self->rows * self->cols, (int)self->layer + 1);
        return;
    }
    values_set(&self->values, "at_layer", self->layer + 1);
    if (self->most) set_recurring(self);
}

static void report(void *s, struct values *values) {
    *values = ((struct outliers_self *)s)->values;
}

static void dispose(void *s) {
    struct outliers_self *self = s;
    free(self->x);
    free(self->own);
}

const struct workload workload_outliers = {
    .name = "outliers",
    .brief = "values of a model's weights and activations far larger than the others, and what "
             "they cost",
    .help =
        "Question: which dimensions of activations, and which weights, are far larger than the "
        "others, in which layers, and how many codes are left for the rest? (seeds E34, E37, E38)\n\n"
        "Activations: the tokens of a text, or drawn ones, go through the model once, untimed; what "
        "flows into each matrix, and the residual stream behind each layer, is copied out between "
        "its ops, on any device. Weights: as model.file stores them, or as they are drawn; they are "
        "read as numbers, whatever model.type is, and no device is needed.\n\n"
        "Rules, stated so that they can be disputed: a dimension (a column) stands out whose "
        "largest magnitude is at least `stands_out` times that of the median dimension of the same "
        "layer. It recurs where it stands out in at least half of the layers. A weight stands out "
        "beyond `sigmas` deviations of its matrix.\n\n"
        "Bins: to_1 ... to_4096 count dimensions by their largest magnitude (of weights, in "
        "deviations of the matrix); sigma_... are shares of the values.\n\n"
        "Codes: symmetric, by the plain definition in double (E32). With and without what stands "
        "out; errors and zeros are those of the values that stay, in both. One scale for all, or "
        "(row_levels) a scale for each row: a token's activations, an output's weights.\n\n"
        "A trained model has such dimensions, always the same ones; a randomly made one has none: "
        "run with model.file to see them. Where a file's weights are themselves codes (Q4_1), what "
        "is looked at is what the codes mean.\n\n"
        "Inside the timing: nothing; the row is exact for one device.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct outliers_params),
    .self_size = sizeof(struct outliers_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .report = report,
    .dispose = dispose,
};
