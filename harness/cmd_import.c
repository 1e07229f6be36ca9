/* SPDX-License-Identifier: Apache-2.0 */
/* `bench import`: results of other tools become a result file, which show, plot, export and compare
 * take as any other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "gen/build_info.h"
#include "harness/command.h"
#include "harness/names.h"
#include "harness/output.h"
#include "results/import.h"

static const struct flag flags[] = {
    {"--format", "-f", "FORMAT", "What to read",
     "llama-bench or gbench; default: recognised by its content", false},
    {"--output", "-o", "FILE", "Output",
     "the .h5 to write; without it, the first file's name with .h5", false},
    {0},
};

static const struct importer *find_format(const char *name, struct err *err) {
    const struct importer *found = importer_find(name);
    struct names names = {0};
    struct text list = {0};
    if (found) return found;
    for (const struct importer *const *i = all_importers; *i; i++) names_add(&names, (*i)->name);
    names_join(&names, &list);
    const char *near = names_nearest(&names, name);
    err_set(err, ERR_INPUT, "no format that can be imported is called '%.60s'%s%s%s (there are %s)",
            name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
    return NULL;
}

/* a/run.json -> a/run.h5 */
static char *result_of(const char *path) {
    struct text t = {0};
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    bool ending = dot && dot > (slash ? slash + 1 : path);
    text_add(&t, path, ending ? (size_t)(dot - path) : strlen(path));
    text_puts(&t, ".h5");
    return text_take(&t);
}

static int convert(const struct arguments *a, const char *out, struct text *lost, struct err *err) {
    const char *name = argument(a, "--format");
    const struct importer *format = name ? find_format(name, err) : NULL;
    struct import *im = import_create();
    int64_t visits, rows;
    int code = name && !format ? err->code : 0;
    if (!code && file_exists(out))
        code = err_set(err, ERR_INPUT, "%s exists already; results are never overwritten", out);
    if (!code) code = output_check_folder(out, err);
    for (size_t i = 0; i < a->n_words && !code; i++)
        code = import_file(im, a->words[i], format, lost, err);
    if (!code) code = import_store(im, out, BENCH_VERSION, err);
    if (!code) {
        rows = import_rows(im, &visits);
        printf("%s\n", out);
        fprintf(stderr, "%lld row%s, %lld visit%s\nnext  bench show ", (long long)rows,
                rows == 1 ? "" : "s", (long long)visits, visits == 1 ? "" : "s");
        struct text shell = {0};
        text_shell(&shell, out);
        fprintf(stderr, "%s\n", shell.data);
        text_free(&shell);
    }
    import_close(&im);
    return code;
}

static int import_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct text lost = {0};
    int code = command_parse(&command_import, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (!a.n_words) {
        fprintf(stderr, "bench import: which file? (llama-bench -o json, or Google Benchmark's "
                        "JSON)\n");
        return EXIT_USAGE;
    }
    char *out =
        argument(&a, "--output") ? must_text(argument(&a, "--output")) : result_of(a.words[0]);
    code = convert(&a, out, &lost, &err) ? command_fail(&err) : EXIT_OK;
    if (lost.len) fputs(lost.data, stderr);
    text_free(&lost);
    free(out);
    return code;
}

const struct command command_import = {
    .name = "import",
    .usage = "FILE... [-o OUT.h5] [--format FORMAT]",
    .brief = "makes a result file of what llama-bench or Google Benchmark wrote",
    .group = "Look at results",
    .flags = flags,
    .main = import_main,
};
