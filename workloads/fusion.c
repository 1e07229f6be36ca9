/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `fusion`: a chain of elementwise ops and reductions node by node, or as one op. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "kernels/device.h"
#include "kernels/lab.h"
#include "kernels/lab_train.h"
#include "workloads/common/fill.h"
#include "workloads/workload.h"

enum chain { CHAIN_NORM, CHAIN_ADD_NORM, CHAIN_SWIGLU, N_CHAINS };
enum form { FORM_NODES, FORM_FUSED, N_FORMS };
enum pass { PASS_FORWARD, PASS_BACKWARD, N_PASSES };

enum buffer {
    NONE,
    X,       /* input; of add_norm the residual stream before */
    DELTA,   /* what is added to it */
    SUM,     /* both */
    GAIN,    /* (cols) */
    SQUARES, /* temporary */
    MEAN,    /* (rows) temporary */
    INVERSE, /* (rows) */
    SCALED,  /* what is normed, times inverse */
    GATE,
    UP,
    SIGMOID,
    GATED,   /* gate sigmoid */
    GATE_UP, /* (rows, 2 cols) */
    Y,
    DY,     /* the gradient that comes down */
    D_SUM,  /* and down the residual stream */
    DX,     /* of X and DELTA alike */
    D_GAIN, /* (cols) */
    D_GATE,
    D_UP,
    D_GATE_UP, /* (rows, 2 cols) */
    T1,        /* temporary */
    T2,
    T3,
    T_ROWS, /* (rows) temporary */
    PARTS,  /* (LAB_PARTS, cols) room of the fused backward pass */
    N_BUFFERS
};
static const char *const names[N_BUFFERS] = {"",
                                             "x",
                                             "delta",
                                             "sum",
                                             "gain",
                                             "squares",
                                             "mean",
                                             "inverse",
                                             "scaled",
                                             "gate",
                                             "up",
                                             "sigmoid",
                                             "gated",
                                             "gate and up",
                                             "y",
                                             "dy",
                                             "d sum",
                                             "dx",
                                             "d gain",
                                             "d gate",
                                             "d up",
                                             "d gate and up",
                                             "temporary 1",
                                             "temporary 2",
                                             "temporary 3",
                                             "temporary row sums",
                                             "gain parts"};

struct node {
    enum lab_map map;
    enum buffer y, a, b;
};

/* RMSNorm out of nodes, as automatic differentiation sees it (E53). OF is normed, TO the gradient.
 */
#define NORM_FORWARD(OF)                                                                           \
    {MAP_SQUARE, SQUARES, OF, NONE}, {MAP_ROW_MEAN, MEAN, SQUARES, NONE},                          \
        {MAP_RSQRT, INVERSE, MEAN, NONE}, {MAP_SCALE_ROWS, SCALED, OF, INVERSE}, {                 \
        MAP_SCALE_COLS, Y, SCALED, GAIN                                                            \
    }
#define NORM_BACKWARD(OF, TO)                                                                      \
    {MAP_MULTIPLY, T1, DY, SCALED}, {MAP_COL_SUM, D_GAIN, T1, NONE},                               \
        {MAP_SCALE_COLS, T1, DY, GAIN}, {MAP_MULTIPLY, T2, T1, OF},                                \
        {MAP_ROW_SUM, T_ROWS, T2, NONE}, {MAP_RSQRT_BACK, MEAN, INVERSE, T_ROWS},                  \
        {MAP_SPREAD, T2, MEAN, NONE}, {MAP_SQUARE_BACK, T3, OF, T2},                               \
        {MAP_SCALE_ROWS, T2, T1, INVERSE}, {                                                       \
        MAP_ADD, TO, T2, T3                                                                        \
    }
enum { NODES = 12, FUSED = 8, SAVED = 4 }; /* at most; lists end with NONE */

