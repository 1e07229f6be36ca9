/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `ceiling`: what the device can do at most, moving bytes or multiplying. */
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "workloads/common/activation.h"
#include "workloads/common/fill.h"
#include "workloads/model/ledger.h"
#include "workloads/model/synth.h"
#include "workloads/workload.h"

enum { CEILING_READ, CEILING_COPY, CEILING_TRIAD, CEILING_FMA, CEILING_GEMM };
enum { PHASE_TRANSFER, PHASE_ARITHMETIC };
enum { GRAIN = 4096, FLOP_GRAIN = 1 << 22 }; /* kernels/ops.h: sizes that the ops take */
enum { MOST_CALLS = 4096 };

struct ceiling_params {
    int op, type, activation;
    int64_t bytes, flops, rows, depth, width;
    bool gpu; /* no option: which amounts are enough */
};
struct ceiling_self {
    struct run *run;
    struct device *device;
    struct ceiling_params params;
    int64_t repeats, size; /* calls an execution; bytes of one buffer */
    void *buffers[3];
    float *sink;
    struct weight *weight;
    struct tensor x, y;
};

/* Formats by their number in weight_formats, types by that in float_names, and `auto` behind them.
 */
static const char *const type_words[] = {"f32",         "f16",        "bf16", "int8",
                                         "int8-tensor", "int8-group", "int4", "int4-tensor",
                                         "int4-row",    "nf4",        "auto", NULL};
enum { TYPE_INT8 = 3, TYPE_AUTO = 10 };
static const char *const op_words[] = {"read", "copy", "triad", "fma", "gemm", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct ceiling_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "op",
     .type = OPT_WORD,
     PARAM(op),
     .def = "read",
     .words = op_words,
     .unit = "",
     .help =
         "read, copy and triad (a = b + s c) move bytes; fma multiplies in registers; gemm is the device's own linear."},
    {.key = "bytes",
     .type = OPT_BYTES,
     PARAM(bytes),
     .def = "0",
     .min = 0,
     .max = 0x1p42,
     .unit = "",
     .help =
         "Working set of read, copy and triad, all buffers together: sweep it to see the levels of cache; 0: 256 MiB, or twice all caches of the last level."},
    {.key = "type",
     .type = OPT_WORD,
     PARAM(type),
     .def = "auto",
     .words = type_words,
     .unit = "",
     .help =
         "fma: element type (int8: multiplied in int32); gemm: how the matrix is stored; auto: the type in which the device multiplies bf16 models."},
    {.key = "activation",
     .type = OPT_WORD,
     PARAM(activation),
     .def = "auto",
     .words = activation_words,
     .unit = "",
     .help =
         "gemm: element type of x and y; auto: what the device keeps beside such matrices; int8: f32, of which each row is rounded to int8 and multiplied in int32, beside int8 and int4."},
    {.key = "flops",
     .type = OPT_INT,
     PARAM(flops),
     .def = "0",
     .min = 0,
     .max = 0x1p50,
     .unit = "FLOP",
     .help =
         "fma: FLOPs of one execution, rounded down to a multiple of 2^22; 0: 2^30, on a GPU 2^39."},
    {.key = "rows",
     .type = OPT_INT,
     PARAM(rows),
     .def = "0",
     .min = 0,
     .max = 65536,
     .unit = "rows",
     .help = "gemm: rows of x (B of seed E25); 0: 512, on a GPU 8192."},
    {.key = "depth",
     .type = OPT_INT,
     PARAM(depth),
     .def = "0",
     .min = 0,
     .max = 65536,
     .unit = "values",
     .help = "gemm: columns of x and of the matrix (D); 0: 1024, on a GPU 8192."},
    {.key = "width",
     .type = OPT_INT,
     PARAM(width),
     .def = "0",
     .min = 0,
     .max = 262144,
     .unit = "values",
     .help = "gemm: rows of the matrix, columns of y (F); 0: 1024, on a GPU 8192."},
    {0},
};
static const struct phase phases[] = {{"transfer", "byte"}, {"arithmetic", "FLOP"}, {0}};

/* What was left open. A GPU does in microseconds what takes a host a millisecond, and a launch and
   a wait for it cost ten: peaks need executions of a millisecond there too. */
static void choose_amounts(struct ceiling_params *p) {
    if (p->flops == 0) p->flops = p->gpu ? (int64_t)1 << 39 : 1 << 30;
    if (p->rows == 0) p->rows = p->gpu ? 8192 : 512;
    if (p->depth == 0) p->depth = p->gpu ? 8192 : 1024;
    if (p->width == 0) p->width = p->gpu ? 8192 : 1024;
}

