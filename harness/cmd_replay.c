/* SPDX-License-Identifier: Apache-2.0 */
/* `bench replay`: the run of a result once more, from what the file itself holds. */
#include <stdio.h>

#include "base/err.h"
#include "harness/command.h"
#include "harness/run.h"
#include "results/pairs.h"
#include "results/store.h"

static int replay_main(int argc, char **argv) {
    static const char *const what[] = {"meta", "protocol", "files", NULL};
    struct arguments a;
    struct err err = {0};
    struct tables *stored = NULL;
    int code = command_parse(&command_replay, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench replay: one result file is needed\n");
        return EXIT_USAGE;
    }
    if (store_read(&stored, a.words[0], what, &err)) return command_fail(&err);
    const struct table *files = tables_peek(stored, "files");
    if (pairs_begun(stored)) {
        err_set(&err, ERR_INPUT, "%s is a comparison: bench ab measures it again", a.words[0]);
        code = command_fail(&err);
    } else if (table_rows(files) > 0) {
        struct protocol_request request = {.path = table_text(files, 0, "path"),
                                           .text = table_text(files, 0, "text"),
                                           .stored = stored};
        code = run_main(&a, &request);
    } else {
        const char *from = tables_meta(stored, "imported_from");
        err_set(&err, ERR_INPUT, "%s %s%s", a.words[0],
                *from ? "holds no protocol: it was imported from " : "holds no protocol", from);
        code = command_fail(&err);
    }
    tables_close(&stored);
    return code;
}

const struct command command_replay = {
    .name = "replay",
    .usage = "FILE [options of run]",
    .brief = "measures again what a result holds: the same protocol, shapes and --set",
    .group = "Measure",
    .flags = run_flags,
    .main = replay_main,
};
