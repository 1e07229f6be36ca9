/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `attention`: one layer's attention over filled caches, a prompt's rows or one each. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "workloads/common/fill.h"
#include "workloads/common/plain.h"
#include "workloads/common/slow.h"
#include "workloads/model/inputs.h"
#include "workloads/model/ledger.h"

enum { MOST_COPIES = 4096 };

struct attention_params {
    int64_t batch, tokens, context, rotate;
    bool gpu; /* no option: a launch and a wait cost more than an op */
};
struct attention_self {
    struct run *run;
    struct device *device;
    struct attention_params params;
    struct model_config config; /* n_layers: the copies */
    struct cache *cache;
    struct tensor q, o;
    struct step step;
    void *step_memory;
    int32_t next, last; /* the layer whose turn it is, and the one before */
    int64_t macs;       /* of the last execution, where the device counts */
    float scale;
    struct slow slow;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct attention_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "batch",
     .type = OPT_INT,
     PARAM(batch),
     .def = "1",
     .min = 1,
     .max = 65536,
     .unit = "sequences",
     .help = "B."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "1",
     .min = 1,
     .max = 1 << 20,
     .unit = "tokens",
     .help = "T: rows of each sequence now: 1 is decode, T = S a prompt, between them a chunk."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "0",
     .min = 0,
     .max = 1 << 24,
     .unit = "tokens",
     .help = "S: tokens in the cache of each sequence, those of now among them; 0: `tokens`."},
    {.key = "rotate",
     .type = OPT_BYTES,
     PARAM(rotate),
     .def = "0",
     .min = 0,
     .max = 0x1p42,
     .unit = "",
     .help =
         "Caches in turn: as many layers as fill this, 4096 at most, so that each finds its "
         "keys and values gone from the processor's caches; 0: 256 MiB, or twice all caches of the "
         "last level; 1 B: one layer."},
    {0},
};
static const struct phase phases[] = {{"attention", "row"}, {0}};
static const struct metric metrics[] = {
    {"kv_token_bytes", "byte", "Keys, values and scales of one token in one layer.", BETTER_LOWER,
     true},
    SLOW_METRICS,
    {"intensity", "FLOP/byte", "FLOPs over bytes of the ledger: causal pairs only.", BETTER_NONE,
     true},
    {"copies", "layer", "Layers that take turns.", BETTER_NONE, true},
    {"formula_flops", "FLOP", "The seeds' FLOPs of one layer: 4BSTD without causal halving (E28).",
     BETTER_NONE, true},
    {"formula_bytes", "byte",
     "The seeds' bytes with 2-byte elements: 4BSD+4BTD, as if every query head had its own keys.",
     BETTER_NONE, true},
    {"formula_intensity", "FLOP/byte", "formula_flops over formula_bytes.", BETTER_NONE, true},
    {"intensity_counted", "FLOP/byte",
     "FLOPs that the device executed, where it counts (ref), over what the allocator gave for a "
     "layer's keys and values, queries and outputs: formula_intensity, with one row a sequence.",
     BETTER_NONE, true},
    {0},
};

/* ---- the ledger */

static void adapt(void *params_, const struct device_kind *kind) {
    struct attention_params *p = params_;
    p->gpu = kind->has & DEV_GPU;
    if (p->rotate == 0) p->rotate = device_beyond_caches(kind);
}

static int64_t context_of(const struct attention_params *p) {
    return p->context ? p->context : p->tokens;
}

static int64_t rows_of(const struct attention_params *p) { return p->batch * p->tokens; }

static struct cache_spec cache_of(const struct attention_params *p) {
    return (struct cache_spec){.n_seq = (int32_t)p->batch,
                               .capacity = (int32_t)context_of(p),
                               .most_q = (int32_t)p->tokens};
}

/* As many layers as copies take turns. */
static struct model_config layers_of(const struct attention_params *p,
                                     const struct model_config *config) {
    struct model_config layers = *config;
    const struct cache_spec spec = cache_of(p);
    int64_t bytes[N_CLASSES] = {0};
    layers.shape.n_layers = 1;
    cache_bytes(&layers, &spec, bytes);
    const int64_t one = bytes[MEM_KV] + bytes[MEM_SCALE], n = (p->rotate + one - 1) / one;
    layers.shape.n_layers = n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : n;
    return layers;
}

