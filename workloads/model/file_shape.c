/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of GGUF and of config.json to a shape. Sources: docs/gguf.md of the ggml project, and
 * the configuration classes LlamaConfig, MistralConfig and Qwen2Config of the transformers library,
 * whose modeling_rope_utils.py says what each kind of rope scaling means.
 */
#include "workloads/model/file_shape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "kernels/ops.h"
#include "workloads/model/rope.h"
#include "workloads/model/stored.h"

struct reading {
    const struct model_file *file;
    const char *prefix; /* of this architecture's keys: "llama." or "" */
    struct err *err;
    int code; /* of the first mistake; after it nothing is read */
};

static void fail(struct reading *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct reading *r, int code, const char *fmt, ...) {
    char sentence[600];
    va_list args;
    if (r->code) return;
    va_start(args, fmt);
    text_vformat(sentence, sizeof sentence, fmt, args);
    va_end(args);
    r->code = err_set(r->err, code, "%s: %s", model_file_path(r->file), sentence);
}

static const struct file_value *find(const struct reading *r, const char *key) {
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s", r->prefix, key);
    return model_file_value(r->file, whole);
}

/* A whole number from `least` on; absent: `otherwise`, or a mistake where that is negative. */
static int64_t integer(struct reading *r, const char *key, int64_t least, int64_t otherwise) {
    const struct file_value *v = find(r, key);
    if (!v && otherwise >= 0) return otherwise;
    if (!v)
        fail(r, ERR_INPUT, "its metadata lack %s%s", r->prefix, key);
    else if (v->kind == FILE_ARRAY)
        fail(r, ERR_UNSUPPORTED, "%s differs from layer to layer; the layers here are alike",
             v->key);
    else if (v->kind != FILE_INT || v->integer < least || v->integer > INT32_MAX)
        fail(r, ERR_INPUT, "%s must be a whole number from %lld to 2^31 - 1", v->key,
             (long long)least);
    return r->code ? 1 : v->integer;
}

static double real(struct reading *r, const char *key, double otherwise) {
    const struct file_value *v = find(r, key);
    if (!v && otherwise >= 0) return otherwise;
    if (!v)
        fail(r, ERR_INPUT, "its metadata lack %s%s", r->prefix, key);
    else if ((v->kind != FILE_REAL && v->kind != FILE_INT) || !isfinite(v->real) || v->real < 0)
        fail(r, ERR_INPUT, "%s must be a number from 0 on", v->key);
    return r->code ? 1 : v->real;
}

static const char *text(const struct reading *r, const char *key, const char *otherwise) {
    const struct file_value *v = find(r, key);
    return v && v->kind == FILE_TEXT ? v->text : otherwise;
}

static bool flag(const struct reading *r, const char *key, bool otherwise) {
    const struct file_value *v = find(r, key);
    return v && (v->kind == FILE_FLAG || v->kind == FILE_INT) ? v->integer != 0 : otherwise;
}

/* Keys that change what is computed in a way that the transformer has not; absent, zero, false and
 * "none" change nothing. */
static void refuse_set(struct reading *r, const char *key, const char *why) {
    const struct file_value *v = find(r, key);
    const bool off = !v ||
                     (v->kind == FILE_TEXT &&
                      (!*v->text || !strcmp(v->text, "none") || !strcmp(v->text, "default"))) ||
                     (v->kind == FILE_FLAG && !v->integer) ||
                     (v->kind <= FILE_REAL && v->real == 0) || (v->kind == FILE_ARRAY && !v->count);
    if (!off) fail(r, ERR_UNSUPPORTED, "%s: %s", v->key, why);
}

static const char other_scaling[] =
    "its rotary angles are stretched in another way than the transformer here knows: linear, llama3 "
    "and yarn are read";
static const char no_experts[] = "it has experts; dense models are read";

/* ---- stretched angles -------------------------------------------------------------------------
 */

/* Source: get_mscale of the YaRN authors' code. */
static double mscale(double factor, double by) {
    return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1;
}

