/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary: tokens by id and by text, merges by pair, names that are found in a text. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/tokenizer_parts.h"

/* ---- tables -----------------------------------------------------------------------------------
 */

static void table_make(struct table *t, int64_t items) {
    uint64_t n = 16;
    while (n < 2 * (uint64_t)items) n *= 2;
    free(t->slots);
    t->slots = must_alloc(n * sizeof *t->slots);
    t->mask = n - 1;
    if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) < 0) t->seed = (uint64_t)(uintptr_t)t;
}

/* Where this text stands, or the free place where it would. */
static uint32_t *text_slot(const struct vocabulary *v, const char *text, size_t bytes) {
    const struct table *t = &v->by_text;
    for (uint64_t at = hash_bytes(text, bytes, t->seed);; at++) {
        uint32_t *slot = &t->slots[at & t->mask];
        if (!*slot) return slot;
        const struct token *token = &v->tokens[*slot - 1];
        if (token->bytes == bytes && !memcmp(token->text, text, bytes)) return slot;
    }
}

static uint32_t *pair_slot(const struct vocabulary *v, int32_t left, int32_t right) {
    const struct table *t = &v->by_pair;
    const int32_t pair[] = {left, right};
    for (uint64_t at = hash_bytes(pair, sizeof pair, t->seed);; at++) {
        uint32_t *slot = &t->slots[at & t->mask];
        if (!*slot) return slot;
        const struct merge *m = &v->merges[*slot - 1];
        if (m->left == left && m->right == right) return slot;
    }
}

/* ---- tokens -----------------------------------------------------------------------------------
 */

void vocabulary_init(struct vocabulary *v, struct arena *arena) {
    *v = (struct vocabulary){.arena = arena, .unknown = -1};
    memset(v->byte, -1, sizeof v->byte);
}

void vocabulary_free(struct vocabulary *v) {
    free(v->tokens);
    free(v->merges);
    free(v->by_text.slots);
    free(v->by_pair.slots);
    free(v->sorted);
}

/* So many more than there are, zeroed. */
static void *more(void *items, int64_t *cap, int64_t wanted, size_t size) {
    if (wanted <= *cap) return items;
    const int64_t had = *cap;
    *cap = wanted < 1024 ? 1024 : wanted + wanted / 2;
    char *made = must_realloc(items, (size_t)*cap * size);
    memset(made + (size_t)had * size, 0, (size_t)(*cap - had) * size);
    return made;
}

int vocabulary_set(struct vocabulary *v, int64_t id, const char *text, size_t bytes,
                   enum token_kind kind, double score, struct err *err) {
    if (id < 0 || id >= TOKENS_MOST)
        return err_set(err, ERR_INPUT, "a token has the id %lld: 0 ... %d", (long long)id,
                       TOKENS_MOST - 1);
    if (bytes > TOKEN_MOST_BYTES)
        return err_set(err, ERR_INPUT, "token %lld has %zu bytes; at most %d are read",
                       (long long)id, bytes, TOKEN_MOST_BYTES);
    v->tokens = more(v->tokens, &v->cap, id + 1, sizeof *v->tokens);
    if (v->tokens[id].kind != TOKEN_NONE)
        return err_set(err, ERR_INPUT, "two tokens have the id %lld", (long long)id);
    v->tokens[id] = (struct token){.text = arena_textn(v->arena, text, bytes),
                                   .bytes = (uint32_t)bytes,
                                   .kind = kind,
                                   .score = score};
    if (id >= v->n) v->n = v->n_ids = id + 1;
    return 0;
}

static bool is_letters(const struct token *t) {
    for (uint32_t i = 0; i < t->bytes; i++)
        if (t->text[i] <= ' ' || t->text[i] >= 127) return false;
    return true;
}

static bool in_index(const struct vocabulary *v, const struct token *t) {
    if (t->kind == TOKEN_NONE || t->kind == TOKEN_ASIDE || t->outside || !t->bytes) return false;
    return !v->letters || t->kind < TOKEN_ADDED || is_letters(t);
}

int vocabulary_index(struct vocabulary *v, struct err *err) {
    table_make(&v->by_text, v->n);
    for (int64_t id = 0; id < v->n; id++) {
        const struct token *t = &v->tokens[id];
        if (!in_index(v, t)) continue;
        uint32_t *slot = text_slot(v, t->text, t->bytes);
        if (*slot)
            return err_set(err, ERR_INPUT, "tokens %u and %lld have the same text", *slot - 1,
                           (long long)id);
        *slot = (uint32_t)id + 1;
    }
    return 0;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *text, size_t bytes) {
    return (int32_t)*text_slot(v, text, bytes) - 1;
}

