/* SPDX-License-Identifier: Apache-2.0 */
/* `bench baseline accept`: says in a text file beside it that a result is the one to judge by, and
 * why; reviewed like code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/gate_files.h"
#include "harness/output.h"
#include "results/pairs.h"
#include "results/rows.h"
#include "results/store.h"
#include "results/summary.h"

static const struct flag flags[] = {
    {"--why", "-w", "TEXT", "What to say", "one line: why this result is the one to judge by",
     false},
    {"--who", NULL, NULL, "What to say", "also git's user.name; without it no name is written",
     false},
    {"--list", NULL, "LIST", "Output", "instead of FILE.accepted", false},
    {0},
};

/* A baseline has to be able to judge: whole, no trial, no row without numbers. */
static int check_result(const char *path, char revision[64], struct err *err) {
    static const char *const what[] = {"meta", "points", "environment", NULL};
    static const char *const modes[] = {"quick", "profile"};
    struct tables *ts = NULL;
    int code = store_read(&ts, path, what, err);
    if (code) return code;
    snprintf(revision, 64, "%.60s", rows_environment(ts, "build.revision"));
    const struct table *points = tables_peek(ts, "points");
    for (int i = 0; i < 2 && !code; i++)
        if (!strcmp(tables_meta(ts, modes[i]), "yes"))
            code = err_set(err, ERR_INPUT, "%s was made with --%s: it can judge nothing", path,
                           modes[i]);
    if (!code && strcmp(tables_meta(ts, "complete"), "yes"))
        code = err_set(err, ERR_INPUT, "%s is not complete: bench resume, then accept it", path);
    if (!code && pairs_begun(ts))
        code = err_set(err, ERR_INPUT, "%s is a comparison, and no baseline: bench run makes one",
                       path);
    if (!code && !table_rows(points)) code = err_set(err, ERR_INPUT, "%s has no rows", path);
    for (int64_t i = 0; i < table_rows(points) && !code; i++) {
        const char *state = table_text(points, i, "state");
        if (strcmp(state, "ok"))
            code = err_set(err, ERR_INPUT, "%s: row '%s' is %s: such a result judges nothing", path,
                           table_text(points, i, "label"), *state ? state : "not measured");
    }
    tables_close(&ts);
    return code;
}

static void git_user(char name[100]) {
    snprintf(name, 100, "-");
    FILE *f = popen("git config user.name 2>/dev/null", "r"); /* NOLINT: a fixed command */
    if (!f) return;
    char line[100];
    if (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\t\r\n")] = 0;
        if (*line) snprintf(name, 100, "%s", line);
    }
    pclose(f);
}

static int one_line(const char *why, struct err *err) {
    if (!why || !why[strspn(why, " ")])
        return err_set(err, ERR_INPUT,
                       "--why TEXT is needed: who reads the list must learn it there");
    for (const char *p = why; *p; p++)
        if ((unsigned char)*p < 0x20)
            return err_set(err, ERR_INPUT, "--why is one line of text, without tabs");
    if (!utf8_valid(why, strlen(why))) return err_set(err, ERR_INPUT, "--why is not UTF-8");
    return 0;
}

static int accept(const struct arguments *a, const char *path, struct err *err) {
    const char *why = argument(a, "--why"), *list = argument(a, "--list");
    char digest[17], revision[64], who[100] = "-", now[32], *beside = NULL, *before = NULL;
    struct text t = {0};
    size_t len = 0;
    bool found = false;
    int code = one_line(why, err);
    if (!code) code = output_check_document(list, err);
    if (!code) code = check_result(path, revision, err);
    if (!code) code = gate_file_digest(path, digest, err);
    if (code) return code;
    if (argument(a, "--who")) git_user(who);
    beside = list ? must_text(list) : gate_accepted_path(path);
    if (file_exists(beside)) {
        code = file_read(beside, (size_t)1 << 24, &before, &len, err);
        if (!code) code = gate_accepted(beside, digest, &found, err);
    } else {
        text_puts(&t, "# digest\ttime\trevision\twho\twhy\n");
    }
    if (!code && found)
        code = err_set(err, ERR_INPUT, "%s (digest %s) is in %s already", path, digest, beside);
    if (!code) {
        if (before) text_add(&t, before, len);
        if (t.len && t.data[t.len - 1] != '\n') text_puts(&t, "\n");
        text_printf(&t, "%s\t%s\t%s\t%s\t%s\n", digest, clock_rfc3339(now),
                    *revision ? revision : "-", who, why);
        code = file_write(beside, t.data, t.len, err);
    }
    if (!code) printf("%s: %s accepted\n", beside, digest);
    text_free(&t);
    free(before);
    free(beside);
    return code;
}

static int baseline_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    int code = command_parse(&command_baseline, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 2 || strcmp(a.words[0], "accept")) {
        fprintf(stderr, "bench baseline: accept FILE --why TEXT is needed\n");
        return EXIT_USAGE;
    }
    return accept(&a, a.words[1], &err) ? command_fail(&err) : EXIT_OK;
}

const struct command command_baseline = {
    .name = "baseline",
    .usage = "accept FILE --why TEXT [--who] [--list LIST]",
    .brief = "accepts a result as the one that later ones are judged by",
    .group = "Compare",
    .flags = flags,
    .main = baseline_main,
};
