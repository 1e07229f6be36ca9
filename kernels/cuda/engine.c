/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's record: opening it or saying why not, what runs, and what is planned. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/facts.h"
#include "base/gpu_name.h"
#include "base/option.h"
#include "kernels/cuda/engine.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/lt.h"

#ifdef BENCH_SIMT
#define KIND_NAME   "cuda-emu"
#define KIND_HAS    0
#define KIND_RECORD device_cuda_emu
#define KIND_BRIEF  "the cuda device's code on the host, thread by thread: for tests, never fast"
#else
#define KIND_NAME   "cuda"
#define KIND_HAS    DEV_GPU
#define KIND_RECORD device_cuda
#define KIND_BRIEF  "an NVIDIA GPU: own kernels, cuBLASLt for many rows, steps replayed as graphs"
#endif

static const char *const gemm_words[] = {"auto", "own", "cublaslt", NULL};

/* ---- failures and counts ------------------------------------------------------------------------
 */

bool cuda_expects(struct cuda *c, bool holds, const char *sentence) {
    if (!holds && !c->failed.code) err_set(&c->failed, ERR_INTERNAL, "%s: %s", KIND_NAME, sentence);
    return holds;
}

bool cuda_did(struct cuda *c, cudaError_t e, const char *what) {
    if (e == cudaSuccess) return true;
    cudaGetLastError(); /* it is told by this; the next launch shall not be blamed */
    if (!c->failed.code)
        err_set(&c->failed, e == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_DEVICE,
                "%s: %s: %s (%s)", KIND_NAME, what, cudaGetErrorString(e), cudaGetErrorName(e));
    return false;
}

/* The launch says itself how it went: the runtime's last error may be another call's. */
void cuda_launched(struct cuda *c, const struct launch *l, cudaError_t e) {
    c->launches++;
    cuda_did(c, e, l->card ? l->card->name : "a launch without a card");
}