/* ---- merges -----------------------------------------------------------------------------------
 */

static int add_merge(struct vocabulary *v, struct merge m, struct err *err) {
    if (v->n_merges >= MERGES_MOST)
        return err_set(err, ERR_INPUT, "it has more than %d merges", MERGES_MOST);
    v->merges = more(v->merges, &v->cap_merges, v->n_merges + 1, sizeof *v->merges);
    v->merges[v->n_merges++] = m;
    return 0;
}

int vocabulary_merge(struct vocabulary *v, const char *left, size_t n_left, const char *right,
                     size_t n_right, struct err *err) {
    char made[2 * TOKEN_MOST_BYTES];
    const long long number = v->n_merges;
    if (!n_left || !n_right || n_left > TOKEN_MOST_BYTES || n_right > TOKEN_MOST_BYTES)
        return err_set(err, ERR_INPUT, "merge %lld does not name two tokens", number);
    memcpy(made, left, n_left);
    memcpy(made + n_left, right, n_right);
    const struct merge m = {.left = vocabulary_find(v, left, n_left),
                            .right = vocabulary_find(v, right, n_right),
                            .made = vocabulary_find(v, made, n_left + n_right),
                            .rank = (int32_t)number};
    if (m.left < 0 || m.right < 0)
        return err_set(err, ERR_INPUT, "merge %lld names a token that the vocabulary lacks",
                       number);
    if (m.made < 0)
        return err_set(err, ERR_INPUT, "merge %lld makes a token that the vocabulary lacks",
                       number);
    return add_merge(v, m, err);
}

int vocabulary_index_merges(struct vocabulary *v, struct err *err) {
    table_make(&v->by_pair, v->n_merges);
    for (int64_t i = 0; i < v->n_merges; i++) {
        uint32_t *slot = pair_slot(v, v->merges[i].left, v->merges[i].right);
        if (*slot)
            return err_set(err, ERR_INPUT, "merges %u and %lld are of the same pair", *slot - 1,
                           (long long)i);
        *slot = (uint32_t)i + 1;
    }
    return 0;
}

const struct merge *vocabulary_pair(const struct vocabulary *v, int32_t left, int32_t right) {
    const uint32_t found = *pair_slot(v, left, right);
    return found ? &v->merges[found - 1] : NULL;
}

/* A character of a token that is no token itself still is a symbol while tokens are built. */
static void add_characters(struct vocabulary *v, int64_t id) {
    const struct token t = v->tokens[id];
    for (size_t at = 0, n; at < t.bytes; at += n) {
        uint32_t c;
        n = utf8_next(t.text + at, t.bytes - at, &c);
        if (!n) return;
        uint32_t *slot = text_slot(v, t.text + at, n);
        if (*slot || n == t.bytes) continue;
        v->tokens = more(v->tokens, &v->cap, v->n + 1, sizeof *v->tokens);
        v->tokens[v->n] =
            (struct token){.text = t.text + at, .bytes = (uint32_t)n, .kind = TOKEN_NORMAL};
        *slot = (uint32_t)++v->n;
        if (2 * (uint64_t)v->n <= v->by_text.mask) continue;
        table_make(&v->by_text, 2 * v->n);
        for (int64_t i = 0; i < v->n; i++)
            if (in_index(v, &v->tokens[i]))
                *text_slot(v, v->tokens[i].text, v->tokens[i].bytes) = (uint32_t)i + 1;
    }
}

static bool is_normal(const struct vocabulary *v, int32_t id) {
    return id >= 0 && v->tokens[id].kind == TOKEN_NORMAL;
}

