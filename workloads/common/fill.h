/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded contents for a workload's own buffers, made in small pieces: no host copy as large as the
 * buffer. */
#ifndef WORKLOADS_COMMON_FILL_H
#define WORKLOADS_COMMON_FILL_H
#include <stdint.h>

#include "base/random.h"
#include "kernels/dtype.h"

struct cache;
struct device;
/* Value i of a stream, in -1 ... 1: exact in f32. */
static inline float fill_value(uint64_t key, int64_t i) {
    return (float)((int32_t)(random_at(key, (uint64_t)i) >> 40) - (1 << 23)) * 0x1p-23f;
}
/* n values, uniform in -1 ... 1, as f32, f16 or bf16. Every byte is written: pages
   that never were are one shared page of zeros, which no cache would miss. */
void fill_uniform(struct device *, void *to, enum dtype, int64_t n, uint64_t key);
/* Every slot of a cache, all layers alike: value i of K is fill_value(fill_key_k(seed), i), rounded
   as the cache keeps it; of V likewise. What a cache holds does not matter to the time of
   attention; that it differs everywhere does. */
void fill_cache(struct cache *, uint64_t seed);
static inline uint64_t fill_key_k(uint64_t seed) { return random_key(seed, 100); }
static inline uint64_t fill_key_v(uint64_t seed) { return random_key(seed, 101); }

#endif
