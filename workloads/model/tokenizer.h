/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token ids and back, by the rules that a model's file brings: byte-level BPE, BPE of
   characters with scores or with byte fallback (as SentencePiece makes it), unigram. What the ids
   are is what the library `tokenizers` gives for the same vocabulary and rules; two things it
   cannot be asked are defined here: text is any bytes, and one that is not part of valid UTF-8
   stands alone and becomes the token of that byte, or where the vocabulary has none what U+FFFD
   becomes. */
#ifndef WORKLOADS_MODEL_TOKENIZER_H
#define WORKLOADS_MODEL_TOKENIZER_H
#include <stddef.h>
#include <stdint.h>

struct err;
struct model_file;
struct text;
struct tokenizer; /* opaque; immutable once open: of any thread */

/* Of a GGUF file's tokenizer.ggml.*, or of the tokenizer.json in a folder or beside a .safetensors
   file. ERR_UNSUPPORTED: a family that is not known here, or none in the file (ids still run);
   ERR_INPUT: what is there contradicts itself. */
int tokenizer_open(struct tokenizer **, const struct model_file *, struct err *);
/* The same of a model's file by its path or name. */
int tokenizer_open_path(struct tokenizer **, const char *path, struct err *);
void tokenizer_close(struct tokenizer **);              /* NULL inside is safe */
const char *tokenizer_family(const struct tokenizer *); /* "bpe smollm", "sentencepiece bpe", ... */
int64_t tokenizer_vocab(const struct tokenizer *);      /* ids are below it */
int32_t tokenizer_bos(const struct tokenizer *);        /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *);        /* -1: none */

enum {
    TOKENIZE_BOS = 1,     /* what the file says is added at the ends */
    TOKENIZE_SPECIAL = 2, /* the name of a special token in the text is that token, not its letters;
                             added tokens that are not special are found always */
};
/* *ids from malloc, *n of them, also where there are none. Time O(bytes log bytes). A character
   that a byte-level vocabulary lacks a byte of, and for which it has no unknown token, loses that
   byte, as in the reference. ERR_INPUT: more than 2^30 bytes, or a pattern of the file's own that
   takes too many steps on this text. */
int tokenizer_encode(const struct tokenizer *, const char *text, size_t bytes, unsigned flags,
                     int32_t **ids, size_t *n, struct err *);
/* The one token that the file says is put before every text (*id: -1: none is). */
int tokenizer_begins(const struct tokenizer *, int32_t *id, struct err *);
/* The bytes of one token; returns their number, writes at most cap. Ids outside: 0. */
size_t tokenizer_piece(const struct tokenizer *, int32_t id, char *out, size_t cap);
/* Appends the text of several tokens: their pieces, without the space that encoding puts in front
   of a text where the family does so. */
void tokenizer_decode(const struct tokenizer *, const int32_t *ids, size_t n, struct text *);

#endif
