/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `flash`: attention forward and backward, with its T x T matrices in memory or by tiles.
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
#include "kernels/lab.h"
#include "kernels/lab_flash.h"
#include "workloads/common/fill.h"
#include "workloads/common/plain.h"
#include "workloads/common/slow.h"

enum flash_method { METHOD_NAIVE, METHOD_TILED };
enum flash_pass { PASS_FORWARD, PASS_BOTH };
enum { PHASE_FORWARD, PHASE_BACKWARD };
enum tensor_of { Q, K, V, O, D_O, DQ, DK, DV, N_TENSORS };

struct flash_params {
    int64_t batch, tokens, heads, d_h, rows, columns;
    int method, pass;
    bool causal;
};
struct flash_self {
    struct run *run;
    struct device *device;
    struct flash_params params;
    struct tensor t[N_TENSORS];
    struct lab_attention a;
    int64_t macs;                   /* of the last execution, where the device counts them */
    int64_t kept_bytes, tile_bytes; /* as the allocator gave them */
};

static const char *const method_words[] = {"naive", "tiled", NULL};
static const char *const pass_words[] = {"forward", "forward_backward", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct flash_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define COUNT(name, default, most, what, text)                                                     \
    {                                                                                              \
        .key = #name, .type = OPT_INT, PARAM(name), .def = default, .min = 1, .max = most,         \
        .unit = what, .help = text                                                                 \
    }
static const struct option params[] = {
    {.key = "method",
     .type = OPT_WORD,
     PARAM(method),
     .def = "tiled",
     .words = method_words,
     .unit = "",
     .help = "naive: scores and probabilities, T x T of each head, in memory; tiled: a tile of "
             "scores at a time, and one number a row kept."},
    {.key = "pass",
     .type = OPT_WORD,
     PARAM(pass),
     .def = "forward",
     .words = pass_words,
     .unit = "",
     .help = "forward_backward: the gradients of Q, K and V too."},
    COUNT(tokens, "1024", 1 << 17, "tokens", "T: tokens of a sequence."),
    COUNT(batch, "1", 1 << 12, "sequences", "B."),
    COUNT(heads, "8", 1 << 12, "heads", "Heads, each with keys and values of its own."),
    COUNT(d_h, "64", 1024, "values", "Width of a head."),
    {.key = "causal",
     .type = OPT_FLAG,
     PARAM(causal),
     .def = "false",
     .unit = "",
     .help = "Whether a token sees only itself and those before it. Tiles that nobody sees are "
             "passed over; naive masks its whole matrix."},
    COUNT(rows, "64", 4096, "tokens", "B_r: queries of a tile; naive chooses its own."),
    COUNT(columns, "64", 4096, "tokens", "B_c: keys of a tile; naive chooses its own."),
    {0},
};
static const struct only only[] = {
    {"rows", "method", "tiled"}, {"columns", "method", "tiled"}, {0}};
static const struct phase phases[] = {{"forward", "token"}, {"backward", "token"}, {0}};
static const struct metric metrics[] = {
    {"kept_bytes", "byte",
     "Kept for the backward pass beside Q, K, V and O, by formula: naive 4 B h T^2 (P), tiled 4 B "
     "h T (row sums L) (E57).",
     BETTER_LOWER, true},
    {"kept_bytes_allocated", "byte", "What the allocator gave for it (R16): must be equal.",
     BETTER_LOWER, true},
    {"peak_formula", "byte",
     "Live bytes by formula: 4 B T h d_h for each of Q, K, V, O (forward) and their gradients, "
     "kept_bytes, as much again for the backward pass (naive dS, tiled D), tile_bytes. Must equal "
     "peak_bytes.",
     BETTER_LOWER, true},
    {"tile_bytes", "byte",
     "Of it, tiles of all threads: the same for any T, but for one row of scores of each.",
     BETTER_LOWER, true},
    {"macs", "MAC",
     "Multiply-adds of the products by formula, d_h B h for each score: forward two, backward four "
     "(naive) or five (tiled, scores anew); of tiles that anybody sees, or of all T^2 scores "
     "(naive).",
     BETTER_LOWER, true},
    {"macs_counted", "MAC",
     "Multiply-adds that the device executed; empty where it does not count.", BETTER_LOWER, true},
    {"formula_flops", "FLOP",
     "In the convention of FlashAttention-2 (Dao 2023): 4 B h T^2 d_h forward and 2.5 times that "
     "backward, half of it with a causal mask.",
     BETTER_LOWER, true},
    {"fused_bytes", "byte", "Traffic of a fused forward pass: Q, K, V, O once, 16 B T h d_h (E57).",
     BETTER_LOWER, true},
    {"extra_bytes", "byte",
     "What forward moves beyond it: naive writes and reads S and P, 16 B h T^2; tiled writes L.",
     BETTER_LOWER, true},
    {0},
};

/* ---- formulas */

static double scores_of(const struct flash_params *p) { /* of one matrix, all heads */
    return (double)p->batch * (double)p->heads * (double)p->tokens * (double)p->tokens;
}

static double values_of(const struct flash_params *p) { /* of one of Q, K, V, O */
    return (double)p->batch * (double)p->tokens * (double)p->heads * (double)p->d_h;
}

static double kept_of(const struct flash_params *p) {
    return 4 * (p->method == METHOD_NAIVE ? scores_of(p) : scores_of(p) / (double)p->tokens);
}

static double tensors_of(const struct flash_params *p) { return p->pass == PASS_BOTH ? 8 : 4; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Scores of one head that are computed: whole tiles, without those that no query sees. */
static double scores_computed(const struct flash_params *p) {
    const int64_t t = p->tokens, rows = least(p->rows, t), columns = least(p->columns, t);
    double sum = 0;
    if (p->method == METHOD_NAIVE || !p->causal) return (double)t * (double)t;
    for (int64_t i = 0; i < t; i += rows) {
        const int64_t end = least(i + rows, t); /* the last query sees keys before `end` */
        sum += (double)(end - i) * (double)least((end + columns - 1) / columns * columns, t);
    }
    return sum;
}

static double macs_of(const struct flash_params *p, int phase) {
    const double products = phase == PHASE_FORWARD ? 2 : p->method == METHOD_NAIVE ? 4 : 5;
    return products * scores_computed(p) * (double)(p->batch * p->heads * p->d_h);
}

/* What a pass moves besides: P written, read and written by the softmax, read for the values;
   backward P, then dP out, both in, dS out and in twice. By tiles L out; O, L in, D out and in. */
static double extra_of(const struct flash_params *p, int phase) {
    if (p->method == METHOD_NAIVE) return (phase == PHASE_FORWARD ? 4 : 7) * 4 * scores_of(p);
    return phase == PHASE_FORWARD ? kept_of(p) : 4 * values_of(p) + 3 * kept_of(p);
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct flash_params *p = params_;
    (void)config;
    if (values_of(p) > 0x1p30)
        problem(problems, "workload.tokens", "workload.heads",
                "%.3g values of Q are more than 2^30", values_of(p));
    else if (macs_of(p, PHASE_FORWARD) > 1e14)
        problem(problems, "workload.tokens", "workload.heads",
                "%.3g multiply-adds a pass are more than 1e14", macs_of(p, PHASE_FORWARD));
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct flash_params *p = params_;
    const int last = p->pass == PASS_BOTH ? PHASE_BACKWARD : PHASE_FORWARD;
    (void)config;
    for (int phase = 0; phase <= last; phase++) {
        struct work *work = &plan->work[phase];
        work->flops = 2 * macs_of(p, phase);
        work->items = (double)p->batch * (double)p->tokens;
        /* Backward: Q, K, V, dO in, dQ, dK, dV out. */
        work->bytes[MEM_ACTIVATION] = (phase == PHASE_FORWARD ? 4 : 7) * 4 * values_of(p);
        work->bytes[MEM_WORKSPACE] = extra_of(p, phase);
    }
    plan->bytes[MEM_ACTIVATION] = (int64_t)(tensors_of(p) * 4 * values_of(p));
    plan->bytes[MEM_WORKSPACE] = (int64_t)((p->pass == PASS_BOTH ? 2 : 1) * kept_of(p));
    plan->most_marks = 2;
    plan->peak_bytes = 0;
    plan->binding_type = DT_F32;
}

/* ---- running */

static int room(struct flash_self *self, float **to, double n, const char *what, struct err *err) {
    *to = device_alloc(self->device, sizeof(float) * (size_t)n, MEM_WORKSPACE, what);
    return *to ? 0 : err_set(err, ERR_MEMORY, "no memory for %s (%.0f values)", what, n);
}

static int create_tensors(struct flash_self *self, struct err *err) {
    static const char *const names[N_TENSORS] = {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"};
    const struct flash_params *p = &self->params;
    const uint64_t seed = run_seed(self->run);
    int code = 0;
    for (int i = 0; !code && i < (int)tensors_of(p); i++) {
        struct tensor *t = &self->t[i];
        code = tensor_create(t, self->device, DT_F32, p->batch * p->tokens, p->heads * p->d_h,
                             names[i], err);
        if (!code && (i <= V || i == D_O))
            fill_uniform(self->device, t->data, DT_F32, (int64_t)values_of(p),
                         random_key(seed, (uint64_t)i));
    }
    return code;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct flash_self *self = s;
    const struct flash_params *p = &self->params;
    (void)config;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct flash_params *)params_;
    if (!self->device->lab || !self->device->lab->flash)
        return err_set(err, ERR_UNSUPPORTED,
                       "flash: this device has no such attention: --device cpu or ref");
    const struct lab_flash *lab = self->device->lab->flash;
    const bool naive = p->method == METHOD_NAIVE, both = p->pass == PASS_BOTH;
    struct tensor *t = self->t;
    self->a = (struct lab_attention){.n_seq = (int32_t)p->batch,
                                     .queries = (int32_t)p->tokens,
                                     .keys = (int32_t)p->tokens,
                                     .heads = (int32_t)p->heads,
                                     .d_h = (int32_t)p->d_h,
                                     .scale = 1.0f / sqrtf((float)p->d_h),
                                     .causal = p->causal,
                                     .rows = (int32_t)p->rows,
                                     .columns = (int32_t)p->columns,
                                     .q = &t[Q],
                                     .k = &t[K],
                                     .v = &t[V],
                                     .o = &t[O],
                                     .d_o = &t[D_O],
                                     .dq = &t[DQ],
                                     .dk = &t[DK],
                                     .dv = &t[DV]};
    const double n = kept_of(p) / 4;
    struct lab_attention *a = &self->a;
    int code = create_tensors(self, err);
    const int64_t before = tracker_live(self->device->tracker, MEM_WORKSPACE);
    if (!code) code = room(self, naive ? &a->p : &a->lse, n, naive ? "P" : "L", err);
    self->kept_bytes = tracker_live(self->device->tracker, MEM_WORKSPACE) - before;
    if (!code && both) code = room(self, naive ? &a->ds : &a->d, n, naive ? "dS" : "D", err);
    self->tile_bytes = lab->room_bytes(self->device, a);
    if (code || !self->tile_bytes) return code;
    a->room = device_alloc(self->device, (size_t)self->tile_bytes, MEM_OTHER, "tiles");
    return a->room ? 0
                   : err_set(err, ERR_MEMORY, "no memory for tiles (%" PRId64 " bytes)",
                             self->tile_bytes);
}

static void execute(void *s) {
    struct flash_self *self = s;
    const struct lab_flash *lab = self->device->lab->flash;
    const struct op_counts *counts = self->device->counts;
    const bool naive = self->params.method == METHOD_NAIVE;
    const int64_t before = counts ? counts->attention : 0;
    run_phase(self->run, PHASE_FORWARD);
    (naive ? lab->naive_forward : lab->tiled_forward)(self->device, &self->a);
    if (self->params.pass == PASS_BOTH) {
        run_phase(self->run, PHASE_BACKWARD);
        (naive ? lab->naive_backward : lab->tiled_backward)(self->device, &self->a);
    }
    if (counts) self->macs = counts->attention - before;
}

/* ---- witness: the first head of the first sequence and the last of the last, by the naive ops in
   pieces of rows, so that it takes no T x T matrix itself */

enum { PIECE = 256 };

struct plain_head { /* (tokens, d_h) each, on the host */
    float *o, *dq, *dk, *dv;
};

static struct plain_head plain_head_of(const struct flash_self *self, float *memory, int which) {
    const int64_t n = self->params.tokens * self->params.d_h;
    float *at = memory + which * n * (self->params.pass == PASS_BOTH ? 4 : 1);
    if (self->params.pass == PASS_FORWARD) return (struct plain_head){at, NULL, NULL, NULL};
    return (struct plain_head){at, at + n, at + 2 * n, at + 3 * n};
}

/* Rows of one head of a tensor, as a tensor. */
static struct tensor part_of(const struct flash_self *self, int i, int64_t row, int64_t rows,
                             int64_t head) {
    struct tensor t = self->t[i];
    t.data = (float *)t.data + row * t.stride + head * self->params.d_h;
    t.rows = (int32_t)rows;
    t.cols = (int32_t)self->params.d_h;
    return t;
}

struct piece { /* operands of a piece of rows, made for the largest */
    struct tensor o, dq, dk, dv;
    float *p, *ds, *room;
};

static void piece_close(struct flash_self *self, struct piece *x) {
    void *const all[] = {x->o.data, x->dq.data, x->dk.data, x->dv.data, x->p, x->ds, x->room};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) device_free(self->device, all[i]);
}

static int piece_create(struct flash_self *self, struct piece *x, struct err *err) {
    const int64_t t = self->params.tokens, d = self->params.d_h, rows = least(PIECE, t);
    struct lab_attention sizes = self->a;
    *x = (struct piece){{0}, {0}, {0}, {0}, NULL, NULL, NULL};
    sizes.n_seq = sizes.heads = 1;
    sizes.queries = (int32_t)rows;
    const int64_t bytes = self->device->lab->flash->room_bytes(self->device, &sizes);
    int code = tensor_create(&x->o, self->device, DT_F32, rows, d, "plain O", err);
    if (!code) code = tensor_create(&x->dq, self->device, DT_F32, rows, d, "plain dQ", err);
    if (!code) code = tensor_create(&x->dk, self->device, DT_F32, t, d, "plain dK", err);
    if (!code) code = tensor_create(&x->dv, self->device, DT_F32, t, d, "plain dV", err);
    if (!code) code = room(self, &x->p, (double)(rows * t), "plain P", err);
    if (!code) code = room(self, &x->ds, (double)(rows * t), "plain dS", err);
    if (!code) code = room(self, &x->room, (double)(bytes / 4), "plain tiles", err);
    return code;
}

static void add_rows(float *to, const struct tensor *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t c = 0; c < t->cols; c++)
            to[i * t->cols + c] += ((const float *)t->data)[i * t->stride + c];
}

