/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `blocks`: one block of a transformer on its own, for the roofline. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/random.h"
#include "base/text.h"
#include "workloads/common/activation.h"
#include "workloads/common/fill.h"
#include "workloads/common/plain.h"
#include "workloads/model/cache.h"
#include "workloads/model/inputs.h"
#include "workloads/model/ledger.h"
#include "workloads/model/synth.h"
#include "workloads/workload.h"

enum { PART_GEMM, PART_MLP, PART_ATTENTION };

struct blocks_params {
    int part, type, kv_type, activation;
    int64_t batch, tokens, context, d, f, heads;
};
struct blocks_self {
    struct run *run;
    struct device *device;
    struct blocks_params params;
    struct weight *first, *down; /* gemm's matrix or gate and up; down */
    struct tensor x, hidden, y;
    struct cache *cache;
    struct step step;
    void *step_memory;
    float scale;
};

static const char *const part_words[] = {"gemm", "mlp", "attention", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct blocks_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "part",
     .type = OPT_WORD,
     PARAM(part),
     .def = "gemm",
     .words = part_words,
     .unit = "",
     .help = "gemm: one product; mlp: gate, up and down; attention: over a filled cache."},
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
     .help = "T: tokens of each sequence that are processed now; rows are B T."},
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "128",
     .min = 1,
     .max = 1 << 24,
     .unit = "tokens",
     .help = "S, attention: tokens in the cache of each sequence, those processed now among them."},
    {.key = "d",
     .type = OPT_INT,
     PARAM(d),
     .def = "1024",
     .min = 2,
     .max = 65536,
     .unit = "values",
     .help = "D: model width."},
    {.key = "f",
     .type = OPT_INT,
     PARAM(f),
     .def = "4096",
     .min = 1,
     .max = 262144,
     .unit = "values",
     .help = "F: width of gemm's output or of the gated MLP."},
    {.key = "heads",
     .type = OPT_INT,
     PARAM(heads),
     .def = "16",
     .min = 1,
     .max = 1024,
     .unit = "heads",
     .help =
         "Attention: heads of D / heads values, each with keys and values of its own (multi-head)."},
    {.key = "type",
     .type = OPT_WORD,
     PARAM(type),
     .def = "bf16",
     .words = weight_format_names,
     .unit = "",
     .help = "How the matrices are stored."},
    {.key = "kv_type",
     .type = OPT_WORD,
     PARAM(kv_type),
     .def = "bf16",
     .words = kv_type_names,
     .unit = "",
     .help = "Element type of the cache."},
    {.key = "activation",
     .type = OPT_WORD,
     PARAM(activation),
     .def = "auto",
     .words = activation_words,
     .unit = "",
     .help =
         "Element type of inputs and outputs; auto: what the device keeps beside such matrices."},
    {0},
};
static const struct phase phases[] = {{"block", "row"}, {0}};
static const struct metric metrics[] = {
    {"intensity", "FLOP/byte",
     "FLOPs over bytes of the ledger: of the element types in use, causal pairs only.", BETTER_NONE,
     true},
    {"formula_flops", "FLOP",
     "The seeds' FLOPs: 2BDF, 6BTDF, or 4BSTD without causal halving (E25, E27, E28).", BETTER_NONE,
     true},
    {"formula_bytes", "byte",
     "The seeds' bytes with 2-byte elements: 2BD+2DF+2BF, 4BTD+4BTF+6DF, or 4BSD+4BTD.",
     BETTER_NONE, true},
    {"formula_intensity", "FLOP/byte", "formula_flops over formula_bytes.", BETTER_NONE, true},
    {0},
};

static void adapt(void *params_, const struct device_kind *kind) {
    struct blocks_params *p = params_;
    p->activation = (int)activation_type(p->activation, weight_formats[p->type].type, kind);
}

