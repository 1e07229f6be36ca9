/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded token streams: token i of sequence s is a pure function of (seed, s, i), so that what was
   computed for the largest batch or the longest prompt serves the smaller ones. */
#ifndef WORKLOADS_COMMON_TOKENS_H
#define WORKLOADS_COMMON_TOKENS_H
#include <stdint.h>

struct run;

enum token_input { TOKENS_RANDOM, TOKENS_CONSTANT };
extern const char *const token_input_words[]; /* "random", "constant", NULL */
#define TOKEN_INPUT_HELP                                                                           \
    "random: uniform over the vocabulary, seeded, other tokens in every sequence; constant: one "  \
    "token everywhere, as some tools do: flagged."
struct token_stream {
    uint64_t seed;
    int64_t vocab;
    int input; /* enum token_input */
};
/* Tokens first ... first + n - 1 of a sequence. */
void tokens_fill(const struct token_stream *, int32_t seq, int32_t first, int32_t n, int32_t *out);
/* For the names of what is kept of a stream. */
uint64_t tokens_key(const struct token_stream *);
/* Raises the flag constant_input where the stream is one. */
void tokens_warn(const struct token_stream *, struct run *);
/* Entropy of the ids that occur, in bits: 0 for one repeated token, log2 n for n different ones.
 * Sorts its argument. */
double tokens_entropy(int32_t *tokens, int64_t n);
/* The same of the first n tokens of n_seq sequences; at most 2^20 tokens are looked at. */
double tokens_stream_entropy(const struct token_stream *, int32_t n_seq, int32_t n);

#endif
