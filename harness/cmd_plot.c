/* SPDX-License-Identifier: Apache-2.0 */
/* `bench plot`: pictures of a result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/output.h"
#include "harness/protocol.h"
#include "plots/plot.h"
#include "results/store.h"

enum { ASCII_WIDTH = 90, ASCII_HEIGHT = 20 };

/* Kinds of ours that do not suit a result stay refused. */
static bool is_built_in(const char *kind) {
    static const char *const ours[] = {"knee",   "scaling", "parts",  "roofline",
                                       "memory", "samples", "warmup", "history"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(kind, ours[i])) return true;
    return false;
}

/* A script of the user's own among the plots: it gets whole tables and decides for itself. */
static bool own_script(const char *kind) {
    const char *scripts = data_folder("plots");
    struct text path = {0};
    if (!scripts || strchr(kind, '/')) return false;
    text_printf(&path, "%s/%s.gp", scripts, kind);
    bool there = file_exists(path.data) && strcmp(kind, "style") && !is_built_in(kind);
    text_free(&path);
    return there;
}

static const char *choose_kind(const struct tables *tables, const char *wanted, struct err *err) {
    const char *const *kinds = plot_kinds(tables);
    size_t n = 0;
    struct text list = {0};
    while (kinds[n]) n++;
    if (!n) {
        err_set(err, ERR_INPUT, "there is nothing to draw in this result");
        return NULL;
    }
    if (!wanted) return kinds[0];
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(kinds[i], wanted)) {
            text_free(&list);
            return kinds[i];
        }
        text_printf(&list, "%s%s", i ? ", " : "", kinds[i]);
    }
    if (own_script(wanted)) {
        text_free(&list);
        return wanted;
    }
    const char *near = text_nearest(wanted, kinds, n);
    err_set(err, ERR_INPUT, "no plot '%.60s' for this result%s%s%s (it has %s)", wanted,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    text_free(&list);
    return NULL;
}

/* Other kinds than the run's own stand beside its picture, not in its place. */
static void add_kind(char **stem, const char *kind) {
    struct text t = {0};
    text_printf(&t, "%s-%s", *stem, kind);
    free(*stem);
    *stem = text_take(&t);
}

static int draw(const struct tables *tables, const struct arguments *a, struct err *err) {
    const char *kind = choose_kind(tables, argument(a, "--kind"), err);
    const char *file = a->words[0], *named = argument(a, "--output");
    if (!kind) return err->code;
    if (argument(a, "--ascii")) {
        struct text out = {0};
        int code = plot_ascii(tables, kind, ASCII_WIDTH, ASCII_HEIGHT, &out, err);
        if (!code && out.len) fwrite(out.data, 1, out.len, stdout);
        text_free(&out);
        return code;
    }
    const char *scripts = data_folder("plots");
    size_t n = strlen(file);
    if (output_check_pictures(named, err)) return err->code;
    char *stem = must_text(named ? named : file);
    if (!named && n > 3 && !strcmp(file + n - 3, ".h5")) stem[n - 3] = 0;
    if (!named && strcmp(kind, plot_kinds(tables)[0])) add_kind(&stem, kind);
    int code = scripts ? plot_draw(tables, kind, file, stem, scripts, err)
                       : err_set(err, ERR_INPUT, "the folder of plot scripts was not found");
    if (!code) printf("%s.svg\n%s.png\n", stem, stem);
    free(stem);
    return code;
}

static const struct flag flags[] = {
    {"--kind", "-k", "KIND", "What to draw",
     "knee, scaling, parts, roofline, memory, samples, warmup or tradeoff; default: what suits the result",
     false},
    {"--ascii", NULL, NULL, "Output", "with characters, on the terminal", false},
    {"--output", "-o", "STEM", "Output",
     "STEM.svg and STEM.png; default: beside the result, other kinds with -KIND behind its name",
     false},
    {0},
};

static int plot_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct tables *tables = NULL;
    int code = command_parse(&command_plot, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench plot: one result file is needed\n");
        return EXIT_USAGE;
    }
    if (store_read(&tables, a.words[0], NULL, &err) || draw(tables, &a, &err))
        code = command_fail(&err);
    tables_close(&tables);
    return code;
}

const struct command command_plot = {
    .name = "plot",
    .usage = "FILE [--kind KIND] [--ascii] [-o STEM]",
    .brief =
        "pictures of a result: knee, scaling, parts, roofline, memory, samples, warmup, tradeoff",
    .group = "Look at results",
    .flags = flags,
    .main = plot_main,
};
