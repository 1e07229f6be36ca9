/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a protocol: from a name to points that are checked and planned, or to a list of all
 * mistakes. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "results/table.h"

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_in_toml(const char *name) {
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".toml");
}

/* Those of a folder below ours go by the folder's name: "seeds/kv_bytes". */
static void add_seeds(struct names *all, const char *ours) {
    struct names seeds = {0};
    char path[PATH_MAX], name[200];
    snprintf(path, sizeof path, "%s/seeds", ours);
    names_of_folder(&seeds, path, ".toml");
    for (size_t i = 0; i < seeds.n; i++) {
        snprintf(name, sizeof name, "seeds/%.150s", seeds.items[i]);
        names_add(all, name);
    }
    names_free(&seeds);
}

static int no_protocol(const char *name, struct err *err) {
    struct names names = {0};
    struct text list = {0};
    const char *ours = data_folder("protocols");
    char bare[128];
    if (ours) names_of_folder(&names, ours, ".toml");
    names_join(&names, &list);
    if (ours) add_seeds(&names, ours);
    text_puts(&list, "; seeds/NAME: bench list protocols");
    snprintf(bare, sizeof bare, "%s", strncmp(name, "seeds/", 6) ? base_name(name) : name);
    if (ends_in_toml(bare)) bare[strlen(bare) - 5] = 0;
    const char *near = names_nearest(&names, bare);
    err_set(err, ERR_INPUT, "no protocol '%.200s'%s%s%s (there are %s)", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
    return ERR_INPUT;
}

/* A file as it is named, else a name in our own folder. */
static int find_file(const char *name, char *path, size_t size, struct err *err) {
    const char *ours = data_folder("protocols");
    if (!*name) return err_set(err, ERR_INPUT, "a protocol's name is empty");
    snprintf(path, size, "%s", name);
    if (file_exists(path)) return 0;
    if (ours && (!strchr(name, '/') || !strncmp(name, "seeds/", 6))) {
        int n = snprintf(path, size, "%s/%s%s", ours, name, ends_in_toml(name) ? "" : ".toml");
        if (n > 0 && (size_t)n < size && file_exists(path)) return 0;
    }
    return no_protocol(name, err);
}

/* The text of the protocol and where it lies; folder "" in a replay. */
static int read_text(const struct protocol_request *request, struct arena *arena, const char **file,
                     const char **folder, const char **text, size_t *len, struct err *err) {
    char path[PATH_MAX], *data = NULL;
    *folder = NULL;
    if (request->text) {
        *file = arena_text(arena, base_name(request->path ? request->path : "protocol.toml"));
        *text = arena_text(arena, request->text);
        *len = strlen(request->text);
        return 0;
    }
    int code = find_file(request->path ? request->path : "", path, sizeof path, err);
    if (!code) code = file_read(path, TOML_MOST_BYTES, &data, len, err);
    if (code) return code;
    *file = arena_text(arena, base_name(path));
    *text = arena_textn(arena, data, *len);
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    *folder = slash ? arena_text(arena, path) : ".";
    free(data);
    return 0;
}

/* A replay begins with what was given on the command line then; what is given now comes after it.
 */
static struct protocol_request with_stored(const struct protocol_request *request,
                                           struct arena *arena) {
    struct protocol_request made = *request;
    const struct table *facts = request->stored ? tables_peek(request->stored, "protocol") : NULL;
    size_t most = request->n_sets + (facts ? (size_t)table_rows(facts) : 0), n = 0;
    const char **sets = arena_alloc(arena, (most + 1) * sizeof *sets);
    for (int64_t i = 0; facts && i < table_rows(facts); i++) {
        const char *key = table_text(facts, i, "key"), *value = table_text(facts, i, "value");
        if (strcmp(table_text(facts, i, "scope"), "protocol")) continue;
        if (!strncmp(key, "set.", 4)) sets[n++] = arena_text(arena, value);
        if (!strcmp(key, "measure.quick") && !strcmp(value, "true")) made.quick = true;
        if (!strcmp(key, "measure.profile") && !strcmp(value, "true")) made.profile = true;
    }
    for (size_t i = 0; i < request->n_sets; i++) sets[n++] = request->sets[i];
    made.sets = sets;
    made.n_sets = n;
    return made;
}

static void first_file(struct protocol *p, const char *file, const char *text) {
    p->files = arena_alloc(p->arena, sizeof *p->files);
    p->files[0].path = file;
    p->files[0].text = text;
    p->n_files = 1;
}

static void make_points(struct draft *d, const struct toml_entry *entries, size_t n) {
    struct protocol *p = d->protocol;
    draft_read(d, entries, n);
    draft_sets(d);
    facts_set(&p->facts, "title", p->title, "", "");
    facts_set(&p->facts, "question", p->question, "", "");
    draft_measure(d);
    draft_gate(d);
    draft_cases(d);
    draft_expand(d);
    /* What an older program stored is replayed as it was. */
    if (d->folder && !problems_count(d->problems)) draft_idle(d);
    draft_lists(d);
    if (!problems_count(d->problems)) draft_fit(d);
    if (!p->n_points && !problems_count(d->problems))
        problem_at(d->problems, "", NULL, "%s has no points", d->file);
}

int protocol_load(struct protocol **out, const struct protocol_request *request,
                  struct problems *problems, struct err *err) {
    struct arena *arena = arena_create();
    struct protocol *p = arena_alloc(arena, sizeof *p);
    const char *file = "", *folder = NULL, *text = "";
    size_t len = 0, n = 0;
    struct toml_entry *entries = NULL;
    *out = NULL;
    p->arena = arena;
    int code = read_text(request, arena, &file, &folder, &text, &len, err);
    if (!code) code = toml_read(text, len, file, arena, &entries, &n, err);
    if (code) goto out;
    first_file(p, file, text);
    p->name = arena_textn(arena, file, strlen(file) - (ends_in_toml(file) ? 5 : 0));
    p->title = p->name;
    p->question = "";
    struct protocol_request all = with_stored(request, arena);
    struct draft draft = {.arena = arena,
                          .problems = problems,
                          .protocol = p,
                          .request = &all,
                          .file = file,
                          .folder = folder,
                          .top = {.name = "", .origin = NULL}};
    make_points(&draft, entries, n);
    if (!problems_count(problems)) {
        *out = p;
        p = NULL;
    }
out:
    if (p) {
        p->arena = arena;
        protocol_close(&p);
    }
    return code;
}

void protocol_close(struct protocol **p) {
    if (!*p) return;
    struct arena *arena = (*p)->arena;
    for (size_t i = 0; i < (*p)->n_points; i++) facts_free(&(*p)->points[i].facts);
    facts_free(&(*p)->facts);
    *p = NULL;
    arena_close(&arena);
}
