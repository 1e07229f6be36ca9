/* SPDX-License-Identifier: Apache-2.0 */
/* One live comparison: both protocols loaded and matched, measured, stored, judged. */
#include "harness/pair_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/gate_files.h"
#include "harness/head.h"
#include "harness/machine.h"
#include "harness/output.h"
#include "harness/run.h"
#include "harness/same_program.h"
#include "results/pairs.h"
#include "results/show.h"
#include "results/store.h"

enum { SETS_MOST = 192 };

/* "a.b=1 MiB c.d=2" is two settings: a word without '=' belongs to the value before it. */
static int split(const char *settings, int side, struct arena *arena, const char **sets, size_t *n,
                 struct err *err) {
    const size_t first = *n;
    for (const char *at = settings; at && *at;) {
        const size_t space = strspn(at, " \t\n"), len = strcspn(at + space, " \t\n");
        at += space;
        if (!len) break;
        const bool setting = memchr(at, '=', len) != NULL;
        const char *word = arena_textn(arena, at, len);
        if (!setting && *n == first)
            return err_set(err, ERR_INPUT,
                           "--%s '%s': settings are KEY=VALUE, as \"workload.batch=1\"",
                           side_names[side], word);
        if (*n == SETS_MOST) return err_set(err, ERR_INPUT, "more than %d settings", SETS_MOST);
        if (setting)
            sets[(*n)++] = word;
        else
            sets[*n - 1] = arena_printf(arena, "%s %s", sets[*n - 1], word);
        at += len;
    }
    return 0;
}

/* 0, or the exit code when its mistakes were printed. */
static int load(struct protocol **p, const struct pair_request *r, int side, struct arena *arena,
                struct err *err) {
    const char *sets[SETS_MOST];
    struct problems *problems = problems_create();
    struct protocol_request request = r->protocol;
    int exit_code = 0;
    request.sets = sets;
    for (size_t i = 0; i < request.n_sets; i++) sets[i] = r->protocol.sets[i];
    int code = split(r->settings[side], side, arena, sets, &request.n_sets, err);
    if (!code) code = protocol_load(p, &request, problems, err);
    if (problems_count(problems)) {
        struct text out = {0};
        problems_print(problems, &out);
        fprintf(stderr, "side %s:\n", side_names[side]);
        run_print(stderr, &out);
        exit_code = EXIT_USAGE;
    } else if (code) {
        exit_code = command_fail(err);
    }
    problems_close(&problems);
    return exit_code;
}

static int check_binary(const char *path, int side, struct err *err) {
    if (!path || access(path, X_OK) == 0) return 0;
    return err_set(err, ERR_INPUT, "--%s-bin %s: %s", side_names[side], path,
                   file_exists(path) ? "it cannot be executed" : "no such file");
}

/* What tells the sides apart, for the file and the table. */
static void side_words(const struct pair_request *r, int side, struct text *out) {
    char hash[17];
    char *data = NULL;
    size_t n = 0;
    if (r->settings[side] && *r->settings[side]) text_puts(out, r->settings[side]);
    if (r->binary[side] && !file_read(r->binary[side], (size_t)1 << 30, &data, &n, NULL))
        text_printf(out, "%sbinary %s", out->len ? ", " : "",
                    hash_text(hash, hash_bytes(data, n, 0)));
    if (!out->len) text_puts(out, "as declared");
    free(data);
}

static bool same_settings(const struct pair_request *r) {
    const char *a = r->settings[SIDE_A], *b = r->settings[SIDE_B];
    return !strcmp(a ? a : "", b ? b : "");
}

static int open_journal(const struct protocol *joined, const struct pair_request *r,
                        const char *path, bool one_program, struct journal **journal,
                        struct tables *kept, struct err *err) {
    struct facts environment = {0};
    struct text body = {0};
    struct tables *head = tables_create();
    machine_facts(&environment, "/");
    run_take_machine(&environment, r->quiet);
    head_tables(joined, &environment, head);
    for (int side = 0; side < N_SIDES; side++) {
        struct text words = {0};
        char key[24];
        snprintf(key, sizeof key, "side_%s", side_names[side]);
        side_words(r, side, &words);
        head_meta(head, key, words.data);
        text_free(&words);
    }
    head_meta(head, "same_code", one_program && same_settings(r) ? "yes" : "no");
    if (r->repeats) {
        char attempt[16];
        snprintf(attempt, sizeof attempt, "%d", r->repeats + 1);
        head_meta(head, "attempt", attempt);
    }
    tables_pack(head, &body);
    int code = tables_unpack(kept, body.data, body.len, err);
    if (!code) code = journal_create(journal, path, err);
    if (!code && (code = journal_append(*journal, JOURNAL_HEAD, head, err))) unlink(path);
    text_free(&body);
    tables_close(&head);
    facts_free(&environment);
    return code;
}

