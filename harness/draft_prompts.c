/* SPDX-License-Identifier: Apache-2.0 */
/* workload.text where prompts come from it: the text whose tokens sequences are made of, found,
 * kept in the result, and handed to workers with each visit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"

static const char folder[] = "texts";

/* Whether the word is a text of ours, and not the path of a file. */
static bool is_name(const char *text) { return !strpbrk(text, "/."); }

static void no_text(struct draft *d, const char *name, const char *origin) {
    struct names names = {0};
    struct text list = {0};
    const char *folders[] = {d->folder, data_folder("protocols")};
    for (size_t i = 0; i < 2; i++) {
        if (!folders[i]) continue;
        names_of_folder(&names, arena_printf(d->arena, "%s/%s", folders[i], folder), ".txt");
    }
    names_sort(&names);
    names_join(&names, &list);
    const char *near = names_nearest(&names, name);
    problem_at(
        d->problems, draft_place(origin), NULL,
        "workload.text: no text is called '%.64s'%s%s%s (there are %s; or the path of a file)",
        name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
}

/* A name as models and sheets are found; a path as it is, then as seen from the protocol. */
static char *find(struct draft *d, const char *name, const char **file, size_t *len,
                  struct err *err) {
    char *data = NULL;
    *file = is_name(name) ? arena_printf(d->arena, "%s/%s.txt", folder, name) : name;
    if (is_name(name) || d->request->stored || !file_exists(name))
        return draft_data(d, *file, TEXT_MOST_BYTES, len, err);
    return file_read(name, TEXT_MOST_BYTES, &data, len, err) ? NULL : data;
}

static bool read_text(struct draft *d, struct text_file *to, const char *origin) {
    struct err err = {0};
    const char *file;
    size_t len = 0;
    char digest[17];
    char *data = find(d, to->name, &file, &len, &err);
    if (!data && !err.code) {
        no_text(d, to->name, origin);
        return false;
    }
    if (!err.code && !len) err_set(&err, ERR_INPUT, "%.200s is empty", file);
    if (!err.code && (strlen(data) != len || !utf8_valid(data, len)))
        err_set(&err, ERR_INPUT, "%.200s is no text in UTF-8", file);
    if (err.code) {
        problem_at(d->problems, draft_place(origin), NULL, "workload.text: %s", err.text);
        free(data);
        return false;
    }
    to->text = arena_textn(d->arena, data, len);
    to->digest = arena_text(d->arena, hash_text(digest, hash_bytes(data, len, 0)));
    draft_remember_file(d->protocol, file, to->text);
    free(data);
    return true;
}

/* Read once for all points; NULL: told already. */
static const struct text_file *text_of(struct draft *d, const char *name, const char *origin) {
    for (size_t i = 0; i < d->n_texts; i++)
        if (!strcmp(d->texts[i].name, name)) return d->texts[i].text ? &d->texts[i] : NULL;
    struct text_file *to = draft_grow(d->arena, &d->texts, &d->n_texts, &d->cap_texts, sizeof *to);
    *to = (struct text_file){.name = name};
    return read_text(d, to, origin) ? to : NULL;
}

/* What was set for a key of the workload, or its default. */
static const char *value_of(const struct plan_case *c, const struct facts *facts, const char *key) {
    const struct option *o = case_option(c, key);
    return facts_get(facts, key, o && o->def ? o->def : "");
}

static const char *origin_of(const struct facts *facts, const char *key) {
    const struct fact *f = facts_find(facts, key);
    return f ? f->origin : "";
}

/* Whether sequences are made of a text; false and *good = false: they cannot, and it was told. */
static bool wanted(struct draft *d, const struct plan_case *c, const struct facts *facts,
                   bool *good) {
    static const char key[] = "workload.input";
    const char *input = value_of(c, facts, key);
    const char *file = facts_get(facts, "model.file", ""), *why = "";
    const bool reads = *file && draft_tokenizer(d, file, &why);
    *good = true;
    if (strcmp(input, "text")) return reads && !strcmp(input, "auto");
    if (reads) return true;
    *good = false;
    problem_at(d->problems, draft_place(origin_of(facts, key)), NULL,
               *file ? "workload.input = text: %s"
                     : "workload.input = text: seeded weights read no text%s; model.file names a "
                       "model that does",
               why);
    return false;
}

bool draft_prompts(struct draft *d, const struct plan_case *c, struct facts *facts,
                   const char **text) {
    static const char key[] = "workload.text", key_digest[] = "workload.text_digest";
    bool good = true;
    *text = NULL;
    if (!wanted(d, c, facts, &good)) return good;
    const char *name = arena_text(d->arena, value_of(c, facts, key));
    const struct text_file *found = text_of(d, name, origin_of(facts, key));
    if (!found) return false;
    *text = found->text;
    const char *given = facts_get(facts, key_digest, "");
    if (*given && strcmp(given, found->digest)) {
        problem_at(d->problems, draft_place(origin_of(facts, key_digest)), NULL,
                   "workload.text_digest: that of %.100s is %s; it is another text", name,
                   found->digest);
        return false;
    }
    facts_set(facts, key_digest, found->digest, "", key);
    return true;
}
