/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `kv_quantize`: what rounding keys and values does to the output of attention. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/common/codes.h"
#include "workloads/common/outliers.h"
#include "workloads/common/slow.h"
#include "workloads/model/cache.h"
#include "workloads/model/inputs.h"

enum kv_part { SIDE_BOTH, SIDE_KEYS, SIDE_VALUES };
enum kv_by { KV_TOKEN, KV_CHANNEL, KV_HEAD };
struct kv_quantize_params {
    int64_t batch, context, bits, run, draw;
    double share, scale, offset;
    int scheme, by, part;
};
struct side { /* keys or values of all heads: (batch, n_kv, context, d_h) */
    float *was, *stored;
    struct code_sums sums;
    bool coded;
};
struct kv_quantize_self {
    struct run *run;
    struct device *device;
    struct kv_quantize_params params;
    struct model_config config; /* of one layer */
    struct cache *cache;
    struct side keys, values;
    float *queries, *out; /* (batch, n_q d_h) on the host */
    struct tensor q, o;
    struct step step;
    void *step_memory;
    int64_t allocated;
    struct slow slow;
    double score_error, scores;        /* sum of squares; how many */
    double output_error, worst_output; /* sum of squares of o^ - o; of the worst head, relative */
};

static const char *const scheme_words[] = {"none", "symmetric", "affine", NULL};
static const char *const by_words[] = {"token", "channel", "head", NULL};
static const char *const part_words[] = {"both", "keys", "values", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct kv_quantize_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "2",
     .min = 1,
     .max = 4096,
     .unit = "sequences",
     .help = "Sequences, each with a cache of its own and one query now."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "256",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "S: tokens in each cache."},
    {.key = "scheme",
     .type = OPT_WORD,
     PARAM(scheme),
     .def = "none",
     .words = scheme_words,
     .unit = "",
     .help =
         "Rounding before values enter the cache, which keeps model.kv_type; none: model.kv_type "
         "alone (its int8 has a scale a token and head)."},
    {.key = "bits",
     .type = OPT_INT,
     PARAM(bits),
     .def = "8",
     .min = 2,
     .max = 16,
     .unit = "bits",
     .help = "Of a code of the scheme."},
    {.key = "by",
     .type = OPT_WORD,
     PARAM(by),
     .def = "token",
     .words = by_words,
     .unit = "",
     .help = "One scale for the values of a token, of a channel over the tokens, or of the whole "
             "head: of one KV head of one sequence."},
    {.key = "run",
     .type = OPT_INT,
     PARAM(run),
     .def = "0",
     .min = 0,
     .max = 1 << 20,
     .unit = "values",
     .help = "Consecutive values of the token or channel with one scale; 0: all."},
    {.key = "part",
     .type = OPT_WORD,
     PARAM(part),
     .def = "both",
     .words = part_words,
     .unit = "",
     .help = "What the scheme rounds."},
    {.key = "outlier_share",
     .type = OPT_REAL,
     PARAM(share),
     .def = "0.03125",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "Channels of every head whose keys are `outlier_scale` times as large, at least one "
             "where it is above 0; values have none."},
    {.key = "outlier_scale",
     .type = OPT_REAL,
     PARAM(scale),
     .def = "8",
     .min = 0,
     .max = 500,
     .unit = "",
     .help = "How many times as large they are."},
    {.key = "key_offset",
     .type = OPT_REAL,
     PARAM(offset),
     .def = "0",
     .min = 0,
     .max = 500,
     .unit = "",
     .help =
         "Deviation of what is added to all keys of a channel: where channels lie to one side, a "
         "zero point saves half the codes."},
    {.key = "draw",
     .type = OPT_INT,
     PARAM(draw),
     .def = "1",
     .min = 0,
     .max = 1e9,
     .unit = "",
     .help = "Which keys, values and queries are drawn."},
    {0},
};
static const struct only only[] = {{"bits", "scheme", "symmetric affine"},
                                   {"by", "scheme", "symmetric affine"},
                                   {"run", "scheme", "symmetric affine"},
                                   {"part", "scheme", "symmetric affine"},
                                   {0}};
