/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes on Arm processors with the dot product instruction. */
#include "kernels/cpu/code_kernels.h"

#include <arm_neon.h>

#define ONE static inline __attribute__((always_inline))

ONE int32x4_t dot4(int32x4_t sum, int8x16_t w, int8x16_t x) { return vdotq_s32(sum, w, x); }

#include "kernels/cpu/neon/codes.inc"

CODE_KERNELS(dotprod);
