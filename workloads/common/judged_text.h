/* SPDX-License-Identifier: Apache-2.0 */
/* The text that models are judged on, as tokens: ours by a word, anybody's by path, or random ids.
 */
#ifndef WORKLOADS_COMMON_JUDGED_TEXT_H
#define WORKLOADS_COMMON_JUDGED_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct model_config;
struct text;
struct tokenizer;

#define JUDGED_RANDOM "random" /* uniform ids, seeded: needs no tokenizer */
enum { JUDGED_MOST_BYTES = 1 << 26 };

/* "prose" is protocols/texts/prose.txt; what has a dot or a slash is a path. */
void judged_path(const char *name, struct text *path);
/* A path that ends in ".ids" holds numbers of tokens, with white space between. */
bool judged_is_ids(const char *name);
/* All of such a text, malloc'ed. ERR_INPUT: it is empty, or there is none, with the words of ours. */
int judged_load(const char *name, char **data, size_t *len, struct err *);
/* Whether judged_load would do; random ids are there always. */
int judged_check(const char *name, struct err *);

struct judged_text {
    int32_t *tokens; /* (n) */
    int64_t n;
    int32_t bos;   /* tokenizer_begins; -1 where there is no tokenizer */
    uint64_t hash; /* of all tokens used */
};
/* The first n tokens; ERR_INPUT where the text has fewer, or its bytes another digest (""; any).
   The tokenizer is NULL where none is needed. */
int judged_read(struct judged_text *, const char *name, const char *digest,
                const struct tokenizer *, const struct model_config *, uint64_t seed, int64_t n,
                struct err *);
void judged_close(struct judged_text *);

#endif