static const struct phase phases[] = {{"attention", "row"}, {0}};
static const struct metric metrics[] = {
    {"kv_bits", "bit",
     "Bits of an element, scales and zero points included (16 bits each in schemes, f32 in the "
     "cache's int8), mean of keys and values; what a scheme leaves alone counts 16.",
     BETTER_LOWER, true},
    {"kv_token_bytes", "byte", "Bytes of a token's keys and values in one layer, by kv_bits.",
     BETTER_LOWER, true},
    {"output_error", "",
     "||o^ - o|| / ||o|| of all heads' outputs: the device's attention over its cache against "
     "attention in double over the values as they were.",
     BETTER_LOWER, false},
    {"key_error", "", "||k^ - k|| / ||k|| of all keys.", BETTER_LOWER, true},
    {"value_error", "", "||v^ - v|| / ||v|| of all values.", BETTER_LOWER, true},
    {"score_error", "",
     "Root mean square of q k^ / sqrt(d_h) - q k / sqrt(d_h): what softmax exponentiates.",
     BETTER_LOWER, true},
    {"kv_bytes_allocated", "byte",
     "What the allocator gave for the device's cache, scales included; empty where a scheme is only "
     "simulated in it.",
     BETTER_LOWER, true},
    {"smaller", "", "16 over kv_bits.", BETTER_HIGHER, true},
    {"worst_output_error", "", "output_error of the head where it is largest.", BETTER_LOWER,
     false},
    {"kernel_error", "", "The device's outputs against attention in double over its own cache.",
     BETTER_LOWER, false},
    {"levels_used", "level", "Codes of keys that occur in a scheme.", BETTER_NONE, true},
    {0},
};

/* ---- the ledger */

static struct model_config one_layer(const struct model_config *config) {
    struct model_config one = *config;
    one.shape.n_layers = 1;
    return one;
}

static struct cache_spec cache_of(const struct kv_quantize_params *p) {
    return (struct cache_spec){
        .n_seq = (int32_t)p->batch, .capacity = (int32_t)p->context, .most_q = 1};
}

static int64_t elements(const struct kv_quantize_params *p, const struct model_shape *s) {
    return p->batch * s->n_kv * p->context * s->d_h;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct kv_quantize_params *p = params_;
    if (elements(p, &config->shape) > 1 << 28)
        problem(problems, "workload.context", "workload.batch",
                "%" PRId64 " keys are more than 2^28", elements(p, &config->shape));
    if (p->scheme && model_kv_type(&config->params) == DT_I8)
        problem(problems, "workload.scheme", "model.kv_type",
                "a cache of int8 would round the scheme's values again; f32 keeps them");
    if (config->params.window > 0)
        problem(problems, "model.window", NULL, "all tokens are looked at: no window");
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct kv_quantize_params *p = params_;
    const struct model_config one = one_layer(config);
    const struct cache_spec spec = cache_of(p);
    const int64_t width = config->shape.n_q * config->shape.d_h;
    cache_bytes(&one, &spec, plan->bytes);
    plan->bytes[MEM_ACTIVATION] += 2 * p->batch * width * dtype_bits(config->activation) / 8;
    plan->bytes[MEM_STATE] += (int64_t)step_bytes((int32_t)p->batch, (int32_t)p->batch, 0);
    plan->host_bytes =
        cache_host_bytes(&one, &spec) +
        (int64_t)sizeof(float) * (4 * elements(p, &config->shape) + 2 * p->batch * width);
    plan->work[0].items = (double)p->batch;
    plan->binding_type = DT_F32;
}

/* ---- keys and values */

static struct code_spec scheme_of(const struct kv_quantize_params *p) {
    static const enum code_by by[] = {BY_ROW, BY_COLUMN, BY_ALL};
    return (struct code_spec){.scheme = p->scheme == 2 ? CODE_AFFINE : CODE_SYMMETRIC,
                              .bits = (int)p->bits,
                              .by = by[p->by],
                              .run = p->run};
}

/* What the device's cache makes of a token's d_h values: what rope_append writes. */
static void keep(enum dtype type, const float *x, int32_t d_h, float *out) {
    if (type == DT_I8) {
        int8_t *codes = must_alloc((size_t)d_h);
        const float scale = quant_kv(x, d_h, codes);
        for (int32_t c = 0; c < d_h; c++) out[c] = scale * (float)codes[c];
        free(codes);
        return;
    }
    for (int32_t c = 0; c < d_h; c++) {
        dtype_store(&out[c], type, 0, x[c]);
        out[c] = dtype_load(&out[c], type, 0);
    }
}

