/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides of stored results, several files a side: rows matched by cell, facts compared by name;
 * what `bench compare` and `bench gate` judge. No row of any file vanishes. */
#ifndef RESULTS_SIDES_H
#define RESULTS_SIDES_H
#include <stddef.h>

#include "results/gate.h"
#include "results/table.h"

struct text;
struct sides_file {
    const char *name; /* as the user gave it */
    struct tables *tables;
};
struct sides_fact {              /* a fact of the protocol that has to agree */
    const char *key, *otherwise; /* what a file that does not know it takes */
};
struct sides {
    const struct sides_file *old, *new, *history;
    size_t n_old, n_new, n_history;
    /* Sittings of bench gate --calibrate: comparisons of a program with itself. Those that are none
       or of another machine are left out and named. */
    const struct sides_file *calibration;
    size_t n_calibration;
    const char *const *across; /* (n_across) facts that may differ: "cpu.model", or "cpu" for all */
    size_t n_across;
    const struct sides_fact *facts; /* ends with key NULL */
};
enum { SIDES_SITTINGS = 2 }; /* of a calibration, at least */
enum { SIDES_DAYS = 8 }; /* runs of different days from which the spread between runs is taken */

/* Rows, notes and names of the files into the gate, then gate_judge. The metric and its rows are
   those of gate->settings. ERR_INPUT: a file without rows, with the same cell twice or a row
   without one, a metric that no file has or that has no better direction. */
int sides_gate(const struct sides *, struct gate *, struct err *);

/* Whether two results were made under the same facts, by the rule above; else why (the first fact
   that differs, or --quick), for history. */
bool sides_comparable(const struct tables *, const struct tables *, const struct sides_fact *,
                      const char *const *across, size_t n_across, char *why, size_t size);
/* Whether a result or the rule above knows the fact, or any that begin with it ("cpu"). */
bool sides_fact_known(const struct tables *, const struct sides_fact *, const char *name);
/* "; did you mean 'time'? (it has: time ...)", without the question where nothing is near. */
void sides_known_metrics(const struct tables *, const char *metric, struct text *);
/* Which way of a metric is better, as the file declares it; phases by the ends of their names. */
enum better sides_better(const struct tables *, const char *metric);

#endif
