/* SPDX-License-Identifier: Apache-2.0 */
/* One scale and one code of quantized values: what quant_row does, also for a GPU's code. Plain
   division and sums of floats, rounded to nearest: the same bits everywhere. */
#ifndef KERNELS_QUANT_CODE_H
#define KERNELS_QUANT_CODE_H
#include <stdbool.h>

#include "kernels/dtype.h"

/* The code of the largest magnitude; NF4's outermost level is 1. */
EVERYWHERE float quant_top(enum dtype type) {
    return type == DT_I8 ? 127.0f : type == DT_I4 ? 7.0f : 1.0f;
}

/* absmax/top as stored. Among f16's subnormals the nearest may fall so far below that the largest
   weight would clip by more than half a step (or to 0); then the next one up is taken. */
EVERYWHERE float quant_scale(float most, float top, bool half) {
    if (!(most > 0)) return 1;
    float scale = most / top;
    if (!half) return scale > 0 ? scale : 1;
    uint16_t h = f16_from_f32(scale);
    if (h >= 0x7c00u) h = 0x7bffu; /* 65504: a finite scale for absurd weights */
    if (h < 0x400u && f16_to_f32(h) * (top + 0.5f) < most) h++;
    return f16_to_f32(h);
}

/* Of w/scale: the midpoints that it exceeds, exact in double, so a tie keeps the lower code. NaN is
   the level 0. */
EVERYWHERE int8_t quant_nf4(float x) {
    const float levels[16] = {NF4_LEVELS};
    if (!(x == x)) return 7;
    int code = 0;
    for (int i = 0; i < 15; i++)
        code += (double)x > 0.5 * ((double)levels[i] + (double)levels[i + 1]);
    return (int8_t)code;
}

/* Of w/scale: rint and clamp, without a call per weight: 1.5 * 2^23 leaves no bits behind the
   point. NaN is 0. */
EVERYWHERE int8_t quant_int(float x, float top) {
    float c = x > top ? top : x < -top - 1 ? -top - 1 : x == x ? x : 0;
    return (int8_t)(int)((c + 0x1.8p23f) - 0x1.8p23f);
}

#endif
