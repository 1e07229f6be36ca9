/* SPDX-License-Identifier: Apache-2.0 */
/* The key `activation` of workloads without a model. */
#ifndef WORKLOADS_COMMON_ACTIVATION_H
#define WORKLOADS_COMMON_ACTIVATION_H
#include "kernels/dtype.h"

struct device_kind;

extern const char *const activation_words[]; /* the types by their number in float_names, "auto" */
/* The type of a word: itself, or for `auto` what the kind keeps beside such weights. */
enum dtype activation_type(int word, enum dtype weight, const struct device_kind *);

#endif