static struct model_config config_of(const struct blocks_params *p) {
    struct model_config config = {.shape = {.n_layers = 1,
                                            .d_model = p->d,
                                            .n_q = p->heads,
                                            .n_kv = p->heads,
                                            .d_h = p->d / p->heads,
                                            .d_ff = p->f,
                                            .vocab = 2},
                                  .params = {.type = p->type, .kv_type = p->kv_type},
                                  .activation = (enum dtype)p->activation};
    return config;
}

static struct cache_spec cache_of(const struct blocks_params *p) {
    return (struct cache_spec){
        .n_seq = (int32_t)p->batch, .capacity = (int32_t)p->context, .most_q = (int32_t)p->tokens};
}

static int64_t rows_of(const struct blocks_params *p) { return p->batch * p->tokens; }

static int64_t activation_size(const struct blocks_params *p) {
    return dtype_bits((enum dtype)p->activation) / 8;
}

/* The seeds' model, with element sizes. */
static struct block_cost cost_of(const struct blocks_params *p, double weight_size, double kv_size,
                                 double activation_size) {
    switch (p->part) {
    case PART_GEMM: return ledger_gemm(rows_of(p), p->d, p->f, weight_size, activation_size);
    case PART_MLP: return ledger_mlp(p->batch, p->tokens, p->d, p->f, weight_size, activation_size);
    default:
        return ledger_attention(p->batch, p->context, p->tokens, p->d, kv_size, activation_size);
    }
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct blocks_params *p = params_;
    (void)config;
    if (p->batch * p->tokens > 1 << 24)
        problem(problems, "workload.tokens", "workload.batch",
                "%" PRId64 " rows are more than 2^24", p->batch * p->tokens);
    if (p->part != PART_ATTENTION) return;
    if (p->d % p->heads || p->d / p->heads % 2)
        problem(problems, "workload.heads", "workload.d",
                "%" PRId64 " values do not make %" PRId64 " heads of an even width", p->d,
                p->heads);
    if (p->context < p->tokens)
        problem(problems, "workload.context", "workload.tokens",
                "a context of %" PRId64 " cannot hold the %" PRId64 " tokens processed now",
                p->context, p->tokens);
    if (p->batch * p->context > INT32_MAX)
        problem(problems, "workload.context", "workload.batch",
                "%" PRId64 " tokens are more than 2^31", p->batch * p->context);
}

static void add_matrix(struct plan *plan, const struct model_config *config, int64_t rows,
                       int64_t cols) {
    struct matrix_bytes bytes = ledger_matrix(config, rows, cols);
    plan->bytes[MEM_WEIGHT] += bytes.payload;
    plan->bytes[MEM_SCALE] += bytes.scales;
    plan->work[0].bytes[MEM_WEIGHT] += (double)bytes.payload;
    plan->work[0].bytes[MEM_SCALE] += (double)bytes.scales;
}

static void plan(const void *params_, const struct model_config *unused, struct plan *plan) {
    const struct blocks_params *p = params_;
    const struct model_config config = config_of(p);
    const struct cache_spec spec = cache_of(p);
    const int64_t size = activation_size(p);
    struct work *work = &plan->work[0];
    struct block_cost cost = cost_of(p, 0, 0, (double)size);
    int64_t rows = rows_of(p), scales;
    (void)unused;
    work->flops = cost.flops;
    work->bytes[MEM_ACTIVATION] = cost.activation_bytes;
    work->items = (double)rows;
    plan->peak_bytes = 0;
    plan->binding_type = config.activation;
    if (p->part == PART_ATTENTION) {
        double token_bytes = (double)model_kv_bytes_per_token(&config, &scales);
        work->flops =
            4 * (double)p->d * (double)p->batch * (double)ledger_pairs(p->tokens, p->context, 0);
        work->bytes[MEM_KV] = (double)(p->batch * p->context) * token_bytes;
        work->bytes[MEM_SCALE] = (double)(p->batch * p->context) * (double)scales;
        cache_bytes(&config, &spec, plan->bytes);
        plan->bytes[MEM_ACTIVATION] = size * 2 * rows * p->d;
        plan->bytes[MEM_STATE] += (int64_t)step_bytes((int32_t)p->batch, (int32_t)rows, 0);
        return;
    }
    add_matrix(plan, &config, p->f, p->d);
    if (p->part == PART_MLP) {
        add_matrix(plan, &config, p->f, p->d);
        add_matrix(plan, &config, p->d, p->f);
    }
    plan->bytes[MEM_ACTIVATION] =
        size * rows * (p->part == PART_MLP ? 2 * p->d + p->f : p->d + p->f);
}

