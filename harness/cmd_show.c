/* SPDX-License-Identifier: Apache-2.0 */
/* `bench show`: the table of a result, as the run itself printed it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/names.h"
#include "harness/page.h"
#include "results/export.h"
#include "results/show.h"
#include "results/store.h"

/* All but the long tables: samples, marks, warm-ups and timelines are not shown. */
static const char *const shown[] = {"meta",      "protocol", "environment", "ceilings", "points",
                                    "phases",    "metrics",  "visits",      "summary",  "fits",
                                    "published", "values",   "pairs",       NULL};

/* A metric that no row has is a mistake of the user's, not an empty table. */
static bool metric_known(const struct tables *tables, const char *metric) {
    static const char *const places[][2] = {{"summary", "metric"}, {"metrics", "name"}};
    struct names names = {0};
    for (size_t i = 0; i < 2; i++) {
        const struct table *t = tables_peek(tables, places[i][0]);
        for (int64_t r = 0; r < table_rows(t); r++) {
            const char *name = table_text(t, r, places[i][1]);
            if (*name >= 'a') names_add(&names, name); /* PHASE_time stands for names, it is none */
        }
    }
    bool known = names_have(&names, metric);
    if (!known) {
        struct text list = {0};
        names_sort(&names);
        names_join(&names, &list);
        const char *near = names_nearest(&names, metric);
        struct text line = {0};
        text_printf(&line, "bench show: this result has no metric '%.100s'%s%s%s", metric,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        if (table_find(tables_peek(tables, "points"), metric) >= 0)
            text_puts(&line, "; it is a column of the rows: bench show --format csv FILE");
        fprintf(stderr, "%s\n", line.data);
        text_free(&line);
        text_wrap(&line, 2, PAGE_WIDTH, "it has");
        text_wrap(&line, 2, PAGE_WIDTH, list.data ? list.data : "none");
        fprintf(stderr, "%s\n", line.data);
        text_free(&line);
        text_free(&list);
    }
    names_free(&names);
    return known;
}

static int show_text(const struct tables *tables, const struct arguments *a) {
    struct text out = {0};
    struct show_options options = {.metric = argument(a, "--metric"),
                                   .colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
                                   .facts = argument(a, "--facts") != NULL};
    if (options.metric && !metric_known(tables, options.metric)) return EXIT_USAGE;
    show_tables(tables, &options, &out);
    if (out.len) fwrite(out.data, 1, out.len, stdout);
    text_free(&out);
    return EXIT_OK;
}

/* The same result through an exporter, for those who pipe it on. */
static int show_as(const struct exporter *format, const char *path) {
    struct tables *tables = NULL;
    struct text out = {0}, lost = {0};
    struct err err = {0};
    int code = EXIT_OK;
    if (store_read(&tables, path, NULL, &err) ||
        exporter_write(format, tables, NULL, &out, &lost, &err))
        code = command_fail(&err);
    else if (out.len)
        fwrite(out.data, 1, out.len, stdout);
    if (lost.len) fprintf(stderr, "%s%s", lost.data, lost.data[lost.len - 1] == '\n' ? "" : "\n");
    tables_close(&tables);
    text_free(&out);
    text_free(&lost);
    return code;
}

static const struct flag flags[] = {
    {"--metric", "-m", "METRIC", "What to show",
     "one metric in full: n, mean, spread, percentiles, interval", false},
    {"--facts", NULL, NULL, "What to show", "also the protocol's and the machine's facts", false},
    {"--format", "-f", "FORMAT", "Output", "text (default), or one of bench list formats", false},
    {0},
};

static int show_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct tables *tables = NULL;
    int code = command_parse(&command_show, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench show: one result file is needed\n");
        return EXIT_USAGE;
    }
    const char *format = argument(&a, "--format");
    if (format && strcmp(format, "text")) {
        const struct exporter *exporter = exporter_find(format);
        if (exporter) return show_as(exporter, a.words[0]);
        fprintf(stderr, "bench show: no format is called '%.60s' (text; bench list formats)\n",
                format);
        return EXIT_USAGE;
    }
    code =
        store_read(&tables, a.words[0], shown, &err) ? command_fail(&err) : show_text(tables, &a);
    tables_close(&tables);
    return code;
}

const struct command command_show = {
    .name = "show",
    .usage = "FILE [--metric METRIC] [--facts] [--format FORMAT]",
    .brief = "the table of a result: rows with intervals, fits, flags and reasons",
    .group = "Look at results",
    .flags = flags,
    .main = show_main,
};
