/* SPDX-License-Identifier: Apache-2.0 */
/* Command `import-journal`: a run's journal, from any machine, becomes its result file here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "results/journal.h"
#include "results/store.h"

static const struct flag flags[] = {
    {"--output", "-o", "FILE", "Output",
     "the .h5 to write; without it, beside the journal under its name", false},
    {0},
};

/* OUT.journal -> OUT.h5; whatever else it is called, .h5 is added. */
static char *result_of(const char *journal) {
    struct text t = {0};
    size_t n = strlen(journal);
    if (n > 8 && !strcmp(journal + n - 8, ".journal")) n -= 8;
    text_add(&t, journal, n);
    text_puts(&t, ".h5");
    return text_take(&t);
}

static int convert(const char *journal, const char *out, struct err *err) {
    int64_t visits = 0;
    int code = journal_read(journal, NULL, &visits, NULL, err);
    if (code) return code;
    if (!visits) return err_set(err, ERR_INPUT, "%s holds no finished visit", journal);
    if (file_exists(out))
        return err_set(err, ERR_INPUT, "%s exists already; results are never overwritten", out);
    code = store_build(journal, out, err);
    if (!code) printf("%s\n", out);
    return code;
}

static int import_journal(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    int code = command_parse(&command_import_journal, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench import-journal: which journal?\n");
        return EXIT_USAGE;
    }
    char *out =
        argument(&a, "--output") ? must_text(argument(&a, "--output")) : result_of(a.words[0]);
    code = convert(a.words[0], out, &err) ? command_fail(&err) : EXIT_OK;
    free(out);
    return code;
}

const struct command command_import_journal = {
    .name = "import-journal",
    .usage = "bench import-journal FILE.journal [-o OUT.h5]",
    .brief = "makes the result file of a run from its journal, measured anywhere",
    .group = "Look at results",
    .flags = flags,
    .main = import_journal,
};