static void make_side(struct kv_quantize_self *self, struct side *side, bool keys) {
    const struct kv_quantize_params *p = &self->params;
    const struct model_shape *s = &self->config.shape;
    const int64_t tokens = p->context, d_h = s->d_h, head = tokens * d_h;
    const struct outliers none = {OUTLIERS_NONE, 0, 0},
                          some = {OUTLIERS_COLUMNS, p->share, p->scale};
    const struct code_spec scheme = scheme_of(p);
    side->was = must_alloc(2 * sizeof(float) * (size_t)elements(p, s));
    side->stored = side->was + elements(p, s);
    side->coded = p->scheme && p->part != (keys ? SIDE_VALUES : SIDE_KEYS);
    for (int64_t h = 0; h < p->batch * s->n_kv; h++) {
        float *was = side->was + h * head, *stored = side->stored + h * head;
        const uint64_t key = random_key(random_key((uint64_t)p->draw, keys ? 1 : 2), (uint64_t)h);
        outliers_fill(was, tokens, d_h, 1, keys ? &some : &none, key);
        for (int64_t i = 0; keys && p->offset > 0 && i < head; i++)
            was[i] += (float)(p->offset * random_normal(random_key(key, 9), (uint64_t)(i % d_h)));
        const struct code_array array = {was, tokens, d_h};
        for (int64_t i = 0; i < head; i++) stored[i] = was[i];
        if (side->coded) code_round(&scheme, &array, stored, &side->sums);
        for (int64_t t = 0; t < tokens; t++)
            keep(model_kv_type(&self->config.params), stored + t * d_h, (int32_t)d_h,
                 stored + t * d_h);
    }
}

static double side_error(const struct kv_quantize_self *self, const struct side *side) {
    double error = 0, value = 0;
    for (int64_t i = 0; i < elements(&self->params, &self->config.shape); i++) {
        const double d = (double)side->stored[i] - (double)side->was[i];
        error += d * d;
        value += (double)side->was[i] * (double)side->was[i];
    }
    return value > 0 ? sqrt(error / value) : 0;
}

/* Into the device's cache, token by token, where its layout has them. An int8 cache gets the codes
   of the values as they were. */
static void upload_side(struct kv_quantize_self *self, const struct side *side, bool keys) {
    const struct model_shape *s = &self->config.shape;
    const struct kv *kv = &self->cache->layers[0];
    const int64_t size = dtype_bits(kv->type) / 8 * s->d_h;
    char *memory = keys ? kv->k : kv->v, *image = must_alloc((size_t)size);
    float *scales = keys ? kv->k_scale : kv->v_scale;
    for (int64_t i = 0; i < elements(&self->params, s) / s->d_h; i++) {
        const int64_t token = i % self->params.context, head = i / self->params.context;
        const int64_t at = cache_place(self->cache, (int32_t)(head / s->n_kv),
                                       (int32_t)(head % s->n_kv), (int32_t)token);
        const float *x = (kv->type == DT_I8 ? side->was : side->stored) + i * s->d_h;
        if (kv->type == DT_I8) {
            const float scale = quant_kv(x, kv->d_h, (int8_t *)image);
            self->device->kind->upload(self->device, &scales[at], &scale, sizeof scale);
        } else {
            for (int64_t c = 0; c < s->d_h; c++) dtype_store(image, kv->type, c, x[c]);
        }
        self->device->kind->upload(self->device, memory + at * size, image, (size_t)size);
    }
    free(image);
}

/* ---- before and in the execution */

static int make_cache(struct kv_quantize_self *self, struct err *err) {
    const struct cache_spec spec = cache_of(&self->params);
    const struct tracker *tracker = self->device->tracker;
    const int64_t before = tracker_live(tracker, MEM_KV) + tracker_live(tracker, MEM_SCALE);
    int code = cache_create(&self->cache, self->device, &self->config, &spec, err);
    if (code) return code;
    self->allocated = tracker_live(tracker, MEM_KV) + tracker_live(tracker, MEM_SCALE) - before;
    for (int32_t i = 0; !code && i < spec.n_seq; i++)
        code = cache_reserve(self->cache, i, 0, spec.capacity, err);
    cache_publish(self->cache);
    return code;
}

