/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded token streams: token i of sequence s is a pure function of (seed, s, i), so that what was
   computed for the largest batch or the longest prompt serves the smaller ones. */
#ifndef WORKLOADS_COMMON_TOKENS_H
#define WORKLOADS_COMMON_TOKENS_H
#include <stdint.h>

/* Tokens first ... first + n - 1 of a sequence, uniform over the vocabulary. */
void tokens_fill(uint64_t seed, int32_t seq, int64_t vocab, int32_t first, int32_t n, int32_t *out);
/* Entropy of the ids that occur, in bits: 0 for one repeated token, log2 n for n different ones.
 * Sorts its argument. */
double tokens_entropy(int32_t *tokens, int64_t n);
/* The same of the first n tokens of n_seq sequences; at most 2^20 tokens are looked at. */
double tokens_stream_entropy(uint64_t seed, int32_t n_seq, int64_t vocab, int32_t n);

#endif
