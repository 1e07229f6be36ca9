/* SPDX-License-Identifier: Apache-2.0 */
/* What makes measurements on this machine noisy: lines made from facts and from two seconds of
 * measuring. */
#ifndef HARNESS_DOCTOR_H
#define HARNESS_DOCTOR_H
#include <stddef.h>

#include "base/facts.h"

struct page;
struct text;

struct doctor_spread {        /* of many short measurements; NAN: not measured */
    double low, middle, high; /* 5 %, 50 %, 95 % */
    double seconds;           /* in which they were made */
};
struct doctor_top { /* the process that used most CPU time beside us; pid 0: none used any, -1: not
                       known */
    int pid, cpu;   /* cpu: where it was last seen */
    double cores;   /* CPU time / time */
    char name[32];
};
struct doctor_measured {
    struct doctor_spread clock_ghz; /* of all allowed CPUs, while each was busy */
    struct doctor_spread read_gbs;  /* one core, memory beyond the caches */
    double wait_share;              /* of busy threads' time in which they had no core; NAN */
    double steal_share;             /* of the machine's time while it was busy; NAN */
    double foreign_share;           /* CPU time of others / time of all CPUs, while we slept; NAN */
    struct doctor_top top;
};
/* About 1.6 s: sleeps, spins on every allowed CPU, reads memory. */
void doctor_measure(struct doctor_measured *);

/* CPU time of every process of a tree's /proc, to be compared with a later look. */
struct doctor_look;
struct doctor_look *doctor_look(const char *root); /* NULL: it cannot be read */
void doctor_compare(const struct doctor_look *before, const struct doctor_look *after, int self,
                    double seconds, struct doctor_top *);
void doctor_look_free(struct doctor_look **);

/* Columns name, state, what it is, matters, mend. root: of the tree that the facts came from. The
 * lines of probes, lock and devices are of the machine itself. */
void doctor_lines(struct page *, const struct facts *, const struct doctor_measured *,
                  const char *root);
void doctor_own_lines(struct page *);
void doctor_columns(struct page *);
/* The same as a page of text, 100 columns wide. */
void doctor_text(const struct page *, const struct facts *, struct text *);

#endif
