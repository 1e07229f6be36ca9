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
/* n values, uniform in -1 ... 1, as f32, f16 or bf16: value i is fill_value(key, i % FILL_PERIOD),
   since drawing each anew took 0.18 s for 128 MiB of bf16, and copying takes 0.016 s. Every byte is
   written: pages that never were are one shared page of zeros, which no cache would miss. */
enum { FILL_PERIOD = 1 << 18 };
void fill_uniform(struct device *, void *to, enum dtype, int64_t n, uint64_t key);
/* Every slot of a cache, all layers alike: value i of K is fill_value(fill_key_k(seed), i %
   fill_cache_period(d_h)), rounded as the cache keeps it; of V likewise. What a cache holds does
   not matter to the time of attention; that neighbours differ does. */
void fill_cache(struct cache *, uint64_t seed);
static inline int64_t fill_cache_period(int32_t d_h) { return FILL_PERIOD / d_h * d_h; }
static inline uint64_t fill_key_k(uint64_t seed) { return random_key(seed, 100); }
static inline uint64_t fill_key_v(uint64_t seed) { return random_key(seed, 101); }

#endif