static int64_t calls_of(const struct attention_params *p, const struct model_config *layers) {
    return p->gpu ? layers->shape.n_layers : 1;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct attention_params *p = params_;
    (void)config;
    if (rows_of(p) > 1 << 24)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " rows are more than 2^24", rows_of(p));
    if (context_of(p) < p->tokens)
        problem(problems, "workload.context", "workload.tokens",
                "a context of %" PRId64 " cannot hold the %" PRId64 " tokens processed now",
                p->context, p->tokens);
    if (p->batch * context_of(p) > INT32_MAX)
        problem(problems, "workload.context", "workload.batch",
                "%" PRId64 " tokens are more than 2^31", p->batch * context_of(p));
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct attention_params *p = params_;
    const struct model_config layers = layers_of(p, config);
    struct model_config one = *config;
    const struct cache_spec spec = cache_of(p);
    const struct ledger_part sequences = {
        .n_seq = p->batch, .rows = p->tokens, .kv_len = context_of(p)};
    const int64_t rows = rows_of(p), calls = calls_of(p, &layers);
    struct work parts[N_PARTS] = {0};
    one.shape.n_layers = 1;
    ledger_step_parts(parts, &one, &sequences, 1, 0);
    ledger_add(&plan->work[0], &parts[PART_ATTENTION], (double)calls);
    plan->work[0].items = (double)(calls * rows);
    cache_bytes(&layers, &spec, plan->bytes);
    plan->bytes[MEM_ACTIVATION] +=
        dtype_bits(config->activation) / 8 * 2 * rows * config->shape.n_q * config->shape.d_h;
    plan->bytes[MEM_STATE] += (int64_t)step_bytes((int32_t)p->batch, (int32_t)rows, 0);
    plan->host_bytes = cache_host_bytes(&layers, &spec);
    plan->binding_type = config->activation;
}

/* ---- before the clock starts */

static int create_cache(struct attention_self *self, struct err *err) {
    const struct attention_params *p = &self->params;
    const struct cache_spec spec = cache_of(p);
    int code = cache_create(&self->cache, self->device, &self->config, &spec, err);
    if (code) return code;
    struct blocks *b = self->cache->blocks;
    if (b) /* as a pool hands them out after a while: none beside its neighbour */
        random_shuffle(random_key(run_seed(self->run), 102), b->spare, b->n_spare);
    for (int32_t s = 0; !code && s < spec.n_seq; s++)
        code = cache_reserve(self->cache, s, 0, spec.capacity, err);
    cache_publish(self->cache);
    fill_cache(self->cache, run_seed(self->run));
    return code;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct attention_self *self = s;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct attention_params *)params_;
    self->config = layers_of(&self->params, config);
    slow_begin(&self->slow);
    const struct attention_params *p = &self->params;
    const struct model_shape *shape = &config->shape;
    const int64_t rows = rows_of(p), width = shape->n_q * shape->d_h;
    const struct step_bounds bounds = attention_bounds(config, p->batch, p->tokens, context_of(p));
    int code = attention_supported(self->device, &self->config, err);
    if (!code) code = create_cache(self, err);
    if (!code)
        code =
            tensor_create(&self->q, self->device, config->activation, rows, width, "queries", err);
    if (!code)
        code = tensor_create(&self->o, self->device, config->activation, rows, width,
                             "attention out", err);
    if (!code)
        code = step_at_end(self->device, &self->step, &self->step_memory, (int32_t)p->batch,
                           (int32_t)p->tokens, (int32_t)context_of(p), err);
    if (code) return code;
    self->scale = 1.0f / sqrtf((float)shape->d_h);
    fill_uniform(self->device, self->q.data, self->q.type, rows * width, run_seed(run));
    return self->device->kind->plan(self->device, &bounds, err);
}

static void execute(void *s) {
    struct attention_self *self = s;
    const int64_t calls = calls_of(&self->params, &self->config);
    const struct op_counts *counts = self->device->counts;
    const int64_t before = counts ? counts->attention : 0;
    for (int64_t i = 0; i < calls; i++) {
        self->device->ops->attention(self->device, &self->o, &self->q,
                                     &self->cache->layers[self->next], &self->step, self->scale);
        self->last = self->next;
        self->next = self->next + 1 == self->cache->n_layers ? 0 : self->next + 1;
    }
    if (counts) self->macs = counts->attention - before;
}

static double intensity_counted(const struct attention_self *self) {
    const struct tracker *tracker = self->device->tracker;
    const double bytes = (double)tracker_live(tracker, MEM_KV) / self->cache->n_layers +
                         (double)tracker_live(tracker, MEM_ACTIVATION);
    return self->device->counts ? 2 * (double)self->macs / bytes : (double)NAN;
}

/* ---- witness */

/* out: (o.cols) on the host: a row of the first sequence alone, over another layer's cache where
 * there are several. */