int32_t cuda_bucket(const struct cuda *c, int32_t most_kv) {
    if (!c->params.graph) return most_kv;
    int64_t bucket = 256;
    while (bucket < most_kv) bucket *= 2;
    return bucket < INT32_MAX ? (int32_t)bucket : most_kv;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

/* Why there is nothing to open. */
static int refused(cudaError_t e, struct err *err) {
    int driver = 0;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    switch (e) {
    case cudaErrorInsufficientDriver:
        if (driver == 0)
            return err_set(err, ERR_UNSUPPORTED, "%s: no driver on this machine", KIND_NAME);
        return err_set(err, ERR_UNSUPPORTED,
                       "%s: the driver is too old: it runs CUDA %d.%d, this build needs %d.%d",
                       KIND_NAME, driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10);
    case cudaErrorNoDevice:
        return err_set(err, ERR_UNSUPPORTED, "%s: a driver, but no device that it may use",
                       KIND_NAME);
    case cudaErrorStubLibrary:
        return err_set(err, ERR_UNSUPPORTED,
                       "%s: only the stub libcuda was found, which runs nothing: the driver's own "
                       "must come first",
                       KIND_NAME);
    default:
        return err_set(err, ERR_UNSUPPORTED, "%s: %s (%s)", KIND_NAME, cudaGetErrorString(e),
                       cudaGetErrorName(e));
    }
}

static int attribute(int device, enum cudaDeviceAttr which) {
    int v = 0;
    if (cudaDeviceGetAttribute(&v, which, device)) cudaGetLastError();
    return v;
}

static cudaError_t read_limits(struct cuda *c) {
    const int index = (int)c->params.index;
    struct cuda_engine *e = engine_of(c);
    struct cudaDeviceProp properties;
    cudaError_t failed = cudaGetDeviceProperties(&properties, index);
    if (failed) return failed;
    memcpy(e->name, properties.name, sizeof e->name);
    e->memory_bytes = (int64_t)properties.totalGlobalMem;
    e->clock_khz = attribute(index, cudaDevAttrClockRate);
    e->memory_khz = attribute(index, cudaDevAttrMemoryClockRate);
    c->gpu = (struct gpu){
        .sm_count = properties.multiProcessorCount,
        .cc = properties.major * 10 + properties.minor,
        .smem_block = (int32_t)properties.sharedMemPerBlockOptin,
        .l2_bytes = properties.l2CacheSize,
    };
    failed = cudaDriverGetVersion(&e->driver);
    return failed ? failed : cudaRuntimeGetVersion(&e->runtime);
}

static struct cuda_room no_rooms[N_OPS + 1]; /* before a plan */

static void free_set(struct cuda *c, struct plan_set *set) {
    for (int i = 0; i <= N_OPS; i++) device_free(&c->base, set->room[i].data);
    *set = (struct plan_set){0};
}

static void cuda_close(struct device **device) {
    struct cuda *c = cuda_of(*device);
    if (!c) return;
    if (c->stream) cudaStreamSynchronize(c->stream);
    cuda_forget(*device, NULL);
    for (int i = 0; i < MOST_PLANS && c->base.tracker; i++) free_set(c, &c->engine->plans[i]);
    cuda_lt_close(c);
    cuda_memory_close(c);
    if (c->stream) cudaStreamDestroy(c->stream);
    free(c->engine);
    free(c);
    *device = NULL;
}

static int cuda_open(struct device **device, const void *params, struct err *err) {
    static const struct cuda_params defaults = {.graph = true};
    const struct cuda_params *p = params ? params : &defaults;
    int n = 0;
    cudaError_t failed = cudaGetDeviceCount(&n);
    if (!failed && n == 0) failed = cudaErrorNoDevice;
    if (failed) return refused(failed, err);
    if (p->index >= n)
        return err_set(err, ERR_UNSUPPORTED, "%s: there is no device %d; they are 0 to %d",
                       KIND_NAME, (int)p->index, n - 1);
    struct cuda *c = must_alloc(sizeof *c);
    c->base.ops = &cuda_ops;
    c->room = no_rooms;
    c->params = *p;
    c->engine = must_alloc(sizeof *c->engine);
    *device = &c->base;
    failed = cudaSetDevice((int)p->index);
    if (!failed) failed = read_limits(c);
    if (!failed) failed = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    int code = failed ? refused(failed, err) : 0;
    if (!code && c->gpu.cc < 80)
        code = err_set(err, ERR_UNSUPPORTED,
                       "%s: %s has compute capability %d.%d; the kernels need 8.0 or later",
                       KIND_NAME, c->engine->name, c->gpu.cc / 10, c->gpu.cc % 10);
    char bus[32];
    if (!code && !cudaDeviceGetPCIBusId(bus, sizeof bus, (int)p->index)) gpu_name_set(bus);
    if (!code && c->gpu.cc < 90) c->params.pdl = false; /* facts say what really runs */
    if (!code) code = cuda_memory_open(c, err);
    if (code) cuda_close(device);
    return code;
}

static void cuda_describe(struct device *device, struct facts *facts) {
    const struct cuda *c = cuda_of(device);
    const struct cuda_engine *e = c->engine;
    facts_printf(facts, "device.isa", "", "", "sm_%d", c->gpu.cc);
    facts_set(facts, "device.name", e->name, "", "");
    facts_printf(facts, "device.compute_capability", "", "", "%d.%d", c->gpu.cc / 10,
                 c->gpu.cc % 10);
    facts_printf(facts, "device.sms", "", "", "%d", c->gpu.sm_count);
    facts_printf(facts, "device.memory", "bytes", "", "%lld", (long long)e->memory_bytes);
    facts_printf(facts, "device.l2", "bytes", "", "%lld", (long long)c->gpu.l2_bytes);
    facts_printf(facts, "device.driver", "", "", "%d.%d", e->driver / 1000, e->driver % 1000 / 10);
    facts_printf(facts, "device.runtime", "", "", "%d.%d", e->runtime / 1000,
                 e->runtime % 1000 / 10);
    if (e->clock_khz > 0)
        facts_printf(facts, "device.clock_most", "MHz", "", "%d", e->clock_khz / 1000);
    if (e->memory_khz > 0)
        facts_printf(facts, "device.memory_clock_most", "MHz", "", "%d", e->memory_khz / 1000);
    facts_set(facts, "device.graph", c->params.graph ? "true" : "false", "", "");
    facts_set(facts, "device.pdl", c->params.pdl ? "true" : "false", "", "");
    facts_set(facts, "device.gemm", gemm_words[c->params.gemm], "", "");
    cuda_lt_describe(cuda_of(device), facts);
}

/* ---- what runs ---------------------------------------------------------------------------------
 */

static bool cuda_supports(struct device *device, enum op op, const struct op_case *c,
                          const char **kernel_or_reason) {
    (void)device;
    switch (op) {
    case OP_EMBED: return cuda_embed_supports(c, kernel_or_reason);
    case OP_ADD_NORM: return cuda_add_norm_supports(c, kernel_or_reason);
    case OP_LINEAR: return cuda_linear_supports(c, kernel_or_reason);
    case OP_ROPE_APPEND: return cuda_rope_append_supports(c, kernel_or_reason);
    case OP_ATTENTION: return cuda_attention_supports(c, kernel_or_reason);
    case OP_GATHER_ROWS: return cuda_gather_rows_supports(c, kernel_or_reason);
    case OP_SELECT: return cuda_select_supports(c, kernel_or_reason);
    case OP_ADVANCE: return cuda_advance_supports(c, kernel_or_reason);
    case OP_KV_COPY_BLOCK: return cuda_kv_copy_block_supports(c, kernel_or_reason);
    default: return cuda_ceilings_supports(c, kernel_or_reason);
    }
}

/* What the kernels were made for: bf16 beside bf16 and all quantized weights. */
static enum dtype cuda_activation(enum dtype weight) {
    return weight == DT_F32 || weight == DT_F16 ? weight : DT_BF16;
}

const struct ops cuda_ops = {
    .embed = cuda_embed,
    .add_norm = cuda_add_norm,
    .linear = cuda_linear,
    .rope_append = cuda_rope_append,
    .attention = cuda_attention,
    .gather_rows = cuda_gather_rows,
    .select = cuda_select,
    .advance = cuda_advance,
    .kv_copy_block = cuda_kv_copy_block,
    .copy = cuda_copy,
    .read = cuda_read,
    .triad = cuda_triad,
    .fma_peak = cuda_fma_peak,
};

/* ---- plans -------------------------------------------------------------------------------------
 */

static const struct planned_op {
    enum op op;
    const char *room_name;
    int64_t (*room)(const struct gpu *, const struct step_bounds *);
    cudaError_t (*load)(void);
} planned_ops[] = {
    {OP_EMBED, "embed room", cuda_embed_room, embed_load},
    {OP_ADD_NORM, "add_norm room", cuda_add_norm_room, add_norm_load},
    {OP_LINEAR, "linear room", cuda_linear_room, linear_load},
    {OP_ROPE_APPEND, "rope_append room", cuda_rope_append_room, rope_append_load},
    {OP_ATTENTION, "attention room", cuda_attention_room, attention_load},
    {OP_GATHER_ROWS, "gather_rows room", cuda_gather_rows_room, gather_rows_load},
    {OP_SELECT, "select room", cuda_select_room, select_load},
    {OP_ADVANCE, "advance room", cuda_advance_room, advance_load},
    {OP_KV_COPY_BLOCK, "kv_copy_block room", cuda_kv_copy_block_room, kv_copy_block_load},
    {OP_COPY, "ceilings room", cuda_ceilings_room, ceilings_load},
};
enum { N_PLANNED = sizeof planned_ops / sizeof *planned_ops };

static int load_kernels(struct err *err) {
    for (int i = 0; i < N_PLANNED; i++) {
        cudaError_t e = planned_ops[i].load();
        if (!e) continue;
        cudaGetLastError();
        return err_set(err, ERR_DEVICE, "%s: the kernels of %s do not load: %s (%s)", KIND_NAME,
                       op_names[planned_ops[i].op], cudaGetErrorString(e), cudaGetErrorName(e));
    }
    return 0;
}

static int make_room(struct cuda *c, struct cuda_room *room, int64_t bytes, const char *what,
                     struct err *err) {
    if (bytes == 0) return 0;
    room->data = device_alloc(&c->base, (size_t)bytes, MEM_WORKSPACE, what);
    room->bytes = bytes;
    return room->data ? 0
                      : err_set(err, ERR_MEMORY, "%s: no memory for the %s (%lld bytes)", KIND_NAME,
                                what, (long long)bytes);
}

static int make_set(struct cuda *c, struct plan_set *set, struct err *err) {
    int code = 0;
    set->made = true;
    set->bounds = c->bounds;
    for (int i = 0; !code && i < N_PLANNED; i++) {
        const struct planned_op *p = &planned_ops[i];
        code = make_room(c, &set->room[p->op], p->room(&c->gpu, &c->bounds), p->room_name, err);
    }
    if (!code) code = make_room(c, &set->room[ROOM_LT], cuda_lt_room(c), "cublaslt room", err);
    if (code) free_set(c, set);
    return code;
}

static bool recorded_with(const struct cuda_engine *e, const struct plan_set *set) {
    for (int i = 0; i < e->n_graphs; i++)
        if (e->graphs[i].plan == set) return true;
    return false;
}

/* The set of these bounds, or a free one. What no recorded step uses goes away, so that a plan's
   rooms are the plan's alone. */
static struct plan_set *set_for(struct cuda *c, const struct step_bounds *bounds) {
    struct cuda_engine *e = c->engine;
    struct plan_set *found = NULL, *vacant = NULL;
    for (int i = 0; i < MOST_PLANS; i++) {
        struct plan_set *set = &e->plans[i];
        if (set->made && !memcmp(&set->bounds, bounds, sizeof *bounds))
            found = set;
        else if (set->made && !recorded_with(e, set))
            free_set(c, set);
        if (!set->made) vacant = set;
    }
    if (found || vacant) return found ? found : vacant;
    cuda_forget(&c->base, NULL);
    for (int i = 0; i < MOST_PLANS; i++) free_set(c, &e->plans[i]);
    return &e->plans[0];
}

static int cuda_plan(struct device *device, const struct step_bounds *bounds, struct err *err) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = c->engine;
    int code = e->loaded ? 0 : load_kernels(err);
    if (code) return code;
    e->loaded = true;
    c->bounds = *bounds;
    e->plan = NULL;
    c->room = no_rooms;
    if ((code = cuda_lt_open(c, err))) return code;
    struct plan_set *set = set_for(c, bounds);
    if (!set->made) code = make_set(c, set, err);
    if (!code) code = device->kind->sync(device, err);
    if (code) return code;
    cudaMemPoolTrimTo(e->pool, 0); /* what other points reserved is none of this one's */
    e->plan = set;
    c->room = set->room;
    return 0;
}