static void scaling_bounds(struct reading *r, const struct model_shape *s) {
    if (r->code) return;
    if (!(s->rope_factor >= 1))
        fail(r, ERR_UNSUPPORTED, "its rope scaling's factor is %g: numbers from 1 on",
             s->rope_factor);
    if (!(s->rope_low < s->rope_high))
        fail(r, ERR_INPUT, "its rope scaling ends (%g turns) where it begins (%g), or before",
             s->rope_low, s->rope_high);
    if (s->rope_scaling == ROPE_YARN && !(s->rope_base > 1))
        fail(r, ERR_INPUT,
             "with a rotary base of %g all pairs turn alike, and yarn cannot tell them",
             s->rope_base);
}

static void gguf_scaling(struct reading *r, struct model_shape *s) {
    const struct file_value *kind = find(r, "rope.scaling.type");
    /* llama.cpp takes a factor without a kind for linear. */
    const char *type = text(r, "rope.scaling.type", "linear");
    const double factor = real(r, "rope.scaling.factor", real(r, "rope.scale_linear", 1));
    const int64_t trained = integer(r, "context_length", 1, 0);
    const double extrapolated = real(r, "rope.scaling.yarn_ext_factor", 1);
    const bool yarn = !strcmp(type, "yarn"), none = !strcmp(type, "none");
    if (kind && kind->kind != FILE_TEXT) fail(r, ERR_INPUT, "%s must be a word", kind->key);
    if (!none && !yarn && strcmp(type, "linear") != 0)
        fail(r, ERR_UNSUPPORTED, "rope.scaling.type is '%.40s': %s", type, other_scaling);
    if (none || r->code) return;
    s->rope_factor = factor == 0 ? 1 : factor;
    s->rope_scaling = yarn ? ROPE_YARN : s->rope_factor == 1 ? ROPE_NONE : ROPE_LINEAR;
    if (yarn) {
        s->rope_context =
            integer(r, "rope.scaling.original_context_length", 1, trained ? trained : -1);
        s->rope_high = real(r, "rope.scaling.yarn_beta_fast", 32);
        s->rope_low = real(r, "rope.scaling.yarn_beta_slow", 1);
        s->rope_magnify = real(r, "rope.scaling.attn_factor", 1) * mscale(s->rope_factor, 1);
        if (extrapolated != 1 || real(r, "rope.scaling.yarn_attn_factor", 1) != 1)
            fail(r, ERR_UNSUPPORTED,
                 "rope.scaling.yarn_ext_factor and yarn_attn_factor other than 1 are not read");
        refuse_set(r, "rope.scaling.yarn_log_multiplier", other_scaling);
    }
    scaling_bounds(r, s);
}

/* Writers of GGUF turn llama3's rule into a factor for each pair. */
static void gguf_factors(struct reading *r, struct model_shape *s) {
    const struct file_tensor *table = model_file_tensor(r->file, ROPE_TENSOR);
    if (!table) return;
    if (s->rope_scaling != ROPE_NONE)
        fail(r, ERR_UNSUPPORTED, "both %s and rope.scaling stretch its rotary angles; one is read",
             ROPE_TENSOR);
    if (table->rows != 1 || table->cols != s->d_h / 2)
        fail(r, ERR_INPUT, "tensor '%s' has %lld x %lld elements; heads of %lld have %lld pairs",
             ROPE_TENSOR, (long long)table->rows, (long long)table->cols, (long long)s->d_h,
             (long long)s->d_h / 2);
    s->rope_scaling = ROPE_FILE;
}

