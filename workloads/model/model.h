/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in decoder-only transformer as the harness sees it: shape, parameters, weights packed
 * once on a device. */
#ifndef WORKLOADS_MODEL_MODEL_H
#define WORKLOADS_MODEL_MODEL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "kernels/device.h"

struct problems;

struct model_shape {    /* protocols/models/NAME.toml; keys "shape.*" */
    const char *name;   /* file name without .toml */
    const char *source; /* where the shape comes from, one sentence */
    int64_t n_layers, d_model, n_q, n_kv, d_h, d_ff, vocab;
    bool qkv_bias, tied;
    double rope_base, eps;
    int rope_style;   /* enum rope_style: words halves, pairs */
    int rope_scaling; /* enum rope_scaling; the rest is what its formula needs (rope.h) */
    double rope_factor, rope_low, rope_high, rope_magnify;
    int64_t rope_context;
};
extern const struct option shape_options[];

struct model_params {  /* section [model] */
    const char *shape; /* name of the shape; the harness loads it and adds "shape.*" facts */
    int type;          /* index in weight_format_names; default bf16 */
    int kv_type;       /* index in kv_type_names: f32, f16, bf16, int8 */
    int layout;        /* index in kv_layout_names: contiguous, paged */
    int64_t block;     /* paged: slots per block, default 16 */
    int64_t window;    /* 0: none; else sliding window of that many tokens (contiguous: a ring) */
    int activation;    /* index in activation_names: auto, f32, f16, bf16, int8 */
    int64_t group;     /* of int8-group, int4, nf4; 0: 128, or 64 for nf4 (model_group) */
    int64_t seed;      /* of the synthetic weights */
    const char *file; /* the model's file; "": synthetic weights. Its shape is in "shape.*" facts */
    const char *digest; /* of the file (model_file_digest); "": none */
};
extern const struct option model_options[];
extern const char *const kv_type_names[], *const kv_layout_names[], *const activation_names[];
extern const char *const rope_scaling_names[];
extern const char *const float_names[]; /* f32, f16, bf16: the first of enum dtype */
enum dtype model_kv_type(const struct model_params *);
const struct weight_format *model_weight_format(const struct model_params *);
/* The word "as_stored" of model.type, which whoever reads the file replaces by a format. */
#define MODEL_AS_STORED "as_stored"
bool model_from_file(const struct model_params *);
int model_group(const struct model_params
                    *); /* weights per scale in effect; 0 where the format has no groups */

struct model_config {
    struct model_shape shape;
    struct model_params params;
    enum dtype activation; /* what params.activation means on the point's device */
};
/* The type of what ops hand to each other; residual stream and logits are f32 in any case. f32 also
   where inner products take int8. */
enum dtype model_activation(const struct model_params *, const struct device_kind *);
enum dtype model_input(const struct model_params *);   /* weight_spec.input of all matrices */
enum dtype model_binding(const struct model_config *); /* whose peak bounds the products */

/* Contradictions and impossible values of shape and parameters (head counts that do not divide, odd
 * d_h, ...). Pure. */
void model_check(const struct model_config *, struct problems *);

/* Exact counts from the shape alone. */
int64_t model_parameters(const struct model_shape *); /* norms, biases included; tied head once */
int64_t model_weight_bytes(const struct model_config *,
                           int64_t *scale_bytes); /* packed matrices, norms, biases (f32) */
/* Bytes of K and V (scales apart) per resident token: 2 n_layers n_kv d_h bytes(element) (seeds
 * E09). */
int64_t model_kv_bytes_per_token(const struct model_config *, int64_t *scale_bytes);

/* What a step is made of, in the order of the forward pass; those between embed and head occur once
 * a layer or twice. */
enum step_part {
    PART_EMBED,
    PART_NORM,      /* both RMSNorms of a layer, with the additions to the residual stream */
    PART_QKV,       /* one product for queries, keys and values */
    PART_ROPE,      /* rotation; keys and values go into the cache */
    PART_ATTENTION, /* softmax over the cache */
    PART_OUT,       /* the product behind attention */
    PART_MLP,       /* gate and up, SwiGLU, down */
    PART_HEAD,      /* last norm, gathering the rows that are asked for, logits */
    PART_SELECT,    /* sampling, the next step's inputs, ids to the host */
    N_PARTS
};
extern const char *const part_names[N_PARTS + 1]; /* "embed", "norm", ..., NULL */

struct model; /* weights on one device; immutable; opaque here (workloads/model/transformer.h) */
/* Two points share a weight set exactly if this hash and the device's facts agree. */
uint64_t model_key(const struct model_config *);
/* Two points compute the same K, V and logits on one device if these agree (model_key, rotation,
 * norm, cache type, window). */
uint64_t model_hash(const struct model_config *);
/* ERR_MEMORY, ERR_UNSUPPORTED; of a file: ERR_INPUT too, with what is wrong with it. */
int model_create(struct model **, struct device *, const struct model_config *, struct err *);
void model_close(struct model **);

#endif
