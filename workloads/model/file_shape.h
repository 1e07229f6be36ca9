/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's file means to the transformer: its shape, which tensor is which matrix, and a
   refusal of all that the transformer does not do. */
#ifndef WORKLOADS_MODEL_FILE_SHAPE_H
#define WORKLOADS_MODEL_FILE_SHAPE_H
#include "workloads/model/file.h"
#include "workloads/model/model.h"
#include "workloads/model/synth.h"

struct arena;

#define ROPE_TENSOR "rope_freqs.weight" /* GGUF: how many times slower each pair turns */

struct file_shape {
    struct model_shape shape; /* texts in the arena */
    int64_t window;           /* of its attention; 0: none */
    const char *nearest;      /* the weight format nearest to what most weights are stored as */
    int group;                /* of that format; 0: it has none */
    const char *mostly;       /* the name of what most weights are stored as: "Q4_K" */
};
/* Architectures: llama (mistral and smollm are llamas too) and qwen2, in GGUF's or the transformers
   library's words. Refused, with what is allowed: other architectures, experts, rotary angles
   stretched otherwise than rope.h has it, partial rotation, other activations, biases elsewhere
   than at q, k and v, other counts per layer. ERR_INPUT: the file is wrong; ERR_UNSUPPORTED: it is
   right, but not for us. */
int model_file_shape(const struct model_file *, struct arena *, struct file_shape *, struct err *);
/* Every tensor that the shape needs is there, with its rows and columns, and no other one. */
int model_file_fits(const struct model_file *, const struct model_shape *, struct err *);
/* The tensor of one array of a layer, or with layer -1 of SYNTH_EMBEDDING, SYNTH_HEAD and
   SYNTH_NORM_LAST; NULL: the file has none. */
const struct file_tensor *model_file_array(const struct model_file *, int64_t layer, int kind);

#endif