static int create(struct blocks_self *self, struct tensor *t, int64_t rows, int64_t cols,
                  const char *what, struct err *err) {
    size_t bytes = (size_t)(activation_size(&self->params) * rows * cols);
    *t = (struct tensor){.type = (enum dtype)self->params.activation,
                         .rows = (int32_t)rows,
                         .cols = (int32_t)cols,
                         .stride = cols};
    t->data = device_alloc(self->device, bytes, MEM_ACTIVATION, what);
    return t->data ? 0 : err_set(err, ERR_MEMORY, "no memory for %s (%zu bytes)", what, bytes);
}

static int pack(struct blocks_self *self, struct weight **weight, const char *what, int n,
                int64_t rows, int64_t cols, uint64_t stream, struct err *err) {
    const struct model_config config = config_of(&self->params);
    const struct weight_format *format = model_weight_format(&config.params);
    struct synth_matrix matrices[2];
    struct weight_spec specs[2];
    struct row_source sources[2];
    for (int i = 0; i < n; i++) {
        matrices[i] = synth_matrix(run_seed(self->run), stream + (uint64_t)i, cols);
        sources[i] = synth_source(&matrices[i]);
        specs[i] = (struct weight_spec){.what = what,
                                        .rows = rows,
                                        .cols = cols,
                                        .type = format->type,
                                        .scale = format->scale,
                                        .group = model_group(&config.params)};
    }
    return self->device->kind->pack(self->device, weight, specs, n, sources, err);
}

static int supported(struct blocks_self *self, struct err *err) {
    const struct model_config config = config_of(&self->params);
    const struct weight_format *format = model_weight_format(&config.params);
    const struct op_case op_case = {.weight = format->type,
                                    .scale = format->scale,
                                    .group = model_group(&config.params),
                                    .activation = config.activation,
                                    .kv = model_kv_type(&config.params),
                                    .epilogue =
                                        self->params.part == PART_MLP ? EPI_SWIGLU : EPI_NONE};
    const char *reason = "";
    enum op op = self->params.part == PART_ATTENTION ? OP_ATTENTION : OP_LINEAR;
    if (self->device->kind->supports(self->device, op, &op_case, &reason)) return 0;
    return err_set(err, ERR_UNSUPPORTED, "%s is not supported by %s: %s", op_names[op],
                   self->device->kind->name, reason);
}

/* What is in the cache does not matter; that it differs everywhere does. */
static void fill_cache(struct blocks_self *self) {
    const struct kv *kv = &self->cache->layers[0];
    const uint64_t seed = run_seed(self->run);
    int64_t slots = (int64_t)self->cache->units * kv->n_kv * kv->block;
    fill_uniform(self->device, kv->k, kv->type, slots * kv->d_h, random_key(seed, 100));
    fill_uniform(self->device, kv->v, kv->type, slots * kv->d_h, random_key(seed, 101));
    if (!kv->k_scale) return;
    fill_constant(self->device, kv->k_scale, slots, 0x1p-7f);
    fill_constant(self->device, kv->v_scale, slots, 0x1p-7f);
}

