/* SPDX-License-Identifier: Apache-2.0 */
/* One live comparison from two protocols to a file, its verdicts and the exit code: what `ab` and
 * `gate` share. */
#ifndef HARNESS_PAIR_RUN_H
#define HARNESS_PAIR_RUN_H
#include <stdbool.h>

#include "harness/pair.h"

struct gate;
struct tables;
struct pair_request {
    struct protocol_request protocol; /* of both sides, with the settings of both */
    const char *settings[N_SIDES];    /* "key=value key=value", or NULL */
    const char *binary[N_SIDES];      /* NULL: this program */
    const char *named[N_SIDES];       /* what mistakes call it: "--a-bin old/bench"; NULL: so */
    const char *program[N_SIDES];     /* of a plan: which one, where it is not built yet; or NULL */
    const struct gate_settings *gate; /* NULL: those of the protocol */
    int repeats;                      /* earlier attempts of the same gate */
    const char *out, *format;         /* NULL: a name of its own; text */
    bool strict, no_isolate, quiet;
    bool plan;      /* prints what both sides would do, and measures nothing */
    int64_t rounds; /* so many, whatever is decided and whatever the budget; 0: as the gate says */
    /* Optional, before the verdicts are shown: adds rows and notes from elsewhere and judges again;
       shows them itself if it sets *shown. */
    int (*judge)(void *ctx, struct gate *, const struct tables *, bool *shown, struct err *);
    void *ctx;
};
/* Returns the exit code. Prints. */
int pair_main(const struct pair_request *);

#endif