static const struct chain_of {
    struct node nodes[N_PASSES][NODES];
    enum buffer fused[N_PASSES][FUSED];    /* what the one op reads and writes */
    enum buffer saved[N_FORMS][SAVED + 1]; /* what the backward pass reads of the forward pass */
    enum buffer results[3];                /* of nodes: what both forms must agree in */
} chains[N_CHAINS] = {
    [CHAIN_NORM] = {.nodes = {{NORM_FORWARD(X)}, {NORM_BACKWARD(X, DX)}},
                    .fused = {{X, GAIN, INVERSE, Y}, {DY, X, INVERSE, GAIN, DX, D_GAIN}},
                    .saved = {{X, INVERSE, SCALED}, {X, INVERSE}},
                    .results = {Y, DX, D_GAIN}},
    [CHAIN_ADD_NORM] = {.nodes = {{{MAP_ADD, SUM, X, DELTA}, NORM_FORWARD(SUM)},
                                  {NORM_BACKWARD(SUM, T1), {MAP_ADD, DX, T1, D_SUM}}},
                        .fused = {{X, DELTA, SUM, GAIN, INVERSE, Y},
                                  {DY, SUM, INVERSE, GAIN, D_SUM, DX, D_GAIN}},
                        .saved = {{SUM, INVERSE, SCALED}, {SUM, INVERSE}},
                        .results = {Y, DX, D_GAIN}},
    [CHAIN_SWIGLU] = {.nodes = {{{MAP_SIGMOID, SIGMOID, GATE, NONE},
                                 {MAP_MULTIPLY, GATED, GATE, SIGMOID},
                                 {MAP_MULTIPLY, Y, GATED, UP}},
                                {{MAP_MULTIPLY, D_UP, DY, GATED},
                                 {MAP_MULTIPLY, T1, DY, UP},
                                 {MAP_MULTIPLY, T2, T1, GATE},
                                 {MAP_SIGMOID_BACK, T3, SIGMOID, T2},
                                 {MAP_MULTIPLY, T2, T1, SIGMOID},
                                 {MAP_ADD, D_GATE, T2, T3}}},
                      .fused = {{GATE_UP, Y}, {DY, GATE_UP, D_GATE_UP}},
                      .saved = {{GATE, UP, SIGMOID, GATED}, {GATE_UP}},
                      .results = {Y, D_GATE, D_UP}},
};

struct fusion_params {
    int64_t rows, cols;
    int chain, form;
};
struct side { /* one form's buffers; NULL: it has none such */
    float *at[N_BUFFERS];
    int form;
    int64_t kernels; /* of the last execution */
};
struct fusion_self {
    struct run *run;
    struct device *device;
    struct fusion_params params;
    struct side side;
    int64_t saved; /* bytes, as the account gave them */
};

static const char *const chain_words[] = {"norm", "add_norm", "swiglu", NULL};
static const char *const form_words[] = {"nodes", "fused", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct fusion_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "chain",
     .type = OPT_WORD,
     PARAM(chain),
     .def = "norm",
     .words = chain_words,
     .unit = "",
     .help = "norm: RMSNorm (E53); add_norm: the residual addition before it, too; swiglu: gate "
             "sigmoid(gate) up."},
    {.key = "form",
     .type = OPT_WORD,
     PARAM(form),
     .def = "fused",
     .words = form_words,
     .unit = "",
     .help = "nodes: each op on its own, with its result in memory; fused: one op a pass."},
    {.key = "rows",
     .type = OPT_INT,
     PARAM(rows),
     .def = "1024",
     .min = 1,
     .max = 1 << 22,
     .unit = "rows",
     .help = "Rows: tokens of all sequences."},
    {.key = "cols",
     .type = OPT_INT,
     PARAM(cols),
     .def = "1024",
     .min = 1,
     .max = 1 << 18,
     .unit = "values",
     .help = "Values of a row."},
    {0},
};
static const struct phase phases[] = {{"forward", "row"}, {"backward", "row"}, {0}};
static const struct metric metrics[] = {
    {"kernels", "op", "Ops of both passes.", BETTER_LOWER, true},
    {"kernels_run", "op", "Ops that an execution called: must be equal.", BETTER_LOWER, true},
    {"traffic_bytes", "byte", "What they read and write, each operand of each op once.",
     BETTER_LOWER, true},
    {"saved_bytes", "byte", "What stays from the forward to the backward pass, the input included.",
     BETTER_LOWER, true},
    {"saved_bytes_allocated", "byte", "What the allocator gave for that (R16): must be equal.",
     BETTER_LOWER, true},
    {0},
};

/* ---- formulas ---- */

static int64_t size_of(const struct fusion_params *p, enum buffer b) {
    switch (b) {
    case NONE: return 0;
    case GAIN:
    case D_GAIN: return p->cols;
    case MEAN:
    case INVERSE:
    case T_ROWS: return p->rows;
    case GATE_UP:
    case D_GATE_UP: return 2 * p->rows * p->cols;
    case PARTS: return LAB_PARTS * p->cols;
    default: return p->rows * p->cols;
    }
}

