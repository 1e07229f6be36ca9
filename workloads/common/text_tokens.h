/* SPDX-License-Identifier: Apache-2.0 */
/* The keys text and text_digest of workloads that read one prompt. */
#ifndef WORKLOADS_COMMON_TEXT_TOKENS_H
#define WORKLOADS_COMMON_TEXT_TOKENS_H
#include <stdint.h>

struct err;
struct model_config;
struct problems;
struct text_choice {
    const char *text, *digest;
};

/* PARAM(field): the place of a key of that name. */
#define TEXT_OPTIONS(PARAM)                                                                        \
    {.key = "text",                                                                                \
     .type = OPT_TEXT,                                                                             \
     PARAM(choice.text),                                                                           \
     .def = "random",                                                                              \
     .unit = "",                                                                                   \
     .help = "What is read: prose or reference (ours, in protocols/texts/), a path to any text, "  \
             "a path that ends in .ids to numbers of tokens, or random: uniform ids, which need "  \
             "no tokenizer."},                                                                     \
    {                                                                                              \
        .key = "text_digest", .type = OPT_TEXT, PARAM(choice.digest), .def = "", .unit = "",       \
        .help = "Tells texts apart: XXH64 of the bytes, filled in from text; a given one must "    \
                "agree."                                                                           \
    }
/* Refuses words where there are only synthetic weights, which have no tokenizer. */
void text_tokens_check(const struct text_choice *, const struct model_config *, struct problems *);
/* Its first n tokens. ERR_INPUT, with the sentence: it has fewer, or is no longer the text that was
   planned with. */
int text_tokens(const struct text_choice *, const struct model_config *, uint64_t seed, int32_t n,
                int32_t *ids, struct err *);

#endif
