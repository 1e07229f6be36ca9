/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/activation.h"

#include "kernels/device.h"

enum { AUTO = 3, INT8 };
const char *const activation_words[] = {
    "f32", "f16", "bf16", [AUTO] = "auto", [INT8] = "int8", NULL};

int activation_word(int word, enum dtype weight, const struct device_kind *kind) {
    return word == AUTO ? (int)device_activation(kind, weight) : word;
}

enum dtype activation_type(int word) { return word == INT8 ? DT_F32 : (enum dtype)word; }

enum dtype activation_input(int word) { return word == INT8 ? DT_I8 : DT_F32; }