static void config_scaling(struct reading *r, struct model_shape *s) {
    const char *prefix = r->prefix;
    /* rope_scaling before 5.0 of the library, rope_parameters from then on. */
    const bool older = find(r, "rope_scaling.rope_type") || find(r, "rope_scaling.type") ||
                       !find(r, "rope_parameters.rope_type");
    const int64_t context = integer(r, "original_max_position_embeddings", 1, 0);
    const int64_t longest = integer(r, "max_position_embeddings", 1, 0);
    r->prefix = older ? "rope_scaling." : "rope_parameters.";
    const char *type = text(r, "rope_type", text(r, "type", "default"));
    const bool linear = !strcmp(type, "linear"), llama3 = !strcmp(type, "llama3"),
               yarn = !strcmp(type, "yarn");
    if (real(r, "partial_rotary_factor", 1) != 1)
        fail(r, ERR_UNSUPPORTED, "it rotates a part of each head only; here the whole head turns");
    if (!linear && !llama3 && !yarn && strcmp(type, "default") != 0)
        fail(r, ERR_UNSUPPORTED, "its rope_type is '%.40s': %s", type, other_scaling);
    if (!strcmp(type, "default") && find(r, "factor"))
        fail(r, ERR_UNSUPPORTED, "%sfactor without a rope_type: %s", r->prefix, other_scaling);
    if (linear || llama3 || yarn) {
        s->rope_scaling = linear ? ROPE_LINEAR : llama3 ? ROPE_LLAMA3 : ROPE_YARN;
        s->rope_factor = real(r, "factor", -1);
    }
    if (llama3 || yarn) {
        s->rope_context =
            context ? context
                    : integer(r, "original_max_position_embeddings", 1, longest ? longest : -1);
        s->rope_low = real(r, llama3 ? "low_freq_factor" : "beta_slow", llama3 ? -1 : 1);
        s->rope_high = real(r, llama3 ? "high_freq_factor" : "beta_fast", llama3 ? -1 : 32);
    }
    if (yarn) {
        const double one = real(r, "mscale", 0), all = real(r, "mscale_all_dim", 0);
        const double inferred = one != 0 && all != 0
                                    ? mscale(s->rope_factor, one) / mscale(s->rope_factor, all)
                                    : mscale(s->rope_factor, 1);
        s->rope_magnify = real(r, "attention_factor", inferred);
        if (!flag(r, "truncate", true))
            fail(r, ERR_UNSUPPORTED, "truncate: yarn's ramp begins and ends at whole pairs here");
    }
    r->prefix = prefix;
    scaling_bounds(r, s);
}

/* ---- GGUF -------------------------------------------------------------------------------------
 */

static void refuse_gguf(struct reading *r, int64_t d_h) {
    static const char *const others[] = {"attention.clamp_kqv",
                                         "attention.max_alibi_bias",
                                         "attention.key_length_mla",
                                         "attention.scale",
                                         "logit_scale",
                                         "residual_scale",
                                         "embedding_scale",
                                         "attn_logit_softcapping",
                                         "final_logit_softcapping"};
    refuse_set(r, "expert_count", no_experts);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        refuse_set(r, others[i], "the transformer here has no such factor");
    if (!flag(r, "attention.causal", true))
        fail(r, ERR_UNSUPPORTED, "its attention looks ahead; decoders are read");
    if (integer(r, "rope.dimension_count", 1, d_h) != d_h)
        fail(r, ERR_UNSUPPORTED, "it rotates a part of each head only; here the whole head turns");
    if (integer(r, "attention.value_length", 1, d_h) != d_h)
        fail(r, ERR_UNSUPPORTED, "its keys and values differ in width; here they are alike");
}

static void read_gguf(struct reading *r, struct file_shape *out) {
    struct model_shape *s = &out->shape;
    const struct file_value *name = model_file_value(r->file, "general.architecture");
    const char *architecture = name && name->kind == FILE_TEXT ? name->text : "";
    const bool llama = !strcmp(architecture, "llama"), qwen2 = !strcmp(architecture, "qwen2");
    if (!*architecture) fail(r, ERR_INPUT, "its metadata lack general.architecture");
    if (!llama && !qwen2)
        fail(r, ERR_UNSUPPORTED,
             "its architecture is '%.40s'; the transformer here runs llama (mistral and smollm are "
             "called so too) and qwen2",
             architecture);
    if (r->code) return;
    r->prefix = llama ? "llama." : "qwen2.";
    s->n_layers = integer(r, "block_count", 1, -1);
    s->d_model = integer(r, "embedding_length", 1, -1);
    s->d_ff = integer(r, "feed_forward_length", 1, -1);
    s->n_q = integer(r, "attention.head_count", 1, -1);
    s->n_kv = integer(r, "attention.head_count_kv", 1, s->n_q);
    s->d_h = integer(r, "attention.key_length", 1, s->n_q > 0 ? s->d_model / s->n_q : 0);
    s->eps = real(r, "attention.layer_norm_rms_epsilon", -1);
    s->rope_base = real(r, "rope.freq_base", 10000);
    /* Writers of GGUF files reorder the rows of a llama's q and k so that neighbours turn together;
       those of qwen2 stay as they are. */
    s->rope_style = llama ? ROPE_PAIRS : ROPE_HALVES;
    refuse_gguf(r, s->d_h);
    gguf_scaling(r, s);
    gguf_factors(r, s);
    s->source = architecture;
}