/* ---- waiting, and the device's own numbers -----------------------------------------------------
 */

static int cuda_sync(struct device *device, struct err *err) {
    struct cuda *c = cuda_of(device);
    cudaError_t e = cudaStreamSynchronize(c->stream);
    if (e) cuda_did(c, e, "the device");
    if (!c->failed.code) return 0;
    /* After a fault in a kernel every call fails until the process ends. */
    device->lost = cudaStreamSynchronize(c->stream) != cudaSuccess;
    cudaGetLastError();
    struct err failed = c->failed;
    c->failed = (struct err){0};
    return err_set(err, failed.code, "%s", failed.text);
}

static int64_t cuda_span(struct device *device, enum span_moment moment) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = c->engine;
    float ms = 0;
    switch (moment) {
    case SPAN_BEGIN: cuda_did(c, cudaEventRecord(e->begin, c->stream), "cudaEventRecord"); break;
    case SPAN_END: cuda_did(c, cudaEventRecord(e->end, c->stream), "cudaEventRecord"); break;
    case SPAN_READ:
        if (cuda_did(c, cudaEventElapsedTime(&ms, e->begin, e->end), "cudaEventElapsedTime"))
            return (int64_t)((double)ms * 1e6 + 0.5);
        break;
    }
    return 0;
}

