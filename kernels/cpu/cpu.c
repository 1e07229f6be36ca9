/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's record: opening, what runs, what is supported, and the workspace. */
#include "kernels/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/facts.h"
#include "base/option.h"
#include "base/text.h"

static const char *const isa_words[] = {"auto", "scalar", "avx2", "avx512", "amx", "neon", NULL};

const struct cpu_kernels *cpu_kernels_of(enum isa isa) {
#ifdef BENCH_CPU_NEON
    if (isa == ISA_NEON) return &cpu_kernels_neon;
#endif
#ifdef BENCH_CPU_AMX
    if (isa == ISA_AMX) return &cpu_kernels_amx;
#endif
#ifdef BENCH_CPU_AVX512
    if (isa == ISA_AVX512) return &cpu_kernels_avx512;
#endif
#ifdef BENCH_CPU_AVX2
    if (isa == ISA_AVX2) return &cpu_kernels_avx2;
#endif
    return isa == ISA_SCALAR ? &cpu_kernels_scalar : NULL;
}

/* Why level amx must not be used, or NULL; its products are looked at once a process. */
static const char *amx_refused(void) {
    enum { UNKNOWN, RIGHT, WRONG };
    static _Atomic int products = UNKNOWN;
    const struct cpu_kernels *kernels = cpu_kernels_of(ISA_AMX);
    if (kernels == NULL) return "this build has no such level";
    const char *reason = topology_tiles();
    if (reason != NULL) return reason;
    if (products == UNKNOWN)
        products = cpu_pairs_right(kernels->pairs) && cpu_codes_right(cpu_code_kernels_of(ISA_AMX))
                       ? RIGHT
                       : WRONG;
    return products == RIGHT ? NULL : "its products are wrong on this machine";
}

/* The best level that both the machine and this build have. */
static enum isa best_level(void) {
    int isa = (int)isa_best();
    if (isa == ISA_AMX && amx_refused() != NULL) isa = ISA_AVX512;
    while (cpu_kernels_of((enum isa)isa) == NULL) isa--;
    return (enum isa)isa;
}

static int choose_threads(const struct topology *t, int64_t wanted) {
    if (wanted > 0) return (int)wanted;
    return t->quota > 0 && t->quota < t->n_cores ? t->quota : t->n_cores;
}

/* More threads than cores is for those who ask for it. */
static int64_t cpu_most(const char *key) {
    struct topology topology;
    if (strcmp(key, "threads")) return 0;
    topology_read(&topology);
    return choose_threads(&topology, 0);
}

static int cpu_open(struct device **device, const void *params, struct err *err) {
    static const struct cpu_params defaults = {.pin = true, .huge_pages = true};
    const struct cpu_params *p = params != NULL ? params : &defaults;
    struct topology topology;
    topology_read(&topology);
    const enum isa best = best_level(), isa = p->isa == 0 ? best : (enum isa)(p->isa - 1);
    if (isa > best || cpu_kernels_of(isa) == NULL) {
        const char *why = isa == ISA_AMX ? amx_refused() : NULL;
        return err_set(err, ERR_UNSUPPORTED,
                       "cpu: isa '%s' cannot run here%s%s; the best that can is '%s'",
                       isa_words[p->isa], why != NULL ? ": " : "", why != NULL ? why : "",
                       isa_words[best + 1]);
    }
    const int threads = choose_threads(&topology, p->threads);
    for (int i = topology.n_cpus; i < threads; i++) /* more threads than CPUs share them */
        topology.cpus[i] = topology.cpus[i % topology.n_cpus];
    struct cpu *cpu = must_alloc(sizeof *cpu);
    *cpu = (struct cpu){.base.ops = &cpu_ops,
                        .base.lab = &cpu_lab,
                        .kernels = cpu_kernels_of(isa),
                        .codes = cpu_code_kernels_of(isa),
                        .topology = topology,
                        .params = *p,
                        .touch = true};
    cpu_linear_blocks(cpu, topology.l2_bytes);
    cpu->n_nodes = p->pin ? numa_nodes("", topology.cpus, threads, cpu->node) : 1;
    const int code = pool_create(&cpu->pool, threads, p->pin ? topology.cpus : NULL, err);
    if (code != 0) {
        free(cpu);
        return code;
    }
    *device = &cpu->base;
    return 0;
}

static void cpu_stay(struct device *device) { pool_stay(cpu_of(device)->pool); }

static void free_workspace(struct cpu *cpu) {
    struct device *device = &cpu->base;
    device_free(device, cpu->scratch);
    device_free(device, cpu->parts);
    device_free(device, cpu->wide);
    device_free(device, cpu->rope.cosine);
    cpu->scratch = cpu->parts = cpu->wide = NULL;
    cpu->rope = (struct rope_table){0};
    cpu->scratch_floats = cpu->parts_floats = cpu->wide_floats = 0;
}

static void cpu_close(struct device **device) {
    struct cpu *cpu = cpu_of(*device);
    if (cpu == NULL) return;
    free_workspace(cpu);
    cpu_free(*device, cpu->evicted, cpu->evicted_bytes);
    pool_close(&cpu->pool);
    free(cpu);
    *device = NULL;
}

