/* SPDX-License-Identifier: Apache-2.0 */
/* `bench compare`: rows of two results side by side, with 95 % intervals of their ratios. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "harness/gate_files.h"

static const struct flag flags[] = {
    {"--old", NULL, "FILE", "What to compare", "a run of the old side", true},
    {"--new", NULL, "FILE", "What to compare", "a run of the new side", true},
    {"--metric", "-m", "METRIC", "What to compare", "instead of time", false},
    {"--rows", NULL, "KEY=VALUE,...", "What to compare", "only these rows: workload.batch=1",
     false},
    {"--across", NULL, "FACT", "What to compare",
     "a fact that may differ, as cpu.model, or cpu for all of them", true},
    {"--set", NULL, "gate.KEY=VALUE", "What to compare", "a key of [gate]: bench help section gate",
     true},
    {"--format", "-f", "FORMAT", "Output", "text (default), md, json, junit", false},
    {"--output", "-o", "FILE", "Output", "the document goes there, text to standard output", false},
    {0},
};

/* What a reader must know of intervals from few runs. */
static void say_runs(struct gate *g, const struct gate_files *old, const struct gate_files *new) {
    if (old->n > 1 && new->n > 1)
        gate_note(g, "%zu and %zu runs: the intervals include what differs between runs", old->n,
                  new->n);
    else if (g->settings.between_run > 0)
        gate_note(g, "the intervals include the stated spread between runs");
    else
        gate_note(g, "the intervals hold for these runs: what differs between runs is not in them");
}

static int compare_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct gate_files old = {0}, new = {0};
    struct gate_settings settings;
    struct gate *g = NULL;
    const char *format, *across[GATE_MOST_ACROSS];
    size_t n_across = 0;
    int code = command_parse(&command_compare, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    struct arena *arena = arena_create();
    if (gate_files_output(&a, &format, &err) || gate_files_sides(&a, &old, &new, &err) ||
        gate_files_across(&a, &old, &new, across, &n_across, &err) ||
        gate_files_settings(&a, &old.items[0], &settings, arena, &err) ||
        gate_files_rows(&settings, &old, &new, &err))
        goto fail;
    g = gate_create(GATE_COMPARE, &settings, 0);
    const struct sides sides = {.old = old.items,
                                .n_old = old.n,
                                .new = new.items,
                                .n_new = new.n,
                                .across = across,
                                .n_across = n_across,
                                .facts = gate_files_facts};
    if (gate_files_same(g, &old, &new, &err)) goto fail;
    say_runs(g, &old, &new);
    if (sides_gate(&sides, g, &err) || gate_files_write(&a, format, g, &err)) goto fail;
    code = gate_exit(g);
    goto out;
fail:
    code = command_fail(&err);
out:
    gate_close(&g);
    gate_files_free(&old);
    gate_files_free(&new);
    arena_close(&arena);
    return code;
}

const struct command command_compare = {
    .name = "compare",
    .usage = "OLD NEW [NEW ...] | --old FILE ... --new FILE ...",
    .brief = "rows of two results side by side: ratio, 95 % interval, verdict, reason",
    .group = "Compare",
    .flags = flags,
    .main = compare_main,
};
