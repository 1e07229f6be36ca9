/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer in a folder's tokenizer.json. Source: the library `tokenizers`, whose serialized
 * form it is. What of it is not known here is refused by its name. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/file.h"
#include "workloads/model/file_json.h"
#include "workloads/model/tokenizer_parts.h"

enum {
    MOST_BYTES = 64 << 20,
    MOST_ITEMS = 1 << 22,
    MOST_CONFIG_BYTES = 8 << 20,
    MOST_CONFIG_ITEMS = 1 << 18,
    MOST_NAME = 256, /* of what is prepended or stands for a space */
};

static const cJSON *get(const cJSON *object, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(v) ? NULL : v;
}
static const char *word(const cJSON *object, const char *key) {
    const cJSON *v = get(object, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}
static bool flag(const cJSON *object, const char *key, bool otherwise) {
    const cJSON *v = get(object, key);
    return cJSON_IsBool(v) ? cJSON_IsTrue(v) : otherwise;
}
/* A whole number below 2^31; -1: it is none. */
static int64_t whole(const cJSON *v) {
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > INT32_MAX ||
        v->valuedouble != floor(v->valuedouble))
        return -1;
    return (int64_t)v->valuedouble;
}
static int unknown(const char *what, const char *type, const char *known, struct err *err) {
    return err_set(err, ERR_UNSUPPORTED,
                   "its %s is '%.60s'; known are %s (it runs on token ids all the same)", what,
                   type, known);
}

/* ---- normalizers ------------------------------------------------------------------------------
 */

static int add_replace(struct tokenizer *t, const cJSON *item, struct err *err) {
    const char *from = word(get(item, "pattern"), "String"), *to = word(item, "content");
    if (!*from || !cJSON_IsString(get(item, "content")) || strlen(to) > MOST_NAME)
        return err_set(err, ERR_UNSUPPORTED,
                       "its normalizer Replace has a pattern that is no text, or no content");
    if (!strcmp(from, " ")) t->space = arena_text(t->arena, to);
    return steps_add(&t->normalizer,
                     (struct step){.kind = STEP_REPLACE,
                                   .text = arena_text(t->arena, from),
                                   .to = arena_text(t->arena, to)},
                     err);
}

static int read_normalizer(struct tokenizer *t, const cJSON *item, struct err *err) {
    static const char *const forms[] = {
        [FORM_NFC] = "NFC", [FORM_NFD] = "NFD", [FORM_NFKC] = "NFKC", [FORM_NFKD] = "NFKD"};
    const char *type = word(item, "type");
    if (!item) return 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(type, forms[i]))
            return steps_add(&t->normalizer,
                             (struct step){.kind = STEP_NORMALIZE, .form = (enum form)i}, err);
    if (!strcmp(type, "Sequence")) {
        const cJSON *inner;
        int code = 0;
        cJSON_ArrayForEach(inner, get(item, "normalizers")) {
            code = read_normalizer(t, inner, err);
            if (code) break;
        }
        return code;
    }
    if (!strcmp(type, "Replace")) return add_replace(t, item, err);
    if (!strcmp(type, "Prepend")) {
        const char *text = word(item, "prepend");
        if (!*text || strlen(text) > MOST_NAME)
            return err_set(err, ERR_UNSUPPORTED, "its normalizer Prepend prepends nothing");
        t->prefixed = PREFIX_ALWAYS;
        return steps_add(&t->normalizer,
                         (struct step){.kind = STEP_PREPEND, .text = arena_text(t->arena, text)},
                         err);
    }
    return unknown("normalizer", type, "NFC, NFD, NFKC, NFKD, Prepend, Replace of a text, Sequence",
                   err);
}

/* ---- pre-tokenizers ---------------------------------------------------------------------------
 */

static int read_behavior(const cJSON *item, enum behavior *behavior, struct err *err) {
    static const char *const names[] = {[SPLIT_ISOLATED] = "Isolated",
                                        [SPLIT_REMOVED] = "Removed",
                                        [SPLIT_CONTIGUOUS] = "Contiguous",
                                        [SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SPLIT_WITH_NEXT] = "MergedWithNext"};
    const char *name = get(item, "behavior") ? word(item, "behavior") : "Isolated";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *behavior = (enum behavior)i;
            return 0;
        }
    return unknown("behavior of a Split", name,
                   "Isolated, Removed, Contiguous, MergedWithPrevious, MergedWithNext", err);
}