/* The verdicts of a finished file, and its exit code. */
static int present(const char *h5, const struct pair_request *r, int *exit_code, struct err *err) {
    struct tables *tables = NULL;
    struct text out = {0};
    int code = store_read(&tables, h5, NULL, err);
    if (code) return code;
    struct gate *gate = pairs_gate_of_file(tables);
    const bool text = !r->format || !strcmp(r->format, "text"); /* calibrate has none */
    bool shown = false;
    if (!text) gate->title = tables_meta(tables, "title"); /* `show` has it in its own head */
    if (r->judge) code = r->judge(r->ctx, gate, tables, &shown, err);
    if (!code && !shown && text)
        show_tables(tables, &(struct show_options){0}, &out);
    else if (!code && !shown)
        gate_write(gate, r->format, &out);
    if (!code && text) text_printf(&out, "\n  %s\n", h5);
    run_print(stdout, &out);
    fflush(stdout);
    if (!code && !r->judge) gate_files_summary(gate);
    *exit_code = gate_exit(gate);
    gate_close(&gate);
    tables_close(&tables);
    return code;
}

static int run_pair(struct protocol *const *side, const struct pair_request *r,
                    const struct gate_settings *settings, bool one_program) {
    struct err err = {0}, trouble = {0};
    struct protocol *joined = pair_join(side[SIDE_A], side[SIDE_B], settings);
    struct tables *kept = tables_create();
    struct journal *journal = NULL;
    char *stem = NULL, *h5 = NULL, *log = NULL;
    int exit_code = EXIT_OK, failed = 0;
    bool measured = false;
    int code = output_choose(side[SIDE_A]->name, r->out, &stem, &err);
    if (code) goto out;
    h5 = output_with(stem, ".h5");
    log = output_with(stem, ".journal");
    code = open_journal(joined, r, log, one_program, &journal, kept, &err);
    if (code) goto out;
    struct pairing pairing = {
        .side = {side[SIDE_A], side[SIDE_B]},
        .binary = {r->binary[SIDE_A], r->binary[SIDE_B]},
        .settings = settings,
        .journal = journal,
        .kept = kept,
        .no_isolate = r->no_isolate,
        .quiet = r->quiet,
        .rounds = r->rounds,
    };
    failed = pair_rounds(&pairing, &trouble);
    measured = journal_holds_visits(log);
    if (!measured) { /* nothing is left */
        unlink(log);
        if (!failed && !pairing.interrupted)
            fprintf(stderr, "bench: no row is '%s' (gate.rows)\n", settings->rows);
        if (!failed) exit_code = pairing.interrupted ? EXIT_INTERRUPTED : EXIT_INCOMPLETE;
        goto out;
    }
    code = head_append_end(journal, !pairing.interrupted && !failed,
                           failed ? trouble.text : pairing.why_ended, &err);
    if (!code) code = store_build(log, h5, &err);
    if (code) {
        fprintf(stderr, "bench: what was measured is kept: bench import-journal %s\n", log);
        goto out;
    }
    unlink(log);
    code = present(h5, r, &exit_code, &err);
    if (pairing.interrupted) {
        fprintf(stderr, "bench: interrupted; what was measured is kept\n");
        exit_code = EXIT_INTERRUPTED;
    }
out:
    if (failed) exit_code = command_fail(&trouble);
    if (failed && measured) exit_code = EXIT_INCOMPLETE;
    if (code) exit_code = command_fail(&err);
    journal_close(&journal);
    tables_close(&kept);
    pair_join_free(&joined);
    free(stem);
    free(h5);
    free(log);
    return exit_code;
}

/* Turns are timed: other metrics are judged where they are exact, or from stored results. */
static int check_settings(const struct gate_settings *s, int repeats, size_t rows,
                          struct err *err) {
    if (*s->metric && strcmp(s->metric, "time"))
        return err_set(
            err, ERR_INPUT,
            "gate.metric = \"%s\": turns compare time; bench compare and bench gate OLD NEW "
            "judge other metrics of stored results",
            s->metric);
    if (s->direction == GATE_HIGHER)
        return err_set(err, ERR_INPUT, "gate.direction = \"higher\": less time is better");
    return gate_check(s, rows, repeats, err);
}

int pair_main(const struct pair_request *r) {
    struct arena *arena = arena_create();
    struct protocol *side[N_SIDES] = {NULL, NULL};
    struct err err = {0};
    int exit_code = 0;
    for (int i = 0; i < N_SIDES && !exit_code; i++)
        if (check_binary(r->binary[i], i, &err)) exit_code = command_fail(&err);
    for (int i = 0; i < N_SIDES && !exit_code; i++) exit_code = load(&side[i], r, i, arena, &err);
    if (!exit_code) {
        struct gate_settings settings = r->gate ? *r->gate : side[SIDE_A]->gate;
        settings.strict = settings.strict || r->strict;
        const bool one_program = same_program(r->binary[SIDE_A], r->binary[SIDE_B]);
        if (pair_match(side[SIDE_A], side[SIDE_B], &err) ||
            protocol_fit_pair(side[SIDE_A], side[SIDE_B], one_program, &err) ||
            check_settings(&settings, r->repeats, side[SIDE_A]->n_points, &err))
            exit_code = command_fail(&err);
        else
            exit_code = run_pair(side, r, &settings, one_program);
    }
    for (int i = 0; i < N_SIDES; i++) protocol_close(&side[i]);
    arena_close(&arena);
    return exit_code;
}