/* Rows `at` ... of a head (on the devices that have these ops the host can read): with a causal
   mask they see keys up to the last of them only. */
static int plain_rows(struct flash_self *self, struct piece *x, const struct plain_head *to,
                      int64_t sequence, int64_t head, int64_t at, struct err *err) {
    const struct lab_flash *lab = self->device->lab->flash;
    const int64_t t = self->params.tokens, d = self->params.d_h, n = least(PIECE, t - at);
    const int64_t keys = self->params.causal ? at + n : t, row = sequence * t;
    struct tensor q = part_of(self, Q, row + at, n, head), k = part_of(self, K, row, keys, head),
                  v = part_of(self, V, row, keys, head);
    struct lab_attention a = self->a;
    x->o.rows = x->dq.rows = (int32_t)n;
    x->dk.rows = x->dv.rows = (int32_t)keys;
    a.n_seq = a.heads = 1;
    a.queries = (int32_t)n;
    a.keys = (int32_t)keys;
    a.q = &q, a.k = &k, a.v = &v, a.o = &x->o;
    a.dq = &x->dq, a.dk = &x->dk, a.dv = &x->dv;
    a.p = x->p, a.ds = x->ds, a.room = x->room;
    lab->naive_forward(self->device, &a);
    add_rows(to->o + at * d, &x->o);
    if (self->params.pass == PASS_BOTH) {
        struct tensor d_o = part_of(self, D_O, row + at, n, head);
        a.d_o = &d_o;
        lab->naive_backward(self->device, &a);
        add_rows(to->dq + at * d, &x->dq);
        add_rows(to->dk, &x->dk);
        add_rows(to->dv, &x->dv);
    }
    return self->device->kind->sync(self->device, err);
}

