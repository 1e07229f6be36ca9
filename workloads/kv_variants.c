/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `kv_variants`: a decode step of a stack of attention layers that keep their history in
 * different ways. */
#include <inttypes.h>
#include <math.h>

#include "base/option.h"
#include "base/problems.h"
#include "workloads/common/plain.h"
#include "workloads/common/stack_check.h"

enum variant {
    VARIANT_MHA,
    VARIANT_GQA,
    VARIANT_MQA,
    VARIANT_LATENT,
    VARIANT_SHARED,
    VARIANT_WINDOW,
    VARIANT_SPARSE
};
static const char *const variant_words[] = {"mha",    "gqa",    "mqa",    "latent",
                                            "shared", "window", "sparse", NULL};
static const char *const form_words[] = {"absorbed", "rebuilt", NULL}; /* enum latent_form */
struct kv_variants_params {
    int64_t batch, length, latent, rotary, share, window, local_layers, block, blocks;
    int variant, form;
};
struct kv_variants_self {
    struct run *run;
    struct device *device;
    struct kv_variants_params params;
    struct model_config config;
    struct stack *stack;
    int64_t macs; /* of the last execution, where the device counts */
    struct stack_check checked;
    struct witness found; /* of outputs with this hash */
    uint64_t found_of;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct kv_variants_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
#define WHOLE(key_, def_, min_, max_, unit_, help_)                                                \
    {                                                                                              \
        .key = #key_, .type = OPT_INT, PARAM(key_), .def = def_, .min = min_, .max = max_,         \
        .unit = unit_, .help = help_                                                               \
    }
static const struct option params[] = {
    {.key = "variant",
     .type = OPT_WORD,
     PARAM(variant),
     .def = "gqa",
     .words = variant_words,
     .unit = "",
     .help = "mha: K and V for each query head; gqa: shape.n_kv KV heads; mqa: one; latent: one "
             "low-rank vector and a rotary key for all heads (MLA); shared: neighbouring layers "
             "have one K and V (CLA); window: local layers keep the last tokens; sparse: only the "
             "blocks whose mean key scores highest are looked at. The last three have shape.n_kv "
             "heads."},
    WHOLE(batch, "1", 1, 65536, "sequences", "Sequences that decode together."),
    WHOLE(length, "1024", 1, 1 << 24, "tokens",
          "S: tokens of each sequence, the one of this step among them."),
    WHOLE(latent, "256", 1, LATENT_MOST, "values", "latent: width of c, the vector that is kept."),
    WHOLE(rotary, "32", 0, LATENT_MOST, "values",
          "latent: width of the key that carries the position; even."),
    {.key = "form",
     .type = OPT_WORD,
     PARAM(form),
     .def = "absorbed",
     .words = form_words,
     .unit = "",
     .help = "latent: absorbed: the query takes W_K in, and c itself is key and value; rebuilt: K "
             "and V of all tokens and heads are made of c in every step."},
    WHOLE(share, "2", 1, 1024, "layers", "shared: g neighbouring layers have one K and V."),
    WHOLE(window, "256", 1, 1 << 24, "tokens",
          "window: W, the tokens that a local layer keeps, the newest among them; beyond S: all."),
    WHOLE(local_layers, "1024", 0, 1024, "layers",
          "window: how many layers are local, evenly among the others; at most all."),
    WHOLE(block, "16", 1, 65536, "tokens", "sparse: tokens of a block."),
    WHOLE(blocks, "16", 1, 1 << 24, "blocks",
          "sparse: k, the blocks that a step looks at, the newest always among them; as many as "
          "there are: full attention."),
    {0},
};
static const struct only only[] = {{"latent", "variant", "latent"},
                                   {"rotary", "variant", "latent"},
                                   {"form", "variant", "latent"},
                                   {"share", "variant", "shared"},
                                   {"window", "variant", "window"},
                                   {"local_layers", "variant", "window"},
                                   {"block", "variant", "sparse"},
                                   {"blocks", "variant", "sparse"},
                                   {0}};
static const struct phase phases[] = {{"decode", "token"}, {0}};
static const struct metric metrics[] = {
    {"kv_bytes_per_token", "byte",
     "kv_bytes over batch and length, by formula: with a window it falls as the length grows.",
     BETTER_LOWER, true},
    {"kv_token_allocated", "byte",
     "kv_bytes_allocated over batch and length: what the allocator gave a token (R16).",
     BETTER_LOWER, true},
    {"kv_bytes", "byte",
     "Caches of all layers and sequences by formula, scales of int8 apart (E09, E16-E18).",
     BETTER_LOWER, true},
    {"kv_bytes_allocated", "byte", "What the allocator gave for them (R16): must be equal.",
     BETTER_LOWER, true},
    {"token_elements", "",
     "kv_bytes_allocated in elements of model.kv_type, over tokens and layers: 2 n_kv d_h, or "
     "latent + rotary, or less.",
     BETTER_LOWER, true},
    {"smaller", "",
     "A cache of K and V for each query head, layer and token by formula, over kv_bytes_allocated.",
     BETTER_HIGHER, true},
    {"tokens_seen", "token", "Tokens that a row looks at in a layer, the mean of the layers.",
     BETTER_LOWER, true},
    {"kv_read_bytes", "byte",
     "Of the caches, that a step reads and writes by the ledger, each once: what a variant saves in "
     "traffic, which is not always what it saves in memory.",
     BETTER_LOWER, true},
    {"attention_macs", "MAC",
     "Multiply-adds of attention in a step by formula: 2 n_q d_h a token that is seen, whatever "
     "n_kv (E11); with a latent, W_K and W_V among them; with blocks, their scores.",
     BETTER_LOWER, true},
    {"attention_macs_counted", "MAC",
     "attention_macs as the device executed them, where it counts (ref): must be equal.",
     BETTER_LOWER, true},
    {"error", "",
     "Root mean square of what the variant's last layer gave less what its full form gives, over "
     "that of the latter: gqa, mqa: a KV head for each query head, with tied weights; shared: a copy "
     "in each layer; window: all tokens kept, and masked; sparse: full attention; latent: the other "
     "form.",
     BETTER_LOWER, false},
    {"part_of_allowed", "",
     "latent: the largest difference of the two forms over what their type allows there; at most 1.",
     BETTER_LOWER, false},
    {"kernel_error", "",
     "Root mean square of device - exact over that of exact, of sampled heads: exact is a slow "
     "computation in double from what is kept.",
     BETTER_LOWER, false},
    {0},
};

/* ---- what a variant is, and its full form */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static struct stack_spec spec_of(const struct kv_variants_params *p,
                                 const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    struct stack_spec spec = {
        .n_seq = p->batch, .length = p->length, .n_kv = s->n_kv, .repeats = 1, .share = 1};
    switch ((enum variant)p->variant) {
    case VARIANT_MHA: spec.n_kv = s->n_q; break;
    case VARIANT_GQA: break;
    case VARIANT_MQA: spec.n_kv = 1; break;
    case VARIANT_LATENT:
        spec.latent = p->latent;
        spec.rotary = p->rotary;
        spec.form = (enum latent_form)p->form;
        break;
    case VARIANT_SHARED: spec.share = p->share; break;
    case VARIANT_WINDOW:
        spec.window = p->window;
        spec.local = least(p->local_layers, s->n_layers);
        break;
    case VARIANT_SPARSE:
        spec.block = p->block;
        spec.blocks = least(p->blocks, (p->length + p->block - 1) / p->block);
    }
    return spec;
}

/* The stack that must give the same; false: there is none (mha), or it is the same (latent). */
static bool full_of(const struct kv_variants_params *p, const struct model_config *config,
                    struct stack_spec *full) {
    const struct stack_spec spec = spec_of(p, config);
    *full = spec;
    full->copied = full->masked = true;
    full->blocks = 0;
    if (p->variant == VARIANT_GQA || p->variant == VARIANT_MQA) {
        full->n_kv = config->shape.n_q;
        full->repeats = config->shape.n_q / spec.n_kv;
    }
    return p->variant != VARIANT_MHA && p->variant != VARIANT_LATENT;
}

static bool lossy(const struct kv_variants_params *p) {
    return p->variant == VARIANT_SPARSE && p->blocks < (p->length + p->block - 1) / p->block;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct kv_variants_params *p = params_;
    const bool latent = p->variant == VARIANT_LATENT;
    const struct model_shape *s = &config->shape;
    if (config->params.window || config->params.layout)
        problem(problems, config->params.window ? "model.window" : "model.layout",
                "workload.variant",
                "the variant decides how the cache lies: leave model.window at 0 and model.layout "
                "contiguous; workload.window belongs to variant 'window'");
    if (latent && p->rotary % 2)
        problem(problems, "workload.rotary", NULL,
                "a key of %" PRId64 " values cannot be rotated in pairs: an even width is needed",
                p->rotary);
    if (latent && (p->latent + p->rotary > LATENT_MOST || s->d_h + p->rotary > LATENT_MOST))
        problem(problems, "workload.latent", "workload.rotary",
                "latent + rotary, and d_h + rotary, are at most %d", LATENT_MOST);
    if ((latent || p->variant == VARIANT_SPARSE) && model_kv_type(&config->params) == DT_I8)
        problem(problems, "model.kv_type", "workload.variant",
                "%s keeps f32, f16 or bf16, not int8: a latent, and a mean of keys, has no scale",
                variant_words[p->variant]);
    if ((double)p->batch * (double)p->length > INT32_MAX)
        problem(problems, "workload.length", "workload.batch",
                "%" PRId64 " sequences of %" PRId64 " tokens are more than 2^31", p->batch,
                p->length);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct kv_variants_params *p = params_;
    const struct stack_spec spec = spec_of(p, config);
    struct stack_spec full;
    stack_work(&plan->work[0], &spec, config);
    stack_bytes(&spec, config, plan->bytes);
    plan->prepare.flops = stack_fill_flops(&spec, config);
    const bool both = full_of(p, config, &full); /* beside each other, in the witness */
    if (both) {
        stack_bytes(&full, config, plan->bytes);
        plan->prepare.flops += stack_fill_flops(&full, config);
    }
    plan->bytes[MEM_ACTIVATION] += stack_fill_bytes(both ? &full : &spec, config);
    plan->host_bytes = (int64_t)(plan->bytes[MEM_KV] / (config->shape.n_layers + 1));
    plan->binding_type = model_binding(config);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct kv_variants_self *self = s;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct kv_variants_params *)params_;
    self->config = *config;
    self->checked = (struct stack_check){.error = (double)NAN, .part_of_allowed = (double)NAN};
    slow_begin(&self->checked.slow);
    const struct stack_spec spec = spec_of(&self->params, config);
    return stack_create(&self->stack, self->device, config, &spec, run_seed(run), err);
}

