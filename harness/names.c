/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names. */
#include "harness/names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/option.h"
#include "base/text.h"

bool names_have(const struct names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->items[i], name)) return true;
    return false;
}

void names_add(struct names *names, const char *name) {
    if (names_have(names, name)) return;
    if (names->n == names->cap) {
        names->cap = names->cap ? names->cap * 2 : 16;
        names->items = must_realloc(names->items, names->cap * sizeof *names->items);
    }
    names->items[names->n++] = must_text(name);
}

void names_add_options(struct names *names, const struct option *table, const char *prefix) {
    for (const struct option *o = table; o && o->key; o++) {
        struct text key = {0};
        text_printf(&key, "%s%s", prefix, o->key);
        names_add(names, key.data);
        text_free(&key);
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void names_sort(struct names *names) {
    if (names->n) qsort(names->items, names->n, sizeof *names->items, by_name);
}

void names_of_folder(struct names *names, const char *folder, const char *ending) {
    DIR *dir = opendir(folder);
    size_t end = strlen(ending);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n <= end || entry->d_name[0] == '.' || strcmp(entry->d_name + n - end, ending))
            continue;
        entry->d_name[n - end] = 0;
        names_add(names, entry->d_name);
    }
    closedir(dir);
    names_sort(names);
}

const char *names_nearest(const struct names *names, const char *word) {
    return text_nearest(word, names->items, names->n);
}

void names_join(const struct names *names, struct text *out) {
    for (size_t i = 0; i < names->n; i++) text_printf(out, "%s%s", i ? ", " : "", names->items[i]);
    if (!names->n) text_puts(out, "(none)");
}

void names_free(struct names *names) {
    for (size_t i = 0; i < names->n; i++) free((char *)names->items[i]);
    free(names->items);
    *names = (struct names){0};
}
