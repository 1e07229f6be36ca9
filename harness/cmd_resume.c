/* SPDX-License-Identifier: Apache-2.0 */
/* Command `resume`: goes on with a run that was interrupted or killed, from its journal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/run.h"
#include "results/journal.h"
#include "results/pairs.h"
#include "results/store.h"

static const struct flag flags[] = {
    {"--no-isolate", NULL, NULL, "How to run",
     "measures in this process instead of workers, for a debugger", false},
    {"--no-plot", NULL, NULL, "Output", "no picture files", false},
    {"--quiet", "-q", NULL, "Output", "no progress", false},
    {0},
};

/* OUT, OUT.h5 or OUT.journal -> OUT.journal. */
static char *journal_of(const char *path) {
    struct text t = {0};
    size_t n = strlen(path);
    if (n > 3 && !strcmp(path + n - 3, ".h5")) n -= 3;
    if (n > 8 && !strcmp(path + n - 8, ".journal")) n -= 8;
    text_add(&t, path, n);
    text_puts(&t, ".journal");
    return text_take(&t);
}

static int go_on(const char *journal, const struct arguments *a, struct err *err) {
    struct problems *problems = problems_create();
    struct protocol *protocol = NULL;
    struct tables *stored = tables_create();
    int exit_code = EXIT_USAGE;
    int code = journal_read(journal, stored, NULL, NULL, err);
    if (code) goto out;
    const struct table *files = tables_peek(stored, "files");
    if (pairs_begun(stored)) {
        code = err_set(err, ERR_INPUT,
                       "%s is of a comparison, whose rounds cannot go on later: bench "
                       "import-journal makes a result of it",
                       journal);
        goto out;
    }
    if (!table_rows(files)) {
        code = err_set(err, ERR_INPUT, "%s holds no protocol", journal);
        goto out;
    }
    struct protocol_request request = {.path = table_text(files, 0, "path"),
                                       .text = table_text(files, 0, "text"),
                                       .stored = stored};
    code = protocol_load(&protocol, &request, problems, err);
    if (problems_count(problems)) {
        struct text out = {0};
        problems_print(problems, &out);
        fputs(out.data, stderr);
        text_free(&out);
        code = 0;
        goto out;
    }
    if (code) goto out;
    struct run_request run = {.resume = journal,
                              .no_isolate = argument(a, "--no-isolate") != NULL,
                              .no_plot = argument(a, "--no-plot") != NULL,
                              .quiet = argument(a, "--quiet") != NULL};
    exit_code = run_protocol(protocol, &run);
out:
    protocol_close(&protocol);
    problems_close(&problems);
    tables_close(&stored);
    return code ? command_fail(err) : exit_code;
}

/* There is no journal: a whole result needs none, anything else cannot be gone on with. */
static int without_journal(const char *path, struct err *err) {
    static const char *const what[] = {"meta", NULL};
    struct tables *tables = NULL;
    if (store_read(&tables, path, what, err)) return command_fail(err);
    bool complete = !strcmp(tables_meta(tables, "complete"), "yes");
    tables_close(&tables);
    if (!complete) {
        err_set(err, ERR_INPUT,
                "%s was interrupted and its journal is gone: bench replay measures it anew", path);
        return command_fail(err);
    }
    fprintf(stderr, "bench resume: %s is complete: it has no journal\n", path);
    return EXIT_OK;
}

static int resume(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    int code = command_parse(&command_resume, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench resume: which result? (the .h5 or .journal of the run)\n");
        return EXIT_USAGE;
    }
    char *journal = journal_of(a.words[0]);
    if (file_exists(journal)) {
        code = go_on(journal, &a, &err);
    } else if (file_exists(a.words[0])) {
        code = without_journal(a.words[0], &err);
    } else {
        err_set(&err, ERR_INPUT, "%s: no such result and no such journal", a.words[0]);
        code = command_fail(&err);
    }
    free(journal);
    return code;
}

const struct command command_resume = {
    .name = "resume",
    .usage = "bench resume FILE",
    .brief = "goes on with a run that was interrupted or killed",
    .group = "Measure",
    .flags = flags,
    .main = resume,
};
