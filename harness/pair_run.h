/* SPDX-License-Identifier: Apache-2.0 */
/* One live comparison from two protocols to a file, its verdicts and the exit code: what `ab` and
 * `gate` share. */
#ifndef HARNESS_PAIR_RUN_H
#define HARNESS_PAIR_RUN_H
#include <stdbool.h>

#include "harness/pair.h"

struct arguments;
struct pair_request {
    const char *protocol;
    const char *settings[N_SIDES]; /* "key=value key=value", or NULL */
    const char *binary[N_SIDES];   /* NULL: this program */
    const char *out, *format;      /* NULL: a name of its own; text */
    bool strict, no_isolate, quiet;
};
/* a: --set, --device and --seed are of both sides. Returns the exit code. Prints. */
int pair_main(const struct arguments *a, const struct pair_request *);

#endif