static int64_t n_witnessed(const struct flash_params *p) { return p->batch * p->heads > 1 ? 2 : 1; }
static int64_t sequence_of(const struct flash_params *p, int which) {
    return which ? p->batch - 1 : 0;
}
static int64_t head_of(const struct flash_params *p, int which) { return which ? p->heads - 1 : 0; }

/* The plain path's results of a point, once a run. */
static int plain_results(struct flash_self *self, float **memory, void **own, struct err *err) {
    const struct flash_params *p = &self->params;
    const size_t bytes = sizeof **memory * (size_t)(n_witnessed(p) * p->tokens * p->d_h) *
                         (p->pass == PASS_BOTH ? 4 : 1);
    char key[200];
    bool ready;
    snprintf(key, sizeof key,
             "flash %s %d B%" PRId64 " T%" PRId64 " h%" PRId64 " d%" PRId64 " %016" PRIx64,
             pass_words[p->pass], (int)p->causal, p->batch, p->tokens, p->heads, p->d_h,
             plain_device_hash(self->device));
    *memory = plain_piece(self->run, key, bytes, &ready, own);
    if (ready) return 0;
    struct piece x;
    int code = piece_create(self, &x, err);
    for (size_t i = 0; i < bytes / sizeof **memory; i++) (*memory)[i] = 0;
    for (int which = 0; !code && which < n_witnessed(p); which++) {
        const struct plain_head to = plain_head_of(self, *memory, which);
        for (int64_t at = 0; !code && at < p->tokens; at += PIECE)
            code = plain_rows(self, &x, &to, sequence_of(p, which), head_of(p, which), at, err);
    }
    piece_close(self, &x);
    if (!code && !*own) run_snapshot_ready(self->run, key);
    return code;
}

