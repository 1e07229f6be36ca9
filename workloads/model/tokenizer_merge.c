/* SPDX-License-Identifier: Apache-2.0 */
/* One word to tokens: by merges (BPE), or as the most likely row of tokens (unigram).
 * Sources: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
 * Units" (2016); Kudo, "Subword Regularization" (2018). Merges wait in a heap, so that a word of n
 * bytes takes n log n steps; ties go as the library `tokenizers` has them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "workloads/model/tokenizer_parts.h"

struct symbol {
    int32_t id, before, after; /* -1: none */
    bool gone;
};
struct waiting {  /* a pair that may be merged: the least key first */
    uint64_t key; /* rank, then place of the left symbol */
    int32_t made;
};

void encoding_push(struct encoding *e, int32_t id) {
    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 256;
        e->ids = must_realloc(e->ids, e->cap * sizeof *e->ids);
    }
    e->ids[e->n++] = id;
}

/* ---- merges -----------------------------------------------------------------------------------
 */

static void heap_push(struct encoding *e, struct waiting w) {
    if (e->n_heap == e->cap_heap) {
        e->cap_heap = e->cap_heap ? 2 * e->cap_heap : 256;
        e->heap = must_realloc(e->heap, e->cap_heap * sizeof *e->heap);
    }
    size_t at = e->n_heap++;
    for (; at && e->heap[(at - 1) / 2].key > w.key; at = (at - 1) / 2) {
        e->heap[at] = e->heap[(at - 1) / 2];
        e->steps++;
    }
    e->heap[at] = w;
}

static struct waiting heap_pop(struct encoding *e) {
    const struct waiting least = e->heap[0], last = e->heap[--e->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->n_heap; at = child, e->steps++) {
        if (child + 1 < e->n_heap && e->heap[child + 1].key < e->heap[child].key) child++;
        if (e->heap[child].key >= last.key) break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return least;
}

static void wait_pair(struct encoding *e, int32_t left) {
    const struct symbol *s = e->symbols;
    if (left < 0 || s[left].after < 0) return;
    const struct merge *m =
        vocabulary_pair(&e->tokenizer->vocabulary, s[left].id, s[s[left].after].id);
    e->steps++;
    if (m) heap_push(e, (struct waiting){(uint64_t)m->rank << 32 | (uint32_t)left, m->made});
}

static size_t add_symbol(struct encoding *e, size_t n, int32_t id) {
    if (n == e->cap_symbols) {
        e->cap_symbols = e->cap_symbols ? 2 * e->cap_symbols : 256;
        e->symbols = must_realloc(e->symbols, e->cap_symbols * sizeof *e->symbols);
    }
    e->symbols[n] = (struct symbol){id, (int32_t)n - 1, (int32_t)n + 1, false};
    return n + 1;
}

static bool bytes_are_tokens(const struct vocabulary *v, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (v->byte[(unsigned char)text[i]] < 0) return false;
    return n > 0;
}

/* The symbols that a word begins as: its bytes, or its characters, where those that are no tokens
 * are their bytes' tokens or unknown. */
static size_t first_symbols(struct encoding *e, const char *word, size_t bytes) {
    const struct tokenizer *t = e->tokenizer;
    const struct vocabulary *v = &t->vocabulary;
    size_t count = 0, taken;
    bool unknown = false; /* the last one was */
    for (size_t at = 0; at < bytes; at += taken) {
        uint32_t c;
        taken = t->byte_level ? 1 : utf8_next(word + at, bytes - at, &c);
        if (!taken) taken = 1;
        int32_t id =
            t->byte_level ? v->byte[(unsigned char)word[at]] : vocabulary_find(v, word + at, taken);
        e->steps++;
        if (id < 0 && t->byte_fallback && bytes_are_tokens(v, word + at, taken)) {
            for (size_t i = 0; i < taken; i++)
                count = add_symbol(e, count, v->byte[(unsigned char)word[at + i]]);
            unknown = false;
        } else if (id >= 0) {
            count = add_symbol(e, count, id);
            unknown = false;
        } else if (v->unknown >= 0) {
            if (!unknown || !t->fuse_unknown) count = add_symbol(e, count, v->unknown);
            unknown = true;
        }
    }
    if (count) e->symbols[count - 1].after = -1;
    return count;
}

/* A symbol of more than the vocabulary is a character of it that no merge took in. */
static void push_symbol(struct encoding *e, int32_t id, bool *unknown) {
    const struct vocabulary *v = &e->tokenizer->vocabulary;
    const bool was = *unknown && e->tokenizer->fuse_unknown;
    *unknown = id == v->unknown;
    if (id < v->n_ids) {
        if (!was || !*unknown) encoding_push(e, id);
        return;
    }
    const struct token *t = &v->tokens[id];
    if (bytes_are_tokens(v, t->text, t->bytes)) {
        for (uint32_t i = 0; i < t->bytes; i++)
            encoding_push(e, v->byte[(unsigned char)t->text[i]]);
    } else if (v->unknown >= 0) {
        if (!was) encoding_push(e, v->unknown);
        *unknown = true;
    }
}

void merge_word(struct encoding *e, const char *word, size_t bytes) {
    const struct tokenizer *t = e->tokenizer;
    const int32_t whole = t->whole_words ? vocabulary_find(&t->vocabulary, word, bytes) : -1;
    if (whole >= 0) {
        encoding_push(e, whole);
        return;
    }
    const size_t n = first_symbols(e, word, bytes);
    struct symbol *s = e->symbols;
    e->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++) wait_pair(e, (int32_t)i);
    while (e->n_heap) {
        const struct waiting w = heap_pop(e);
        const int32_t left = (int32_t)(uint32_t)w.key, right = s[left].after;
        if (s[left].gone || right < 0) continue;
        const struct merge *m = vocabulary_pair(&t->vocabulary, s[left].id, s[right].id);
        if (!m || m->made != w.made) continue; /* one of the two became another one meanwhile */
        s[left].id = m->made;
        s[left].after = s[right].after;
        s[right].gone = true;
        if (s[right].after >= 0) s[s[right].after].before = left;
        wait_pair(e, s[left].before);
        wait_pair(e, left);
    }
    bool unknown = false;
    for (int32_t i = n ? 0 : -1; i >= 0; i = s[i].after) push_symbol(e, s[i].id, &unknown);
}

