/* SPDX-License-Identifier: Apache-2.0 */
/* `bench history`: where the rows of many stored runs changed their level, and how far they
 * drifted. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/protocol.h"
#include "harness/history_runs.h"
#include "harness/output.h"
#include "plots/plot.h"

static const struct flag flags[] = {
    {"--metric", "-m", "METRIC", "What to look at", "instead of time", false},
    {"--rows", NULL, "KEY=VALUE,...", "What to look at", "only these rows: workload.batch=1",
     false},
    {"--across", NULL, "FACT", "What to look at",
     "a fact that may differ, as cpu.model, or cpu for all of them", true},
    {"--set", NULL, "gate.KEY=VALUE", "What to look at",
     "a key of [gate]: tolerance is the least change (bench help section gate)", true},
    {"--accepted", NULL, "LIST", "What to look at",
     "steps that are known: lines DAY, ROW (or *) and WHY, with tabs between", false},
    {"--output", "-o", "STEM", "Output", "also STEM.svg and STEM.png", false},
    {0},
};

static int draw(const struct runs_set *s, const char *stem, struct err *err) {
    struct tables *ts = runs_plot(s);
    const char *scripts = data_folder("plots");
    int code = scripts ? plot_draw(ts, "history", stem, stem, scripts, err)
                       : err_set(err, ERR_INPUT, "the folder of plot scripts was not found");
    tables_close(&ts);
    if (!code) printf("  %s.svg\n  %s.png\n", stem, stem);
    return code;
}

static int history_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct gate_files files = {0};
    struct gate_settings settings;
    struct runs_set set = {.arena = NULL};
    struct text out = {0};
    const char *across[GATE_MOST_ACROSS];
    size_t n_across = 0;
    int code = command_parse(&command_history, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (!a.n_words) {
        fprintf(stderr, "bench history: result files are needed, or a folder of them\n");
        return EXIT_USAGE;
    }
    struct arena *arena = arena_create();
    code = output_check_pictures(argument(&a, "--output"), &err);
    for (size_t i = 0; i < a.n_words && !code; i++) code = gate_files_add(&files, a.words[i], &err);
    if (!code) code = gate_files_settings(&a, &files.items[files.n - 1], &settings, arena, &err);
    if (!code) code = gate_files_rows(&settings, &files, NULL, &err);
    if (!code) code = gate_files_across(&a, &files, NULL, across, &n_across, &err);
    if (!code)
        code =
            runs_read(&set, &files, &settings, across, n_across, argument(&a, "--accepted"), &err);
    if (!code) {
        runs_text(&set, &out);
        fwrite(out.data, 1, out.len, stdout);
        code = EXIT_OK;
        for (size_t i = 0; i < set.n_rows; i++)
            if (runs_regressed(&set, &set.rows[i])) code = EXIT_REGRESSION;
        if (argument(&a, "--output") && draw(&set, argument(&a, "--output"), &err))
            fprintf(stderr, "bench history: %s\n", err.text); /* a picture decides nothing */
    } else {
        code = command_fail(&err);
    }
    text_free(&out);
    runs_free(&set);
    gate_files_free(&files);
    arena_close(&arena);
    return code;
}

const struct command command_history = {
    .name = "history",
    .usage = "FOLDER | FILE FILE ... [--accepted LIST] [-o STEM]",
    .brief = "steps and drifts of every row over many runs",
    .group = "Compare",
    .flags = flags,
    .main = history_main,
};
