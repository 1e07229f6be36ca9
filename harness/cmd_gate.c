/* SPDX-License-Identifier: Apache-2.0 */
/* `bench gate`: a verdict on a change, and an exit code that a merge can hang on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/gate_files.h"
#include "harness/gate_live.h"

static const struct flag flags[] = {
    {"--old", NULL, "FILE", "What to judge", "a run of the old side", true},
    {"--new", NULL, "FILE", "What to judge", "a run of the new side", true},
    {"--metric", "-m", "METRIC", "What to judge", "instead of gate.metric", false},
    {"--rows", NULL, "KEY=VALUE,...", "What to judge", "only these rows: workload.batch=1", false},
    {"--across", NULL, "FACT", "What to judge",
     "a fact that may differ, as cpu.model, or cpu for all of them", true},
    {"--set", NULL, "gate.KEY=VALUE", "What to judge", "a key of [gate]: bench help section gate",
     true},
    {"--from-history", NULL, "FILE", "How to judge",
     "runs of at least 8 different days, or a folder of them: the spread between runs", true},
    {"--from-calibration", NULL, "FILE", "How to judge",
     "a sitting of --calibrate, or a folder of them (--sittings K -o FOLDER): the spread between "
     "runs",
     true},
    {"--strict", NULL, NULL, "How to judge", "undecided rows end in exit 5", false},
    {"--attempt", NULL, "N", "How to judge",
     "the N-th try of this gate takes gate.alpha / 2^N; default $GITHUB_RUN_ATTEMPT, else 1",
     false},
    {"--accepted", NULL, "LIST", "How to judge",
     "the old file must be in this list; default OLD.accepted where there is one", false},
    {"--baseline", NULL, "FILE", "Side by side",
     "measures the program that made FILE and this one in turns", false},
    {"--baseline-bin", NULL, "PATH", "Side by side", "that program, if it is kept", false},
    {"--protocol", NULL, "PROTOCOL", "Side by side", "what to measure; default: that of FILE",
     false},
    {"--dry-run", NULL, NULL, "Side by side",
     "prints the plan of both sides, and measures nothing (also of --calibrate)", false},
    {"--calibrate", NULL, "PROTOCOL", "What can be seen here",
     "measures this program against itself, 30 rounds: noise, detectable change, false alarms; or "
     "shows those of a result of it, FILE.h5",
     false},
    {"--sittings", NULL, "K", "What can be seen here",
     "so often, for the spread between runs (--from-calibration)", false},
    {"--format", "-f", "FORMAT", "Output", "text (default), md, json, junit", false},
    {"--output", "-o", "FILE", "Output",
     "the document goes there, text to standard output; of --calibrate a folder for its results",
     false},
    {0},
};

static int attempt_of(const struct arguments *a, int *repeats, struct err *err) {
    const char *given = argument(a, "--attempt"), *ci = getenv("GITHUB_RUN_ATTEMPT");
    int64_t n = 1;
    *repeats = 0;
    if (given && (!parse_i64(given, &n) || n < 1 || n > 1000))
        return err_set(err, ERR_INPUT, "--attempt %.40s: a number from 1 to 1000 is needed", given);
    if (!given && ci && (!parse_i64(ci, &n) || n < 1 || n > 1000)) n = 1;
    *repeats = (int)n - 1;
    return 0;
}

/* A baseline that the change under test has changed judges nothing. */
static int check_accepted(const struct arguments *a, struct gate *g, const struct gate_files *old,
                          struct err *err) {
    const char *given = argument(a, "--accepted");
    char digest[17], *list = given ? must_text(given) : gate_accepted_path(old->items[0].name);
    bool found = false;
    int code = 0;
    if (!given && !file_exists(list)) {
        gate_note(g, "%s is in no list of accepted baselines (bench baseline accept)",
                  old->items[0].name);
        goto out;
    }
    for (size_t i = 0; i < old->n && !code; i++) {
        code = gate_file_digest(old->items[i].name, digest, err);
        if (!code) code = gate_accepted(list, digest, &found, err);
        if (!code && !found)
            code =
                err_set(err, ERR_INPUT,
                        "%s (digest %s) is not in %s: a baseline that was changed judges nothing; "
                        "bench baseline accept FILE --why TEXT",
                        old->items[i].name, digest, list);
    }
out:
    free(list);
    return code;
}

static int say_open(const struct gate *g, int code) {
    const size_t open = gate_count(g, GATE_UNDECIDED) + gate_count(g, GATE_BLIND);
    if (!code && open)
        fprintf(stderr, "bench gate: warning: %zu row%s undecided; --strict makes this exit 5\n",
                open, open == 1 ? " is" : "s are");
    return code;
}

static int finished(const struct gate *g, int code) {
    gate_files_summary(g);
    return say_open(g, code);
}

