/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that only move bytes or only multiply and add. */
#include <string.h>

#include "kernels/ref/ref.h"

void ref_copy(struct device *device, void *to, const void *from, int64_t bytes) {
    (void)device;
    memcpy(to, from, (size_t)bytes);
}

void ref_read(struct device *device, const void *from, int64_t bytes, float *sink) {
    (void)device;
    const uint64_t *word = from;
    uint64_t all = 0;
    for (int64_t i = 0; i < bytes / 8; i++) all = (all ^ word[i]) * 0x9e3779b97f4a7c15u;
    *sink = (float)(all >> 40);
}

void ref_triad(struct device *device, float *a, const float *b, const float *c, float s,
               int64_t n) {
    (void)device;
    for (int64_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

/* Eight chains that converge, so that neither the compiler nor overflow ends them early. */
void ref_fma_peak(struct device *device, enum dtype type, int64_t flops) {
    (void)device;
    if (type == DT_I8) { /* sums that wrap around as they like */
        uint32_t sums[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        for (int64_t i = 0; i < flops / 16; i++)
            for (uint32_t j = 0; j < 8; j++) sums[j] += sums[j] * (j + 3);
        volatile uint32_t sink = 0;
        for (int j = 0; j < 8; j++) sink = sink + sums[j];
        return;
    }
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t i = 0; i < flops / 16; i++)
        for (int j = 0; j < 8; j++) a[j] = a[j] * 0.5f + 1.0f;
    volatile float sink = 0;
    for (int j = 0; j < 8; j++) sink = sink + a[j];
}