static void cuda_report(struct device *device, double executions,
                        void (*keep)(void *ctx, const char *name, double value), void *ctx) {
    struct cuda *c = cuda_of(device);
    struct cuda_engine *e = c->engine;
    const double launches = (double)(c->launches - e->launches_told),
                 waits = (double)(e->waits - e->waits_told);
    uint64_t reserved = 0;
    size_t vacant = 0, total = 0;
    e->launches_told = c->launches;
    e->waits_told = e->waits;
    if (!(executions > 0)) {
        cudaMemPoolSetAttribute(e->pool, cudaMemPoolAttrReservedMemHigh, &reserved); /* from now */
        cudaGetLastError();
        return;
    }
    keep(ctx, "launches", launches / executions);
    keep(ctx, "host_waits", waits / executions);
    if (!cudaMemPoolGetAttribute(e->pool, cudaMemPoolAttrReservedMemHigh, &reserved))
        keep(ctx, "device_reserved_bytes", (double)reserved);
    if (!cudaMemGetInfo(&vacant, &total)) keep(ctx, "device_used_bytes", (double)(total - vacant));
    cudaGetLastError(); /* a runtime that cannot tell is no failure of the work */
}

/* ---- the record --------------------------------------------------------------------------------
 */

#define FIELD(name) offsetof(struct cuda_params, name)
static const struct option cuda_options[] = {
    {.key = "index",
     .type = OPT_INT,
     .flags = OPT_IDENTITY,
     .offset = FIELD(index),
     .def = "0",
     .min = 0,
     .max = 255,
     .unit = "",
     .help = "Which of the machine's GPUs, as CUDA_VISIBLE_DEVICES leaves them."},
    {.key = "graph",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = FIELD(graph),
     .def = "true",
     .unit = "",
     .help = "Whether decode steps are recorded as CUDA graphs and replayed."},
    {.key = "pdl",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = FIELD(pdl),
     .def = "false",
     .unit = "",
     .help =
         "Whether a kernel may start before the one before it has ended (programmatic dependent launch, from sm_90)."},
    {.key = "gemm",
     .type = OPT_WORD,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = FIELD(gemm),
     .def = "auto",
     .words = gemm_words,
     .unit = "",
     .help =
         "Who multiplies more than 64 rows; auto: cuBLASLt where it can be loaded, else own kernels."},
    {.key = NULL},
};

extern const struct device_kind KIND_RECORD;
const struct device_kind KIND_RECORD = {
    .name = KIND_NAME,
    .brief = KIND_BRIEF,
    .has = KIND_HAS,
    .params = cuda_options,
    .params_size = sizeof(struct cuda_params),
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .supports = cuda_supports,
    .plan = cuda_plan,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .pack = cuda_pack,
    .unpack = cuda_unpack,
    .upload = cuda_upload,
    .download = cuda_download,
    .evict = cuda_evict,
    .sync = cuda_sync,
    .activation = cuda_activation,
    .replay = cuda_replay,
    .recorded = cuda_recorded,
    .forget = cuda_forget,
    .span = cuda_span,
    .report = cuda_report,
};
