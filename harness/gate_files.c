/* SPDX-License-Identifier: Apache-2.0 */
/* Files, settings and output of the commands that judge stored results. */
#include "harness/gate_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/names.h"
#include "harness/output.h"
#include "harness/protocol.h"
#include "results/pairs.h"
#include "results/rows.h"
#include "results/store.h"

#define MOST_BYTES ((size_t)4 << 30)

/* All that rounds are made from; no warm-ups, timelines, quadruples or texts of the protocol. */
static const char *const needed[] = {"meta",    "protocol", "environment", "points", "phases",
                                     "metrics", "visits",   "samples",     "marks",  "values",
                                     "summary", "ceilings", "pairs",       NULL};

static int add_one(struct gate_files *f, const char *path, struct err *err) {
    struct tables *tables = NULL;
    if (f->n == GATE_MOST_FILES)
        return err_set(err, ERR_INPUT, "more than %d result files", GATE_MOST_FILES);
    int code = store_read(&tables, path, needed, err);
    if (code) return code;
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 8;
        f->items = must_realloc(f->items, f->cap * sizeof *f->items);
    }
    f->items[f->n++] = (struct sides_file){must_text(path), tables};
    return 0;
}

int gate_files_add(struct gate_files *f, const char *path, struct err *err) {
    struct stat st;
    struct names names = {0};
    int code = 0;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) return add_one(f, path, err);
    names_of_folder(&names, path, ".h5");
    if (!names.n) code = err_set(err, ERR_INPUT, "%s: no result file (*.h5) is in there", path);
    for (size_t i = 0; i < names.n && !code; i++) {
        struct text full = {0};
        text_printf(&full, "%s/%s.h5", path, names.items[i]);
        code = add_one(f, full.data, err);
        text_free(&full);
    }
    names_free(&names);
    return code;
}

void gate_files_free(struct gate_files *f) {
    for (size_t i = 0; i < f->n; i++) {
        free((char *)f->items[i].name);
        tables_close(&f->items[i].tables);
    }
    free(f->items);
    *f = (struct gate_files){NULL, 0, 0};
}

int gate_files_sides(const struct arguments *a, struct gate_files *old, struct gate_files *new,
                     struct err *err) {
    const char *olds[128], *news[128];
    const size_t n_old = arguments_of(a, "--old", olds, 128);
    const size_t n_new = arguments_of(a, "--new", news, 128);
    const size_t first = a->n_words > 0 && !n_old ? 1 : 0; /* words: OLD, then runs of NEW */
    int code = 0;
    if (first) code = gate_files_add(old, a->words[0], err);
    for (size_t i = 0; i < n_old && !code; i++) code = gate_files_add(old, olds[i], err);
    for (size_t i = first; i < a->n_words && !code; i++)
        code = gate_files_add(new, a->words[i], err);
    for (size_t i = 0; i < n_new && !code; i++) code = gate_files_add(new, news[i], err);
    if (!code && (!old->n || !new->n))
        code = err_set(err, ERR_INPUT, "two sides are needed: OLD NEW, or --old FILE --new FILE");
    const struct gate_files *sides[] = {old, new};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < sides[side]->n && !code; i++)
            if (pairs_begun(sides[side]->items[i].tables))
                code = err_set(err, ERR_INPUT,
                               "%s is a comparison with both sides in it: bench show has its "
                               "verdicts",
                               sides[side]->items[i].name);
    return code;
}

const struct sides_fact gate_files_facts[] = {
    {"measure.cold", "false"}, {"measure.fresh", "round"}, {"measure.seed", "1"}, {NULL, NULL}};

/* --- settings --- */

