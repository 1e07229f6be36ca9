/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: owns schedule, journal, signals and workers; never touches a device; keeps what a
 * dead worker leaves. */
#ifndef HARNESS_SUPERVISOR_H
#define HARNESS_SUPERVISOR_H
#include <stdbool.h>
#include "harness/protocol.h"
#include "results/journal.h"

struct err;
struct sample_log;
struct tables;
struct supervision {
    struct protocol *protocol;
    struct journal *journal;
    const struct tables *earlier; /* what a resumed journal holds already, or NULL */
    bool no_isolate, quiet;
    /* Out: */
    bool interrupted, complete;
    char why_ended[240];
};
/* Runs all rounds; every finished visit is in the journal before the next begins. SIGINT and
   SIGTERM end it early: the visit under way is given up, everything before stays. err: what makes
   going on senseless (journal cannot be written, no worker starts). */
int supervise(struct supervision *, struct err *);

/* A visit's clock rate over the best of the run so far: noted, and beyond a tenth below it flagged
 * as throttled, samples and all. */
void supervisor_note_clock(double *best, struct sample_log *, struct tables *visit);
/* The same of both sides of a comparison in one round. A clock that is low for both, as after a
   host has lent a faster one for some rounds, cancels between their turns and is no flag: flagged
   is the side whose clock lies a tenth below the other's, or whose samples alone met a limit of the
   GPU. */
void supervisor_note_clocks(double *best, struct sample_log *const log[2],
                            struct tables *const visit[2]);

#endif
