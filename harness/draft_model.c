/* SPDX-License-Identifier: Apache-2.0 */
/* model.file: what the file says of itself becomes the shape.* keys of a point, as the keys of a
 * file in protocols/models/ do. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "workloads/model/file_shape.h"
#include "workloads/model/tokenizer.h"

/* Where a point's model comes from. */
struct asked {
    const char *shape, *shape_origin, *file, *file_origin;
};

static bool by_set(const char *origin) { return !strchr(origin, ':'); }

/* One of the two, and --set before the protocol; false: it cannot be told. */
static bool choose(struct draft *d, struct asked *a) {
    if (a->file && !*a->file) a->file = NULL;
    if (!a->shape || !a->file) return true;
    if (by_set(a->shape_origin) == by_set(a->file_origin)) {
        problem_at(
            d->problems, draft_place(a->file_origin), NULL,
            "model.shape and model.file exclude each other: the file has a shape of its own");
        return false;
    }
    if (by_set(a->file_origin))
        a->shape = NULL;
    else
        a->file = NULL;
    return true;
}

static void add(struct draft *d, struct shape_file *to, const char *key, const char *value) {
    struct setting *s =
        draft_grow(d->arena, &to->settings.items, &to->settings.n, &to->settings.cap, sizeof *s);
    *s = (struct setting){
        .key = key, .origin = "model.file", .value_origin = "model.file", .value = value};
}

/* Which tokenizer it has; "" and why where text cannot be read: ids can. */
static void read_tokenizer(struct draft *d, struct shape_file *to, const struct model_file *file) {
    struct tokenizer *tokenizer = NULL;
    struct err err = {0};
    const bool has = !tokenizer_open(&tokenizer, file, &err);
    add(d, to, "tokenizer", has ? arena_text(d->arena, tokenizer_family(tokenizer)) : "");
    if (!has) add(d, to, "no tokenizer", arena_text(d->arena, err.text));
    tokenizer_close(&tokenizer);
}

static int read_file(struct draft *d, struct shape_file *to, struct err *err) {
    struct model_file *file = NULL;
    struct file_shape found;
    int code = model_file_open(&file, to->name, err);
    if (!code) code = model_file_shape(file, d->arena, &found, err);
    for (const struct option *o = shape_options; !code && o->key; o++) {
        struct text value = {0};
        text_add(&value, "", 0);
        option_format(o, &found.shape, &value);
        add(d, to, arena_printf(d->arena, "shape.%s", o->key), arena_text(d->arena, value.data));
        text_free(&value);
    }
    if (!code) {
        add(d, to, "model.shape", found.shape.name);
        add(d, to, "model.digest", arena_text(d->arena, model_file_digest(file)));
        add(d, to, "type", found.nearest);
        add(d, to, "group", arena_printf(d->arena, "%d", found.group));
        add(d, to, "mostly", found.mostly);
        add(d, to, "window", arena_printf(d->arena, "%lld", (long long)found.window));
        read_tokenizer(d, to, file);
    }
    model_file_close(&file);
    return code;
}

/* The weights are in the result by their digest; what else the file says, by key. */
static void remember(struct draft *d, const struct shape_file *file) {
    struct text lines = {0};
    for (size_t i = 0; i < file->settings.n; i++)
        text_printf(&lines, "%s = %s\n", file->settings.items[i].key,
                    file->settings.items[i].value);
    draft_remember_file(d->protocol, file->name, arena_text(d->arena, lines.data));
    text_free(&lines);
}

/* Read once for all points; NULL: told already. */
static const struct settings *file_settings(struct draft *d, const struct asked *a) {
    static const char folder[] = "";
    for (size_t i = 0; i < d->n_shapes; i++)
        if (!*d->shapes[i].folder && !strcmp(d->shapes[i].name, a->file))
            return d->shapes[i].found ? &d->shapes[i].settings : NULL;
    struct shape_file *to =
        draft_grow(d->arena, &d->shapes, &d->n_shapes, &d->cap_shapes, sizeof *to);
    struct err err = {0};
    *to = (struct shape_file){.name = a->file, .folder = folder};
    if (read_file(d, to, &err)) {
        problem_at(d->problems, draft_place(a->file_origin), NULL, "%smodel.file: %s",
                   by_set(a->file_origin) ? "--set " : "", err.text);
        return NULL;
    }
    to->found = true;
    remember(d, to);
    return &to->settings;
}

static const char *value_of(const struct settings *s, const char *key) {
    return settings_find(s, key)->value;
}

const char *draft_tokenizer(const struct draft *d, const char *file, const char **why) {
    *why = "";
    for (size_t i = 0; i < d->n_shapes; i++) {
        const struct shape_file *f = &d->shapes[i];
        if (*f->folder || strcmp(f->name, file) || !f->found) continue;
        const char *family = value_of(&f->settings, "tokenizer");
        if (!*family) *why = value_of(&f->settings, "no tokenizer");
        return *family ? family : NULL;
    }
    return NULL;
}

/* What the protocol says beside the file must not contradict it. */
static bool agrees(struct draft *d, const struct settings *file, const struct facts *facts) {
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        if (strncmp(f->key, "shape.", 6) != 0) continue;
        problem_at(d->problems, draft_place(f->origin), NULL,
                   "%s: the shape is that of model.file, and cannot be changed", f->key);
        return false;
    }
    const struct fact *digest = facts_find(facts, "model.digest");
    const struct fact *window = facts_find(facts, "model.window");
    if (digest && *digest->value && strcmp(digest->value, value_of(file, "model.digest")) != 0) {
        problem_at(d->problems, draft_place(digest->origin), NULL,
                   "model.digest: the file's is %s; it is another file",
                   value_of(file, "model.digest"));
        return false;
    }
    const char *needed = value_of(file, "window");
    if (strcmp(needed, "0") != 0 && (!window || strcmp(window->value, needed) != 0)) {
        problem_at(d->problems, window ? draft_place(window->origin) : "", NULL,
                   "model.window: the file's attention has a sliding window: --set model.window=%s",
                   needed);
        return false;
    }
    return true;
}

bool draft_model_facts(struct draft *d, const struct plan_case *c, size_t point,
                       struct facts *facts, const char **shape, const char **shape_origin) {
    struct asked a = {0};
    a.shape = draft_named(d, c, point, "model.shape", &a.shape_origin);
    a.file = draft_named(d, c, point, "model.file", &a.file_origin);
    if (!choose(d, &a)) return false;
    *shape = a.shape;
    *shape_origin = a.shape_origin;
    if (!a.file) {
        if (facts_find(facts, "model.file")) facts_set(facts, "model.file", "", "", "--set");
        return true;
    }
    const struct settings *file = file_settings(d, &a);
    if (!file || !agrees(d, file, facts)) return false;
    const struct fact *type = facts_find(facts, "model.type"),
                      *group = facts_find(facts, "model.group");
    if (type && !strcmp(type->value, MODEL_AS_STORED)) {
        const char *as = arena_printf(d->arena, "as stored, mostly %s", value_of(file, "mostly"));
        if (!group || !strcmp(group->value, "0"))
            facts_set(facts, "model.group", value_of(file, "group"), "", as);
        facts_set(facts, "model.type", value_of(file, "type"), "", as);
    }
    for (size_t i = 0; i < file->n; i++) {
        const struct setting *s = &file->items[i];
        if (strchr(s->key, '.')) facts_set(facts, s->key, s->value, "", s->origin);
    }
    return true;
}