static int add_split(struct tokenizer *t, const cJSON *item, struct err *err) {
    const cJSON *pattern = get(item, "pattern");
    const char *regex = word(pattern, "Regex"), *literal = word(pattern, "String");
    enum behavior behavior;
    int code = read_behavior(item, &behavior, err);
    if (code) return code;
    const unsigned flags = *literal                  ? PATTERN_LITERAL
                           : pattern_is_known(regex) ? PATTERN_FAST
                                                     : PATTERN_COUNTED;
    return tokenizer_split(t, *literal ? literal : regex, flags, behavior,
                           flag(item, "invert", false), err);
}

static int add_byte_level(struct tokenizer *t, const cJSON *item, struct err *err) {
    int code = 0;
    t->byte_level = t->vocabulary.letters = true;
    if (flag(item, "add_prefix_space", true)) {
        t->prefixed = PREFIX_ALWAYS;
        code = steps_add(&t->splitter, (struct step){.kind = STEP_PREFIX}, err);
    }
    if (code || !flag(item, "use_regex", true)) return code;
    return tokenizer_split(t, pattern_gpt2, PATTERN_FAST, SPLIT_ISOLATED, false, err);
}

static int add_metaspace(struct tokenizer *t, const cJSON *item, struct err *err) {
    static const char *const schemes[] = {
        [PREFIX_NEVER] = "never", [PREFIX_FIRST] = "first", [PREFIX_ALWAYS] = "always"};
    const char *space = word(item, "replacement");
    const char *scheme = get(item, "prepend_scheme")            ? word(item, "prepend_scheme")
                         : flag(item, "add_prefix_space", true) ? "always"
                                                                : "never";
    int at = 2;
    while (at >= 0 && strcmp(schemes[at], scheme) != 0) at--;
    if (at < 0) return unknown("prepend_scheme", scheme, "always, first, never", err);
    if (!*space || strlen(space) > 4)
        return err_set(err, ERR_INPUT, "its Metaspace has no replacement of one character");
    t->space = arena_text(t->arena, space);
    t->prefixed = (enum scheme)at;
    return steps_add(&t->splitter,
                     (struct step){.kind = STEP_METASPACE,
                                   .text = t->space,
                                   .scheme = t->prefixed,
                                   .split = flag(item, "split", true)},
                     err);
}

