/* SPDX-License-Identifier: Apache-2.0 */
/* What matching rows (sides.c) and comparing facts (sides_facts.c) share. */
#ifndef RESULTS_SIDES_PARTS_H
#define RESULTS_SIDES_PARTS_H
#include "results/rows.h"
#include "results/sides.h"

struct cell_at {
    const char *cell;
    int64_t point;
};
struct matched_file { /* one result, ready to be asked */
    const char *name;
    const struct tables *tables;
    struct cell_at *cells; /* (n) sorted by cell */
    int64_t n;
    struct rounds rounds; /* of the metric */
};
struct matching { /* of the whole comparison */
    const struct sides *sides;
    struct gate *gate;
    struct arena *arena;
    struct matched_file *old, *new, *history;
    const struct tables **sittings; /* (n_sittings) of the calibration, those that count */
    size_t n_sittings;
    const char *metric;
    enum better better;
    size_t n_unknown;  /* rows that are in too few runs or sittings for a spread between runs */
    size_t n_timeless; /* rows without a time on either side */
    char *differ;      /* names of facts that differ; "" none */
};
/* Sets `sittings`, and says in notes which are left out and how many there are. */
void sides_open_sittings(struct matching *);
/* The spread of the levels of the row with that cell, where at least SIDES_SITTINGS have it. */
void sides_from_sittings(const struct matching *, const char *cell, struct gate_row *);
/* Sets `differ`, and says in notes what differs, is compared across, or is not known. */
void sides_compare_facts(struct matching *);

#endif
