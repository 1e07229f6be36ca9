/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary angles as every device computes them. */
#ifndef KERNELS_ROPE_H
#define KERNELS_ROPE_H
#include <stdint.h>

#include "kernels/ops.h"

/* Radians that pair i of a head of d values turns by from one position to the next. */
double rope_turn(const struct rope *, int32_t i, int32_t d);
/* Cosine and sine of an angle as they are multiplied with. */
void rope_cos_sin(const struct rope *, double angle, float *cosine, float *sine);
/* Never 0; ropes with the same key turn all pairs of such heads alike (the style is not in it). */
uint64_t rope_key(const struct rope *, int32_t d);

#endif
