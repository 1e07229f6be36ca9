/* SPDX-License-Identifier: Apache-2.0 */
/* What is planned, for people: the head of a run, its points with memory and traffic, a rough time;
 * the same of both sides of a comparison. */
#ifndef HARNESS_DRY_RUN_H
#define HARNESS_DRY_RUN_H
#include <stdbool.h>

#include "harness/pair.h"
#include "harness/protocol.h"

struct text;

/* Title, question and "6 points x 8 rounds, about 85 s". */
void dry_run_head(const struct protocol *, struct text *);
/* The plan of a run: head, then memory, traffic and GFLOP of every point. */
void dry_run(const struct protocol *, struct text *);

struct dry_pair {
    const struct protocol *side[N_SIDES];
    const char *words[N_SIDES]; /* what tells the sides apart: settings, program */
    const struct gate_settings *settings;
    int64_t rounds;     /* so many, whatever is decided; 0: as the gate says */
    const bool *chosen; /* (n_points) the rows that gate.rows leaves */
};
/* The plan of a comparison in turns: both sides' points, how many rounds in what time. */
void dry_run_pair(const struct dry_pair *, struct text *);

#endif
