/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `one_head`: one step of one attention head, with all scores anew or with a row of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "workloads/common/fill.h"
#include "workloads/common/slow.h"

enum one_head_mode { MODE_CACHED, MODE_RECOMPUTE };
struct one_head_params {
    int64_t context, width;
    int mode;
};
struct one_head_self {
    struct run *run;
    struct device *device;
    struct one_head_params params;
    float *q, *v, *out; /* (rows, width), (context, width), (rows, width) */
    float *k;      /* (width, context): the columns of one key lie apart, neighbours together */
    float *scores; /* (rows, context) */
    int64_t macs;  /* of the last execution */
    int64_t score_bytes;
};

static const char *const mode_words[] = {"cached", "recompute", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct one_head_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "context",
     .type = OPT_INT,
     PARAM(context),
     .def = "1024",
     .min = 1,
     .max = 1 << 17,
     .unit = "tokens",
     .help = "n: tokens that the step looks at, its own among them."},
    {.key = "width",
     .type = OPT_INT,
     PARAM(width),
     .def = "64",
     .min = 1,
     .max = 4096,
     .unit = "values",
     .help = "d: width of the head."},
    {.key = "mode",
     .type = OPT_WORD,
     PARAM(mode),
     .def = "cached",
     .words = mode_words,
     .unit = "",
     .help =
         "recompute: all n rows over all n keys, the n x n scores in memory; cached: the newest "
         "row over the stored keys and values."},
    {0},
};
static const struct phase phases[] = {{"step", "row"}, {0}};
static const struct metric metrics[] = {
    {"score_bytes", "byte", "Scores in memory by formula: 4 n^2 or 4 n (E02).", BETTER_LOWER, true},
    {"score_bytes_allocated", "byte", "What the allocator gave for them (R16): must be equal.",
     BETTER_LOWER, true},
    {"macs", "MAC", "Multiply-adds by formula: 2 n^2 d or 2 n d (E02); softmax not counted.",
     BETTER_LOWER, true},
    {"macs_counted", "MAC", "Multiply-adds of the inner loops as they ran: must be equal.",
     BETTER_LOWER, true},
    {"formula_flops", "FLOP", "2 macs: a multiply-add is 2 FLOP.", BETTER_LOWER, true},
    {"cache_tokens", "token", "Keys that the newest row saw.", BETTER_NONE, true},
    {"output_rows", "row", "Rows that the step puts out: 1, or all n again.", BETTER_LOWER, true},
    {0},
};

static int64_t rows_of(const struct one_head_params *p) {
    return p->mode == MODE_CACHED ? 1 : p->context;
}

static double score_bytes(const struct one_head_params *p) {
    return 4.0 * (double)rows_of(p) * (double)p->context;
}

static double macs_of(const struct one_head_params *p) {
    return 2.0 * (double)rows_of(p) * (double)p->context * (double)p->width;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct one_head_params *p = params_;
    (void)config;
    if (p->mode == MODE_RECOMPUTE && macs_of(p) > 1e12)
        problem(problems, "workload.context", "workload.width",
                "%.3g multiply-adds a step are more than 1e12", macs_of(p));
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct one_head_params *p = params_;
    const int64_t rows = rows_of(p), row = 4 * p->width;
    (void)config;
    plan->work[0].flops = 2 * macs_of(p);
    plan->work[0].items = (double)rows;
    plan->work[0].bytes[MEM_KV] = 2.0 * (double)(p->context * row);
    plan->work[0].bytes[MEM_ACTIVATION] = 2.0 * (double)(rows * row);
    plan->work[0].bytes[MEM_WORKSPACE] = 3 * score_bytes(p); /* scores out; in and out as shares */
    plan->bytes[MEM_KV] = 2 * p->context * row;
    plan->bytes[MEM_ACTIVATION] = 2 * rows * row;
    plan->bytes[MEM_WORKSPACE] = (int64_t)score_bytes(p);
    plan->peak_bytes = 0;
    plan->binding_type = DT_F32;
}

static int room(struct one_head_self *self, float **to, int64_t n, enum memory_class class,
                const char *what, struct err *err) {
    *to = device_alloc(self->device, sizeof(float) * (size_t)n, class, what);
    return *to ? 0 : err_set(err, ERR_MEMORY, "no memory for %s (%" PRId64 " values)", what, n);
}

/* Values of about unit size, the same for both modes: the last row's query is the cached one's. */
static void fill(struct one_head_self *self) {
    const int64_t n = self->params.context, d = self->params.width, rows = rows_of(&self->params);
    const uint64_t seed = run_seed(self->run);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) {
            self->k[c * n + i] = (float)random_normal(random_key(seed, 1), (uint64_t)(i * d + c));
            self->v[i * d + c] = (float)random_normal(random_key(seed, 2), (uint64_t)(i * d + c));
            if (i >= n - rows)
                self->q[(i - (n - rows)) * d + c] =
                    (float)random_normal(random_key(seed, 3), (uint64_t)(i * d + c));
        }
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct one_head_self *self = s;
    const struct one_head_params *p = &self->params;
    (void)config;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct one_head_params *)params_;
    if (!(self->device->kind->has & DEV_HOST_MEMORY) || !slow_applies(self->device))
        return err_set(err, ERR_UNSUPPORTED, "one_head computes on the host: --device cpu or ref");
    const int64_t rows = rows_of(p), n = p->context, d = p->width;
    int code = room(self, &self->q, rows * d, MEM_ACTIVATION, "queries", err);
    if (!code) code = room(self, &self->out, rows * d, MEM_ACTIVATION, "outputs", err);
    if (!code) code = room(self, &self->k, n * d, MEM_KV, "keys", err);
    if (!code) code = room(self, &self->v, n * d, MEM_KV, "values", err);
    const int64_t before = tracker_live(self->device->tracker, MEM_WORKSPACE);
    if (!code) code = room(self, &self->scores, rows * n, MEM_WORKSPACE, "scores", err);
    self->score_bytes = tracker_live(self->device->tracker, MEM_WORKSPACE) - before;
    if (!code) fill(self);
    return code;
}