static void adapt(void *params_, const struct device_kind *kind) {
    struct ceiling_params *p = params_;
    p->gpu = kind->has & DEV_GPU;
    if (p->bytes == 0) p->bytes = device_beyond_caches(kind);
    choose_amounts(p);
    /* f32, f16 and bf16 are the first of the formats, in the order of enum dtype. */
    if (p->type == TYPE_AUTO) p->type = (int)device_activation(kind, DT_BF16);
    p->activation = activation_word(p->activation, weight_formats[p->type].type, kind);
}

static bool moves(const struct ceiling_params *p) { return p->op <= CEILING_TRIAD; }

static int64_t n_buffers(const struct ceiling_params *p) {
    return moves(p) ? p->op + 1 : 0; /* read 1, copy 2, triad 3 */
}

static int64_t buffer_size(const struct ceiling_params *p) {
    return p->bytes / n_buffers(p) / GRAIN * GRAIN;
}

static enum dtype type_of(const struct ceiling_params *p) { return weight_formats[p->type].type; }

static struct weight_spec matrix_of(const struct ceiling_params *p) {
    const struct weight_format *format = &weight_formats[p->type];
    struct model_params group = {.type = p->type};
    return (struct weight_spec){.what = "gemm matrix",
                                .rows = p->width,
                                .cols = p->depth,
                                .type = format->type,
                                .scale = format->scale,
                                .group = model_group(&group),
                                .input = activation_input(p->activation)};
}

static enum dtype activation_of(const struct ceiling_params *p) {
    return activation_type(p->activation);
}

/* Calls of one execution: an execution below some 50 microseconds measures the call, so small
   working sets are passed over until 8 MiB have moved, small products until 2^24 FLOPs are done; on
   a GPU 4 GiB and 2^39, by as many calls as 10 ms have room for. */
static int64_t repeats_of(const struct ceiling_params *p) {
    const double each = moves(p) ? (double)(n_buffers(p) * buffer_size(p))
                                 : 2.0 * (double)p->rows * (double)p->depth * (double)p->width;
    const double on_host = moves(p) ? 0x1p23 : 0x1p24, on_gpu = moves(p) ? 0x1p32 : 0x1p39;
    const double wanted = p->gpu ? on_gpu : on_host;
    if (p->op == CEILING_FMA || each >= wanted) return 1;
    const int64_t calls = (int64_t)(wanted / each) + 1;
    return p->gpu && calls > MOST_CALLS ? MOST_CALLS : calls;
}

static void check(const void *p, const struct model_config *config, struct problems *problems) {
    const struct ceiling_params *ceiling = p;
    (void)config;
    const struct weight_format *format = &weight_formats[ceiling->type];
    if (ceiling->op == CEILING_FMA && format->scale != SCALE_NONE && ceiling->type != TYPE_INT8)
        problem(problems, "workload.type", "workload.op",
                "fma multiplies f32, f16, bf16 or int8; %s is a format of matrices", format->name);
    if (ceiling->op == CEILING_GEMM &&
        quant_input_refused(format->type, activation_input(ceiling->activation), 0))
        problem(
            problems, "workload.activation", "workload.type",
            "int8 inputs are multiplied with int8 and int4 weights, and those of %s are neither",
            format->name);
    if (ceiling->bytes < 3 * GRAIN)
        problem(problems, "workload.bytes", NULL, "bytes is %lld, and at least %d, or 0",
                (long long)ceiling->bytes, 3 * (int)GRAIN);
    if (ceiling->flops < FLOP_GRAIN)
        problem(problems, "workload.flops", NULL, "flops is %lld, and at least %d, or 0",
                (long long)ceiling->flops, (int)FLOP_GRAIN);
}