/* ---- unigram ----------------------------------------------------------------------------------
 */

struct arrival { /* the best way to a place in the word */
    double score;
    size_t from;
    int32_t id; /* -2: no way yet */
};

/* The first of sorted tokens low ... high whose byte at `depth` is c or more. */
static int64_t first_with(const struct vocabulary *v, int64_t low, int64_t high, size_t depth,
                          unsigned c) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((unsigned char)v->tokens[v->sorted[middle]].text[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void arrive(struct arrival *to, size_t from, int32_t id, double score) {
    if (to->id == -2 || score > to->score) *to = (struct arrival){score, from, id};
}

/* All tokens that begin at a place; whether one of them is the one character there. */
static bool leave(struct encoding *e, const char *word, size_t bytes, size_t from, size_t single) {
    const struct vocabulary *v = &e->tokenizer->vocabulary;
    const double here = e->arrivals[from].score;
    int64_t low = 0, high = v->n_sorted;
    bool found = false;
    for (size_t depth = 0; low < high; depth++, e->steps++) {
        const struct token *t = &v->tokens[v->sorted[low]];
        if (t->bytes == depth) { /* their texts differ: one at most */
            arrive(&e->arrivals[from + depth], from, v->sorted[low], here + t->score);
            found |= depth == single;
            low++;
        }
        if (from + depth == bytes) break;
        const unsigned c = (unsigned char)word[from + depth];
        low = first_with(v, low, high, depth, c);
        high = first_with(v, low, high, depth, c + 1);
    }
    return found;
}

static void push_unknown(struct encoding *e, const char *text, size_t bytes) {
    const struct vocabulary *v = &e->tokenizer->vocabulary;
    const int32_t id = vocabulary_find(v, text, bytes);
    if (id >= 0)
        encoding_push(e, id);
    else if (e->tokenizer->byte_fallback && bytes_are_tokens(v, text, bytes))
        for (size_t i = 0; i < bytes; i++) encoding_push(e, v->byte[(unsigned char)text[i]]);
    else if (v->unknown >= 0)
        encoding_push(e, v->unknown);
}

void unigram_word(struct encoding *e, const char *word, size_t bytes) {
    static const double unknown_costs = 10; /* as SentencePiece has it */
    const struct vocabulary *v = &e->tokenizer->vocabulary;
    if (bytes + 1 > e->cap_arrivals) {
        e->cap_arrivals = 2 * (bytes + 1);
        e->arrivals = must_realloc(e->arrivals, e->cap_arrivals * sizeof *e->arrivals);
    }
    struct arrival *a = e->arrivals;
    for (size_t i = 0; i <= bytes; i++) a[i] = (struct arrival){.id = -2};
    for (size_t at = 0, single; at < bytes; at += single) {
        uint32_t c;
        single = utf8_next(word + at, bytes - at, &c);
        if (!single) single = 1;
        if (!leave(e, word, bytes, at, single))
            arrive(&a[at + single], at, v->unknown, a[at].score + v->worst - unknown_costs);
    }
    size_t n_steps = 0, nth;
    for (size_t at = bytes; at > 0; at = a[at].from) n_steps++;
    size_t *ends = must_alloc((n_steps + 1) * sizeof *ends);
    nth = n_steps;
    for (size_t at = bytes; at > 0; at = a[at].from) ends[--nth] = at;
    for (size_t i = 0, begin = 0; i < n_steps; i++) {
        size_t end = ends[i];
        const bool unknown = a[end].id == v->unknown;
        while (unknown && e->tokenizer->fuse_unknown && i + 1 < n_steps &&
               a[ends[i + 1]].id == v->unknown)
            end = ends[++i];
        if (unknown)
            push_unknown(e, word + begin, end - begin);
        else
            encoding_push(e, a[end].id);
        begin = end;
    }
    free(ends);
}