struct scored {
    double score;
    int32_t id;
};
static int by_score(const void *a, const void *b) {
    const struct scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int vocabulary_merges_of_scores(struct vocabulary *v, struct err *err) {
    int64_t n = 0;
    int32_t rank = -1;
    int code = 0;
    struct scored *order = must_alloc((size_t)(v->n_ids + 1) * sizeof *order);
    for (int64_t id = 0; id < v->n_ids; id++)
        if (v->tokens[id].kind == TOKEN_NORMAL)
            order[n++] = (struct scored){v->tokens[id].score, (int32_t)id};
    for (int64_t i = 0; i < n; i++) add_characters(v, order[i].id);
    qsort(order, (size_t)n, sizeof *order, by_score);
    for (int64_t i = 0; i < n && !code; i++) {
        const struct token *t = &v->tokens[order[i].id];
        if (!i || order[i].score != order[i - 1].score) rank++;
        for (size_t at = 1; at < t->bytes && !code; at++) {
            if ((t->text[at] & 0xc0) == 0x80) continue; /* within a character */
            const int32_t left = vocabulary_find(v, t->text, at),
                          right = vocabulary_find(v, t->text + at, t->bytes - at);
            if (is_normal(v, left) && is_normal(v, right))
                code = add_merge(v, (struct merge){left, right, order[i].id, rank}, err);
        }
    }
    free(order);
    return code;
}

/* ---- unigram ----------------------------------------------------------------------------------
 */

struct named {
    const char *text;
    uint32_t bytes;
    int32_t id;
};
static int by_bytes(const char *a, size_t n_a, const char *b, size_t n_b) {
    const int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order ? order : n_a < n_b ? -1 : n_a > n_b;
}
static int by_text(const void *a, const void *b) {
    const struct named *x = a, *y = b;
    return by_bytes(x->text, x->bytes, y->text, y->bytes);
}

int vocabulary_sort(struct vocabulary *v, struct err *err) {
    struct named *order = must_alloc((size_t)(v->n + 1) * sizeof *order);
    int code = 0;
    v->sorted = must_alloc((size_t)(v->n + 1) * sizeof *v->sorted);
    for (int64_t id = 0; id < v->n && !code; id++) {
        const struct token *t = &v->tokens[id];
        if (!in_index(v, t)) continue;
        if (t->bytes > TOKEN_MOST_TRIED)
            code = err_set(err, ERR_UNSUPPORTED,
                           "token %lld has %u bytes; a unigram vocabulary's have up to %d",
                           (long long)id, t->bytes, TOKEN_MOST_TRIED);
        order[v->n_sorted++] = (struct named){t->text, t->bytes, (int32_t)id};
    }
    qsort(order, (size_t)v->n_sorted, sizeof *order, by_text);
    for (int64_t i = 0; i < v->n_sorted; i++) v->sorted[i] = order[i].id;
    free(order);
    return code;
}

/* ---- added tokens -----------------------------------------------------------------------------
 */

void added_add(struct added_set *set, struct arena *arena, struct added a) {
    if (!a.bytes) return;
    if (set->n == set->cap) {
        set->cap = set->cap ? 2 * set->cap : 64;
        set->items = must_realloc(set->items, set->cap * sizeof *set->items);
    }
    a.name = arena_textn(arena, a.name, a.bytes);
    set->items[set->n++] = a;
}

static int by_name(const void *a, const void *b) {
    const struct added *x = a, *y = b;
    const int order = by_bytes(x->name, x->bytes, y->name, y->bytes);
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

void added_sort(struct added_set *set) {
    if (set->n) qsort(set->items, set->n, sizeof *set->items, by_name);
    for (size_t i = 0; i < set->n; i++) set->first[(unsigned char)set->items[i].name[0]] = true;
}

/* The first of items low ... high whose byte at `depth` is c or more. */
static size_t first_with(const struct added_set *set, size_t low, size_t high, size_t depth,
                         unsigned c) {
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((unsigned char)set->items[middle].name[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Names that begin like the text are a range of the sorted ones, which each further byte narrows.
 */
const struct added *added_find(const struct added_set *set, const char *text, size_t bytes) {
    const struct added *found = NULL;
    size_t low = 0, high = set->n;
    if (!bytes || !set->first[(unsigned char)*text]) return NULL;
    for (size_t depth = 0; low < high; depth++) {
        if (set->items[low].bytes == depth) found = &set->items[low];
        while (low < high && set->items[low].bytes == depth) low++;
        if (depth == bytes) break;
        const unsigned c = (unsigned char)text[depth];
        low = first_with(set, low, high, depth, c);
        high = first_with(set, low, high, depth, c + 1);
    }
    return found;
}

/* ---- characters -------------------------------------------------------------------------------
 */

size_t utf8_next(const char *text, size_t bytes, uint32_t *c) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (!bytes) return 0;
    *c = s[0];
    if (s[0] < 0x80) return 1;
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > bytes) return 0;
    *c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *c = *c << 6 | (s[i] & 0x3fu);
    }
    return *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : n;
}

bool utf8_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static bool stands_for_itself(uint32_t c) {
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad);
}

int64_t bytes_of_letters(const char *letters, size_t bytes, char *out) {
    int64_t n = 0;
    for (size_t at = 0, taken; at < bytes; at += taken) {
        uint32_t c;
        taken = utf8_next(letters + at, bytes - at, &c);
        if (!taken || (c < 0x100 && !stands_for_itself(c)) || c > 0x143) return -1;
        if (c >= 0x100) c = c < 0x121 ? c - 0x100 : c < 0x143 ? c - 0x121 + 0x7f : 0xad;
        out[n++] = (char)c;
    }
    return n;
}
