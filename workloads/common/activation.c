/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/activation.h"

#include "kernels/device.h"

enum { AUTO = 3 };
const char *const activation_words[] = {"f32", "f16", "bf16", [AUTO] = "auto", NULL};

enum dtype activation_type(int word, enum dtype weight, const struct device_kind *kind) {
    return word == AUTO ? device_activation(kind, weight) : (enum dtype)word;
}
