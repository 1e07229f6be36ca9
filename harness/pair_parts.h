/* SPDX-License-Identifier: Apache-2.0 */
/* What rounds (pair.c) and one visit of both sides (pair_visit.c) share. */
#ifndef HARNESS_PAIR_PARTS_H
#define HARNESS_PAIR_PARTS_H
#include "harness/child.h"
#include "harness/pair.h"
#include "harness/progress.h"

enum { QUADS_MOST = 4096 };

struct side {
    struct child child;
    struct child_memory memory;
};
struct pair {
    struct pairing *p;
    struct side side[N_SIDES];
    struct gate *gate;  /* as judged after the last round */
    int64_t *row;       /* (n) of the gate, as pairs_rows has it */
    bool *gone;         /* (n) failed or needs no second look: measured no more */
    int64_t n, started; /* rows; workers */
    int64_t limit;      /* rounds */
    int64_t budget_ns, spent_ns, began_ns;
    double best_clock; /* of both sides */
    bool virtual_clock;
    struct progress progress;
    uint64_t key, draws; /* coins */
    double quad[QUADS_MOST][4];
    bool mirrored[QUADS_MOST];
};
bool pair_coin(struct pair *);
const struct point *pair_point(const struct pair *, int side, int64_t row);
/* Of a side's point in the file: those of b follow those of a. */
int64_t pair_index(const struct pair *, int side, int64_t row);
int64_t pair_elapsed_ns(const struct pair *);
void pair_show(struct pair *, int64_t round, const char *what);
/* Those that do not run yet, `first` first. err: one that does not come. */
int pair_start_sides(struct pair *, int first, struct err *);
void pair_end_sides(struct pair *, bool kill_them);

/* A row in a round: both sides prepared, in turns, closed; what they leave is in the journal. */
int pair_visit(struct pair *, int64_t row, int64_t round, int64_t position, int first,
               struct err *);

#endif