static int read_pre_tokenizer(struct tokenizer *t, const cJSON *item, struct err *err) {
    const char *type = word(item, "type");
    enum behavior behavior = SPLIT_ISOLATED;
    int code = 0;
    if (!item) return 0;
    if (t->byte_level)
        return err_set(err, ERR_UNSUPPORTED,
                       "its pre-tokenizer has a step after ByteLevel; here ByteLevel is the last");
    if (!strcmp(type, "Sequence")) {
        const cJSON *inner;
        cJSON_ArrayForEach(inner, get(item, "pretokenizers")) {
            code = read_pre_tokenizer(t, inner, err);
            if (code) break;
        }
        return code;
    }
    if (!strcmp(type, "Split")) return add_split(t, item, err);
    if (!strcmp(type, "ByteLevel")) return add_byte_level(t, item, err);
    if (!strcmp(type, "Metaspace")) return add_metaspace(t, item, err);
    if (!strcmp(type, "Digits"))
        return tokenizer_split(
            t, pattern_digit, PATTERN_FAST,
            flag(item, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, false, err);
    if (!strcmp(type, "WhitespaceSplit"))
        return tokenizer_split(t, "\\s", PATTERN_FAST, SPLIT_REMOVED, false, err);
    if (!strcmp(type, "Punctuation")) {
        code = read_behavior(item, &behavior, err);
        return code ? code
                    : tokenizer_split(t, "[\\p{P}!-/:-@\\[-`{-~]", PATTERN_FAST, behavior, false,
                                      err);
    }
    return unknown("pre-tokenizer", type,
                   "ByteLevel, Split, Digits, Punctuation, WhitespaceSplit, Metaspace, Sequence",
                   err);
}

/* ---- tokens -----------------------------------------------------------------------------------
 */

/* One entry of the model's vocabulary. */
static int set_token(struct tokenizer *t, int64_t id, const char *text, double score,
                     struct err *err) {
    const size_t n = strlen(text);
    enum token_kind kind = n ? TOKEN_NORMAL : TOKEN_ASIDE;
    if (t->byte_level && n <= TOKEN_MOST_BYTES) {
        char bytes[TOKEN_MOST_BYTES];
        const int64_t made = bytes_of_letters(text, n, bytes);
        if (made > 0)
            return vocabulary_set(&t->vocabulary, id, bytes, (size_t)made, kind, score, err);
        kind = TOKEN_ASIDE;
    }
    return vocabulary_set(&t->vocabulary, id, text, n, kind, score, err);
}

static int read_vocabulary(struct tokenizer *t, const cJSON *vocab, struct err *err) {
    const cJSON *item;
    int64_t id = 0;
    int code = 0;
    cJSON_ArrayForEach(item, vocab) {
        const cJSON *score = NULL;
        const char *text = item->string;
        if (t->unigram) {
            text = cJSON_IsArray(item) && cJSON_IsString(item->child) ? item->child->valuestring
                                                                      : NULL;
            score = text ? item->child->next : NULL;
            if (!cJSON_IsNumber(score) || !isfinite(score->valuedouble)) text = NULL;
            if (text && (!id || score->valuedouble < t->vocabulary.worst))
                t->vocabulary.worst = score->valuedouble;
        } else {
            id = whole(item);
        }
        if (!text || id < 0)
            return err_set(err, ERR_INPUT,
                           "its model.vocab has an entry that is not a token with %s",
                           t->unigram ? "a score" : "an id");
        code = set_token(t, id, text, score ? score->valuedouble : 0, err);
        if (code) return code;
        id++;
    }
    return t->vocabulary.n ? 0 : err_set(err, ERR_INPUT, "its model.vocab is empty");
}

/* The vocabulary's entry of an added token, if it has one, is by its name and at its id. */
static int set_added(struct tokenizer *t, int64_t id, const char *name, bool special,
                     struct err *err) {
    struct vocabulary *v = &t->vocabulary;
    const size_t n = strlen(name);
    char bytes[TOKEN_MOST_TRIED];
    if (id < v->n && v->tokens[id].kind != TOKEN_NONE) {
        struct token *at = &v->tokens[id];
        const int64_t made = t->byte_level ? bytes_of_letters(name, n, bytes) : -1;
        const bool same = (at->bytes == n && !memcmp(at->text, name, n)) ||
                          (made == at->bytes && !memcmp(at->text, bytes, at->bytes));
        if (!same || at->kind >= TOKEN_ADDED)
            return err_set(err, ERR_INPUT, "two tokens have the id %lld", (long long)id);
        at->text = arena_textn(t->arena, name, n);
        at->bytes = (uint32_t)n;
        at->kind = special ? TOKEN_SPECIAL : TOKEN_ADDED;
        return 0;
    }
    int code = vocabulary_set(v, id, name, n, special ? TOKEN_SPECIAL : TOKEN_ADDED, 0, err);
    if (!code) v->tokens[id].outside = true;
    return code;
}

static int read_added(struct tokenizer *t, const cJSON *list, struct err *err) {
    const cJSON *item;
    int code = 0;
    cJSON_ArrayForEach(item, list) {
        const int64_t id = whole(get(item, "id"));
        const char *name = word(item, "content");
        const bool special = flag(item, "special", false);
        const size_t n = strlen(name);
        if (id < 0 || !n || n > TOKEN_MOST_TRIED)
            return err_set(err, ERR_INPUT, "an added token lacks its id, or has not 1 ... %d bytes",
                           TOKEN_MOST_TRIED);
        if (flag(item, "single_word", false))
            return err_set(err, ERR_UNSUPPORTED,
                           "added token %lld is found as a single word only; here they are found "
                           "everywhere",
                           (long long)id);
        code = set_added(t, id, name, special, err);
        if (code) return code;
        struct added a = {.name = name,
                          .bytes = (uint32_t)n,
                          .id = (int32_t)id,
                          .special = special,
                          .strip_left = flag(item, "lstrip", false),
                          .strip_right = flag(item, "rstrip", false)};
        if (!flag(item, "normalized", !special) || !t->normalizer.n) {
            added_add(&t->raw, t->arena, a);
            continue;
        }
        /* It is found as the text then is. */
        struct encoding e = {.tokenizer = t, .err = err, .most_bytes = 1 << 16};
        pieces_set(&e.now, name, n);
        code = steps_apply(&t->normalizer, &e, 0);
        a.name = e.now.buffer.data;
        a.bytes = (uint32_t)e.now.buffer.len;
        if (!code && e.now.buffer.len <= 2 * TOKEN_MOST_TRIED)
            added_add(&t->normalized, t->arena, a);
        pieces_free(&e.now);
        pieces_free(&e.next);
        if (code) return code;
    }
    return 0;
}

/* ---- models -----------------------------------------------------------------------------------
 */

static int read_merge(struct tokenizer *t, const char *left, size_t n_left, const char *right,
                      size_t n_right, struct err *err) {
    char bytes[2 * TOKEN_MOST_BYTES];
    if (!t->byte_level || n_left > TOKEN_MOST_BYTES || n_right > TOKEN_MOST_BYTES)
        return vocabulary_merge(&t->vocabulary, left, n_left, right, n_right, err);
    const int64_t a = bytes_of_letters(left, n_left, bytes);
    const int64_t b = a > 0 ? bytes_of_letters(right, n_right, bytes + a) : -1;
    return vocabulary_merge(&t->vocabulary, bytes, a > 0 ? (size_t)a : 0, bytes + (a > 0 ? a : 0),
                            b > 0 ? (size_t)b : 0, err);
}

static int read_merges(struct tokenizer *t, const cJSON *merges, struct err *err) {
    const cJSON *item;
    int code = 0;
    cJSON_ArrayForEach(item, merges) {
        const cJSON *a = item->child, *b = a ? a->next : NULL;
        const char *left = "", *right = "";
        size_t n_left = 0;
        if (cJSON_IsString(item)) { /* "a b", as older files have it */
            const char *space = strchr(item->valuestring + (*item->valuestring != 0), ' ');
            left = item->valuestring;
            n_left = space ? (size_t)(space - left) : 0;
            right = space ? space + 1 : "";
        } else if (cJSON_IsArray(item) && cJSON_IsString(a) && cJSON_IsString(b) && !b->next) {
            left = a->valuestring;
            n_left = strlen(left);
            right = b->valuestring;
        }
        code = read_merge(t, left, n_left, right, strlen(right), err);
        if (code) return code;
    }
    return 0;
}

static int find_unknown(struct tokenizer *t, const cJSON *model, struct err *err) {
    struct vocabulary *v = &t->vocabulary;
    if (t->unigram) {
        const int64_t id = get(model, "unk_id") ? whole(get(model, "unk_id")) : -1;
        if (get(model, "unk_id") && (id < 0 || id >= v->n))
            return err_set(err, ERR_INPUT, "its unk_id is not among its %lld tokens",
                           (long long)v->n);
        v->unknown = (int32_t)id;
        return 0;
    }
    const char *name = word(model, "unk_token");
    if (!*name) return 0;
    v->unknown = vocabulary_find(v, name, strlen(name));
    if (v->unknown < 0) return err_set(err, ERR_INPUT, "its unk_token is not among its tokens");
    return 0;
}

static int check_model(const cJSON *model, const char *type, struct err *err) {
    const cJSON *dropout = get(model, "dropout");
    if (strcmp(type, "BPE") != 0 && strcmp(type, "Unigram") != 0)
        return unknown("model", type, "BPE and Unigram", err);
    if (dropout && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
        return err_set(err, ERR_UNSUPPORTED,
                       "its dropout is not 0: the same text would become other tokens each time");
    if (*word(model, "continuing_subword_prefix") || *word(model, "end_of_word_suffix"))
        return err_set(err, ERR_UNSUPPORTED,
                       "its tokens have a continuing_subword_prefix or an end_of_word_suffix; here "
                       "they have neither");
    return 0;
}

static int read_model(struct tokenizer *t, const cJSON *root, struct err *err) {
    const cJSON *model = get(root, "model");
    const char *type = word(model, "type");
    if (!*type && get(model, "merges")) type = "BPE"; /* older files do not say it */
    int code = check_model(model, type, err);
    if (code) return code;
    t->unigram = !strcmp(type, "Unigram");
    t->byte_fallback = flag(model, "byte_fallback", false);
    t->fuse_unknown = flag(model, "fuse_unk", t->unigram);
    t->whole_words = flag(model, "ignore_merges", false);
    if (t->unigram && t->byte_level)
        return err_set(err, ERR_UNSUPPORTED,
                       "it has a Unigram model over ByteLevel; here BPE has it");
    code = read_vocabulary(t, get(model, "vocab"), err);
    if (!code) code = read_added(t, get(root, "added_tokens"), err);
    if (!code) code = vocabulary_index(&t->vocabulary, err);
    if (!code) code = find_unknown(t, model, err);
    if (!code && !t->unigram) code = read_merges(t, get(model, "merges"), err);
    snprintf(t->family, sizeof t->family, "%s",
             t->unigram         ? "unigram"
             : t->byte_level    ? "byte-level bpe"
             : t->byte_fallback ? "bpe with byte fallback"
                                : "bpe");
    return code;
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static int read_template(struct tokenizer *t, const cJSON *item, struct err *err) {
    const cJSON *part;
    bool after = false;
    cJSON_ArrayForEach(part, get(item, "single")) {
        const cJSON *special = get(part, "SpecialToken"), *id;
        if (!special) {
            after = true;
            continue;
        }
        const cJSON *entry = get(get(item, "special_tokens"), word(special, "id"));
        cJSON_ArrayForEach(id, get(entry, "ids")) {
            const int64_t v = whole(id);
            int *n = after ? &t->n_end : &t->n_begin;
            if (v < 0 || v >= t->vocabulary.n_ids || *n >= ENDS_MOST)
                return err_set(err, ERR_INPUT,
                               "its template adds a token that is not among its %lld",
                               (long long)t->vocabulary.n_ids);
            (after ? t->end : t->begin)[(*n)++] = (int32_t)v;
        }
    }
    return 0;
}

static int read_post_processor(struct tokenizer *t, const cJSON *item, struct err *err) {
    const char *type = word(item, "type");
    if (!item || !strcmp(type, "ByteLevel")) return 0; /* that one only moves offsets */
    if (!strcmp(type, "TemplateProcessing")) return read_template(t, item, err);
    if (!strcmp(type, "Sequence")) {
        const cJSON *inner;
        int code = 0;
        cJSON_ArrayForEach(inner, get(item, "processors")) {
            code = read_post_processor(t, inner, err);
            if (code) break;
        }
        return code;
    }
    return unknown("post-processor", type, "TemplateProcessing, ByteLevel, Sequence", err);
}

/* By name in tokenizer_config.json, else by id in config.json, else what the template adds. */
static int32_t end_token(const struct tokenizer *t, const struct model_file *file,
                         const cJSON *config, const char *name, const char *id_key,
                         int32_t otherwise) {
    const struct vocabulary *v = &t->vocabulary;
    const struct file_value *id = model_file_value(file, id_key);
    const cJSON *entry = get(config, name);
    const char *text = cJSON_IsString(entry) ? entry->valuestring : word(entry, "content");
    const size_t n = strlen(text);
    for (int64_t i = 0; n && i < v->n_ids; i++)
        if (v->tokens[i].kind >= TOKEN_ADDED && v->tokens[i].bytes == n &&
            !memcmp(v->tokens[i].text, text, n))
            return (int32_t)i;
    if (id && id->kind == FILE_INT && id->integer >= 0 && id->integer < v->n_ids)
        return (int32_t)id->integer;
    return otherwise;
}

/* ---- files ------------------------------------------------------------------------------------
 */

/* Beside the weights, or in their folder. */
static int beside(const struct model_file *file, const char *name, char *out, size_t size,
                  struct err *err) {
    const char *path = model_file_path(file), *slash = strrchr(path, '/');
    const size_t n = strlen(path);
    const bool alone = n > 12 && !strcmp(path + n - 12, ".safetensors");
    const int made =
        alone ? snprintf(out, size, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name)
              : snprintf(out, size, "%s/%s", path, name);
    if (made >= 0 && (size_t)made < size) return 0;
    return err_set(err, ERR_INPUT, "the path is longer than %zu bytes", size);
}

static int read_document(const struct model_file *file, const char *name, size_t bytes,
                         size_t items, cJSON **root, struct err *err) {
    char path[PATH_MAX];
    char *data = NULL;
    size_t n = 0;
    *root = NULL;
    int code = beside(file, name, path, sizeof path, err);
    if (code || !file_exists(path)) return code;
    code = file_read(path, bytes, &data, &n, err);
    if (!code) code = file_json_parse(data, n, name, items, root, err);
    free(data);
    return code;
}

int tokenizer_read_json(struct tokenizer *t, const struct model_file *file, struct err *err) {
    cJSON *root = NULL, *config = NULL;
    int code = read_document(file, "tokenizer.json", MOST_BYTES, MOST_ITEMS, &root, err);
    if (!code && !root)
        code =
            err_set(err, ERR_UNSUPPORTED, "it brings no tokenizer.json; it runs on token ids only");
    if (!code)
        code = read_document(file, "tokenizer_config.json", MOST_CONFIG_BYTES, MOST_CONFIG_ITEMS,
                             &config, err);
    if (!code) code = read_normalizer(t, get(root, "normalizer"), err);
    if (!code) code = read_pre_tokenizer(t, get(root, "pre_tokenizer"), err);
    if (!code) code = read_model(t, root, err);
    if (!code) code = read_post_processor(t, get(root, "post_processor"), err);
    if (!code) {
        t->bos =
            end_token(t, file, config, "bos_token", "bos_token_id", t->n_begin ? t->begin[0] : -1);
        t->eos = end_token(t, file, config, "eos_token", "eos_token_id", t->n_end ? t->end[0] : -1);
        code = tokenizer_finish(t, err);
    }
    cJSON_Delete(config);
    cJSON_Delete(root);
    return code;
}
