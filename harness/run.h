/* SPDX-License-Identifier: Apache-2.0 */
/* One run from a loaded protocol to a finished file: what `run`, `replay` and `resume` share. */
#ifndef HARNESS_RUN_H
#define HARNESS_RUN_H
#include <stdbool.h>
#include <stdio.h>
#include "harness/command.h"
#include "harness/protocol.h"

struct err;
struct run_request {
    const char *out;    /* OUT.h5, or NULL: runs/NAME-YYYYmmdd-HHMMSS.h5 */
    const char *resume; /* path of the journal to go on with, or NULL */
    bool no_isolate;    /* everything in this process, for debuggers and profilers */
    bool no_plot, quiet;
};
/* Flags that run and replay have in common, and how they become the two requests. sets: room
 * for 64. */
extern const struct flag run_flags[];
/* Loads, checks, (--dry-run: prints the plan and ends), measures, stores, shows, plots; returns the
 * exit code. Prints. */
int run_main(const struct arguments *, struct protocol_request *);
/* The part behind loading: journal, supervisor, store, table, plot. Returns the exit code. Prints.
 */
int run_protocol(struct protocol *, const struct run_request *);
/* What --set, --device and --seed say, in order: --device and --seed are --set in short. */
struct arena;
size_t run_sets(const struct arguments *, struct arena *, const char **sets, size_t most);
/* Writes the text out, and empties it. */
struct text;
void run_print(FILE *to, struct text *);
/* Takes the machine's lock; the fact moment.another_bench says whether somebody holds it already,
   and unless it is to be quiet so does a line on stderr. */
void run_take_machine(struct facts *environment, bool quiet);

#endif
