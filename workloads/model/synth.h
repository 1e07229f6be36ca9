/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded synthetic weights: integers times a power-of-two-like unit, so that every device, ISA
   level and thread count sees the same bits; a bell-shaped core with a trained-like outlier tail
   (seed E34).

   Row r of matrix m has the key k = random_at(random_key(seed, m), r). Columns 2j and 2j + 1 come
   from random_at(k, j): each is the sum of four bytes less 510, of standard deviation sqrt(4 (2^16
   - 1) / 12) = 147.8 units. Then each block of 128 columns takes h = random_at(k, 2^40 + block); if
   h >> 32 < 176218030 (once in 3,120 weights), column h & 127 of the block becomes (452 + ((h >> 10
   & 1023) * 452 >> 10)) << z units, z = 0, 0, 1, 2 for h >> 7 & 3, negative if h >> 9 & 1: 3.06 to
   24.5 deviations, of which one weight in 6,300 lies beyond 6 and the largest of millions near 24.
 */
#ifndef WORKLOADS_MODEL_SYNTH_H
#define WORKLOADS_MODEL_SYNTH_H
#include <stdbool.h>
#include <stdint.h>

struct synth_matrix { /* the ctx of a row_source */
    uint64_t key;
    int64_t cols;
    float unit; /* at most 8 significant bits: products with 13-bit integers are exact in f32 */
    bool tail;
};
/* Any matrix of that many columns: standard deviation about 1/sqrt(cols), with the tail. */
struct synth_matrix synth_matrix(uint64_t seed, uint64_t stream, int64_t cols);
void synth_row(void *matrix, int64_t r, float *out); /* struct row_source's; out (cols) */

/* Streams of a model's arrays: layer l, kind k has stream 16 (l + 1) + k; outside of layers as
 * named. */
enum synth_kind {
    SYNTH_Q,
    SYNTH_K,
    SYNTH_V,
    SYNTH_O,
    SYNTH_GATE,
    SYNTH_UP,
    SYNTH_DOWN,
    SYNTH_NORM_1,
    SYNTH_NORM_2,
    SYNTH_BIAS_Q,
    SYNTH_BIAS_K,
    SYNTH_BIAS_V
};
enum { SYNTH_EMBEDDING = 0, SYNTH_HEAD = 1, SYNTH_NORM_LAST = 2 };
static inline uint64_t synth_stream(int64_t layer, enum synth_kind kind) {
    return 16 * (uint64_t)(layer + 1) + (uint64_t)kind;
}
/* A matrix of a model. Three things keep greedy decoding from collapsing onto one token, as it does
   where all is alike: o has a quarter of the deviation (at random, attention adds nearly the same
   vector at every position), q twice (so that it looks somewhere), embedding and head have no tail
   (a row with an outlier would win every argmax). */
struct synth_matrix synth_layer_matrix(uint64_t seed, int64_t layer, enum synth_kind, int64_t cols);
struct synth_matrix synth_token_matrix(uint64_t seed, uint64_t stream, int64_t cols);

/* With h = random_at(random_key(seed, stream), index) and i = (h & 255) - 128: gains 1 + i/1024,
   biases i/1024. The last norm's gains are negative where h >> 8 & 1: otherwise a tied head would
   find the token that was just fed. */
void synth_gains(uint64_t seed, uint64_t stream, int64_t n, float *out);
void synth_biases(uint64_t seed, uint64_t stream, int64_t n, float *out);

#endif