static enum memory_class class_of(const struct fusion_params *p, int form, enum buffer b) {
    const enum buffer *saved = chains[p->chain].saved[form];
    for (int i = 0; saved[i] != NONE; i++)
        if (saved[i] == b) return MEM_ACTIVATION;
    return b == GAIN ? MEM_WEIGHT : b == D_GAIN ? MEM_OTHER : MEM_WORKSPACE;
}

/* Values that one pass moves, by class, and its ops. */
static int64_t traffic(const struct fusion_params *p, int form, int pass, double *bytes) {
    const struct node *nodes = chains[p->chain].nodes[pass];
    const enum buffer *fused = chains[p->chain].fused[pass];
    int64_t n = 0;
    if (form == FORM_FUSED) {
        for (int i = 0; i < FUSED && fused[i] != NONE; i++)
            bytes[class_of(p, form, fused[i])] += 4 * (double)size_of(p, fused[i]);
        return 1;
    }
    for (; n < NODES && nodes[n].y != NONE; n++) {
        const enum buffer all[] = {nodes[n].y, nodes[n].a, nodes[n].b};
        for (int i = 0; i < 3; i++)
            bytes[class_of(p, form, all[i])] += 4 * (double)size_of(p, all[i]);
    }
    return n;
}

static void needed(const struct fusion_params *p, int form, bool *need) {
    for (int pass = 0; pass < N_PASSES; pass++) {
        const struct node *nodes = chains[p->chain].nodes[pass];
        const enum buffer *fused = chains[p->chain].fused[pass];
        for (int i = 0; form == FORM_FUSED && i < FUSED; i++) need[fused[i]] = true;
        for (int i = 0; form == FORM_NODES && i < NODES; i++)
            need[nodes[i].y] = need[nodes[i].a] = need[nodes[i].b] = true;
    }
    if (form == FORM_FUSED && p->chain != CHAIN_SWIGLU) need[PARTS] = true;
    need[NONE] = false;
}

static double saved_bytes(const struct fusion_params *p) {
    double sum = 0;
    for (int i = 0; chains[p->chain].saved[p->form][i] != NONE; i++)
        sum += 4 * (double)size_of(p, chains[p->chain].saved[p->form][i]);
    return sum;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct fusion_params *p = params_;
    (void)config;
    if (p->rows * p->cols > 1 << 30)
        problem(problems, "workload.rows", "workload.cols",
                "%" PRId64 " rows of %" PRId64 " values are more than 2^30", p->rows, p->cols);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct fusion_params *p = params_;
    (void)config;
    for (int pass = 0; pass < N_PASSES; pass++) {
        traffic(p, p->form, pass, plan->work[pass].bytes);
        plan->work[pass].items = (double)p->rows;
        traffic(p, !p->form, pass, plan->prepare.bytes); /* the witness's */
    }
    for (int form = 0; form < N_FORMS; form++) {
        bool need[N_BUFFERS] = {false};
        needed(p, form, need);
        for (int b = 0; b < N_BUFFERS; b++)
            if (need[b])
                plan->bytes[class_of(p, form, (enum buffer)b)] += 4 * size_of(p, (enum buffer)b);
    }
    plan->most_marks = 2;
    plan->peak_bytes = 0;
    plan->binding_type = DT_F32;
}

/* ---- buffers ---- */

static void fill(const struct fusion_self *self, struct side *side) {
    static const enum buffer inputs[] = {X, DELTA, GAIN, GATE, UP, DY, D_SUM};
    const struct fusion_params *p = &self->params;
    const uint64_t seed = run_seed(self->run);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (side->at[inputs[i]])
            fill_uniform(self->device, side->at[inputs[i]], DT_F32, size_of(p, inputs[i]),
                         random_key(seed, (uint64_t)inputs[i]));
    if (!side->at[GATE_UP]) return;
    for (int64_t i = 0; i < p->rows * p->cols; i++) { /* as GATE and UP have it */
        float *gate = side->at[GATE_UP] + i / p->cols * 2 * p->cols + i % p->cols;
        gate[0] = fill_value(random_key(seed, GATE), i % FILL_PERIOD);
        gate[p->cols] = fill_value(random_key(seed, UP), i % FILL_PERIOD);
    }
}

