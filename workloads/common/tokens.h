/* SPDX-License-Identifier: Apache-2.0 */
/* Token streams: token i of sequence s is a pure function of (seed, s, i), so that what was
   computed for the largest batch or the longest prompt serves the smaller ones. Seeded ids, or
   those of a text where the model is one that reads text. */
#ifndef WORKLOADS_COMMON_TOKENS_H
#define WORKLOADS_COMMON_TOKENS_H
#include <stdint.h>

struct err;
struct model_config;
struct problems;
struct run;

enum token_input { TOKENS_AUTO, TOKENS_TEXT, TOKENS_RANDOM, TOKENS_CONSTANT };
extern const char *const token_input_words[]; /* "auto", "text", "random", "constant", NULL */

/* The keys input, text and text_digest of a workload; MEMBER: its struct input_params in TYPE. */
struct input_params {
    int input; /* enum token_input */
    const char *text;
    const char
        *text_digest; /* filled in by the harness where prompts come from the text, else "" */
};
#define INPUT_OPTIONS(TYPE, MEMBER)                                                                \
    {.key = "input",                                                                               \
     .type = OPT_WORD,                                                                             \
     .flags = OPT_SWEEP | OPT_IDENTITY,                                                            \
     .offset = offsetof(TYPE, MEMBER.input),                                                       \
     .def = "auto",                                                                                \
     .words = token_input_words,                                                                   \
     .unit = "",                                                                                   \
     .help =                                                                                       \
         "What sequences are made of. text: the tokens of `text`, each sequence from a line of "   \
         "its own on; random: uniform over the vocabulary, seeded, other tokens in every "         \
         "sequence; auto: text where model.file has a tokenizer, else random; constant: one "      \
         "token everywhere, as some tools do: flagged."},                                          \
        {.key = "text",                                                                            \
         .type = OPT_TEXT,                                                                         \
         .flags = OPT_SWEEP,                                                                       \
         .offset = offsetof(TYPE, MEMBER.text),                                                    \
         .def = "prose",                                                                           \
         .unit = "",                                                                               \
         .help = "A text of protocols/texts/ without .txt (or of texts/ beside the protocol), or " \
                 "the path of any other; it is kept in the result."},                              \
    {                                                                                              \
        .key = "text_digest", .type = OPT_TEXT, .flags = OPT_IDENTITY,                             \
        .offset = offsetof(TYPE, MEMBER.text_digest), .def = "", .unit = "",                       \
        .help = "Tells texts apart; filled in where prompts come from one, and a given one must "  \
                "agree."                                                                           \
    }
/* Refuses input = text where nothing filled in a text. */
void input_check(const struct input_params *, const struct model_config *, struct problems *);

struct token_text;
struct token_stream {
    uint64_t seed;
    int64_t vocab;
    int input;                     /* enum token_input */
    const struct token_text *text; /* NULL: ids are not those of a text */
};
/* In a workload's prepare: the run's seed and the model's vocabulary, and the text's tokens where
   there is one, which are made once a run. ERR_INPUT, ERR_UNSUPPORTED of the tokenizer. */
int tokens_open(struct token_stream *, const struct input_params *, const struct model_config *,
                struct run *, struct err *);
void tokens_close(struct token_stream *); /* a zeroed one is safe, and one without a text */

/* Tokens first ... first + n - 1 of a sequence. */
void tokens_fill(const struct token_stream *, int32_t seq, int32_t first, int32_t n, int32_t *out);
/* For the names of what is kept of a stream. */
uint64_t tokens_key(const struct token_stream *);
/* Raises the flag constant_input where the stream is one, and text_repeats where a text is shorter
   than the longest sequence, of `most` tokens. */
void tokens_warn(const struct token_stream *, int64_t most, struct run *);
/* Entropy of the ids that occur, in bits: 0 for one repeated token, log2 n for n different ones.
 * Sorts its argument. */
double tokens_entropy(int32_t *tokens, int64_t n);
/* The same of the first n tokens of n_seq sequences; at most 2^20 tokens are looked at. */
double tokens_stream_entropy(const struct token_stream *, int32_t n_seq, int32_t n);

#endif
