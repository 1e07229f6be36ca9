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
    *figure = (struct sheet_figure){arena_textn(arena, path, len), "", "", ""};
    return figure;
}

int sheet_read(struct sheet *sheet, const char *name, struct arena *arena, struct err *err) {
    char path[PATH_MAX], *text = NULL;
    struct toml_entry *entries = NULL;
    size_t len = 0, n = 0;
    *sheet = (struct sheet){.title = name};
    int code = find(name, path, sizeof path, err);
    if (!code) code = file_read(path, TOML_MOST_BYTES, &text, &len, err);
    if (!code) code = toml_read(text, len, path, arena, &entries, &n, err);
    free(text);
    if (code) return code;
    sheet->figures = arena_alloc(arena, (n + 1) * sizeof *sheet->figures);
    for (size_t i = 0; i < n; i++) {
        const char *dot = strchr(entries[i].path, '.');
        if (!strcmp(entries[i].path, "title")) sheet->title = entries[i].text;
        if (!dot) continue;
        struct sheet_figure *figure =
            figure_of(sheet, entries[i].path, (size_t)(dot - entries[i].path), arena);
        if (!strcmp(dot, ".value")) figure->value = entries[i].text;
        if (!strcmp(dot, ".kind")) figure->kind = entries[i].text;
        if (!strcmp(dot, ".from")) figure->from = entries[i].text;
    }
    return 0;
}