static void side_close(const struct fusion_self *self, struct side *side) {
    for (int b = 0; b < N_BUFFERS; b++) device_free(self->device, side->at[b]);
    *side = (struct side){.form = side->form};
}

static int side_open(const struct fusion_self *self, struct side *side, struct err *err) {
    const struct fusion_params *p = &self->params;
    bool need[N_BUFFERS] = {false};
    needed(p, side->form, need);
    for (int b = 0; b < N_BUFFERS; b++) {
        if (!need[b]) continue;
        const int64_t n = size_of(p, (enum buffer)b);
        side->at[b] = device_alloc(self->device, sizeof(float) * (size_t)n,
                                   class_of(p, side->form, (enum buffer)b), names[b]);
        if (side->at[b]) continue;
        side_close(self, side);
        return err_set(err, ERR_MEMORY, "no memory for %s (%" PRId64 " values)", names[b], n);
    }
    fill(self, side);
    return 0;
}

/* ---- running ---- */

#define EPS 1e-5f

static void run_nodes(const struct fusion_self *self, struct side *side, int pass) {
    const struct lab_train *op = self->device->lab->train;
    const struct fusion_params *p = &self->params;
    const struct node *node = chains[p->chain].nodes[pass];
    for (int i = 0; i < NODES && node[i].y != NONE; i++, side->kernels++) {
        /* What has one value a row is a single row of them. */
        const bool one = node[i].map == MAP_RSQRT || node[i].map == MAP_RSQRT_BACK;
        const float constant = node[i].map == MAP_SPREAD ? 1 / (float)p->cols : EPS;
        op->map(self->device, node[i].map, side->at[node[i].y], side->at[node[i].a],
                side->at[node[i].b], one ? 1 : p->rows, one ? p->rows : p->cols, constant);
    }
}

static void run_fused(const struct fusion_self *self, struct side *side, int pass) {
    const struct lab_train *op = self->device->lab->train;
    const struct fusion_params *p = &self->params;
    float **at = side->at;
    const bool add = p->chain == CHAIN_ADD_NORM;
    side->kernels++;
    if (p->chain == CHAIN_SWIGLU && pass == PASS_FORWARD)
        op->swiglu(self->device, at[Y], at[GATE_UP], p->rows, p->cols);
    else if (p->chain == CHAIN_SWIGLU)
        op->swiglu_back(self->device, at[D_GATE_UP], at[DY], at[GATE_UP], p->rows, p->cols);
    else if (pass == PASS_FORWARD)
        op->norm(self->device, &(struct lab_norm){.y = at[Y],
                                                  .inverse = at[INVERSE],
                                                  .sum = at[SUM],
                                                  .x = at[X],
                                                  .delta = at[DELTA],
                                                  .gain = at[GAIN],
                                                  .rows = p->rows,
                                                  .cols = p->cols,
                                                  .eps = EPS});
    else
        op->norm_back(self->device, &(struct lab_norm_back){.dx = at[DX],
                                                            .dgain = at[D_GAIN],
                                                            .parts = at[PARTS],
                                                            .dy = at[DY],
                                                            .x = add ? at[SUM] : at[X],
                                                            .inverse = at[INVERSE],
                                                            .gain = at[GAIN],
                                                            .start = at[D_SUM],
                                                            .rows = p->rows,
                                                            .cols = p->cols});
}

static void run_pass(const struct fusion_self *self, struct side *side, int pass) {
    (side->form == FORM_FUSED ? run_fused : run_nodes)(self, side, pass);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct fusion_self *self = s;
    (void)config;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct fusion_params *)params_;
    self->side.form = self->params.form;
    if (!self->device->lab || !self->device->lab->train)
        return err_set(err, ERR_UNSUPPORTED, "%s has no such ops: --device cpu or ref",
                       self->device->kind->name);
    const int64_t before = tracker_live(self->device->tracker, MEM_ACTIVATION);
    const int code = side_open(self, &self->side, err);
    self->saved = tracker_live(self->device->tracker, MEM_ACTIVATION) - before;
    return code;
}

static void execute(void *s) {
    struct fusion_self *self = s;
    self->side.kernels = 0;
    for (int pass = 0; pass < N_PASSES; pass++) {
        run_phase(self->run, pass);
        run_pass(self, &self->side, pass);
    }
}