/* ---- config.json ------------------------------------------------------------------------------
 */

static void refuse_config(struct reading *r) {
    const char *act = text(r, "hidden_act", "silu");
    if (strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
        fail(r, ERR_UNSUPPORTED, "hidden_act is '%.40s'; the gate here is silu", act);
    refuse_set(r, "num_local_experts", no_experts);
    refuse_set(r, "quantization_config", "its weights are quantized; F32, F16 and BF16 are read");
    refuse_set(r, "mlp_bias", "the products of the MLP have no biases here");
    refuse_set(r, "no_rope_layers", "in some of its layers nothing is rotated; here it is in all");
    if (real(r, "partial_rotary_factor", 1) != 1)
        fail(r, ERR_UNSUPPORTED, "it rotates a part of each head only; here the whole head turns");
}

static void read_config(struct reading *r, struct file_shape *out) {
    struct model_shape *s = &out->shape;
    const char *type = text(r, "model_type", "");
    const bool qwen2 = !strcmp(type, "qwen2"), mistral = !strcmp(type, "mistral");
    if (!*type) fail(r, ERR_INPUT, "its config.json lacks model_type");
    if (!qwen2 && !mistral && strcmp(type, "llama") != 0)
        fail(r, ERR_UNSUPPORTED,
             "its model_type is '%.40s'; the transformer here runs llama, mistral and qwen2", type);
    if (r->code) return;
    s->n_layers = integer(r, "num_hidden_layers", 1, -1);
    s->d_model = integer(r, "hidden_size", 1, -1);
    s->d_ff = integer(r, "intermediate_size", 1, -1);
    s->n_q = integer(r, "num_attention_heads", 1, -1);
    s->n_kv = integer(r, "num_key_value_heads", 1, s->n_q);
    s->d_h = integer(r, "head_dim", 1, s->n_q > 0 ? s->d_model / s->n_q : 0);
    s->eps = real(r, "rms_norm_eps", -1);
    s->rope_base = real(r, "rope_theta", real(r, "rope_parameters.rope_theta", 10000));
    config_scaling(r, s);
    s->rope_style = ROPE_HALVES;
    s->tied = flag(r, "tie_word_embeddings", false);
    refuse_config(r);
    /* Qwen2 names a window that is used only where use_sliding_window says so. */
    const struct file_value *window = find(r, "sliding_window");
    if (window && (!qwen2 || flag(r, "use_sliding_window", false)))
        out->window = integer(r, "sliding_window", 1, 0);
    if (qwen2 && out->window)
        fail(r, ERR_UNSUPPORTED,
             "use_sliding_window: some of its layers have a window; here all or none");
    s->source = type;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

enum { N_KINDS = SYNTH_BIAS_V + 1 };
static const char *const gguf_names[N_KINDS] = {
    "attn_q.weight",   "attn_k.weight", "attn_v.weight",   "attn_output.weight",
    "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight", "attn_norm.weight",
    "ffn_norm.weight", "attn_q.bias",   "attn_k.bias",     "attn_v.bias"};
static const char *const config_names[N_KINDS] = {
    "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "mlp.gate_proj.weight",    "mlp.up_proj.weight",
    "mlp.down_proj.weight",    "input_layernorm.weight",  "post_attention_layernorm.weight",
    "self_attn.q_proj.bias",   "self_attn.k_proj.bias",   "self_attn.v_proj.bias"};
static const char *const gguf_outside[] = {"token_embd.weight", "output.weight",
                                           "output_norm.weight"};
static const char *const config_outside[] = {"model.embed_tokens.weight", "lm_head.weight",
                                             "model.norm.weight"};

static void array_name(const struct model_file *file, int64_t layer, int kind, char *out,
                       size_t size) {
    const bool gguf = model_file_is_gguf(file);
    if (layer < 0)
        snprintf(out, size, "%s", (gguf ? gguf_outside : config_outside)[kind]);
    else
        snprintf(out, size, "%s.%lld.%s", gguf ? "blk" : "model.layers", (long long)layer,
                 (gguf ? gguf_names : config_names)[kind]);
}

const struct file_tensor *model_file_array(const struct model_file *file, int64_t layer, int kind) {
    char name[120];
    array_name(file, layer, kind, name, sizeof name);
    return model_file_tensor(file, name);
}

static int fits(const struct model_file *file, int64_t layer, int kind, int64_t rows, int64_t cols,
                struct err *err) {
    char name[120];
    array_name(file, layer, kind, name, sizeof name);
    const struct file_tensor *t = model_file_tensor(file, name);
    if (!t) return err_set(err, ERR_INPUT, "%s has no tensor '%s'", model_file_path(file), name);
    if (t->rows == rows && t->cols == cols) return 0;
    return err_set(err, ERR_INPUT,
                   "%s: tensor '%s' has %lld x %lld elements; its metadata say %lld x %lld",
                   model_file_path(file), name, (long long)t->rows, (long long)t->cols,
                   (long long)rows, (long long)cols);
}

static int layer_fits(const struct model_file *file, const struct model_shape *s, int64_t l,
                      struct err *err) {
    const int64_t d = s->d_model, q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    const struct {
        int kind;
        int64_t rows, cols;
    } arrays[] = {{SYNTH_Q, q, d},          {SYNTH_K, kv, d},         {SYNTH_V, kv, d},
                  {SYNTH_O, d, q},          {SYNTH_GATE, s->d_ff, d}, {SYNTH_UP, s->d_ff, d},
                  {SYNTH_DOWN, d, s->d_ff}, {SYNTH_NORM_1, 1, d},     {SYNTH_NORM_2, 1, d},
                  {SYNTH_BIAS_Q, 1, q},     {SYNTH_BIAS_K, 1, kv},    {SYNTH_BIAS_V, 1, kv}};
    int code = 0;
    for (int i = 0; i < (s->qkv_bias ? N_KINDS : SYNTH_BIAS_Q) && !code; i++)
        code = fits(file, l, arrays[i].kind, arrays[i].rows, arrays[i].cols, err);
    return code;
}

/* Whether a tensor belongs to the shape; those of rotary tables say nothing new. */
static bool belongs(const struct model_file *file, const struct model_shape *s, const char *name) {
    const bool gguf = model_file_is_gguf(file);
    const char *const *names = gguf ? gguf_names : config_names;
    char head[24];
    long long layer;
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, (gguf ? gguf_outside : config_outside)[i])) return true;
    if (gguf && s->rope_scaling == ROPE_FILE && !strcmp(name, ROPE_TENSOR)) return true;
    if (sscanf(name, gguf ? "blk.%lld.%n" : "model.layers.%lld.%n", &layer, &n) < 1 || !n)
        return false;
    /* Written as we would write it: no sign, no leading zeros. */
    const int length =
        snprintf(head, sizeof head, gguf ? "blk.%lld." : "model.layers.%lld.", layer);
    if (layer < 0 || layer >= s->n_layers || length != n || strncmp(head, name, (size_t)n) != 0)
        return false;
    if (!strcmp(name + n, "self_attn.rotary_emb.inv_freq")) return true;
    for (int i = 0; i < (s->qkv_bias ? N_KINDS : SYNTH_BIAS_Q); i++)
        if (!strcmp(name + n, names[i])) return true;
    return false;
}