/* One row of softmax(q k^T / sqrt(d)) v: the same sums in the same order, however many rows there
 * are. Returns its multiply-adds, counted loop by loop. */
static int64_t head_row(const struct one_head_self *self, int64_t row) {
    const int64_t n = self->params.context, d = self->params.width;
    const float *q = self->q + row * d, scale = 1.0f / sqrtf((float)d);
    float *s = self->scores + row * n, *out = self->out + row * d, most = -INFINITY, sum = 0;
    int64_t macs = 0;
    for (int64_t j = 0; j < n; j++) s[j] = 0;
    for (int64_t c = 0; c < d; c++) {
        const float *k = self->k + c * n;
        for (int64_t j = 0; j < n; j++) s[j] += q[c] * k[j];
        macs += n;
    }
    for (int64_t j = 0; j < n; j++) most = fmaxf(most, s[j] * scale);
    for (int64_t j = 0; j < n; j++) sum += s[j] = expf(s[j] * scale - most);
    for (int64_t c = 0; c < d; c++) out[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        const float *v = self->v + j * d, share = s[j] / sum;
        for (int64_t c = 0; c < d; c++) out[c] += share * v[c];
        macs += d;
    }
    return macs;
}

static void execute(void *s) {
    struct one_head_self *self = s;
    self->macs = 0;
    for (int64_t row = 0; row < rows_of(&self->params); row++) self->macs += head_row(self, row);
}

/* The newest row against a slow computation in double, from keys laid out row by row. */
static int witness(void *s, struct witness *w, struct err *err) {
    struct one_head_self *self = s;
    const int64_t n = self->params.context, d = self->params.width;
    const float *out = self->out + (rows_of(&self->params) - 1) * d;
    const float *q = self->q + (rows_of(&self->params) - 1) * d;
    double *exact = must_alloc(sizeof *exact * (size_t)d), error = 0;
    float *k = must_alloc(sizeof *k * (size_t)(n * d));
    (void)err;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) k[i * d + c] = self->k[c * n + i];
    slow_attention(q, k, self->v, (int32_t)n, (int32_t)d, 1 / sqrt((double)d), exact, NULL);
    for (int64_t c = 0; c < d; c++) {
        const double e = fabs((double)out[c] - exact[c]);
        if (!(e <= error)) error = e; /* a NaN stays */
    }
    *w = (struct witness){.contract = CONTRACT_CLOSE,
                          .holds = error <= 1e-4,
                          .compared = d,
                          .first_difference = -1,
                          .max_error = error,
                          .hash = hash_bytes(out, sizeof *out * (size_t)d, 1)};
    snprintf(w->note, sizeof w->note, "the newest row against a slow computation in double");
    free(exact);
    free(k);
    return 0;
}

static void report(void *s, struct values *values) {
    struct one_head_self *self = s;
    const struct one_head_params *p = &self->params;
    values_set(values, "score_bytes", score_bytes(p));
    values_set(values, "score_bytes_allocated", (double)self->score_bytes);
    values_set(values, "macs", macs_of(p));
    values_set(values, "macs_counted", (double)self->macs);
    values_set(values, "formula_flops", 2 * macs_of(p));
    values_set(values, "cache_tokens", (double)p->context);
    values_set(values, "output_rows", (double)rows_of(p));
}

static void dispose(void *s) {
    struct one_head_self *self = s;
    float *const all[] = {self->q, self->k, self->v, self->out, self->scores};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) device_free(self->device, all[i]);
}

const struct workload workload_one_head = {
    .name = "one_head",
    .brief = "one step of one attention head: all n x n scores again, or one row of them",
    .help =
        "Question: what does one decode step of a single attention head cost without a cache and "
        "with one? (seeds E02, E15)\n\n"
        "Inside the timing: softmax(q k^T / sqrt(d)) v in f32 by plain loops on one thread of the "
        "host, no transformer around it. recompute: all n rows, the n x n scores written to memory "
        "(no mask: the whole matrix, as the seed describes it); cached: the newest row over n "
        "stored keys and values.\n\n"
        "Outside: keys, values and queries (seeded, normal, the same in both modes) and the memory "
        "of the scores.\n\n"
        "Formulas: score bytes 4 n^2 and 4 n, multiply-adds 2 n^2 d and 2 n d. FLOPs are twice the "
        "multiply-adds. Both are compared with what the allocator gave and the loops counted.\n\n"
        "Witness: the newest row agrees with a slow computation in double. Its bits are the same in "
        "both modes (output_hash), since each row's sums have the same order.\n",
    .params = params,
    .params_size = sizeof(struct one_head_params),
    .self_size = sizeof(struct one_head_self),
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
