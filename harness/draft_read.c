/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol's text to scopes, axes and lists; what stands where it may not is told with its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "harness/draft.h"
#include "harness/sections.h"

static const char *const section_names[] = {"analysis", "case",  "device",    "gate",
                                            "measure",  "model", "published", "question",
                                            "shape",    "sweep", "title",     "workload"};
static const char *const case_names[] = {"device", "model", "name", "shape", "sweep", "workload"};
enum {
    N_SECTIONS = sizeof section_names / sizeof *section_names,
    N_CASE_NAMES = sizeof case_names / sizeof *case_names
};

void *draft_grow(struct arena *arena, void *array, size_t *n, size_t *cap, size_t size) {
    void **at = array;
    if (*n == *cap) {
        size_t room = *cap ? *cap * 2 : 8;
        void *made = arena_alloc(arena, room * size);
        if (*n) memcpy(made, *at, *n * size);
        *at = made;
        *cap = room;
    }
    return (char *)*at + (*n)++ * size;
}

const char *draft_place(const char *origin) { return strchr(origin, ':') ? origin : ""; }

struct setting *settings_find(const struct settings *settings, const char *key) {
    for (size_t i = settings->n; i-- > 0;)
        if (!strcmp(settings->items[i].key, key)) return &settings->items[i];
    return NULL;
}

void draft_unknown(struct draft *d, const char *origin, const char *key, const char *where,
                   const struct names *allowed) {
    struct text sentence = {0}, list = {0};
    struct names sorted = {0};
    for (size_t i = 0; i < allowed->n; i++) names_add(&sorted, allowed->items[i]);
    names_sort(&sorted);
    const char *near = names_nearest(&sorted, key);
    bool set = !strchr(origin, ':');
    text_printf(&sentence, "%sunknown key '%.100s' in %s", set ? "--set: " : "", key, where);
    if (near) text_printf(&sentence, "; did you mean '%s'?", near);
    text_printf(&list, "%s takes: ", where);
    names_join(&sorted, &list);
    problem_at(d->problems, draft_place(origin), list.data, "%s", sentence.data);
    text_free(&sentence);
    text_free(&list);
    names_free(&sorted);
}

struct head { /* the first part of a path: "sweep[2].workload.batch" */
    char name[40];
    long index; /* -1: none */
    const char *rest;
};
static struct head head_of(const char *path) {
    struct head head = {.index = -1};
    size_t n = strcspn(path, ".[");
    snprintf(head.name, sizeof head.name, "%.*s", (int)(n > 39 ? 39 : n), path);
    head.rest = path + n;
    if (*head.rest == '[') {
        char *end;
        head.index = strtol(head.rest + 1, &end, 10);
        head.rest = *end == ']' ? end + 1 : end;
    }
    if (*head.rest == '.') head.rest++;
    return head;
}

static bool is_one_of(const char *word, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(word, list[i])) return true;
    return false;
}

static const char *place(struct draft *d, int line, int col) {
    return arena_printf(d->arena, "%s:%d:%d", d->file, line, col);
}
static const char *key_place(struct draft *d, const struct toml_entry *e) {
    return place(d, e->key_line, e->key_col);
}

static void unknown_name(struct draft *d, const struct toml_entry *e, const char *name,
                         const char *where, const char *const *list, size_t n) {
    struct names allowed = {0};
    for (size_t i = 0; i < n; i++) names_add(&allowed, list[i]);
    draft_unknown(d, key_place(d, e), name, where, &allowed);
    names_free(&allowed);
}

static void add_setting(struct draft *d, struct settings *to, const char *key,
                        const struct toml_entry *e) {
    struct setting *s = draft_grow(d->arena, &to->items, &to->n, &to->cap, sizeof *s);
    *s = (struct setting){.key = arena_text(d->arena, key),
                          .origin = key_place(d, e),
                          .value = e->text,
                          .value_origin = place(d, e->line, e->col),
                          .kind = e->kind};
}

