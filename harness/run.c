/* SPDX-License-Identifier: Apache-2.0 */
/* One run from a loaded protocol to a finished file, its table and its picture. */
#include "harness/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/range.h"
#include "base/text.h"
#include "harness/dry_run.h"
#include "harness/head.h"
#include "harness/machine.h"
#include "harness/output.h"
#include "harness/supervisor.h"
#include "plots/plot.h"
#include "results/journal.h"
#include "results/show.h"
#include "results/store.h"
#include "results/summary.h"

const struct flag run_flags[] = {
    {"--set", NULL, "KEY=VALUE", "What to run",
     "changes any key of the protocol; sweep.KEY=[..] replaces an axis", true},
    {"--device", NULL, "KIND", "What to run", "the same as --set device.kind=KIND", false},
    {"--seed", NULL, "N", "What to run", "the same as --set measure.seed=N", false},
    {"--quick", NULL, NULL, "What to run",
     "one round, first, middle and last of each axis; never comparable", false},
    {"--dry-run", NULL, NULL, "What to run",
     "prints points, bytes and a time estimate, and measures nothing", false},
    {"--profile", NULL, NULL, "How to run",
     "one pass with all ranges on, for a profiler; never comparable", false},
    {"--no-isolate", NULL, NULL, "How to run",
     "measures in this process instead of workers, for a debugger", false},
    {"--output", "-o", "FILE", "Output", "the result file; default runs/NAME-DATE-TIME.h5", false},
    {"--no-plot", NULL, NULL, "Output", "no picture files", false},
    {"--quiet", "-q", NULL, "Output", "no progress", false},
    {0},
};

void run_print(FILE *to, struct text *t) {
    if (t->data) fwrite(t->data, 1, t->len, to);
    text_free(t);
}