static int row_alone(struct attention_self *self, int64_t row, float *out, struct err *err) {
    const int32_t pos = (int32_t)(context_of(&self->params) - self->params.tokens + row);
    const struct tensor q = tensor_row(self->q, row);
    struct tensor o = {0};
    struct step step;
    void *memory = NULL;
    int code = tensor_create(&o, self->device, self->o.type, 1, self->o.cols, "row alone", err);
    if (!code) code = step_at_end(self->device, &step, &memory, 1, 1, pos + 1, err);
    if (!code) {
        self->device->ops->attention(self->device, &o, &q, &self->cache->layers[self->next], &step,
                                     self->scale);
        code = self->device->kind->sync(self->device, err);
    }
    if (!code) tensor_download(self->device, &o, 0, out);
    device_free(self->device, memory);
    device_free(self->device, o.data);
    return code;
}

/* Keys or values of the first sequence's positions from ... to - 1 of one KV head, as they are
   stored and as they were: (to - from, d_h) each. */
static void read_head(const struct attention_self *self, bool values, int32_t head, int32_t from,
                      int32_t to, float *stored, float *original) {
    const struct kv *kv = &self->cache->layers[self->last];
    const uint64_t seed = run_seed(self->run), key = values ? fill_key_v(seed) : fill_key_k(seed);
    const char *memory = values ? kv->v : kv->k;
    const float *scales = values ? kv->v_scale : kv->k_scale;
    const int64_t size = dtype_bits(kv->type) / 8;
    char *image = must_alloc((size_t)(size * kv->d_h) * (size_t)(to - from));
    float *scale = must_alloc(sizeof *scale * (size_t)(to - from));
    for (int32_t p = from, n; p < to; p += n) { /* runs of neighbouring slots */
        const int64_t at = cache_place(self->cache, 0, head, p);
        for (n = 1; p + n < to && cache_place(self->cache, 0, head, p + n) == at + n;) n++;
        self->device->kind->download(self->device, image, memory + at * kv->d_h * size,
                                     (size_t)(n * kv->d_h * size));
        if (scales)
            self->device->kind->download(self->device, scale, scales + at,
                                         sizeof *scale * (size_t)n);
        for (int32_t i = 0; i < n * kv->d_h; i++) {
            const int64_t to_i = (int64_t)(p - from) * kv->d_h + i;
            stored[to_i] = scales ? (float)(signed char)image[i] * scale[i / kv->d_h]
                                  : dtype_load(image, kv->type, i);
            original[to_i] = fill_value(key, (at * kv->d_h + i) % fill_cache_period(kv->d_h));
        }
    }
    free(image);
    free(scale);
}

/* One query head of one row of the first sequence. */
static void sample_head(struct attention_self *self, int64_t row, int32_t head, const float *q,
                        const float *o) {
    const struct model_shape *s = &self->config.shape;
    const enum dtype kv_type = model_kv_type(&self->config.params);
    const int32_t d_h = (int32_t)s->d_h, window = (int32_t)self->config.params.window;
    const int32_t pos = (int32_t)(context_of(&self->params) - self->params.tokens + row);
    const int32_t from = window > 0 && pos + 1 > window ? pos + 1 - window : 0, n = pos + 1 - from;
    const int32_t kv_head = head / (int32_t)(s->n_q / s->n_kv);
    const size_t bytes = sizeof(float) * (size_t)n * (size_t)d_h;
    float *k = must_alloc(2 * bytes), *v = must_alloc(2 * bytes);
    float *k0 = k + (int64_t)n * d_h, *v0 = v + (int64_t)n * d_h;
    double *out = must_alloc(3 * sizeof *out * (size_t)d_h), *out0 = out + d_h,
           *spread = out + 2 * (int64_t)d_h;
    read_head(self, false, kv_head, from, pos + 1, k, k0);
    read_head(self, true, kv_head, from, pos + 1, v, v0);
    slow_attention(q + (int64_t)head * d_h, k, v, n, d_h, (double)self->scale, out, spread);
    slow_attention(q + (int64_t)head * d_h, k0, v0, n, d_h, (double)self->scale, out0, NULL);
    for (int32_t c = 0; c < d_h; c++) {
        const int64_t at = (int64_t)head * d_h + c;
        slow_add(&self->slow, (double)o[at], out[c], out0[c],
                 slow_attention_allowed(kv_type, self->o.type, spread[c], out[c]),
                 row * self->o.cols + at);
    }
    free(k);
    free(v);
    free(out);
}