static void plan(const void *p, const struct model_config *config, struct plan *plan) {
    const struct ceiling_params *ceiling = p;
    double repeats = (double)repeats_of(ceiling);
    struct work *work = &plan->work[moves(ceiling) ? PHASE_TRANSFER : PHASE_ARITHMETIC];
    (void)config;
    plan->most_marks = 1;
    plan->peak_bytes = 0;
    plan->binding_type = ceiling->op == CEILING_FMA                       ? type_of(ceiling)
                         : activation_input(ceiling->activation) == DT_I8 ? DT_I8
                                                                          : activation_of(ceiling);
    if (moves(ceiling)) {
        work->bytes[MEM_OTHER] = repeats * (double)(n_buffers(ceiling) * buffer_size(ceiling));
        if (ceiling->op == CEILING_TRIAD)
            work->flops = repeats * 2 * (double)(buffer_size(ceiling) / 4);
        work->items = work->bytes[MEM_OTHER];
        plan->bytes[MEM_OTHER] = n_buffers(ceiling) * buffer_size(ceiling) + 64;
        return;
    }
    if (ceiling->op == CEILING_FMA) {
        work->flops = (double)(ceiling->flops / FLOP_GRAIN * FLOP_GRAIN);
    } else {
        struct weight_spec spec = matrix_of(ceiling);
        int64_t matrix = quant_payload_bytes(&spec) + quant_scale_bytes(&spec);
        int64_t io = dtype_bits(activation_of(ceiling)) / 8 * ceiling->rows *
                     (ceiling->depth + ceiling->width);
        work->flops =
            repeats * 2 * (double)ceiling->rows * (double)ceiling->depth * (double)ceiling->width;
        work->bytes[MEM_OTHER] = repeats * (double)(matrix + io); /* E25 */
        plan->bytes[MEM_WEIGHT] = quant_payload_bytes(&spec);
        plan->bytes[MEM_SCALE] = quant_scale_bytes(&spec);
        plan->bytes[MEM_OTHER] = io;
    }
    work->items = work->flops;
}

static int supported(struct device *device, const struct ceiling_params *p, struct err *err) {
    static const enum op ops[] = {OP_READ, OP_COPY, OP_TRIAD, OP_FMA_PEAK, OP_LINEAR};
    struct op_case op_case = {.weight = type_of(p),
                              .scale = weight_formats[p->type].scale,
                              .activation = activation_of(p),
                              .kv = DT_F32,
                              .group = matrix_of(p).group,
                              .input = matrix_of(p).input};
    const char *reason = "";
    if (p->op == CEILING_FMA) op_case.activation = type_of(p);
    if (device->kind->supports(device, ops[p->op], &op_case, &reason)) return 0;
    return err_set(err, ERR_UNSUPPORTED, "%s %s is not supported by %s: %s", op_words[p->op],
                   weight_formats[p->type].name, device->kind->name, reason);
}

static int prepare_gemm(struct ceiling_self *self, struct err *err) {
    const struct ceiling_params *p = &self->params;
    struct weight_spec spec = matrix_of(p);
    struct synth_matrix matrix = synth_matrix(run_seed(self->run), 0, spec.cols);
    struct row_source source = synth_source(&matrix);
    self->x = (struct tensor){.type = activation_of(p),
                              .rows = (int32_t)p->rows,
                              .cols = (int32_t)p->depth,
                              .stride = p->depth};
    self->y = (struct tensor){.type = activation_of(p),
                              .rows = (int32_t)p->rows,
                              .cols = (int32_t)p->width,
                              .stride = p->width};
    const size_t size = (size_t)dtype_bits(activation_of(p)) / 8;
    size_t x_bytes = size * (size_t)(p->rows * p->depth),
           y_bytes = size * (size_t)(p->rows * p->width);
    struct step_bounds bounds = {.n_seq = 1,
                                 .n_row = (int32_t)p->rows,
                                 .n_out = 1,
                                 .most_q = (int32_t)p->rows,
                                 .most_kv = 1,
                                 .n_q = 1,
                                 .n_kv = 1,
                                 .d_h = 2,
                                 .d_model = (int32_t)p->depth,
                                 .d_ff = (int32_t)p->width,
                                 .vocab = 2,
                                 .activation = activation_of(p)};
    int code = self->device->kind->pack(self->device, &self->weight, &spec, 1, &source, err);
    if (code) return code;
    if ((code = self->device->kind->plan(self->device, &bounds, err))) return code;
    self->x.data = device_alloc(self->device, x_bytes, MEM_OTHER, "gemm x");
    self->y.data = device_alloc(self->device, y_bytes, MEM_OTHER, "gemm y");
    if (!self->x.data || !self->y.data)
        return err_set(err, ERR_MEMORY, "no memory for %zu bytes of x and y", x_bytes + y_bytes);
    fill_uniform(self->device, self->x.data, activation_of(p), p->rows * p->depth,
                 run_seed(self->run));
    return 0;
}

/* Buffers that are only read lie on the same pages for both sides of a comparison: how well a cache
 * holds them depends on where they lie. */
