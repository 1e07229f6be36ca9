/* SPDX-License-Identifier: Apache-2.0 */
/* A shape's rotary angles: base, and how they are stretched for contexts longer than those the
   model was first trained on. */
#ifndef WORKLOADS_MODEL_ROPE_H
#define WORKLOADS_MODEL_ROPE_H
#include "kernels/ops.h"
#include "workloads/model/model.h"

enum rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_FILE };

/* Contradictions among the shape's rope_ keys. */
void rope_check(const struct model_config *, struct problems *);
/* Of all that decides angles, but the style. */
uint64_t rope_hash(const struct model_shape *);
/* "", or how the angles are stretched, in words: "llama3, 32 times beyond 8192". */
const char *rope_words_of(const struct model_shape *, char *buf, size_t size);
/* The shape's rope; factors (d_h / 2) are written where angles are stretched, and must live as
   long. ROPE_FILE: given (d_h / 2), of the file; where that is NULL, none. */
struct rope rope_of(const struct model_shape *, const float *given, float *factors);

#endif