static void execute(void *s) {
    struct kv_variants_self *self = s;
    const struct op_counts *counts = self->device->counts;
    const int64_t before = counts ? counts->attention : 0;
    stack_run(self->stack);
    if (counts) self->macs = counts->attention - before;
}

/* ---- witness */

static const char *note_of(const struct kv_variants_params *p) {
    switch ((enum variant)p->variant) {
    case VARIANT_MHA: return "two heads against a slow computation in double";
    case VARIANT_GQA:
    case VARIANT_MQA: return "against a KV head for each query head, with tied weights";
    case VARIANT_LATENT: return "against the other form of the latent's projections";
    case VARIANT_SHARED: return "against layers that each keep a copy of the shared K and V";
    case VARIANT_WINDOW: return "against layers that keep all tokens, masked";
    case VARIANT_SPARSE: break;
    }
    return "against full attention";
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct kv_variants_self *self = s;
    const struct kv_variants_params *p = &self->params;
    const uint64_t hash = stack_hash(self->stack);
    struct stack_spec full;
    int code = 0;
    if (self->found_of == hash) { /* what was compared before came out again */
        *w = self->found;
        return 0;
    }
    plain_begin(w, self->device, note_of(p));
    if (p->variant == VARIANT_LATENT) {
        const enum latent_form other = p->form ? LATENT_ABSORBED : LATENT_REBUILT;
        code = stack_check_form(&self->checked, self->stack, other, w, err);
    } else if (full_of(p, &self->config, &full)) {
        code = stack_check_full(&self->checked, self->stack, &full, run_seed(self->run), lossy(p),
                                w, err);
    } else {
        w->contract = CONTRACT_CLOSE;
        w->identical = false; /* nothing says so */
        w->compared = 2 * self->config.shape.d_h;
        w->hash = w->plain_hash = hash;
    }
    if (!code && slow_applies(self->device)) stack_check_heads(&self->checked, self->stack, w);
    if (code) return code;
    self->found = *w;
    self->found_of = hash;
    return 0;
}

