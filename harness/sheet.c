/* SPDX-License-Identifier: Apache-2.0 */
/* Reading data sheets of devices. */
#include "harness/sheet.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/names.h"
#include "harness/protocol.h"
#include "harness/toml.h"

enum { N_FIGURES = 3 };
const char *const sheet_figures[N_FIGURES + 1] = {"hbm_bytes_per_s", "memory_bytes",
                                                  "dense_bf16_flop_per_s", NULL};

static int no_sheet(const char *name, const struct names *names, struct err *err) {
    struct text list = {0};
    const char *near = names_nearest(names, name);
    names_join(names, &list);
    err_set(err, ERR_INPUT,
            "no sheet is called '%.100s'%s%s%s (there are %s, or a file of your own)", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
            list.len ? list.data : "none");
    text_free(&list);
    return ERR_INPUT;
}

/* A file as it is named, else one of ours, whose names are small letters. */
static int find(const char *name, char *path, size_t size, struct err *err) {
    const char *ours = data_folder("protocols");
    struct names names = {0};
    char folder[PATH_MAX];
    int code = 0, n = 0;
    if ((size_t)snprintf(path, size, "%s", name) < size && strchr(name, '.') && file_exists(path))
        return 0;
    snprintf(folder, sizeof folder, "%s/devices", ours ? ours : ".");
    names_of_folder(&names, folder, ".toml");
    for (size_t i = 0; i < names.n && !n; i++)
        if (!strcasecmp(names.items[i], name))
            n = snprintf(path, size, "%s/%s.toml", folder, names.items[i]);
    if (n <= 0 || (size_t)n >= size) code = no_sheet(name, &names, err);
    names_free(&names);
    return code;
}

static struct sheet_figure *figure_of(struct sheet *sheet, const char *path, size_t len,
                                      struct arena *arena) {
    for (size_t i = 0; i < sheet->n; i++)
        if (strlen(sheet->figures[i].name) == len && !strncmp(sheet->figures[i].name, path, len))
            return &sheet->figures[i];
    struct sheet_figure *figure = &sheet->figures[sheet->n++];
    *figure = (struct sheet_figure){arena_textn(arena, path, len), "", "", "", ""};
    return figure;
}

static bool word_in(const char *const *words, const char *word) {
    while (*words && strcmp(*words, word)) words++;
    return *words;
}

static int mistake(const struct toml_entry *e, const char *file, const char *what,
                   const char *const *allowed, const char *word, struct err *err) {
    struct names names = {0};
    struct text list = {0};
    for (; *allowed; allowed++) names_add(&names, *allowed);
    names_join(&names, &list);
    const char *near = names_nearest(&names, word);
    err_set(err, ERR_INPUT, "%s:%d:%d: %s%s%s%s (there are %s)", file, e->key_line, e->key_col,
            what, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    text_free(&list);
    names_free(&names);
    return ERR_INPUT;
}

static int check_key(const struct toml_entry *e, const char *file, struct err *err) {
    static const char *const top[] = {"title", "cc", "a table for each figure", NULL};
    static const char *const keys[] = {"value", "kind", "from", NULL};
    static const char *const kinds[] = {"sheet", "assumed", "measured", NULL};
    const char *dot = strchr(e->path, '.');
    char what[200];
    if (e->kind == TOML_TABLE) return 0;
    if (!dot) {
        if (!strcmp(e->path, "title") || !strcmp(e->path, "cc")) return 0;
        snprintf(what, sizeof what, "unknown key '%.60s' in a sheet", e->path);
        return mistake(e, file, what, top, e->path, err);
    }
    if (!word_in(keys, dot + 1)) {
        const int name = dot - e->path > 60 ? 60 : (int)(dot - e->path);
        snprintf(what, sizeof what, "unknown key '%.60s' in [%.*s]", dot + 1, name, e->path);
        return mistake(e, file, what, keys, dot + 1, err);
    }
    if (strcmp(dot, ".kind") || word_in(kinds, e->text)) return 0;
    snprintf(what, sizeof what, "'%.60s' is no kind of figure", e->text);
    return mistake(e, file, what, kinds, e->text, err);
}

static int check_table(const struct toml_entry *e, const struct toml_entry *end, const char *file,
                       struct err *err) {
    const size_t len = strlen(e->path);
    const char *near = text_nearest(e->path, sheet_figures, N_FIGURES);
    char what[200];
    snprintf(what, sizeof what, "no figure is called '%.60s'", e->path);
    if (near && strcmp(near, e->path)) return mistake(e, file, what, sheet_figures, e->path, err);
    for (const struct toml_entry *v = e + 1; v < end; v++)
        if (!strncmp(v->path, e->path, len) && !strcmp(v->path + len, ".value")) return 0;
    return err_set(err, ERR_INPUT, "%s:%d:%d: [%.60s] has no value", file, e->line, e->col,
                   e->path);
}

int sheet_check(const struct toml_entry *entries, size_t n, const char *file, struct err *err) {
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) code = check_key(&entries[i], file, err);
    for (size_t i = 0; i < n && !code; i++)
        if (entries[i].kind == TOML_TABLE) code = check_table(&entries[i], entries + n, file, err);
    return code;
}

int sheet_read(struct sheet *sheet, const char *name, struct arena *arena, struct err *err) {
    char path[PATH_MAX], *text = NULL;
    struct toml_entry *entries = NULL;
    size_t len = 0, n = 0;
    *sheet = (struct sheet){.title = name};
    int code = find(name, path, sizeof path, err);
    if (!code) code = file_read(path, TOML_MOST_BYTES, &text, &len, err);
    if (!code) code = toml_read(text, len, path, arena, &entries, &n, err);
    if (!code) code = sheet_check(entries, n, path, err);
    free(text);
    if (code) return code;
    sheet->figures = arena_alloc(arena, (n + 1) * sizeof *sheet->figures);
    for (size_t i = 0; i < n; i++) {
        const char *dot = strchr(entries[i].path, '.');
        if (!strcmp(entries[i].path, "title")) sheet->title = entries[i].text;
        if (!dot) continue;
        struct sheet_figure *figure =
            figure_of(sheet, entries[i].path, (size_t)(dot - entries[i].path), arena);
        if (!strcmp(dot, ".value")) {
            figure->value = entries[i].text;
            figure->place = arena_printf(arena, "%s:%d:%d", path, entries[i].line, entries[i].col);
        }
        if (!strcmp(dot, ".kind")) figure->kind = entries[i].text;
        if (!strcmp(dot, ".from")) figure->from = entries[i].text;
    }
    return 0;
}