/* One step of T rows at the end of each sequence's context. */
static int make_step(struct blocks_self *self, struct err *err) {
    const struct blocks_params *p = &self->params;
    const int32_t batch = (int32_t)p->batch, rows = (int32_t)rows_of(p);
    size_t bytes = step_bytes(batch, rows, 0);
    struct step host;
    self->step_memory = device_alloc(self->device, bytes, MEM_STATE, "step");
    if (!self->step_memory)
        return err_set(err, ERR_MEMORY, "no memory for a step of %d rows", (int)rows);
    void *copy = must_alloc(bytes);
    step_place(&self->step, self->step_memory, batch, rows, 0);
    step_place(&host, copy, batch, rows, 0);
    self->step.most_q = (int32_t)p->tokens;
    self->step.most_kv = (int32_t)p->context;
    for (int32_t s = 0; s < batch; s++) {
        host.q_begin[s] = s * (int32_t)p->tokens;
        host.kv_len[s] = (int32_t)p->context;
        host.alive[s] = 1;
        for (int32_t i = 0; i < (int32_t)p->tokens; i++) {
            host.pos[host.q_begin[s] + i] = (int32_t)(p->context - p->tokens) + i;
            host.seq[host.q_begin[s] + i] = s;
        }
    }
    host.q_begin[batch] = rows;
    self->device->kind->upload(self->device, self->step_memory, copy, bytes);
    free(copy);
    return 0;
}

static int prepare_attention(struct blocks_self *self, struct err *err) {
    const struct blocks_params *p = &self->params;
    const struct model_config config = config_of(p);
    const struct cache_spec spec = cache_of(p);
    const int64_t rows = rows_of(p);
    int code = cache_create(&self->cache, self->device, &config, &spec, err);
    if (!code) code = create(self, &self->x, rows, p->d, "queries", err);
    if (!code) code = create(self, &self->y, rows, p->d, "attention out", err);
    if (!code) code = make_step(self, err);
    if (code) return code;
    self->scale = 1.0f / sqrtf((float)config.shape.d_h);
    fill_cache(self);
    fill_uniform(self->device, self->x.data, self->x.type, rows * p->d, run_seed(self->run));
    return 0;
}

static int prepare_linear(struct blocks_self *self, struct err *err) {
    const struct blocks_params *p = &self->params;
    const bool mlp = p->part == PART_MLP;
    const int64_t rows = rows_of(p);
    int code = pack(self, &self->first, mlp ? "gate and up" : "gemm matrix", mlp ? 2 : 1, p->f,
                    p->d, 0, err);
    if (!code && mlp) code = pack(self, &self->down, "down", 1, p->d, p->f, 2, err);
    if (!code) code = create(self, &self->x, rows, p->d, "x", err);
    if (!code && mlp) code = create(self, &self->hidden, rows, p->f, "hidden", err);
    if (!code) code = create(self, &self->y, rows, mlp ? p->d : p->f, "y", err);
    if (!code)
        fill_uniform(self->device, self->x.data, self->x.type, rows * p->d, run_seed(self->run));
    return code;
}

static int prepare(void *s, const void *params_, const struct model_config *unused, struct run *run,
                   struct err *err) {
    struct blocks_self *self = s;
    (void)unused;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct blocks_params *)params_;
    const struct blocks_params *p = &self->params;
    const bool attention = p->part == PART_ATTENTION;
    int code = supported(self, err);
    if (!code) code = attention ? prepare_attention(self, err) : prepare_linear(self, err);
    if (code) return code;
    struct step_bounds bounds = {.n_seq = (int32_t)p->batch,
                                 .n_row = (int32_t)rows_of(p),
                                 .n_out = 1,
                                 .most_q = (int32_t)p->tokens,
                                 .most_kv = attention ? (int32_t)p->context : 1,
                                 .n_q = attention ? (int32_t)p->heads : 1,
                                 .n_kv = attention ? (int32_t)p->heads : 1,
                                 .d_h = attention ? (int32_t)(p->d / p->heads) : 2,
                                 .d_model = (int32_t)p->d,
                                 .d_ff = (int32_t)p->f,
                                 .vocab = 2};
    return self->device->kind->plan(self->device, &bounds, err);
}

