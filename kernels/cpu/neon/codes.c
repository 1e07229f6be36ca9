/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes on any 64-bit Arm processor. */
#include "kernels/cpu/code_kernels.h"

#include <arm_neon.h>

#define ONE static inline __attribute__((always_inline))

/* Codes of x are at least -127, so two products fit 16 bits. */
ONE int32x4_t dot4(int32x4_t sum, int8x16_t w, int8x16_t x) {
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
}

#include "kernels/cpu/neon/codes.inc"

CODE_KERNELS(neon);