static void cpu_describe(struct device *device, struct facts *facts) {
    const struct cpu *cpu = cpu_of(device);
    const int threads = pool_threads(cpu->pool);
    facts_set(facts, "device.isa", cpu->kernels->name, "", "");
    facts_set(facts, "device.isa_best", isa_words[best_level() + 1], "", "");
    if (isa_best() == ISA_AMX && amx_refused() != NULL)
        facts_printf(facts, "device.isa_refused", "", "", "amx: %s", amx_refused());
    facts_set(facts, "device.int8", cpu->codes->name, "", "");
    facts_printf(facts, "device.threads", "", "", "%d", threads);
    facts_printf(facts, "device.cores", "", "", "%d", cpu->topology.n_cores);
    if (cpu->topology.quota > 0)
        facts_printf(facts, "device.quota", "CPUs", "", "%d", cpu->topology.quota);
    struct text pinning = {0};
    if (!cpu->params.pin) text_puts(&pinning, "none");
    for (int i = 0; i < threads && cpu->params.pin; i++)
        text_printf(&pinning, "%s%d", i > 0 ? " " : "CPU ", cpu->topology.cpus[i]);
    facts_set(facts, "device.pinning", pinning.data, "", "");
    text_free(&pinning);
    numa_describe(facts, cpu->n_nodes, &cpu->pages);
    facts_set(facts, "device.huge_pages", cpu->params.huge_pages ? topology_huge_pages() : "off",
              "", "");
    facts_printf(facts, "device.l2", "bytes", "", "%lld", (long long)cpu->topology.l2_bytes);
    facts_printf(facts, "device.block", "values", "", "%d x %lld", (int)cpu->block_rows,
                 (long long)cpu->block_k);
    facts_printf(facts, "device.l3", "bytes", "", "%lld", (long long)cpu->topology.l3_bytes);
}

static const char *refused(enum op op, const struct op_case *c) {
    const bool ceiling = op == OP_COPY || op == OP_READ || op == OP_TRIAD || op == OP_FMA_PEAK;
    if (op == OP_FMA_PEAK && !cpu_is_float(c->activation) && c->activation != DT_I8)
        return "cpu multiplies floats and int8 only";
    if (!ceiling && !cpu_is_float(c->activation))
        return "cpu keeps activations in f32, f16 or bf16";
    if (op == OP_LINEAR && c->input == DT_I8 && c->activation != DT_F32)
        return "int8 inputs are rounded from f32 activations";
    if (op == OP_EMBED || op == OP_LINEAR) {
        const struct weight_spec spec = {
            .type = c->weight, .scale = c->scale, .group = c->group, .input = c->input};
        const char *why = cpu_weight_refused(&spec);
        if (why != NULL) return why;
    }
    if ((op == OP_ROPE_APPEND || op == OP_ATTENTION) && !cpu_is_float(c->kv) && c->kv != DT_I8)
        return "cpu keeps caches in f32, f16, bf16 or int8";
    return NULL;
}

static bool cpu_supports(struct device *device, enum op op, const struct op_case *c,
                         const char **kernel_or_reason) {
    static const char *const kernels[][4] = {
        {"scalar", "scalar panels of 16 rows", "scalar panels of 16 rows of codes",
         "scalar panels of 16 rows of codes, by codes"},
        {"avx2", "avx2 panels of 16 rows", "avx2 panels of 16 rows of codes",
         "avx2 panels of 16 rows of codes, by codes"},
        {"avx512", "avx512 panels of 16 rows", "avx512 panels of 16 rows of codes",
         "avx512 panels of 16 rows of codes, by codes"},
        {"amx", "avx512 panels of 16 rows", "avx512 panels of 16 rows of codes",
         "avx512 panels of 16 rows of codes, by codes"},
        {"neon", "neon panels of 16 rows", "neon panels of 16 rows of codes",
         "neon panels of 16 rows of codes, by codes"},
    };
    const bool product = op == OP_LINEAR || op == OP_EMBED;
    const int form = !product ? 0 : cpu_is_float(c->weight) ? 1 : c->input == DT_I8 ? 3 : 2;
    const struct cpu *cpu = cpu_of(device);
    const char *reason = refused(op, c);
    *kernel_or_reason = reason;
    if (reason != NULL) return false;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i][0], cpu->kernels->name) == 0) *kernel_or_reason = kernels[i][form];
    if (cpu->kernels->pairs != NULL && c->activation == DT_BF16 &&
        (op == OP_FMA_PEAK || (op == OP_LINEAR && c->weight == DT_BF16)))
        *kernel_or_reason = "amx tiles of bf16 pairs";
    if (strcmp(cpu->codes->name, "amx") == 0 && c->weight == DT_I8 && form == 3 && op == OP_LINEAR)
        *kernel_or_reason = "amx tiles of codes";
    return true;
}