static void share(struct ceiling_self *self, int i) {
    const bool written = self->params.op != CEILING_READ && i == (self->params.op == CEILING_COPY);
    if (written || !(self->device->kind->has & DEV_HOST_MEMORY)) return;
    self->buffers[i] = device_share(self->device, self->buffers[i], (size_t)self->size, MEM_OTHER,
                                    "ceiling buffer");
}

static int prepare(void *s, const void *p, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct ceiling_self *self = s;
    (void)config;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct ceiling_params *)p;
    self->repeats = repeats_of(&self->params);
    int code = supported(self->device, &self->params, err);
    if (code) return code;
    if (self->params.op == CEILING_GEMM) return prepare_gemm(self, err);
    if (!moves(&self->params)) return 0;
    self->size = buffer_size(&self->params);
    for (int i = 0; i < n_buffers(&self->params); i++) {
        self->buffers[i] =
            device_alloc(self->device, (size_t)self->size, MEM_OTHER, "ceiling buffer");
        if (!self->buffers[i])
            return err_set(err, ERR_MEMORY, "no memory for a buffer of %lld bytes",
                           (long long)self->size);
        fill_uniform(self->device, self->buffers[i], DT_F32, self->size / 4,
                     run_seed(run) + (uint64_t)i);
        share(self, i);
    }
    self->sink = device_alloc(self->device, 64, MEM_OTHER, "ceiling sink");
    return self->sink ? 0 : err_set(err, ERR_MEMORY, "no memory for 64 bytes");
}

static void execute(void *s) {
    struct ceiling_self *self = s;
    const struct ops *ops = self->device->ops;
    struct device *device = self->device;
    void **b = self->buffers;
    run_phase(self->run, moves(&self->params) ? PHASE_TRANSFER : PHASE_ARITHMETIC);
    for (int64_t i = 0; i < self->repeats; i++) {
        switch (self->params.op) {
        case CEILING_READ: ops->read(device, b[0], self->size, self->sink); break;
        case CEILING_COPY: ops->copy(device, b[1], b[0], self->size); break;
        case CEILING_TRIAD: ops->triad(device, b[0], b[1], b[2], 3.0f, self->size / 4); break;
        case CEILING_FMA:
            ops->fma_peak(device, type_of(&self->params),
                          self->params.flops / FLOP_GRAIN * FLOP_GRAIN);
            break;
        case CEILING_GEMM:
            ops->linear(device, &self->y, &self->x, self->weight, NULL, EPI_NONE);
            break;
        }
    }
}

static void dispose(void *s) {
    struct ceiling_self *self = s;
    if (!self->device) return;
    for (int i = 0; i < 3; i++) device_free(self->device, self->buffers[i]);
    device_free(self->device, self->sink);
    device_free(self->device, self->x.data);
    device_free(self->device, self->y.data);
    self->device->kind->unpack(self->device, &self->weight);
}

const struct workload workload_ceiling = {
    .name = "ceiling",
    .brief = "bandwidth and peak arithmetic of this device: what nothing here can exceed",
    .help = "Question: how many bytes and FLOPs a second can this device do at most, with its own "
            "kernels?\n\n"
            "Inside the timing: calls of one op over buffers that were written before; as many "
            "calls as it takes to move 8 MiB or to do 2^24 FLOPs, on a GPU 4 GiB or 2^39 FLOPs but "
            "not over 4096 calls, at least one.\n\n"
            "Outside: allocation, filling, packing.\n\n"
            "Formulas (bytes of one call, `bytes` being all buffers together): read = bytes; copy "
            "= bytes (half read, half written; a store's own read of its line is not charged); "
            "triad a = b + s c = bytes; fma = `flops`, no bytes; gemm = 2 rows depth width FLOPs, "
            "and the matrix, x and y once (seed E25: 2BDF and 2BD + 2DF + 2BF with 2-byte "
            "elements; here in their own type).\n\n"
            "Phases: transfer (item: byte) for read, copy, triad; arithmetic (item: FLOP) for fma "
            "and gemm.\n\n"
            "Its best round is the ceiling for MBU, MFU and the ridge point (seed E26) of the "
            "same run.\n",
    .flags = WORK_CEILING,
    .params = params,
    .params_size = sizeof(struct ceiling_params),
    .self_size = sizeof(struct ceiling_self),
    .phases = phases,
    .check = check,
    .plan = plan,
    .adapt = adapt,
    .prepare = prepare,
    .execute = execute,
    .dispose = dispose,
};
