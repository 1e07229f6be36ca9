/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based, integer-only random numbers: value i of stream s of seed k is a pure function, the
 * same on every device. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H
#include <stdint.h>

#include "base/everywhere.h"

/* SplitMix64's finaliser (Steele, Lea, Flood 2014) over a mixed counter. */
EVERYWHERE uint64_t random_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
EVERYWHERE uint64_t random_key(uint64_t seed, uint64_t stream) {
    return random_mix(seed + 0x9e3779b97f4a7c15u * (stream + 1));
}
EVERYWHERE uint64_t random_at(uint64_t key, uint64_t i) {
    return random_mix(key + 0x9e3779b97f4a7c15u * (i + 1));
}
EVERYWHERE uint32_t random_below(uint64_t key, uint64_t i, uint32_t n) /* uniform in 0 ... n-1 */
{
    return (uint32_t)(((random_at(key, i) >> 32) * (uint64_t)n) >> 32);
}
EVERYWHERE double random_unit(uint64_t key, uint64_t i) /* [0, 1) */
{
    return (double)(random_at(key, i) >> 11) * 0x1p-53;
}
double random_normal(
    uint64_t key,
    uint64_t i); /* Box-Muller on two uniforms; for tests and noise, not for weights */
void random_shuffle(uint64_t key, int32_t *v, int32_t n); /* Fisher-Yates */

#endif