/* A head of the fast path against the same of the plain one. */
static void compare(const struct flash_self *self, struct witness *w, int i, int which,
                    const float *plain) {
    const struct flash_params *p = &self->params;
    const int64_t n = p->tokens * p->d_h;
    const struct tensor t =
        part_of(self, i, sequence_of(p, which) * p->tokens, p->tokens, head_of(p, which));
    float *fast = must_alloc(sizeof *fast * (size_t)n);
    double error = 0, most = 1 / (double)p->tokens;
    add_rows(fast, &t);
    for (int64_t k = 0; k < n; k++) {
        const double e = fabs((double)fast[k] - (double)plain[k]);
        if (f32_bits(fast[k]) != f32_bits(plain[k]) && w->first_difference < 0)
            w->first_difference = w->compared + k;
        if (!(e <= error)) error = e; /* a NaN stays */
        most = fmax(most, fabs((double)plain[k]));
    }
    /* Values lie within -1 and 1, hence a score within sqrt(d_h). */
    w->holds = w->holds && error <= most * lab_flash_tolerance(&self->a, sqrt((double)p->d_h));
    w->identical = w->first_difference < 0;
    if (!(error <= w->max_error)) w->max_error = error;
    w->compared += n;
    w->hash = hash_bytes(fast, sizeof *fast * (size_t)n, w->hash);
    w->plain_hash = hash_bytes(plain, sizeof *plain * (size_t)n, w->plain_hash);
    free(fast);
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct flash_self *self = s;
    float *memory = NULL;
    void *own = NULL;
    *w = (struct witness){.contract = CONTRACT_CLOSE, .holds = true, .first_difference = -1};
    int code = plain_results(self, &memory, &own, err);
    for (int which = 0; !code && which < n_witnessed(&self->params); which++) {
        const struct plain_head plain = plain_head_of(self, memory, which);
        compare(self, w, O, which, plain.o);
        if (self->params.pass == PASS_FORWARD) continue;
        compare(self, w, DQ, which, plain.dq);
        compare(self, w, DK, which, plain.dk);
        compare(self, w, DV, which, plain.dv);
    }
    snprintf(w->note, sizeof w->note, "first and last head against naive in pieces of %d rows",
             (int)PIECE);
    free(own);
    return code;
}