int model_file_fits(const struct model_file *file, const struct model_shape *s, struct err *err) {
    const struct file_tensor *tensors;
    const size_t n = model_file_tensors(file, &tensors);
    int code = fits(file, -1, SYNTH_EMBEDDING, s->vocab, s->d_model, err);
    if (!code && !s->tied) code = fits(file, -1, SYNTH_HEAD, s->vocab, s->d_model, err);
    if (!code) code = fits(file, -1, SYNTH_NORM_LAST, 1, s->d_model, err);
    for (int64_t l = 0; l < s->n_layers && !code; l++) code = layer_fits(file, s, l, err);
    for (size_t i = 0; i < n && !code; i++)
        if (!belongs(file, s, tensors[i].name))
            code = err_set(err, ERR_UNSUPPORTED,
                           "%s: the transformer here has no use for tensor '%.120s'",
                           model_file_path(file), tensors[i].name);
    return code;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

/* How the weights are stored: "llama, 134,515,008 weights: Q4_K 81 %, Q6_K 19 %". */
static void describe(const struct model_file *file, struct arena *arena, struct file_shape *out) {
    const struct file_tensor *tensors;
    const size_t n = model_file_tensors(file, &tensors);
    double counts[N_STORED] = {0}, all = 0;
    int most = 0;
    struct text words = {0};
    char number[40], scaling[80];
    for (size_t i = 0; i < n; i++) {
        const double elements = (double)tensors[i].rows * (double)tensors[i].cols;
        counts[tensors[i].stored] += elements;
        all += elements;
    }
    text_printf(&words, "%s, %s weights stored as", out->shape.source,
                format_thousands(number, sizeof number, (int64_t)all));
    for (int i = 0; i < N_STORED; i++) {
        if (counts[i] > counts[most]) most = i;
        if (counts[i] > 0)
            text_printf(&words, " %s %.3g %%", stored_types[i].name, 100 * counts[i] / all);
    }
    if (*rope_words_of(&out->shape, scaling, sizeof scaling))
        text_printf(&words, "; rotary angles stretched: %s", scaling);
    out->shape.source = arena_text(arena, words.data);
    out->mostly = stored_types[most].name;
    out->nearest = stored_types[most].nearest;
    out->group = stored_types[most].group;
    text_free(&words);
}

int model_file_shape(const struct model_file *file, struct arena *arena, struct file_shape *out,
                     struct err *err) {
    struct reading r = {.file = file, .prefix = "", .err = err};
    struct model_shape *s = &out->shape;
    *out = (struct file_shape){0};
    option_defaults(shape_options, s, arena);
    s->name = arena_text(arena, model_file_name(file));
    if (model_file_is_gguf(file))
        read_gguf(&r, out);
    else
        read_config(&r, out);
    const struct file_tensor *embedding = model_file_array(file, -1, SYNTH_EMBEDDING);
    if (!r.code && !embedding) return fits(file, -1, SYNTH_EMBEDDING, 1, 1, err);
    s->vocab = integer(&r, "vocab_size", 1, embedding ? embedding->rows : 0);
    if (model_file_is_gguf(file)) s->tied = !model_file_array(file, -1, SYNTH_HEAD);
    for (int kind = SYNTH_BIAS_Q; kind <= SYNTH_BIAS_V; kind++)
        s->qkv_bias |= model_file_array(file, 0, kind) != NULL;
    /* The same bounds as for shapes that are written by hand. */
    for (const struct option *o = shape_options; o->key && !r.code; o++) {
        if (o->type != OPT_INT && o->type != OPT_REAL) continue;
        const char *field = (const char *)s + o->offset;
        const double v = o->type == OPT_INT ? (double)*(const int64_t *)(const void *)field
                                            : *(const double *)(const void *)field;
        if (!(v >= o->min && v <= o->max))
            fail(&r, ERR_INPUT, "%s would be %g: %g ... %g is understood", o->key, v, o->min,
                 o->max);
    }
    if (r.code) return r.code;
    const int code = model_file_fits(file, s, err);
    if (!code) describe(file, arena, out);
    return code;
}