static int judge(const struct arguments *a, const char *format, struct gate_files *old,
                 struct gate_files *new, struct gate_files *history, struct gate_files *calibration,
                 struct err *err) {
    struct arena *arena = arena_create();
    struct gate_settings settings;
    struct gate *g = NULL;
    const char *across[GATE_MOST_ACROSS];
    size_t n_across = 0;
    int repeats = 0, code = attempt_of(a, &repeats, err);
    if (!code) code = gate_files_across(a, old, new, across, &n_across, err);
    if (!code) code = gate_files_settings(a, &old->items[0], &settings, arena, err);
    if (!code) code = gate_files_rows(&settings, old, new, err);
    if (code) goto out;
    if (argument(a, "--strict")) settings.strict = true;
    g = gate_create(GATE_STORED, &settings, repeats);
    const struct sides sides = {.old = old->items,
                                .n_old = old->n,
                                .new = new->items,
                                .n_new = new->n,
                                .history = history->items,
                                .n_history = history->n,
                                .calibration = calibration->items,
                                .n_calibration = calibration->n,
                                .across = across,
                                .n_across = n_across,
                                .facts = gate_files_facts};
    code = gate_files_same(g, old, new, err);
    gate_files_note(g, &old->items[0], &new->items[0]);
    if (!code) code = check_accepted(a, g, old, err);
    if (!code) code = sides_gate(&sides, g, err);
    if (!code) code = gate_files_write(a, format, g, err);
    if (code) goto out;
    code = finished(g, gate_exit(g));
out:
    gate_close(&g);
    arena_close(&arena);
    if (err->code) return command_fail(err);
    return code;
}

/* A flag that would be read in another way of judging promises what is not done. */
static int check_way(const struct arguments *a, struct err *err) {
    enum { FILES, BASELINE, CALIBRATE };
    static const struct {
        const char *words; /* as the mistake calls them */
        const char *others[16];
    } ways[] = {
        [FILES] = {"OLD NEW", {"--baseline-bin", "--protocol", "--sittings", "--dry-run", NULL}},
        [BASELINE] = {"--baseline",
                      {"--calibrate", "--sittings", "--old", "--new", "--from-history",
                       "--from-calibration", "--across", NULL}},
        [CALIBRATE] = {"--calibrate",
                       {"--baseline-bin", "--protocol", "--old", "--new", "--from-history",
                        "--from-calibration", "--across", "--metric", "--rows", "--strict",
                        "--attempt", "--accepted", "--format", NULL}},
    };
    const int way = argument(a, "--baseline")    ? BASELINE
                    : argument(a, "--calibrate") ? CALIBRATE
                                                 : FILES;
    for (const char *const *f = ways[way].others; *f; f++)
        if (argument(a, *f))
            return err_set(err, ERR_INPUT, "%s does not go with %s", *f, ways[way].words);
    if (way != FILES && a->n_words)
        return err_set(err, ERR_INPUT, "'%.200s': %s takes no result files beside", a->words[0],
                       ways[way].words);
    return 0;
}

static int add_named(const struct arguments *a, const char *flag, struct gate_files *f,
                     struct err *err) {
    const char *files[128];
    const size_t n = arguments_of(a, flag, files, 128);
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) code = gate_files_add(f, files[i], err);
    return code;
}

static int gate_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct gate_files old = {0}, new = {0}, history = {0}, calibration = {0};
    const char *format;
    int code = command_parse(&command_gate, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (check_way(&a, &err)) return command_fail(&err);
    if (argument(&a, "--calibrate")) return gate_calibrate(&a, &err);
    if (gate_files_output(&a, &format, &err)) return command_fail(&err);
    if (argument(&a, "--baseline")) {
        struct gate_live live = {
            .a = &a, .format = format, .accepted = check_accepted, .finished = finished};
        if (attempt_of(&a, &live.repeats, &err)) return command_fail(&err);
        return gate_live(&live, &err);
    }
    code = gate_files_sides(&a, &old, &new, &err);
    if (!code) code = add_named(&a, "--from-history", &history, &err);
    if (!code) code = add_named(&a, "--from-calibration", &calibration, &err);
    code = code ? command_fail(&err) : judge(&a, format, &old, &new, &history, &calibration, &err);
    gate_files_free(&old);
    gate_files_free(&new);
    gate_files_free(&history);
    gate_files_free(&calibration);
    return code;
}

const struct command command_gate = {
    .name = "gate",
    .usage = "OLD.h5 NEW.h5 [--from-history FILES] | --baseline FILE | --calibrate PROTOCOL",
    .brief = "a verdict on a change, by an exit code that a merge can hang on",
    .group = "Compare",
    .flags = flags,
    .main = gate_main,
};