/* Where bf16 is multiplied as it is, the type in which bf16 models show the machine's peak. */
static enum dtype cpu_activation(enum dtype weight) {
    return weight == DT_BF16 && best_level() == ISA_AMX ? DT_BF16 : DT_F32;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void *workspace(struct cpu *cpu, int64_t bytes, const char *what, bool *ok) {
    void *p = bytes > 0 ? device_alloc(&cpu->base, (size_t)bytes, MEM_WORKSPACE, what) : NULL;
    *ok = *ok && (p != NULL || bytes == 0);
    return p;
}

static int cpu_plan(struct device *device, const struct step_bounds *bounds, struct err *err) {
    struct cpu *cpu = cpu_of(device);
    const int threads = pool_threads(cpu->pool);
    const struct step_bounds b = *bounds;
    bool ok = true;
    free_workspace(cpu);
    cpu->bounds = b;
    int64_t floats =
        larger(cpu_linear_scratch(), larger(cpu_attention_scratch(&b), cpu_rows_scratch(&b)));
    cpu->scratch_floats =
        (floats + 1039) / 16 * 16; /* whole lines and a gap, so that threads do not share sets */
    cpu->parts_floats = cpu_attention_parts(cpu, &b);
    cpu->scratch = workspace(cpu, threads * cpu->scratch_floats * 4, "cpu scratch", &ok);
    cpu->parts = workspace(cpu, cpu->parts_floats * 4, "cpu attention parts", &ok);
    cpu->wide_floats = cpu_linear_wide(&b);
    cpu->wide = workspace(cpu, cpu->wide_floats * 4, "cpu activations", &ok);
    const int32_t half = b.d_h / 2;
    float *angles = workspace(cpu, 2 * (int64_t)b.most_kv * half * 4, "cpu rope", &ok);
    cpu->rope = (struct rope_table){.cosine = angles, .capacity = b.most_kv, .half = half};
    if (angles != NULL) cpu->rope.sine = angles + (int64_t)b.most_kv * half;
    if (ok) return 0;
    free_workspace(cpu);
    return err_set(err, ERR_MEMORY, "cpu: no memory for the workspace");
}

static void cpu_unplan(struct device *device) { free_workspace(cpu_of(device)); }

static void cpu_transfer(struct device *device, void *to, const void *from, size_t bytes) {
    (void)device;
    if (bytes > 0) memcpy(to, from, bytes);
}

static int cpu_sync(struct device *device, struct err *err) {
    struct cpu *cpu = cpu_of(device);
    if (cpu->failed.code == 0) return 0;
    const struct err failed = cpu->failed;
    cpu->failed = (struct err){0};
    return err_set(err, failed.code, "%s", failed.text);
}

bool cpu_expects(struct cpu *cpu, bool holds, const char *sentence) {
    if (!holds && cpu->failed.code == 0) err_set(&cpu->failed, ERR_INTERNAL, "cpu: %s", sentence);
    return holds;
}

const struct ops cpu_ops = {
    .embed = cpu_embed,
    .add_norm = cpu_add_norm,
    .linear = cpu_linear,
    .rope_append = cpu_rope_append,
    .attention = cpu_attention,
    .gather_rows = cpu_gather_rows,
    .select = cpu_select,
    .advance = cpu_advance,
    .kv_copy_block = cpu_kv_copy_block,
    .copy = cpu_copy,
    .read = cpu_read,
    .triad = cpu_triad,
    .fma_peak = cpu_fma_peak,
};

#define FIELD(name) offsetof(struct cpu_params, name)
static const struct option cpu_options[] = {
    {.key = "isa",
     .type = OPT_WORD,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = FIELD(isa),
     .def = "auto",
     .words = isa_words,
     .unit = "",
     .help = "Instruction set of the kernels; auto takes the best that this machine has."},
    {.key = "threads",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = FIELD(threads),
     .def = "0",
     .min = 0,
     .max = TOPOLOGY_MOST_CPUS,
     .unit = "threads",
     .help =
         "Threads that compute; 0 takes one per core that this process may use, within its cgroup's quota."},
    {.key = "pin",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP,
     .offset = FIELD(pin),
     .def = "true",
     .unit = "",
     .help = "Whether each thread is bound to one CPU."},
    {.key = "huge_pages",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP,
     .offset = FIELD(huge_pages),
     .def = "true",
     .unit = "",
     .help = "Whether large allocations ask for 2 MiB pages."},
    {.key = NULL},
};

const struct device_kind device_cpu = {
    .name = "cpu",
    .brief = "this machine's processor: own pinned threads, kernels per instruction set",
    .has = DEV_HOST_CLOCK | DEV_BATCH_INVARIANT | DEV_HOST_MEMORY,
    .params = cpu_options,
    .params_size = sizeof(struct cpu_params),
    .most = cpu_most,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .supports = cpu_supports,
    .activation = cpu_activation,
    .plan = cpu_plan,
    .unplan = cpu_unplan,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .pack = cpu_pack,
    .unpack = cpu_unpack,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .evict = cpu_evict,
    .cached = topology_cached,
    .stay = cpu_stay,
    .sync = cpu_sync,
};
