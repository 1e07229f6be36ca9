/* SPDX-License-Identifier: Apache-2.0 */
/* The op tests' device whose level amx has its tile registers in memory. */
#include "kernels/cpu/cpu.h"
#include "tests/support/op_amx.h"

static struct cpu_kernels kernels; /* those of the best level, and the products */

static int open_device(struct device **device, const void *params, struct err *err) {
    const int code = device_cpu.open(device, params, err);
    if (code != 0) return code;
    kernels = *cpu_of(*device)->kernels;
    kernels.pairs = memory_amx_product;
    kernels.pairs_peak = memory_amx_peak;
    cpu_of(*device)->kernels = &kernels;
    cpu_of(*device)->codes = &memory_codes_amx;
    return 0;
}

static bool supports(struct device *device, enum op op, const struct op_case *c,
                     const char **kernel_or_reason) {
    const bool codes =
        (op == OP_LINEAR && c->input == DT_I8) || (op == OP_FMA_PEAK && c->activation == DT_I8);
    const bool pairs = c->activation == DT_BF16 &&
                       (op == OP_FMA_PEAK || (op == OP_LINEAR && c->weight == DT_BF16));
    *kernel_or_reason = "the same as the other levels";
    return (pairs || codes) && device_cpu.supports(device, op, c, kernel_or_reason);
}

const struct device_kind *op_amx_in_memory(void) {
    static struct device_kind kind;
    kind = device_cpu;
    kind.name = "cpu-amx-in-memory";
    kind.open = open_device;
    kind.supports = supports;
    return &kind;
}
