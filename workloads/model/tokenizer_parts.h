/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the tokenizer share: vocabulary, rules, and one text on its way through them.
 */
#ifndef WORKLOADS_MODEL_TOKENIZER_PARTS_H
#define WORKLOADS_MODEL_TOKENIZER_PARTS_H
#include <stdbool.h>

#include "base/text.h"
#include "workloads/model/tokenizer.h"

struct arena;
struct arrival;
struct encoding;
struct match;
struct symbol;
struct waiting;

enum {
    TOKENS_MOST = 1 << 21,
    MERGES_MOST = 1 << 22,
    TOKEN_MOST_BYTES = 65535,
    /* Where each place in a text is tried against all tokens, their length is a factor of the time;
       those of the field have up to 128 bytes. */
    TOKEN_MOST_TRIED = 1024,
    PIECE_MOST_BYTES = 512, /* of SentencePiece's tokens, which are taken apart at each character */
    ENDS_MOST = 16,
};

/* ---- vocabulary -------------------------------------------------------------------------------
 */

enum token_kind {
    TOKEN_NONE,   /* no token has this id */
    TOKEN_NORMAL, /* text may become it */
    TOKEN_ASIDE,  /* it has a text, but text never becomes it: unused, or its name is no text */
    TOKEN_BYTE,   /* one byte that no other token holds: "<0x0A>" */
    TOKEN_ADDED,  /* its name is found in the text before anything else */
    TOKEN_SPECIAL /* so is this one's, where it is asked for */
};
struct token {
    const char *text; /* what it stands for; of byte-level vocabularies the bytes themselves */
    uint32_t bytes;
    enum token_kind kind;
    bool outside; /* added to the vocabulary: the model's own rules never make it */
    double score;
};

/* Places of items by hash, in open addressing. The seed is drawn anew by each process: whoever
   writes a file cannot make all its words collide. */
struct table {
    uint32_t *slots; /* item + 1; 0: free */
    uint64_t mask, seed;
};
struct merge {
    int32_t left, right, made, rank;
};
struct added { /* a token that is found by its name */
    const char *name;
    uint32_t bytes;
    int32_t id;
    bool special, strip_left, strip_right;
};
struct added_set { /* sorted by name */
    struct added *items;
    size_t n, cap;
    bool first[256]; /* whether a name begins so */
};

struct vocabulary {
    struct arena *arena;
    struct token *tokens; /* (n); from n_ids on: characters that only serve to build tokens */
    int64_t n, cap, n_ids;
    struct table by_text;
    struct merge *merges;
    int64_t n_merges, cap_merges;
    struct table by_pair;
    int32_t *sorted; /* unigram: ids of what text may become, by bytes */
    int64_t n_sorted;
    double worst;      /* unigram: the least score */
    int32_t byte[256]; /* ids of single bytes; -1: none */
    int32_t unknown;   /* -1: none */
    bool letters; /* byte-level: names of added tokens are no bytes, but where both are the same */
};

void vocabulary_init(struct vocabulary *, struct arena *);
void vocabulary_free(struct vocabulary *);
/* Token `id` is this text, copied. ERR_INPUT: an id twice or outside, a text too long. */
int vocabulary_set(struct vocabulary *, int64_t id, const char *text, size_t bytes, enum token_kind,
                   double score, struct err *);
/* After the last: texts can be found. Those that text may become must differ: ERR_INPUT. */
int vocabulary_index(struct vocabulary *, struct err *);
/* The token with this text that is indexed, or -1. */
int32_t vocabulary_find(const struct vocabulary *, const char *text, size_t bytes);
/* The next merge by rank, of texts. ERR_INPUT: they or what they make are no tokens, or twice. */
int vocabulary_merge(struct vocabulary *, const char *left, size_t n_left, const char *right,
                     size_t n_right, struct err *);
/* Merges from scores, as SentencePiece has it: all pairs that make a token, the best score first;
   of equal scores the leftmost in the text. */
int vocabulary_merges_of_scores(struct vocabulary *, struct err *);
/* After the last merge; pairs can be found. */
int vocabulary_index_merges(struct vocabulary *, struct err *);
const struct merge *vocabulary_pair(const struct vocabulary *, int32_t left, int32_t right);
/* Prepares unigram: everything with kind TOKEN_NORMAL, or all where the file says so. */
int vocabulary_sort(struct vocabulary *, struct err *);

void added_add(struct added_set *, struct arena *, struct added);
void added_sort(struct added_set *);
/* The longest name that begins at text; NULL: none. */
const struct added *added_find(const struct added_set *, const char *text, size_t bytes);

/* One character: how many bytes it takes, and which it is; 0 at bytes that are no UTF-8. */
size_t utf8_next(const char *text, size_t bytes, uint32_t *c);
bool utf8_is_space(uint32_t c); /* Unicode's White_Space */
/* What a byte-level vocabulary writes for bytes, as GPT-2's encoder has it: printable ones stand
   for themselves, others for the characters from U+0100 on. Writes at most `bytes` bytes; returns
   their number, or -1 where a character stands for none. */
