/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic weights of models, by the formula of base/synthetic.h: which matrix has which stream of
   random numbers, how wide it is spread, and what gains and biases are. */
#ifndef WORKLOADS_MODEL_SYNTH_H
#define WORKLOADS_MODEL_SYNTH_H
#include <stdbool.h>
#include <stdint.h>

#include "base/synthetic.h"
#include "kernels/quant.h"

/* Any matrix of that many columns: standard deviation about 1/sqrt(cols), with the tail. */
struct synth_matrix synth_matrix(uint64_t seed, uint64_t stream, int64_t cols);
void synth_row(void *matrix, int64_t r, float *out); /* struct row_source's; out (cols) */
/* Rows of the matrix, which must live as long. */
struct row_source synth_source(struct synth_matrix *);

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
