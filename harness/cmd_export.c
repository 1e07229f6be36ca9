/* SPDX-License-Identifier: Apache-2.0 */
/* `bench export`: a result in a format that others read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/names.h"
#include "harness/output.h"
#include "results/export.h"
#include "results/store.h"
#include "results/summary.h"

static const struct exporter *find_format(const char *name, struct err *err) {
    const struct exporter *e = name ? exporter_find(name) : NULL;
    struct names names = {0};
    struct text list = {0};
    if (e) return e;
    for (const struct exporter *const *x = all_exporters; *x; x++) names_add(&names, (*x)->name);
    names_join(&names, &list);
    const char *near = name ? names_nearest(&names, name) : NULL;
    if (name)
        err_set(err, ERR_INPUT, "no format is called '%.60s'%s%s%s (there are %s)", name,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    else
        err_set(err, ERR_INPUT, "export needs --format: one of %s", list.data);
    names_free(&names);
    text_free(&list);
    return NULL;
}

static bool differs(double a, double b) {
    return isfinite(a) != isfinite(b) || (isfinite(a) && fabs(a - b) > 1e-9 * (fabs(a) + fabs(b)));
}

/* A summary that its own samples do not give was edited, or written by another version: said, not
 * hidden. */
static int recompute(struct tables *tables, const char *path, struct err *err) {
    const struct table *summary = tables_peek(tables, "summary");
    int64_t n = table_rows(summary), bad = 0;
    struct old {
        int64_t point;
        double mean;
        char *metric;
    } *old = must_alloc(((size_t)n + 1) * sizeof *old);
    for (int64_t i = 0; i < n; i++)
        old[i] = (struct old){table_int(summary, i, "point"), table_real(summary, i, "mean"),
                              must_text(table_text(summary, i, "metric"))};
    int code = summary_compute(tables, err);
    for (int64_t i = 0; i < n; i++) {
        if (!code &&
            differs(old[i].mean, summary_get(tables, old[i].point, old[i].metric, "mean")) &&
            !bad++)
            fprintf(stderr, "bench: %s: the stored %s of row %lld is not what its samples give\n",
                    path, old[i].metric, (long long)old[i].point);
        free(old[i].metric);
    }
    if (bad > 1) fprintf(stderr, "bench: %s: and %lld more\n", path, (long long)bad - 1);
    free(old);
    return code;
}

static int write_out(const struct text *document, const char *path, struct err *err) {
    if (path && strcmp(path, "-"))
        return file_write(path, document->data ? document->data : "", document->len, err);
    if (document->len) fwrite(document->data, 1, document->len, stdout);
    return 0;
}

static const struct flag flags[] = {
    {"--format", "-f", "FORMAT", "Output", "what to write: bench list formats", false},
    {"--as", NULL, "FORM", "Output",
     "which form of a format that has several: bench help FORMAT; default: its first", false},
    {"--output", "-o", "FILE", "Output", "where to; default: standard output", false},
    {0},
};

static int export_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct tables *tables = NULL;
    struct text document = {0}, lost = {0};
    int code = command_parse(&command_export, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench export: one result file is needed\n");
        return EXIT_USAGE;
    }
    const struct exporter *format = find_format(argument(&a, "--format"), &err);
    if (!format || output_check_document(argument(&a, "--output"), &err) ||
        store_read(&tables, a.words[0], NULL, &err) || recompute(tables, a.words[0], &err) ||
        exporter_write(format, tables, argument(&a, "--as"), &document, &lost, &err) ||
        write_out(&document, argument(&a, "--output"), &err))
        code = command_fail(&err);
    if (lost.len) fprintf(stderr, "%s%s", lost.data, lost.data[lost.len - 1] == '\n' ? "" : "\n");
    tables_close(&tables);
    text_free(&document);
    text_free(&lost);
    return code;
}

const struct command command_export = {
    .name = "export",
    .usage = "FILE --format FORMAT [--as FORM] [-o OUT]",
    .brief = "a result as csv, json, md, or as other tools write theirs: bench list formats",
    .group = "Look at results",
    .flags = flags,
    .main = export_main,
};