static int make_rows(struct kv_quantize_self *self, struct err *err) {
    const int64_t rows = self->params.batch,
                  width = self->config.shape.n_q * self->config.shape.d_h;
    const enum dtype type = self->config.activation;
    int code = tensor_create(&self->q, self->device, type, rows, width, "queries", err);
    if (!code)
        code = tensor_create(&self->o, self->device, type, rows, width, "attention out", err);
    if (code) return code;
    const size_t bytes = (size_t)(rows * width) * (size_t)dtype_bits(type) / 8;
    const uint64_t key = random_key((uint64_t)self->params.draw, 3);
    void *image = must_alloc(bytes);
    self->queries = must_alloc(2 * sizeof(float) * (size_t)(rows * width));
    self->out = self->queries + rows * width;
    for (int64_t i = 0; i < rows * width; i++) {
        dtype_store(image, type, i, (float)random_normal(key, (uint64_t)i));
        self->queries[i] = dtype_load(image, type, i);
    }
    self->device->kind->upload(self->device, self->q.data, image, bytes);
    free(image);
    return 0;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct kv_quantize_self *self = s;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct kv_quantize_params *)params_;
    self->config = one_layer(config);
    slow_begin(&self->slow);
    const struct step_bounds bounds =
        attention_bounds(config, self->params.batch, 1, self->params.context);
    int code = attention_supported(self->device, &self->config, err);
    if (!code) code = make_cache(self, err);
    if (!code) code = make_rows(self, err);
    if (!code)
        code = step_at_end(self->device, &self->step, &self->step_memory,
                           (int32_t)self->params.batch, 1, (int32_t)self->params.context, err);
    if (code) return code;
    make_side(self, &self->keys, true);
    make_side(self, &self->values, false);
    upload_side(self, &self->keys, true);
    upload_side(self, &self->values, false);
    return self->device->kind->plan(self->device, &bounds, err);
}

static void execute(void *s) {
    struct kv_quantize_self *self = s;
    const float scale = 1.0f / sqrtf((float)self->config.shape.d_h);
    self->device->ops->attention(self->device, &self->o, &self->q, &self->cache->layers[0],
                                 &self->step, scale);
}

/* ---- witness: every head of every sequence */

static void add_scores(struct kv_quantize_self *self, const float *q, int64_t at) {
    const int64_t d_h = self->config.shape.d_h;
    for (int64_t t = 0; t < self->params.context; t++) {
        double difference = 0;
        for (int64_t c = 0; c < d_h; c++) {
            const int64_t i = at + t * d_h + c;
            difference += (double)q[c] * ((double)self->keys.stored[i] - (double)self->keys.was[i]);
        }
        self->score_error += difference * difference / (double)d_h;
        self->scores += 1;
    }
}

static void look_at_head(struct kv_quantize_self *self, int64_t row, int64_t head) {
    const struct model_shape *s = &self->config.shape;
    const int32_t n = (int32_t)self->params.context, d_h = (int32_t)s->d_h;
    const int64_t kv_head = row * s->n_kv + head / (s->n_q / s->n_kv);
    const int64_t at = kv_head * n * d_h, place = (row * s->n_q + head) * d_h;
    const double scale = 1 / sqrt((double)d_h);
    const bool plain = self->o.type == DT_F32 && model_kv_type(&self->config.params) == DT_F32;
    double *stored = must_alloc(3 * sizeof *stored * (size_t)d_h), *was = stored + d_h,
           *spread = was + d_h, error = 0, value = 0;
    slow_attention(self->queries + place, self->keys.stored + at, self->values.stored + at, n, d_h,
                   scale, stored, spread);
    slow_attention(self->queries + place, self->keys.was + at, self->values.was + at, n, d_h, scale,
                   was, NULL);
    for (int32_t c = 0; c < d_h; c++) {
        const double out = (double)self->out[place + c];
        /* As of `attention`: beside int8 a device may round queries to 8 bits, beside 16 bits
           probabilities; scores of large keys make more of it. */
        const double share = plain ? 1e-3 : 0.2, round = self->o.type == DT_F32 ? 0x1p-22 : 0x1p-7;
        slow_add(&self->slow, out, stored[c], was[c],
                 share * spread[c] + round * fabs(stored[c]) + 1e-6, place + c);
        error += (out - was[c]) * (out - was[c]);
        value += was[c] * was[c];
    }
    if (value > 0) self->worst_output = fmax(self->worst_output, sqrt(error / value));
    self->output_error += error;
    add_scores(self, self->queries + place, at);
    free(stored);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct kv_quantize_self *self = s;
    const int64_t rows = self->params.batch, width = self->o.cols;
    (void)err;
    *w = (struct witness){.contract = slow_applies(self->device) ? CONTRACT_CLOSE : CONTRACT_NONE,
                          .holds = true,
                          .compared = rows * width,
                          .first_difference = -1,
                          .max_error = NAN};
    snprintf(w->note, sizeof w->note, "attention in double over the device's own cache");
    if (!slow_applies(self->device)) return 0;
    slow_begin(&self->slow);
    self->score_error = self->scores = self->worst_output = self->output_error = 0;
    for (int64_t r = 0; r < rows; r++) {
        tensor_download(self->device, &self->o, r, self->out + r * width);
        for (int64_t h = 0; h < self->config.shape.n_q; h++) look_at_head(self, r, h);
    }
    w->hash = hash_bytes(self->out, sizeof *self->out * (size_t)(rows * width), 1);
    slow_judge(&self->slow, w);
    return 0;
}