static void report(void *s, struct values *values) {
    struct kv_variants_self *self = s;
    const struct model_shape *shape = &self->config.shape;
    const struct stack_spec spec = spec_of(&self->params, &self->config);
    const double tokens = (double)(spec.n_seq * spec.length), layers = (double)shape->n_layers;
    const double size = dtype_bits(model_kv_type(&self->config.params)) / 8;
    const double bytes = stack_kv_bytes(&spec, &self->config),
                 allocated = (double)stack_allocated(self->stack, MEM_KV);
    struct work work = {0};
    stack_work(&work, &spec, &self->config);
    values_set(values, "kv_bytes", bytes);
    values_set(values, "kv_bytes_allocated", allocated);
    values_set(values, "kv_bytes_per_token", bytes / tokens);
    values_set(values, "kv_token_allocated", allocated / tokens);
    values_set(values, "token_elements", allocated / size / tokens / layers);
    values_set(values, "smaller",
               size * tokens * layers * 2 * (double)(shape->n_q * shape->d_h) / allocated);
    values_set(values, "tokens_seen", (double)stack_tokens_seen(&spec, &self->config) / layers);
    values_set(values, "kv_read_bytes", work.bytes[MEM_KV]);
    values_set(values, "attention_macs", stack_attention_macs(&spec, &self->config));
    values_set(values, "attention_macs_counted",
               self->device->counts ? (double)self->macs : (double)NAN);
    values_set(values, "error", self->checked.error);
    values_set(values, "part_of_allowed", self->checked.part_of_allowed);
    values_set(values, "kernel_error", slow_kernel_error(&self->checked.slow));
}

