/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of known GPUs, from their data sheets and the programming guide's table of compute
   capabilities. */
#include "kernels/cuda/kernel.h"

const struct gpu gpu_h200 = {.sm_count = 132, .cc = 90, .smem_block = 232448, .l2_bytes = 50 << 20};
const struct gpu gpu_a100 = {.sm_count = 108, .cc = 80, .smem_block = 166912, .l2_bytes = 40 << 20};