/* ---- report */

static double bits_of(const struct kv_quantize_self *self, const struct side *side) {
    const struct model_shape *s = &self->config.shape;
    const enum dtype type = model_kv_type(&self->config.params);
    const struct code_spec scheme = scheme_of(&self->params);
    if (side->coded) return code_bits(&scheme, self->params.context, s->d_h, 16, 16);
    if (self->params.scheme) return 16; /* its f32 is there to add no error of its own */
    return dtype_bits(type) + (type == DT_I8 ? 32.0 / (double)s->d_h : 0);
}

static void report(void *s, struct values *values) {
    struct kv_quantize_self *self = s;
    const struct model_shape *shape = &self->config.shape;
    const struct slow *slow = &self->slow;
    const double bits = (bits_of(self, &self->keys) + bits_of(self, &self->values)) / 2;
    const bool looked = slow->n > 0;
    values_set(values, "kv_bits", bits);
    values_set(values, "kv_token_bytes", bits / 8 * 2 * (double)(shape->n_kv * shape->d_h));
    values_set(values, "kv_bytes_allocated",
               self->params.scheme ? (double)NAN : (double)self->allocated);
    values_set(values, "smaller", 16 / bits);
    values_set(values, "key_error", side_error(self, &self->keys));
    values_set(values, "value_error", side_error(self, &self->values));
    values_set(values, "score_error",
               looked ? sqrt(self->score_error / self->scores) : (double)NAN);
    values_set(values, "output_error",
               looked ? sqrt(self->output_error / slow->unrounded) : (double)NAN);
    values_set(values, "worst_output_error", looked ? self->worst_output : (double)NAN);
    values_set(values, "kernel_error", slow_kernel_error(slow));
    values_set(values, "levels_used",
               self->keys.coded ? (double)code_levels_used(&self->keys.sums) : (double)NAN);
}

static void dispose(void *s) {
    struct kv_quantize_self *self = s;
    if (!self->device) return;
    cache_close(&self->cache);
    device_free(self->device, self->step_memory);
    device_free(self->device, self->q.data);
    device_free(self->device, self->o.data);
    free(self->keys.was);
    free(self->values.was);
    free(self->queries);
}

const struct workload workload_kv_quantize = {
    .name = "kv_quantize",
    .brief = "rounded keys and values: bytes of the cache beside the error of attention",
    .help =
        "Question: what do fewer bits of the cache do to the output of attention, for keys and for "
        "values, and along which direction should scales lie? (seeds E41, E42)\n\n"
        "Exact, no time: `attention` measures that. Keys, values and queries are drawn, normal; a "
        "few channels of the keys are larger, as in trained models. scheme = none: the device's own "
        "cache in model.kv_type; int8 has codes and a scale for each token and head, as the "
        "session's caches have. Else values are rounded by the scheme (symmetric or affine, any "
        "bits, scales by token, channel or head) before they enter a cache of model.kv_type = f32, "
        "which keeps them as they are. Then one query a sequence attends to all of its tokens, by "
        "the device's own attention.\n\n"
        "Bits: b + 16 / run for a scale, as many again for a zero point; run is what shares a "
        "scale. Weight-only formats do not shrink the cache (E42).\n\n"
        "Expect: a channel with large keys sets the scale of its whole token, so keys want scales by "
        "channel; values have no such channels, and a scale a token is as good. Errors of keys are "
        "exponentiated, those of values averaged.\n\n"
        "Witness: every head's output agrees with attention in double over the device's own cache.\n",
    .flags = WORK_MODEL | WORK_ONCE,
    .params = params,
    .only = only,
    .params_size = sizeof(struct kv_quantize_params),
    .self_size = sizeof(struct kv_quantize_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
