/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded contents for a workload's own buffers, made in small pieces: no host copy as large as the
 * buffer. */
#ifndef WORKLOADS_COMMON_FILL_H
#define WORKLOADS_COMMON_FILL_H
#include <stdint.h>

#include "kernels/dtype.h"

struct device;
/* n values, uniform in -1 ... 1, as f32, f16, bf16, or int8 codes. Every byte is written: pages
   that never were are one shared page of zeros, which no cache would miss. */
void fill_uniform(struct device *, void *to, enum dtype, int64_t n, uint64_t key);
void fill_constant(struct device *, float *to, int64_t n, float value);

#endif
