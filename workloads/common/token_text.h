/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a model reads it: its ids, and the places at which sequences may begin. */
#ifndef WORKLOADS_COMMON_TOKEN_TEXT_H
#define WORKLOADS_COMMON_TOKEN_TEXT_H
#include <stddef.h>
#include <stdint.h>

struct err;
struct model_config;
struct run;

struct token_text {
    int32_t *ids;   /* (n), at least 1; nothing added at their ends */
    int32_t *begin; /* (n_begin) indices in ids behind the ends of lines, by rising number; NULL:
                       there are too few, and every token is a beginning */
    int32_t n, n_begin;
    int32_t bos;  /* what stands before the first token of each sequence; -1: nothing */
    uint64_t key; /* of ids and bos */
};
/* The text that came with the visit (run_text), in the tokens of config->params.file: tokenized by
   the first visit of a run, found by later ones. ERR_INPUT, ERR_UNSUPPORTED, ERR_MEMORY. */
int token_text_open(struct token_text **, const struct model_config *, struct run *, struct err *);
/* The same of ids that are there already (copied). */
struct token_text *token_text_of(const int32_t *ids, const uint8_t *ends_line, int32_t n,
                                 int32_t bos);
void token_text_close(struct token_text **); /* NULL inside is safe */
/* Sequences begin behind the ends of lines, none twice before each of these has been taken; each
   goes on to the text's end and from its beginning again. */
void token_text_fill(const struct token_text *, uint64_t seed, int32_t seq, int32_t first,
                     int32_t n, int32_t *out);

#endif