static int set_one(const char *key, const char *value, struct gate_settings *s, struct arena *arena,
                   struct err *err) {
    const struct option *o = option_find(gate_options, key);
    struct names names = {0};
    struct text list = {0};
    int code;
    if (o) {
        code = option_parse(o, value, s, arena, err);
        if (code) err_prefix(err, "gate.%s", key);
        return code;
    }
    names_add_options(&names, gate_options, "gate.");
    char full[120];
    snprintf(full, sizeof full, "gate.%.100s", key);
    const char *near = names_nearest(&names, full);
    names_join(&names, &list);
    code = err_set(err, ERR_INPUT, "--set: unknown key '%s'%s%s%s (there are %s)", full,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
    return code;
}

int gate_files_settings(const struct arguments *a, const struct sides_file *old,
                        struct gate_settings *s, struct arena *arena, struct err *err) {
    const char *sets[128], *metric = argument(a, "--metric"), *rows = argument(a, "--rows");
    const size_t n = arguments_of(a, "--set", sets, 128);
    int code = 0;
    option_defaults(gate_options, s, arena);
    for (const struct option *o = gate_options; old && o->key && !code; o++) {
        char key[80];
        snprintf(key, sizeof key, "gate.%s", o->key);
        const char *value = rows_fact(old->tables, key);
        if (*value && option_parse(o, value, s, arena, err))
            code = err_prefix(err, "%s: %s", old->name, key);
    }
    if (!code && metric) code = set_one("metric", metric, s, arena, err);
    if (!code && rows) code = set_one("rows", rows, s, arena, err);
    for (size_t i = 0; i < n && !code; i++) {
        const char *equals = strchr(sets[i], '=');
        if (!equals || strncmp(sets[i], "gate.", 5)) {
            code = err_set(err, ERR_INPUT, "--set '%.100s': gate.KEY=VALUE is needed", sets[i]);
            break;
        }
        char *key = arena_textn(arena, sets[i] + 5, (size_t)(equals - sets[i]) - 5);
        code = set_one(key, equals + 1 + strspn(equals + 1, " "), s, arena, err);
    }
    return code ? code : gate_check(s, 0, 0, err);
}

static bool fact_in(const struct gate_files *f, const char *name) {
    for (size_t i = 0; f && i < f->n; i++)
        if (sides_fact_known(f->items[i].tables, gate_files_facts, name)) return true;
    return false;
}

static int unknown_fact(const struct gate_files *f, const char *name, struct err *err) {
    struct names names = {0};
    const struct table *t = tables_peek(f->items[0].tables, "environment");
    for (int64_t i = 0; i < table_rows(t); i++) names_add(&names, table_text(t, i, "key"));
    for (const struct sides_fact *s = gate_files_facts; s->key; s++) names_add(&names, s->key);
    const char *near = names_nearest(&names, name);
    const int code =
        err_set(err, ERR_INPUT, "--across %.60s: none of the files has such a fact%s%s%s", name,
                near ? "; did you mean '" : " (bench show --facts FILE)", near ? near : "",
                near ? "'?" : "");
    names_free(&names);
    return code;
}

int gate_files_across(const struct arguments *args, const struct gate_files *a,
                      const struct gate_files *b, const char *across[GATE_MOST_ACROSS], size_t *n,
                      struct err *err) {
    *n = arguments_of(args, "--across", across, GATE_MOST_ACROSS);
    for (size_t i = 0; i < *n; i++)
        if (!fact_in(a, across[i]) && !fact_in(b, across[i]))
            return unknown_fact(a, across[i], err);
    return 0;
}

int gate_files_rows(const struct gate_settings *s, const struct gate_files *old,
                    const struct gate_files *new, struct err *err) {
    const struct gate_files *sides[] = {old, new};
    const size_t most = old->n + (new ? new->n : 0);
    const struct tables **files = must_alloc((most + 1) * sizeof *files);
    size_t n = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; sides[side] && i < sides[side]->n; i++)
            files[n++] = sides[side]->items[i].tables;
    int code = rows_check_keys(files, n, s->rows, err);
    if (code) code = err_prefix(err, "gate.rows");
    free(files);
    return code;
}

static bool has_fact(const struct tables *ts, const char *key) {
    const struct table *t = tables_peek(ts, "protocol");
    for (int64_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_text(t, i, "key"), key)) return true;
    return false;
}

void gate_files_note(struct gate *g, const struct sides_file *old, const struct sides_file *new) {
    for (const struct option *o = gate_options; o->key; o++) {
        char key[80];
        snprintf(key, sizeof key, "gate.%s", o->key);
        const char *a = rows_fact(old->tables, key), *b = rows_fact(new->tables, key);
        struct gate_settings plain = {.metric = ""};
        struct arena *arena = arena_create();
        struct text standard = {0};
        option_defaults(gate_options, &plain, arena);
        text_add(&standard, "", 0);
        option_format(o, &plain, &standard);
        if (!has_fact(old->tables, key)) a = standard.data; /* made before there was a [gate] */
        if (has_fact(new->tables, key) && strcmp(a, b))
            gate_note(g, "%s: %s is '%s' in %s and '%s' in %s: the old one counts", "[gate]",
                      o->key, a, old->name, b, new->name);
        text_free(&standard);
        arena_close(&arena);
    }
}

