/* SPDX-License-Identifier: Apache-2.0 */
/* Command `ab`: two settings, devices or builds in turns, and a verdict on each row. */
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "harness/gate_files.h"
#include "harness/pair_run.h"
#include "harness/run.h"

static const struct flag flags[] = {
    {"--a", NULL, "SETTINGS", "What to compare",
     "keys of side a, as \"workload.batch=1 device.isa=avx2\"", false},
    {"--b", NULL, "SETTINGS", "What to compare", "keys of side b; its time is judged against a's",
     false},
    {"--a-bin", NULL, "PATH", "What to compare", "program of side a; without it this one", false},
    {"--b-bin", NULL, "PATH", "What to compare", "program of side b; without it this one", false},
    {"--set", NULL, "KEY=VALUE", "What to compare", "changes any key of the protocol on both sides",
     true},
    {"--device", NULL, "KIND", "What to compare", "the same as --set device.kind=KIND", false},
    {"--seed", NULL, "N", "What to compare", "the same as --set measure.seed=N", false},
    {"--dry-run", NULL, NULL, "What to compare",
     "prints the plan of both sides, and measures nothing", false},
    {"--strict", NULL, NULL, "How to judge", "an undecided row ends in exit 5", false},
    {"--no-isolate", NULL, NULL, "How to run",
     "both sides in this process instead of workers, for a debugger", false},
    {"--output", "-o", "FILE", "Output", "the result file; default runs/NAME-DATE-TIME.h5", false},
    {"--format", "-f", "FORMAT", "Output", "of the verdicts: text (default), md, json, junit",
     false},
    {"--quiet", "-q", NULL, "Output", "no progress", false},
    {0},
};

static int ab(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_ab, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench ab: %s (bench list protocols shows what there is)\n",
                a.n_words ? "one protocol at a time" : "which protocol?");
        return EXIT_USAGE;
    }
    struct err err = {0};
    const char *sets[128], *format;
    if (gate_files_format(&a, &format, &err)) return command_fail(&err);
    struct arena *arena = arena_create();
    struct pair_request request = {
        .protocol = {.path = a.words[0], .sets = sets, .n_sets = run_sets(&a, arena, sets, 128)},
        .settings = {argument(&a, "--a"), argument(&a, "--b")},
        .binary = {argument(&a, "--a-bin"), argument(&a, "--b-bin")},
        .out = argument(&a, "--output"),
        .format = format,
        .strict = argument(&a, "--strict") != NULL,
        .no_isolate = argument(&a, "--no-isolate") != NULL,
        .quiet = argument(&a, "--quiet") != NULL,
        .plan = argument(&a, "--dry-run") != NULL,
    };
    code = pair_main(&request);
    arena_close(&arena);
    return code;
}

const struct command command_ab = {
    .name = "ab",
    .usage = "bench ab PROTOCOL [--a SETTINGS] [--b SETTINGS] [--a-bin PATH] [--b-bin PATH]",
    .brief = "compares two settings, devices or builds in turns, sample by sample",
    .group = "Compare",
    .flags = flags,
    .main = ab,
};
