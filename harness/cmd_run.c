/* SPDX-License-Identifier: Apache-2.0 */
/* Command `run`: a protocol, measured. */
#include <stdio.h>

#include "harness/command.h"
#include "harness/run.h"

static int run(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_run, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench run: %s (bench list protocols shows what there is)\n",
                a.n_words ? "one protocol at a time" : "which protocol?");
        return EXIT_USAGE;
    }
    struct protocol_request request = {.path = a.words[0]};
    return run_main(&a, &request);
}

const struct command command_run = {
    .name = "run",
    .usage = "bench run PROTOCOL [options]",
    .brief = "measures what a protocol declares, stores it, shows table and picture",
    .group = "Measure",
    .flags = run_flags,
    .main = run,
};
