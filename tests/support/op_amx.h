/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX level with its tile registers in memory, for machines that have none. */
#ifndef TESTS_SUPPORT_OP_AMX_H
#define TESTS_SUPPORT_OP_AMX_H
#include "kernels/cpu/code_kernels.h"
#include "kernels/cpu/kernels.h"
#include "kernels/device.h"

void memory_amx_product(const struct pairs *);
float memory_amx_peak(int64_t flops);
extern const struct cpu_code_kernels memory_codes_amx;
/* c (f32) as TDPBF16PS leaves it for a row of 32 columns. */
float memory_amx_one(float c, const uint16_t *x, const uint16_t *w);

/* Device cpu with these products, called cpu-amx-in-memory; refuses what it does like device cpu. */
const struct device_kind *op_amx_in_memory(void);

#endif