/* A key of a sweep: the values of an axis. */
static void add_axis_key(struct draft *d, struct axis *axis, const char *key,
                         const struct toml_entry *e) {
    axis->named = true;
    if (e->kind != TOML_ARRAY) {
        problem_at(d->problems, place(d, e->line, e->col), NULL,
                   "[[sweep]] %s: a list of values is needed, as [1, 2, 4]", key);
        return;
    }
    if (!e->n_items) {
        problem_at(d->problems, place(d, e->line, e->col), NULL, "[[sweep]] %s: the list is empty",
                   key);
        return;
    }
    struct axis_key *k = draft_grow(d->arena, &axis->keys, &axis->n_keys, &axis->cap, sizeof *k);
    k->key = arena_text(d->arena, key);
    k->origin = key_place(d, e);
    k->items = arena_alloc(d->arena, e->n_items * sizeof *k->items);
    k->n = e->n_items;
    for (size_t i = 0; i < e->n_items; i++)
        k->items[i] = (struct axis_value){e->items[i], place(d, e->item_line[i], e->item_col[i])};
}

/* "sweep", "sweep[2]" or "sweep[2].KEY" of a scope. */
static void read_sweep(struct draft *d, struct scope *scope, const struct head *head,
                       const struct toml_entry *e) {
    if (head->index < 0) {
        if (!*head->rest && e->kind == TOML_ARRAY && !e->n_items)
            problem_at(d->problems, key_place(d, e), NULL, "the sweep is empty");
        else if (!*head->rest)
            problem_at(d->problems, key_place(d, e), NULL,
                       "sweep is a list of axes: each begins with [[sweep]]");
        return;
    }
    if (!*head->rest) {
        struct axis *axis = draft_grow(d->arena, &scope->axes.items, &scope->axes.n,
                                       &scope->axes.cap, sizeof *axis);
        axis->origin = key_place(d, e);
    } else if (scope->axes.n && e->kind != TOML_TABLE) {
        add_axis_key(d, &scope->axes.items[scope->axes.n - 1], head->rest, e);
    }
}

/* "workload.batch" and its like; header: the table itself. */
static void read_settings(struct draft *d, struct scope *scope, struct settings *to,
                          const struct head *head, const char *path, const struct toml_entry *e,
                          bool empty_table) {
    if (head->index >= 0) {
        if (!*head->rest)
            problem_at(d->problems, key_place(d, e), NULL, "[%s] is one table, not a list of them",
                       head->name);
        return;
    }
    if (!*head->rest) {
        if (e->kind != TOML_TABLE)
            problem_at(d->problems, key_place(d, e), NULL, "%s is a table: [%s]", head->name,
                       head->name);
        if (!strcmp(head->name, "model")) scope->model_origin = key_place(d, e);
        if (!strcmp(head->name, "shape")) scope->shape_origin = key_place(d, e);
        return;
    }
    if (e->kind != TOML_TABLE || empty_table) add_setting(d, to, path, e);
}

static bool has_control(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 127) return true;
    return false;
}

static void read_case(struct draft *d, const struct head *head, const struct toml_entry *e,
                      bool empty_table) {
    if (head->index < 0) {
        if (!*head->rest)
            problem_at(d->problems, key_place(d, e), NULL,
                       "case is a list: each begins with [[case]]");
        return;
    }
    if (!*head->rest) {
        struct scope *scope =
            draft_grow(d->arena, &d->cases, &d->n_cases, &d->cap_cases, sizeof *scope);
        *scope = (struct scope){.name = "", .origin = key_place(d, e)};
        return;
    }
    if (!d->n_cases) return;
    struct scope *scope = &d->cases[d->n_cases - 1];
    struct head inner = head_of(head->rest);
    if (!strcmp(inner.name, "name") && !*inner.rest && inner.index < 0) {
        if (e->kind != TOML_STRING || !*e->text)
            problem_at(d->problems, place(d, e->line, e->col), NULL, "a case's name is text");
        else if (has_control(e->text))
            problem_at(d->problems, place(d, e->line, e->col), NULL,
                       "a case's name is one line without tabs or control characters: it stands "
                       "in tables");
        scope->name = e->text;
    } else if (!strcmp(inner.name, "sweep")) {
        read_sweep(d, scope, &inner, e);
    } else if (strcmp(inner.name, "name") && is_one_of(inner.name, case_names, N_CASE_NAMES)) {
        read_settings(d, scope, &scope->settings, &inner, head->rest, e, empty_table);
    } else if (e->kind != TOML_TABLE || !*inner.rest) {
        unknown_name(d, e, inner.name, "[[case]]", case_names, N_CASE_NAMES);
    }
}