int64_t bytes_of_letters(const char *letters, size_t bytes, char *out);

/* ---- rules ------------------------------------------------------------------------------------
 */

enum behavior {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_CONTIGUOUS,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT
};
enum {
    PATTERN_LITERAL = 1,
    PATTERN_FAST = 2 /* JIT */,
    PATTERN_COUNTED = 4 /* a budget of steps */
};
struct pattern;
/* A regular expression in the words of the reference's engine. What both engines would read
   differently is refused by name: ERR_UNSUPPORTED. */
int pattern_open(struct pattern **, const char *source, unsigned flags, struct err *);
void pattern_close(struct pattern **);
/* The patterns of the field, known to take linear time. */
extern const char pattern_gpt2[], pattern_llama3[], pattern_qwen2[], pattern_tekken[],
    pattern_digit[], pattern_digits[], pattern_three_digits[], pattern_default[];
bool pattern_is_known(const char *source);
/* Where the pattern next matches from byte `at` on: 1, *begin and *end; 0: nowhere; -1: e->err. */
int pattern_find(const struct pattern *, struct encoding *e, const char *text, size_t bytes,
                 size_t at, size_t *begin, size_t *end);

enum step_kind {
    STEP_NORMALIZE, /* to one of Unicode's forms */
    STEP_PREPEND,
    STEP_REPLACE,
    STEP_SPLIT,
    STEP_PREFIX, /* a space in front of each piece that has none */
    STEP_METASPACE
};
enum form { FORM_NFC, FORM_NFD, FORM_NFKC, FORM_NFKD };
enum scheme { PREFIX_NEVER, PREFIX_FIRST /* of the text */, PREFIX_ALWAYS /* of each stretch */ };
struct step {
    enum step_kind kind;
    enum form form;
    const char *text, *to; /* prepended; replaced by; the character for a space */
    struct pattern *pattern;
    enum behavior behavior;
    bool invert, split;
    enum scheme scheme;
};
enum { STEPS_MOST = 16 };
struct steps {
    struct step items[STEPS_MOST];
    size_t n;
};

struct piece {
    size_t begin, end;
};
struct pieces { /* of one stretch of text, as it is after some of the steps */
    struct text buffer;
    struct piece *items;
    size_t n, cap;
};
void pieces_set(struct pieces *, const char *text, size_t bytes); /* one piece */
void pieces_free(struct pieces *);

struct encoding { /* one text on its way */
    const struct tokenizer *tokenizer;
    unsigned flags;
    int32_t *ids;
    size_t n, cap;
    struct pieces now, next;
    struct symbol *symbols;
    size_t cap_symbols;
    struct waiting *heap;
    size_t n_heap, cap_heap;
    struct arrival *arrivals;
    size_t cap_arrivals;
    struct match *match;      /* PCRE2's, made at the first pattern */
    uint64_t steps;           /* of merging and matching: for the test of linear time */
    uint64_t budget, counted; /* of counted patterns */
    size_t most_bytes;        /* that normalizers may make of the text */
    struct err *err;
};
/* Whether the stretch begins the text, and whether it goes on after an invalid byte. */
enum { STRETCH_FIRST = 1, STRETCH_GOES_ON = 2 };
int steps_apply(const struct steps *, struct encoding *, unsigned stretch);
void match_free(struct match *); /* NULL is safe */

/* Encodes, and leaves what it took to the caller, who frees it after a mistake too. */
int tokenizer_run(const struct tokenizer *, const char *text, size_t bytes, unsigned flags,
                  struct encoding *, struct err *);
void encoding_free(struct encoding *);
void encoding_push(struct encoding *, int32_t id);
void merge_word(struct encoding *, const char *word, size_t bytes); /* BPE */
void unigram_word(struct encoding *, const char *word, size_t bytes);

struct tokenizer {
    struct arena *arena;
    char family[64];
    struct vocabulary vocabulary;
    struct added_set raw, normalized; /* found in the text, and in the normalized text */
    struct steps normalizer, splitter;
    bool unigram, byte_level, byte_fallback, fuse_unknown, whole_words;
    enum scheme prefixed; /* where a space is put in front */
    const char *space;    /* what stands for a space; NULL: a space */
    int32_t bos, eos;
    int32_t begin[ENDS_MOST], end[ENDS_MOST];
    int n_begin, n_end;
};
/* Byte tokens by value, names of added tokens: what both readers do at last. */
int tokenizer_finish(struct tokenizer *, struct err *);
/* One step more: ERR_UNSUPPORTED where there are too many. */
int steps_add(struct steps *, struct step, struct err *);
/* A split by a pattern: ERR_... or 0. */
int tokenizer_split(struct tokenizer *, const char *pattern, unsigned flags, enum behavior,
                    bool invert, struct err *);
int tokenizer_read_gguf(struct tokenizer *, const struct model_file *, struct err *);
int tokenizer_read_json(struct tokenizer *, const struct model_file *, struct err *);

#endif
