/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's executions of a row took from its first one on: warm-ups, then samples. */
#ifndef RESULTS_BEGINNINGS_H
#define RESULTS_BEGINNINGS_H
#include <stdbool.h>
#include <stdint.h>

#include "results/table.h"

struct beginning { /* of one visit */
    int64_t point, round;
    int64_t warmups; /* of n: those that the loop discarded */
    bool steady;     /* the loop found it so */
    int64_t n;
    double *ms; /* (n) of one execution, in order; failed samples end the list */
};
struct beginnings { /* by ascending point, then round */
    struct beginning *items;
    int64_t n;
};
/* Visits of usable rows that have samples, each row's control visits apart. */
void beginnings_read(const struct tables *, struct beginnings *);
void beginnings_free(struct beginnings *);
/* ms: the median of the later half, which is what it settles at; NAN below two executions. */
double beginning_level(const struct beginning *);

#endif
