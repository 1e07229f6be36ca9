/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's lab ops. */
#include "kernels/lab.h"

#include "kernels/cpu/cpu.h"

float cpu_dot(const float *a, const float *b, int32_t n) {
    float lanes[PANEL] = {0}, sum = 0;
    int32_t i = 0;
    for (; i + PANEL <= n; i += PANEL)
        for (int32_t j = 0; j < PANEL; j++) lanes[j] += a[i + j] * b[i + j];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int32_t j = 0; j < PANEL; j++) sum += lanes[j];
    return sum;
}

const struct lab_ops cpu_lab = {
    .flash = &cpu_lab_flash,
    .latent = &cpu_lab_latent,
    .train = &cpu_lab_train,
};