/* Value i of a result, whichever form has it. */
static float result(const struct fusion_self *self, const struct side *side, enum buffer b,
                    int64_t i) {
    const int64_t cols = self->params.cols;
    if (side->at[b]) return side->at[b][i];
    return side->at[D_GATE_UP][i / cols * 2 * cols + i % cols + (b == D_UP ? cols : 0)];
}

/* Largest difference over the largest value. */
static double compare(const struct fusion_self *self, const struct side *other, enum buffer b) {
    double error = 0, most = 0;
    for (int64_t i = 0; i < size_of(&self->params, b); i++) {
        const double x = (double)result(self, &self->side, b, i);
        const double e = fabs(x - (double)result(self, other, b, i));
        if (!(e <= error)) error = e; /* a NaN stays */
        most = fmax(most, fabs(x));
    }
    return most > 0 ? error / most : error;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct fusion_self *self = s;
    struct side other = {.form = !self->params.form};
    double error = 0;
    const int code = side_open(self, &other, err);
    if (code) return code;
    *w = (struct witness){.contract = CONTRACT_CLOSE, .first_difference = -1, .hash = 1};
    for (int pass = 0; pass < N_PASSES; pass++) run_pass(self, &other, pass);
    for (int i = 0; i < 3; i++) {
        const enum buffer b = chains[self->params.chain].results[i];
        const double e = compare(self, &other, b);
        if (!(e <= error)) error = e;
        w->compared += size_of(&self->params, b);
    }
    const int64_t y_bytes = 4 * size_of(&self->params, Y);
    w->hash = hash_bytes(self->side.at[Y], (size_t)y_bytes, 1);
    w->plain_hash = hash_bytes(other.at[Y], (size_t)y_bytes, 1);
    w->identical = error == 0;
    w->max_error = error;
    w->holds = error <= 1e-4;
    snprintf(w->note, sizeof w->note, "output and gradients against the %s, over the largest value",
             other.form == FORM_FUSED ? "fused op" : "nodes");
    side_close(self, &other);
    return self->device->kind->sync(self->device, err);
}

static void report(void *s, struct values *values) {
    const struct fusion_self *self = s;
    double bytes[N_CLASSES] = {0}, sum = 0;
    int64_t kernels = 0;
    for (int pass = 0; pass < N_PASSES; pass++)
        kernels += traffic(&self->params, self->params.form, pass, bytes);
    for (int c = 0; c < N_CLASSES; c++) sum += bytes[c];
    values_set(values, "kernels", (double)kernels);
    values_set(values, "kernels_run", (double)self->side.kernels);
    values_set(values, "traffic_bytes", sum);
    values_set(values, "saved_bytes", saved_bytes(&self->params));
    values_set(values, "saved_bytes_allocated", (double)self->saved);
}

static void dispose(void *s) {
    struct fusion_self *self = s;
    side_close(self, &self->side);
}

const struct workload workload_fusion = {
    .name = "fusion",
    .brief = "a norm or a gate node by node, or as one op: ops, bytes, saved tensors, time",
    .help =
        "Question: what does fusing a chain of small ops save in traffic, saved tensors and time? "
        "(seed E53)\n\n"
        "Inside the timing: forward and backward pass of one chain over (rows, cols) f32 values. "
        "nodes: square, mean, reciprocal root and products each on their own, and of the backward "
        "pass what automatic differentiation makes of them, every result in memory; fused: one op "
        "each way.\n\n"
        "Outside: all buffers, filled with seeded values.\n\n"
        "Formulas, n = rows cols: traffic is each operand of each op once, 4 bytes a value. norm, "
        "nodes: 7 n forward and 19 n backward, and single rows and columns; fused 2 n and 3 n. "
        "add_norm: 10 n and 22 n against 4 n and 4 n. swiglu: 8 n and 18 n against 3 n and 5 n. "
        "Saved: norm and add_norm 2 n against 1 n, and one value a row; swiglu 4 n against 2 n. "
        "The fused backward pass of norms also keeps 16 partial sums a column, which are not "
        "counted.\n\n"
        "Where all buffers together fit a cache, nodes cost less than their traffic says.\n\n"
        "Witness: output and gradients agree with the other form's within 1e-4 of the largest "
        "value.\n",
    .params = params,
    .params_size = sizeof(struct fusion_params),
    .self_size = sizeof(struct fusion_self),
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
