/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rope.h"

#include <math.h>

#include "base/text.h"

double rope_turn(const struct rope *rope, int32_t i, int32_t d) {
    const double turn = pow((double)rope->base, -2.0 * i / d);
    return rope->factor ? turn / (double)rope->factor[i] : turn;
}

void rope_cos_sin(const struct rope *rope, double angle, float *cosine, float *sine) {
    const double by = rope->magnify != 0 ? (double)rope->magnify : 1;
    *cosine = (float)(cos(angle) * by);
    *sine = (float)(sin(angle) * by);
}

uint64_t rope_key(const struct rope *rope, int32_t d) {
    const float numbers[] = {rope->base, rope->magnify, (float)d, rope->factor != NULL};
    uint64_t key = hash_bytes(numbers, sizeof numbers, 0);
    if (rope->factor) key = hash_bytes(rope->factor, (size_t)(d / 2) * sizeof *rope->factor, key);
    return key ? key : 1;
}