static void sample_outputs(struct attention_self *self) {
    const int64_t tokens = self->params.tokens, cols = self->o.cols;
    const int32_t heads = (int32_t)self->config.shape.n_q;
    float *q = must_alloc(2 * sizeof *q * (size_t)cols), *o = q + cols;
    slow_begin(&self->slow);
    for (int64_t row = 0; row<tokens; row += tokens> 1 ? tokens - 1 : 1) {
        tensor_download(self->device, &self->q, row, q);
        tensor_download(self->device, &self->o, row, o);
        for (int32_t h = 0; h<heads; h += heads> 1 ? heads - 1 : 1) sample_head(self, row, h, q, o);
    }
    free(q);
}

/* Only the first sequence's rows: what the others hold must not matter to them. */
static int witness(void *s, struct witness *w, struct err *err) {
    struct attention_self *self = s;
    const int64_t rows = self->params.tokens, cols = self->o.cols;
    float *fast = must_alloc(2 * sizeof *fast * (size_t)cols), *alone = fast + cols;
    int code = 0;
    plain_begin(w, self->device, "first and last row of a sequence against each computed alone");
    for (int64_t row = 0; !code && row<rows; row += rows> 1 ? rows - 1 : 1) {
        tensor_download(self->device, &self->o, row, fast);
        code = row_alone(self, row, alone, err);
        if (!code) witness_row(w, fast, alone, cols, row * cols, plain_tolerance(&self->config));
    }
    free(fast);
    if (code || !slow_applies(self->device)) return code;
    sample_outputs(self);
    slow_judge(&self->slow, w);
    return 0;
}

static void report(void *s, struct values *values) {
    struct attention_self *self = s;
    const struct attention_params *p = &self->params;
    const struct model_shape *shape = &self->config.shape;
    const struct block_cost cost =
        ledger_attention(p->batch, context_of(p), p->tokens, shape->n_q * shape->d_h, 2, 2);
    struct model_config one = self->config;
    struct plan work = {0};
    int64_t scales;
    double bytes = 0;
    one.shape.n_layers = 1;
    plan(p, &one, &work);
    for (int c = 0; c < N_CLASSES; c++) bytes += work.work[0].bytes[c];
    values_set(values, "kv_token_bytes",
               (double)(model_kv_bytes_per_token(&one, &scales) + scales));
    values_set(values, "kernel_error", slow_kernel_error(&self->slow));
    values_set(values, "format_error", slow_format_error(&self->slow));
    values_set(values, "intensity", work.work[0].flops / bytes);
    values_set(values, "copies", (double)self->config.shape.n_layers);
    values_set(values, "formula_flops", cost.flops);
    values_set(values, "formula_bytes", ledger_bytes(cost));
    values_set(values, "formula_intensity", ledger_intensity(cost));
    values_set(values, "intensity_counted", intensity_counted(self));
}

static void dispose(void *s) {
    struct attention_self *self = s;
    if (!self->device) return;
    cache_close(&self->cache);
    device_free(self->device, self->step_memory);
    device_free(self->device, self->q.data);
    device_free(self->device, self->o.data);
}

const struct workload workload_attention = {
    .name = "attention",
    .brief = "one layer's attention on its own: decode over a long cache, or a prompt",
    .help =
        "Question: does attention in decode read its cache at the speed of memory, and does that "
        "of a prompt reach the arithmetic? (seed E28)\n\n"
        "Inside the timing: T rows of each of B sequences over the S tokens of their caches by the "
        "device's own attention; on a host one layer an execution, each time the next of several "
        "whose caches take turns; on a GPU each of them once.\n\n"
        "Outside: caches (seeded, different everywhere, blocks of a paged one in random order) "
        "and queries. Heads and their width come from model.shape (`shape.n_kv` changes them), the "
        "cache from model.kv_type, model.layout, model.block and model.window; model.type only "
        "decides which activations the device keeps.\n\n"
        "Ledger of one layer: 4 n_q d_h FLOPs a pair of a row and a position that it sees. A causal "
        "mask leaves T S - T (T - 1) / 2 pairs of a sequence, for a whole prompt about half of T "
        "S, and only these are counted. Bytes: keys and values that any row sees once, with their "
        "scales; queries and outputs once. The seeds' formulas, without causal halving and with "
        "keys of their own for every query head, stand beside it as formula_*.\n\n"
        "Expect: decode below 1 FLOP a byte times the query heads that share a KV head, whatever "
        "the batch: batching does not help attention.\n\n"
        "Witness: first and last row of the first sequence equal those computed alone (exact "
        "where the device computes rows independently of the batch, else close), and two heads of "
        "each agree with a slow computation in double from the same cache.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct attention_params),
    .self_size = sizeof(struct attention_self),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .plan = plan,
    .adapt = adapt,
    .prepare = prepare,
    .execute = execute,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
