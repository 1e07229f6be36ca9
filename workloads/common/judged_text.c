/* SPDX-License-Identifier: Apache-2.0 */
/* Texts found, read and cut to as many tokens as are asked for. */
#include "workloads/common/judged_text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/data_folder.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/common/tokens.h"
#include "workloads/model/model.h"
#include "workloads/model/tokenizer.h"

/* ---- where */

void judged_path(const char *name, struct text *path) {
    const char *ours = data_folder("protocols");
    if (strpbrk(name, "./") || !ours)
        text_puts(path, name);
    else
        text_printf(path, "%s/texts/%s.txt", ours, name);
}

bool judged_is_ids(const char *name) {
    const size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".ids");
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "prose, questions, reference" */
static void list_ours(struct text *list) {
    const char *ours = data_folder("protocols");
    struct text folder = {0};
    char *names[64];
    size_t n = 0;
    text_printf(&folder, "%s/texts", ours ? ours : ".");
    DIR *dir = opendir(folder.data);
    for (const struct dirent *e; dir && n < 64 && (e = readdir(dir));) {
        const size_t len = strlen(e->d_name);
        if (len <= 4 || strcmp(e->d_name + len - 4, ".txt")) continue;
        names[n] = must_text(e->d_name);
        names[n++][len - 4] = 0;
    }
    if (dir) closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        text_printf(list, "%s%s", i ? ", " : "", names[i]);
        free(names[i]);
    }
    text_free(&folder);
}

int judged_load(const char *name, char **data, size_t *len, struct err *err) {
    struct text path = {0}, ours = {0};
    int code = 0;
    *data = NULL;
    judged_path(name, &path);
    if (!file_exists(path.data)) {
        list_ours(&ours);
        code = err_set(err, ERR_INPUT, "there is no text '%.200s' (ours are %s; or a path)", name,
                       ours.data ? ours.data : "not here");
    } else {
        code = file_read(path.data, JUDGED_MOST_BYTES, data, len, err);
        if (!code && !*len) code = err_set(err, ERR_INPUT, "the text '%.200s' is empty", name);
    }
    text_free(&path);
    text_free(&ours);
    return code;
}

int judged_check(const char *name, struct err *err) {
    char *data = NULL;
    size_t len = 0;
    const int code = strcmp(name, JUDGED_RANDOM) ? judged_load(name, &data, &len, err) : 0;
    free(data);
    return code;
}

/* ---- as tokens */

static int read_ids(struct judged_text *t, const char *data, const char *name, int64_t vocab,
                    int64_t n, struct err *err) {
    int64_t room = 0;
    for (const char *at = data; t->n < n; t->n++) {
        char *end;
        const long long id = strtoll(at, &end, 10);
        if (end == at) {
            at += strspn(at, " \t\r\n");
            return *at ? err_set(err, ERR_INPUT, "%.200s: '%.20s' is no number of a token", name,
                                 at)
                       : 0;
        }
        if (id < 0 || id >= vocab)
            return err_set(err, ERR_INPUT, "%.200s: token %lld is outside 0 ... %" PRId64, name, id,
                           vocab - 1);
        if (t->n == room) {
            room = room ? 2 * room : 1024;
            t->tokens = must_realloc(t->tokens, sizeof *t->tokens * (size_t)room);
        }
        t->tokens[t->n] = (int32_t)id;
        at = end;
    }
    return 0;
}

static int encode(struct judged_text *t, const struct tokenizer *tokenizer, const char *data,
                  size_t len, int64_t vocab, struct err *err) {
    size_t n = 0;
    int code = tokenizer_begins(tokenizer, &t->bos, err);
    if (!code) code = tokenizer_encode(tokenizer, data, len, 0, &t->tokens, &n, err);
    t->n = (int64_t)n;
    for (int64_t i = 0; !code && i < t->n; i++)
        if (t->tokens[i] < 0 || t->tokens[i] >= vocab)
            code =
                err_set(err, ERR_INPUT,
                        "the file's tokenizer gives token %" PRId32 ", and its model has %" PRId64,
                        t->tokens[i], vocab);
    return code;
}

int judged_read(struct judged_text *t, const char *name, const char *digest,
                const struct tokenizer *tokenizer, const struct model_config *config, uint64_t seed,
                int64_t n, struct err *err) {
    const int64_t vocab = config->shape.vocab;
    struct text path = {0};
    char *data = NULL, is[17];
    size_t len = 0;
    int code = 0;
    *t = (struct judged_text){.bos = -1};
    if (!strcmp(name, JUDGED_RANDOM)) {
        const struct token_stream stream = {.seed = seed, .vocab = vocab};
        t->n = n;
        t->tokens = must_alloc(sizeof *t->tokens * (size_t)n);
        tokens_fill(&stream, 0, 0, (int32_t)n, t->tokens);
    } else {
        judged_path(name, &path);
        code = file_read(path.data, JUDGED_MOST_BYTES, &data, &len, err);
        if (!code && *digest && strcmp(digest, hash_text(is, hash_bytes(data, len, 0))) != 0)
            code = err_set(err, ERR_INPUT, "the text '%.200s' is another one than was planned with",
                           name);
        if (!code && judged_is_ids(name))
            code = read_ids(t, data, name, vocab, n, err);
        else if (!code && tokenizer)
            code = encode(t, tokenizer, data, len, vocab, err);
        else if (!code)
            code = err_set(err, ERR_INPUT, "the text '%.200s' needs a tokenizer", name);
    }
    if (!code && t->n < n)
        code = err_set(err, ERR_INPUT,
                       "the text '%.200s' has %" PRId64
                       " tokens, and workload.tokens asks for %" PRId64,
                       name, t->n, n);
    if (!code) t->n = n;
    if (!code) t->hash = hash_bytes(t->tokens, sizeof *t->tokens * (size_t)n, (uint64_t)t->bos);
    free(data);
    text_free(&path);
    if (code) judged_close(t);
    return code;
}

void judged_close(struct judged_text *t) {
    free(t->tokens);
    t->tokens = NULL;
    t->n = 0;
}
