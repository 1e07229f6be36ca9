/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides in turns: fresh pairs of workers, samples one by one, a verdict after every round, so
 * that what drifts cancels (measurement.md section 4). */
#ifndef HARNESS_PAIR_H
#define HARNESS_PAIR_H
#include <stdbool.h>

#include "harness/protocol.h"
#include "results/gate.h"
#include "results/journal.h"

struct err;

#define PAIR_VISIT_NS 400000000 /* of a row and round, in turns */
enum { PAIR_LEAST_QUADS = 2 };  /* of them, however long they take */

enum { SIDE_A, SIDE_B, N_SIDES };
extern const char *const side_names[N_SIDES]; /* "a", "b" */

struct pairing {
    const struct protocol *side[N_SIDES]; /* the same rows in the same order (pair_match) */
    const char *binary[N_SIDES];          /* NULL: this program */
    const char *named[N_SIDES];           /* what mistakes call it; NULL: this program */
    const struct gate_settings *settings;
    struct journal *journal;
    struct tables *kept; /* with the head's points; grows by rows of pairs */
    bool no_isolate, quiet;
    int64_t rounds; /* so many, whatever is decided and whatever the budget; 0: as the gate says */
    /* Out: */
    bool interrupted;
    char why_ended[240];
};
/* Runs rounds until every row is decided, the round limit or the budget (of side a's [measure]).
   Each visit of a pair is in the journal before the next begins; SIGINT and SIGTERM give up the one
   under way and keep the rest. err: what makes going on senseless (no worker starts, another
   version, a journal that cannot be written). */
int pair_rounds(struct pairing *, struct err *);

/* Two protocols compare if they have the same rows: as many, with the same cases and labels. */
int pair_match(const struct protocol *a, const struct protocol *b, struct err *);
/* One protocol whose points are those of a, then those of b; it borrows from both. Free with
 * pair_join_free. */
struct protocol *pair_join(const struct protocol *a, const struct protocol *b,
                           const struct gate_settings *);
void pair_join_free(struct protocol **);

#endif