static void execute(void *s) {
    struct blocks_self *self = s;
    const struct ops *op = self->device->ops;
    switch (self->params.part) {
    case PART_GEMM:
        op->linear(self->device, &self->y, &self->x, self->first, NULL, EPI_NONE);
        break;
    case PART_MLP:
        op->linear(self->device, &self->hidden, &self->x, self->first, NULL, EPI_SWIGLU);
        op->linear(self->device, &self->y, &self->hidden, self->down, NULL, EPI_NONE);
        break;
    case PART_ATTENTION:
        op->attention(self->device, &self->y, &self->x, &self->cache->layers[0], &self->step,
                      self->scale);
        break;
    }
}

/* ---- witness: rows of the block against the same rows computed alone */

static struct tensor row_view(struct tensor t, int64_t row) {
    t.data = (char *)t.data + row * t.stride * (dtype_bits(t.type) / 8);
    t.rows = 1;
    return t;
}

/* out: (t.cols) on the host. */
static void download_row(struct device *device, const struct tensor *t, int64_t row, float *out) {
    const size_t bytes = (size_t)t->cols * (size_t)(dtype_bits(t->type) / 8);
    void *image = must_alloc(bytes);
    device->kind->download(device, image, row_view(*t, row).data, bytes);
    for (int64_t i = 0; i < t->cols; i++) out[i] = dtype_load(image, t->type, i);
    free(image);
}

/* The step of one row of the first sequence, in memory of its own. */
static int alone_step(struct blocks_self *self, int64_t row, struct step *step, void **memory,
                      struct err *err) {
    const size_t bytes = step_bytes(1, 1, 0);
    const int32_t pos = (int32_t)(self->params.context - self->params.tokens + row);
    struct step host;
    *memory = device_alloc(self->device, bytes, MEM_STATE, "step of one row");
    if (!*memory) return err_set(err, ERR_MEMORY, "no memory for the step of one row");
    void *copy = must_alloc(bytes);
    step_place(step, *memory, 1, 1, 0);
    step_place(&host, copy, 1, 1, 0);
    step->most_q = 1;
    step->most_kv = pos + 1;
    host.q_begin[1] = 1;
    host.kv_len[0] = pos + 1;
    host.alive[0] = 1;
    host.pos[0] = pos;
    self->device->kind->upload(self->device, *memory, copy, bytes);
    free(copy);
    return 0;
}

/* out: (y.cols) on the host. */
static int row_alone(struct blocks_self *self, int64_t row, float *out, struct err *err) {
    struct device *device = self->device;
    const struct ops *op = device->ops;
    struct tensor x = row_view(self->x, row), y = {0}, hidden = {0};
    struct step step;
    void *memory = NULL;
    int code = create(self, &y, 1, self->y.cols, "row alone", err);
    if (code) goto out;
    switch (self->params.part) {
    case PART_GEMM: op->linear(device, &y, &x, self->first, NULL, EPI_NONE); break;
    case PART_MLP:
        code = create(self, &hidden, 1, self->hidden.cols, "hidden row alone", err);
        if (code) goto out;
        op->linear(device, &hidden, &x, self->first, NULL, EPI_SWIGLU);
        op->linear(device, &y, &hidden, self->down, NULL, EPI_NONE);
        break;
    default:
        code = alone_step(self, row, &step, &memory, err);
        if (code) goto out;
        op->attention(device, &y, &x, &self->cache->layers[0], &step, self->scale);
    }
    code = device->kind->sync(device, err);
    if (!code) download_row(device, &y, 0, out);
out:
    device_free(device, memory);
    device_free(device, hidden.data);
    device_free(device, y.data);
    return code;
}

static void compare_row(struct witness *w, const float *fast, const float *plain, int64_t n,
                        int64_t position, double tolerance) {
    double error = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)fast[i] - (double)plain[i]);
        if (f32_bits(fast[i]) != f32_bits(plain[i]) && w->first_difference < 0)
            w->first_difference = position + i;
        if (!(d <= error)) error = d; /* a NaN stays */
        most = fmax(most, fabs((double)plain[i]));
    }
    w->compared += n;
    w->identical = w->first_difference < 0;
    if (!(error <= w->max_error)) w->max_error = error;
    w->holds =
        w->holds && (w->contract == CONTRACT_EXACT ? w->identical : error <= tolerance * most);
    w->hash = hash_bytes(fast, sizeof *fast * (size_t)n, w->hash);
    w->plain_hash = hash_bytes(plain, sizeof *plain * (size_t)n, w->plain_hash);
}