static bool want_colour(void) {
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

static bool any_flag(const struct tables *tables, const char *const *flags) {
    const struct table *t = tables_peek(tables, "points");
    for (int64_t r = 0; r < table_rows(t); r++)
        for (size_t i = 0; flags[i]; i++)
            if (strstr(table_text(t, r, "flags"), flags[i])) return true;
    return false;
}

/* Where there are samples, their picture, unless it was just drawn; else the second best one. */
static const char *other_picture(const struct tables *tables) {
    const char *const *kinds = plot_kinds(tables);
    for (size_t i = 1; kinds[0] && kinds[i]; i++)
        if (!strcmp(kinds[i], "samples")) return "samples";
    return kinds[0] ? kinds[1] : NULL;
}

/* A line each, so that they can be copied. The kind of picture that was not just drawn, the
 * workload asked about, and what a noisy machine calls for. */
static void next_commands(const struct tables *tables, const char *h5, struct text *out) {
    const struct table *t = tables_peek(tables, "points");
    const char *workload = table_rows(t) ? table_text(t, table_rows(t) - 1, "workload") : "null";
    static const char *const noisy[] = {"not_steady", "disturbed", "throttled",
                                        "drifting",   "bimodal",   NULL};
    const char *picture = other_picture(tables);
    struct text path = {0};
    text_shell(&path, h5);
    text_printf(out, "  next  bench show --facts %s\n", path.data);
    if (picture) text_printf(out, "        bench plot --kind %s %s\n", picture, path.data);
    text_printf(out, "        bench help %s\n", workload);
    if (any_flag(tables, noisy))
        text_puts(out, "        bench help flags\n"
                       "        bench doctor\n");
    text_free(&path);
}

/* Table, curve and pictures of a finished file; the same words as `bench show`. */
static int present(const char *stem, const char *h5, const struct run_request *request,
                   struct err *err) {
    struct tables *tables = NULL;
    struct text out = {0}, curve = {0};
    struct err trouble = {0};
    int code = store_read(&tables, h5, NULL, err);
    if (code) return code;
    show_tables(tables, &(struct show_options){.colour = want_colour()}, &out);
    const char *const *kinds = plot_kinds(tables);
    if (kinds[0] && plot_ascii(tables, kinds[0], 96, 14, &curve, &trouble) == 0) {
        text_puts(&out, "\n");
        text_add(&out, curve.data, curve.len);
    }
    text_printf(&out, "\n  %s\n", h5);
    if (!request->no_plot && kinds[0]) {
        const char *scripts = data_folder("plots");
        trouble = (struct err){0};
        if (scripts && plot_draw(tables, kinds[0], h5, stem, scripts, &trouble) == 0)
            text_printf(&out, "  %s.svg\n  %s.png\n", stem, stem);
        else
            fprintf(stderr, "bench: no picture: %s\n",
                    scripts ? trouble.text : "the folder of plot scripts was not found");
    }
    next_commands(tables, h5, &out);
    run_print(stdout, &out);
    fflush(stdout);
    text_free(&curve);
    code = summary_exit(tables);
    tables_close(&tables);
    return code;
}

/* The journal of this run: a new one with its head, or the one to go on with (its facts must be
 * ours). */
static int open_journal(const struct protocol *p, const struct run_request *request,
                        const char *path, struct journal **journal, struct tables **earlier,
                        struct err *err) {
    struct facts environment = {0};
    struct tables *head = tables_create();
    char changed[400];
    int code = 0;
    machine_facts(&environment, "/");
    run_take_machine(&environment, request->quiet);
    head_tables(p, &environment, head);
    if (!request->resume) {
        code = journal_create(journal, path, err);
        if (!code && (code = journal_append(*journal, JOURNAL_HEAD, head, err))) unlink(path);
    } else {
        *earlier = tables_create();
        code = journal_read(path, *earlier, NULL, NULL, err);
        if (!code && head_changed(*earlier, head, changed, sizeof changed))
            code = err_set(err, ERR_INPUT, "%s cannot be resumed here: %s", path, changed);
        if (!code) code = journal_resume(journal, path, err);
    }
    tables_close(&head);
    facts_free(&environment);
    return code;
}

void run_take_machine(struct facts *environment, bool quiet) {
    int holder = 0;
    const bool another = machine_lock(&holder) < 0 && holder > 0 && holder != (int)getpid();
    facts_set(environment, "moment.another_bench", another ? "yes" : "no", "", "/tmp/bench.lock");
    if (another && !quiet)
        fprintf(
            stderr,
            "bench: another bench (process %d) is measuring on this machine: both will be disturbed\n",
            holder);
}

static void say_start(const struct protocol *p, const struct run_request *request) {
    struct text head = {0};
    if (request->quiet) return;
    dry_run_head(p, &head);
    run_print(stderr, &head);
}

int run_protocol(struct protocol *p, const struct run_request *request) {
    struct err err = {0};
    struct journal *journal = NULL;
    struct tables *earlier = NULL;
    char *stem = NULL, *h5 = NULL, *log = NULL;
    struct supervision s = {
        .protocol = p, .no_isolate = request->no_isolate, .quiet = request->quiet};
    bool kept = false;
    int code, exit_code = EXIT_OK;
    if (p->measure.profile) range_activate(true);
    if (request->resume) {
        stem = must_text(request->resume);
        stem[strlen(stem) - strlen(".journal")] = 0;
        code = 0;
    } else {
        code = output_choose(p->name, request->out, &stem, &err);
    }
    if (code) goto out;
    h5 = output_with(stem, ".h5");
    log = output_with(stem, ".journal");
    say_start(p, request);
    code = open_journal(p, request, log, &journal, &earlier, &err);
    if (code) goto out;
    s.journal = journal;
    s.earlier = earlier;
    struct err trouble = {0};
    int failed = supervise(&s, &trouble);       /* what was measured becomes a file all the same */
    if (failed && !journal_holds_visits(log)) { /* nothing was run: nothing is left */
        if (!request->resume) unlink(log);
        err = trouble;
        code = failed;
        goto out;
    }
    code = head_append_end(journal, s.complete, s.why_ended, &err);
    if (!code) code = store_build(log, h5, &err);
    if (failed) {
        command_fail(&trouble);
        fprintf(stderr, "bench: what was measured is kept: bench resume %s\n", log);
    } else if (code) {
        kept = true;
    }
    if (code) goto out;
    if (s.complete && !failed) unlink(log);
    exit_code = present(stem, h5, request, &err);
    if (err.code) {
        code = err.code;
        goto out;
    }
    if (s.interrupted) {
        fprintf(stderr, "bench: interrupted; what was measured is kept: bench resume %s\n", h5);
        exit_code = EXIT_INTERRUPTED;
    } else if (failed) {
        exit_code = EXIT_INCOMPLETE;
    }
out:
    if (code) exit_code = command_fail(&err);
    if (kept) fprintf(stderr, "bench: what was measured is kept: bench resume %s\n", log);
    journal_close(&journal);
    tables_close(&earlier);
    free(stem);
    free(h5);
    free(log);
    return exit_code;
}

size_t run_sets(const struct arguments *a, struct arena *arena, const char **sets, size_t most) {
    size_t n = arguments_of(a, "--set", sets, most - 2);
    if (argument(a, "--device")) {
        const char *device = argument(a, "--device");
        sets[n++] = arena_printf(arena, "device.kind=%s", device);
    }
    if (argument(a, "--seed"))
        sets[n++] = arena_printf(arena, "measure.seed=%s", argument(a, "--seed"));
    return n;
}

int run_main(const struct arguments *a, struct protocol_request *request) {
    struct arena *arena = arena_create();
    struct problems *problems = problems_create();
    struct protocol *protocol = NULL;
    struct err err = {0};
    const char *sets[128];
    request->sets = sets;
    request->n_sets = run_sets(a, arena, sets, 128);
    request->quick = argument(a, "--quick") != NULL;
    request->profile = argument(a, "--profile") != NULL;
    request->plan = argument(a, "--dry-run") != NULL;
    struct run_request run = {.out = argument(a, "--output"),
                              .no_isolate = argument(a, "--no-isolate") != NULL,
                              .no_plot = argument(a, "--no-plot") != NULL,
                              .quiet = argument(a, "--quiet") != NULL};
    int code = protocol_load(&protocol, request, problems, &err);
    if (problems_count(problems)) {
        struct text out = {0};
        problems_print(problems, &out);
        run_print(stderr, &out);
        code = EXIT_USAGE;
    } else if (code) {
        code = command_fail(&err);
    } else {
        if (request->plan) {
            struct text out = {0};
            dry_run(protocol, &out);
            run_print(stdout, &out);
            code = EXIT_OK;
        } else {
            code = run_protocol(protocol, &run);
        }
    }
    protocol_close(&protocol);
    problems_close(&problems);
    arena_close(&arena);
    return code;
}