bool gate_files_are_one(const char *a, const char *b) {
    struct stat x, y;
    char one[17], other[17];
    if (stat(a, &x) || stat(b, &y)) return false;
    if (x.st_dev == y.st_dev && x.st_ino == y.st_ino) return true;
    if (x.st_size != y.st_size) return false;
    return !gate_file_digest(a, one, NULL) && !gate_file_digest(b, other, NULL) &&
           !strcmp(one, other);
}

int gate_files_same(struct gate *g, const struct gate_files *old, const struct gate_files *new,
                    struct err *err) {
    const struct gate_files *sides[] = {old, new};
    for (int side = 0; side < 2; side++)
        for (size_t i = 1; i < sides[side]->n; i++)
            for (size_t k = 0; k < i; k++) {
                const char *a = sides[side]->items[k].name, *b = sides[side]->items[i].name;
                if (gate_files_are_one(a, b))
                    return err_set(err, ERR_INPUT,
                                   "%s and %s are the same result: it is one run, not two", a, b);
            }
    for (size_t i = 0; i < old->n; i++)
        for (size_t k = 0; k < new->n; k++)
            if (gate_files_are_one(old->items[i].name, new->items[k].name))
                gate_note(g, "%s and %s are the same result", old->items[i].name,
                          new->items[k].name);
    return 0;
}

/* --- output --- */

int gate_files_format(const struct arguments *a, const char **format, struct err *err) {
    struct text list = {0};
    *format = argument(a, "--format");
    if (!*format) *format = "text";
    for (const char *const *f = gate_formats; *f; f++) {
        if (!strcmp(*f, *format)) {
            text_free(&list);
            return 0;
        }
        text_printf(&list, "%s%s", list.len ? ", " : "", *f);
    }
    err_set(err, ERR_INPUT, "no format is called '%.60s' (there are %s)", *format, list.data);
    text_free(&list);
    return ERR_INPUT;
}

int gate_files_output(const struct arguments *a, const char **format, struct err *err) {
    const int code = gate_files_format(a, format, err);
    return code ? code : output_check_document(argument(a, "--output"), err);
}

int gate_files_write(const struct arguments *a, const char *format, const struct gate *g,
                     struct err *err) {
    const char *path = argument(a, "--output");
    struct text document = {0};
    int code = 0;
    gate_write(g, format, &document);
    if (path && strcmp(path, "-")) {
        code = file_write(path, document.data, document.len, err);
        document.len = 0;
        if (!code) gate_text(g, &document);
    }
    if (!code) fwrite(document.data, 1, document.len, stdout);
    text_free(&document);
    return code;
}

/* --- accepted baselines --- */

int gate_file_digest(const char *path, char out[17], struct err *err) {
    char *data = NULL;
    size_t len = 0;
    int code = file_read(path, MOST_BYTES, &data, &len, err);
    if (!code) hash_text(out, hash_bytes(data, len, 0));
    free(data);
    return code;
}

char *gate_accepted_path(const char *baseline) {
    struct text t = {0};
    text_printf(&t, "%s.accepted", baseline);
    return text_take(&t);
}

int gate_accepted(const char *list, const char *digest, bool *found, struct err *err) {
    char *data = NULL;
    size_t len = 0;
    *found = false;
    int code = file_read(list, (size_t)1 << 24, &data, &len, err);
    for (char *rest = data, *line; !code && (line = strsep(&rest, "\n"));)
        if (*line != '#' && !strncmp(line, digest, 16) && line[16] == '\t') *found = true;
    free(data);
    return code;
}

void gate_files_summary(const struct gate *g) {
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    struct text t = {0};
    if (!path || !*path) return;
    gate_markdown(g, &t);
    FILE *f = fopen(path, "ab");
    bool failed = !f || fwrite(t.data, 1, t.len, f) != t.len;
    if (f && fclose(f)) failed = true;
    if (failed) fprintf(stderr, "bench: %s could not be written\n", path);
    text_free(&t);
}