static void dispose(void *s) { stack_close(&((struct kv_variants_self *)s)->stack); }

const struct workload workload_kv_variants = {
    .name = "kv_variants",
    .brief = "a decode step over caches by heads, latent, shared layers, windows and chosen blocks",
    .help =
        "Question: what does each shape of the cache keep, read and cost in a decode step, and does "
        "it change what comes out? (seeds E09-E14, E16-E18)\n\n"
        "Inside the timing: one token of each of `batch` sequences through the layers of "
        "model.shape: norm, projections, append, attention, projection back; no MLP, no head.\n\n"
        "Outside: weights (synthetic, as the model's), and the caches: seeded states of S - 1 tokens "
        "through each layer's own projections, one position after the other.\n\n"
        "Variants. mha, gqa, mqa: n_q, shape.n_kv or one KV head. latent (MLA): c = W_c h and a "
        "rotary key are kept, latent + rotary values a token for all heads; W_K and W_V are plain "
        "f32. shared (CLA): of `share` layers the first projects K and V, all look at them. window: "
        "a ring of min(S, W) tokens in each local layer. sparse: a paged cache and the mean key of "
        "each block; a step scores the means by all its queries, and looks at the k - 1 highest and "
        "at the newest block.\n\n"
        "Bytes are read from the allocator and compared with kv_methods' formulas; blocks are whole, "
        "and their means are counted (1 / (2 block) of the cache).\n\n"
        "Expect: fewer bytes save time where attention reads from memory. A latent's K and V are "
        "wider than a head's (latent + rotary and latent against d_h), so absorbed it multiplies "
        "more than mha does; rebuilt, far more. latent, and choosing blocks, are plain loops of "
        "devices ref and cpu, which no one has tuned; the rest are the model's own ops.\n\n"
        "Witness: the last layer's outputs equal those of the variant's full form: the same bits on "
        "devices whose rows do not depend on the batch, else close. latent: the two forms agree "
        "within eight deviations of the rounding errors of their f32 sums. sparse is lossy unless k "
        "covers all blocks: `error` says by how much, of synthetic states, whose attention is flatter "
        "than a trained model's. Two heads agree with a slow computation in double.\n",
    .flags = WORK_MODEL,
    .params = params,
    .only = only,
    .params_size = sizeof(struct kv_variants_params),
    .self_size = sizeof(struct kv_variants_self),
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