static void report(void *s, struct values *values) {
    struct flash_self *self = s;
    const struct flash_params *p = &self->params;
    const bool both = p->pass == PASS_BOTH;
    const double forward = 4 * scores_of(p) * (double)p->d_h * (p->causal ? 0.5 : 1);
    values_set(values, "kept_bytes", kept_of(p));
    values_set(values, "kept_bytes_allocated", (double)self->kept_bytes);
    values_set(values, "peak_formula",
               tensors_of(p) * 4 * values_of(p) + (both ? 2 : 1) * kept_of(p) +
                   (double)self->tile_bytes);
    values_set(values, "tile_bytes", (double)self->tile_bytes);
    values_set(values, "macs", macs_of(p, PHASE_FORWARD) + (both ? macs_of(p, PHASE_BACKWARD) : 0));
    values_set(values, "macs_counted", self->device->counts ? (double)self->macs : (double)NAN);
    values_set(values, "formula_flops", forward * (both ? 3.5 : 1));
    values_set(values, "fused_bytes", 16 * values_of(p));
    values_set(values, "extra_bytes", extra_of(p, PHASE_FORWARD));
}

static void dispose(void *s) {
    struct flash_self *self = s;
    if (!self->device) return;
    for (int i = 0; i < N_TENSORS; i++) device_free(self->device, self->t[i].data);
    void *const all[] = {self->a.p, self->a.ds, self->a.lse, self->a.d, self->a.room};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) device_free(self->device, all[i]);
}