static void read_declared(struct draft *d, const struct head *head, const struct toml_entry *e,
                          struct declared **list, size_t *n, size_t *cap) {
    if (head->index < 0) {
        if (!*head->rest)
            problem_at(d->problems, key_place(d, e), NULL, "%s is a list: each begins with [[%s]]",
                       head->name, head->name);
        return;
    }
    if (!*head->rest) {
        struct declared *one = draft_grow(d->arena, list, n, cap, sizeof *one);
        one->origin = key_place(d, e);
    } else if (*n && e->kind != TOML_TABLE) {
        add_setting(d, &(*list)[*n - 1].settings, head->rest, e);
    }
}

static void read_text(struct draft *d, const struct head *head, const struct toml_entry *e,
                      const char **to) {
    if (e->kind != TOML_STRING || *head->rest)
        problem_at(d->problems, place(d, e->line, e->col), NULL, "%s is text", head->name);
    else
        *to = e->text;
}

static void read_entry(struct draft *d, const struct toml_entry *e, bool empty_table) {
    struct head head = head_of(e->path);
    if (!strcmp(head.name, "title")) {
        read_text(d, &head, e, &d->protocol->title);
    } else if (!strcmp(head.name, "question")) {
        read_text(d, &head, e, &d->protocol->question);
    } else if (!strcmp(head.name, "sweep")) {
        read_sweep(d, &d->top, &head, e);
    } else if (!strcmp(head.name, "case")) {
        read_case(d, &head, e, empty_table);
    } else if (!strcmp(head.name, "analysis")) {
        read_declared(d, &head, e, &d->analyses, &d->n_analyses, &d->cap_analyses);
    } else if (!strcmp(head.name, "published")) {
        read_declared(d, &head, e, &d->published, &d->n_published, &d->cap_published);
    } else if (!strcmp(head.name, "gate")) {
        read_settings(d, &d->top, &d->gate, &head, e->path, e, empty_table);
    } else if (!strcmp(head.name, "measure")) {
        read_settings(d, &d->top, &d->measure, &head, e->path, e, empty_table);
    } else if (is_one_of(head.name, section_names, N_SECTIONS)) {
        read_settings(d, &d->top, &d->top.settings, &head, e->path, e, empty_table);
    } else if (!strpbrk(e->path, ".[")) { /* what is below it needs no word more */
        unknown_name(d, e, head.name, "a protocol", section_names, N_SECTIONS);
    } else if (head.index == 0 && !*head.rest) {
        unknown_name(d, e, head.name, "a protocol", section_names, N_SECTIONS);
    }
}

void draft_read(struct draft *d, const struct toml_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(entries[i].path);
        const char *next = i + 1 < n ? entries[i + 1].path : "";
        bool inside =
            !strncmp(next, entries[i].path, len) && (next[len] == '.' || next[len] == '[');
        read_entry(d, &entries[i], entries[i].kind == TOML_TABLE && !inside);
    }
    for (size_t i = 0; i < d->n_cases; i++) {
        struct scope *c = &d->cases[i];
        if (!*c->name) problem_at(d->problems, c->origin, NULL, "[[case]] needs a name");
        for (size_t j = 0; j < i && *c->name; j++)
            if (!strcmp(d->cases[j].name, c->name))
                problem_at(d->problems, c->origin, NULL, "two cases are called '%s'", c->name);
    }
}
