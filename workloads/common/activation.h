/* SPDX-License-Identifier: Apache-2.0 */
/* The key `activation` of workloads without a model. */
#ifndef WORKLOADS_COMMON_ACTIVATION_H
#define WORKLOADS_COMMON_ACTIVATION_H
#include "kernels/dtype.h"

struct device_kind;

extern const char
    *const activation_words[]; /* the types by their number in float_names, "auto", "int8" */
/* The word that `auto` means: the type that the kind keeps beside such weights. */
int activation_word(int word, enum dtype weight, const struct device_kind *);
/* Of any other: the type of tensors, and what products take of x (weight_spec.input). */
enum dtype activation_type(int word);
enum dtype activation_input(int word);

#endif