const struct workload workload_flash = {
    .name = "flash",
    .brief = "attention forward and backward: T x T matrices in memory, or by tiles",
    .help =
        "Question: what do tiles save that never write the matrix of scores, in memory and in "
        "time? (seeds E55, E56, E57; FlashAttention-2)\n\n"
        "Inside the timing: softmax(Q K^T / sqrt(d_h)) V of all heads, and with forward_backward "
        "the gradients of Q, K and V from that of O. In f32, on all threads; naive and tiled by "
        "the same inner products, so that they differ in where scores lie and what is computed "
        "twice. naive: one pass over the matrices after the other; it keeps P. tiled: online "
        "softmax; keeps L, the logarithm of each row's sum, and computes scores once more in the "
        "backward pass, with D = rowsum(O dO) in place of rowsum(P dP).\n\n"
        "Outside: Q, K, V, dO (seeded, uniform in -1 ... 1) and the memory of all operands.\n\n"
        "Ledger: bytes of operands once a pass; those of matrices as often as naive writes and "
        "reads them. FLOPs are those that are executed: of whole tiles, and of the whole matrix "
        "for naive, mask or not; the usual convention stands beside it as formula_flops.\n\n"
        "Expect: memory grows as T^2 and as T, time as T^2 both ways. The backward pass by tiles "
        "has five products for naive's four, so it gains only where the matrices leave the "
        "caches.\n\n"
        "Witness: output and gradients of the first and the last head agree with naive ones that "
        "are computed in pieces of rows, within a tolerance derived from f32 "
        "(kernels/lab_flash.h).\n",
    .params = params,
    .only = only,
    .params_size = sizeof(struct flash_params),
    .self_size = sizeof(struct flash_self),
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
