/* SPDX-License-Identifier: Apache-2.0 */
/* One live comparison: both protocols loaded and matched, measured, stored, judged. */
#include "harness/pair_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/changed_code.h"
#include "harness/command.h"
#include "harness/dry_run.h"
#include "harness/gate_files.h"
#include "harness/head.h"
#include "harness/machine.h"
#include "harness/output.h"
#include "harness/run.h"
#include "harness/same_program.h"
#include "results/pairs.h"
#include "results/rows.h"
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
    request.plan = r->plan;
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

static int check_binary(const char *path, const char *named, struct err *err) {
    struct stat st;
    if (!path) return 0;
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%s: it is a folder", named);
    if (access(path, X_OK) == 0) return 0;
    return err_set(err, ERR_INPUT, "%s: %s", named,
                   file_exists(path) ? "it cannot be executed" : "no such file");
}

/* What tells the sides apart, for the file and the table. */
static void side_words(const struct pair_request *r, int side, struct text *out) {
    char hash[17];
    char *data = NULL;
    size_t n = 0;
    if (r->settings[side] && *r->settings[side]) text_puts(out, r->settings[side]);
    if (r->program[side]) text_printf(out, "%s%s", out->len ? ", " : "", r->program[side]);
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
    if (!one_program) {
        struct text words = {0};
        if (changed_code(r->binary[SIDE_A], r->binary[SIDE_B], &words))
            head_meta(head, "changed_code", words.data);
        text_free(&words);
    }
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

/* Which rows are compared (malloc'ed, one a row of a side). NULL: none, and *exit_code says why. */
static bool *choose_rows(const struct protocol *joined, const struct gate_settings *settings,
                         int *exit_code) {
    const int64_t n = (int64_t)joined->n_points / 2;
    const struct facts none = {0};
    struct tables *head = tables_create();
    struct text list = {0};
    struct err err = {0};
    bool *chosen = must_alloc((size_t)n + 1), any = false;
    head_tables(joined, &none, head);
    const struct tables *const one[] = {head};
    if (rows_check_keys(one, 1, settings->rows, &err)) {
        err_prefix(&err, "gate.rows");
        *exit_code = command_fail(&err);
    } else {
        for (int64_t i = 0; i < n; i++)
            any |= chosen[i] = !*settings->rows || rows_match(head, i, settings->rows);
        if (!any) {
            rows_none(head, n, settings->rows, &list);
            fprintf(stderr, "bench: gate.rows: %s\n", list.data);
            *exit_code = EXIT_INCOMPLETE;
        }
    }
    text_free(&list);
    tables_close(&head);
    if (any) return chosen;
    free(chosen);
    return NULL;
}

static int show_plan(struct protocol *const *side, const struct pair_request *r,
                     const struct gate_settings *settings, const bool *chosen) {
    struct text words[N_SIDES] = {{0}}, out = {0};
    struct dry_pair plan = {.settings = settings, .rounds = r->rounds, .chosen = chosen};
    for (int i = 0; i < N_SIDES; i++) {
        side_words(r, i, &words[i]);
        plan.side[i] = side[i];
        plan.words[i] = words[i].data;
    }
    dry_run_pair(&plan, &out);
    run_print(stdout, &out);
    for (int i = 0; i < N_SIDES; i++) text_free(&words[i]);
    return EXIT_OK;
}

static int run_pair(struct protocol *const *side, struct protocol *joined,
                    const struct pair_request *r, const struct gate_settings *settings,
                    bool one_program) {
    struct err err = {0}, trouble = {0};
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
        .named = {r->named[SIDE_A], r->named[SIDE_B]},
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
            fprintf(stderr, "bench: nothing was measured: %s\n", pairing.why_ended);
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
    free(stem);
    free(h5);
    free(log);
    return exit_code;
}

/* Both sides are loaded and fit together: the plan, or the comparison. */
static int with_rows(struct protocol *const *side, const struct pair_request *r,
                     const struct gate_settings *settings, bool one_program) {
    struct protocol *joined = pair_join(side[SIDE_A], side[SIDE_B], settings);
    int exit_code = EXIT_OK;
    bool *chosen = choose_rows(joined, settings, &exit_code);
    if (chosen)
        exit_code = r->plan ? show_plan(side, r, settings, chosen)
                            : run_pair(side, joined, r, settings, one_program);
    free(chosen);
    pair_join_free(&joined);
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

int pair_main(const struct pair_request *request) {
    struct arena *arena = arena_create();
    struct pair_request all = *request;
    const struct pair_request *r = &all;
    for (int i = 0; i < N_SIDES; i++)
        if (r->binary[i] && !r->named[i])
            all.named[i] = arena_printf(arena, "--%s-bin %s", side_names[i], r->binary[i]);
    struct protocol *side[N_SIDES] = {NULL, NULL};
    struct err err = {0};
    int exit_code = 0;
    for (int i = 0; i < N_SIDES && !exit_code; i++)
        if (check_binary(r->binary[i], r->named[i], &err)) exit_code = command_fail(&err);
    for (int i = 0; i < N_SIDES && !exit_code; i++) exit_code = load(&side[i], r, i, arena, &err);
    if (!exit_code) {
        struct gate_settings settings = r->gate ? *r->gate : side[SIDE_A]->gate;
        settings.strict = settings.strict || r->strict;
        const bool one_program = same_program(r->binary[SIDE_A], r->binary[SIDE_B]);
        if (pair_match(side[SIDE_A], side[SIDE_B], &err) ||
            protocol_fit_pair(side[SIDE_A], side[SIDE_B], one_program, r->plan, &err) ||
            check_settings(&settings, r->repeats, side[SIDE_A]->n_points, &err))
            exit_code = command_fail(&err);
        else
            exit_code = with_rows(side, r, &settings, one_program);
    }
    for (int i = 0; i < N_SIDES; i++) protocol_close(&side[i]);
    arena_close(&arena);
    return exit_code;
}