/* Of attention only the first sequence's rows: what the others hold must not matter to them. */
static int witness(void *s, struct witness *w, struct err *err) {
    struct blocks_self *self = s;
    const struct blocks_params *p = &self->params;
    const struct model_config config = config_of(p);
    const int64_t rows = p->part == PART_ATTENTION ? p->tokens : rows_of(p), cols = self->y.cols;
    float *fast = must_alloc(2 * sizeof *fast * (size_t)cols), *plain = fast + cols;
    int code = 0;
    plain_begin(w, self->device, "first and last row against each computed alone");
    for (int64_t row = 0; !code && row<rows; row += rows> 1 ? rows - 1 : 1) {
        download_row(self->device, &self->y, row, fast);
        code = row_alone(self, row, plain, err);
        if (!code) compare_row(w, fast, plain, cols, row * cols, plain_tolerance(&config));
    }
    free(fast);
    return code;
}

static void report(void *s, struct values *values) {
    struct blocks_self *self = s;
    struct block_cost cost = cost_of(&self->params, 2, 2, 2);
    struct plan p = {0};
    double bytes = 0;
    plan(&self->params, NULL, &p);
    for (int c = 0; c < N_CLASSES; c++) bytes += p.work[0].bytes[c];
    values_set(values, "intensity", p.work[0].flops / bytes);
    values_set(values, "formula_flops", cost.flops);
    values_set(values, "formula_bytes", ledger_bytes(cost));
    values_set(values, "formula_intensity", ledger_intensity(cost));
}

static void dispose(void *s) {
    struct blocks_self *self = s;
    if (!self->device) return;
    cache_close(&self->cache);
    device_free(self->device, self->step_memory);
    device_free(self->device, self->x.data);
    device_free(self->device, self->hidden.data);
    device_free(self->device, self->y.data);
    self->device->kind->unpack(self->device, &self->first);
    self->device->kind->unpack(self->device, &self->down);
}

const struct workload workload_blocks = {
    .name = "blocks",
    .brief = "one block of a transformer on its own: its place under the roofline",
    .help =
        "Question: how close do a product, a gated MLP and attention come to the roof above "
        "them? (seeds E25-E28)\n\n"
        "Inside the timing: gemm: one linear of B T rows, D to F. mlp: gate and up with "
        "SwiGLU, then down. attention: T rows of each of B sequences over S cached tokens, "
        "every head with its own keys and values.\n\n"
        "Outside: making matrices, cache and inputs, seeded and different everywhere.\n\n"
        "The seeds' models, with 2-byte elements: gemm 2BDF FLOPs, 2BD + 2DF + 2BF bytes; mlp "
        "6BTDF and 4BTD + 4BTF + 6DF (element-wise work and re-reading the two F-wide "
        "intermediates left out); attention 4BSTD and 4BSD + 4BTD (K and V both D wide, no "
        "causal halving, no projections, no softmax). They are the metrics formula_*.\n\n"
        "The row's own ledger, from which rates, MBU and MFU follow, counts what really runs: "
        "matrices, cache and activations in their element types, and for attention "
        "only the pairs that a causal mask leaves; for T = 1 these are all. So its intensity "
        "lies below the formula's where activations weigh.\n\n"
        "Expect: gemm and mlp rise with the rows B T until they meet the ridge point; "
        "attention in decode stays below 1 FLOP a byte whatever the batch.\n\n"
        "Witness: the first and the last row (of attention: of the first sequence) equal those rows "
        "computed alone: exact where the device computes rows independently of the batch, else "
        "close.\n",
    .params = params,
    .params_size = sizeof(struct blocks_params),
    .self_size = sizeof(struct blocks_self),
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
