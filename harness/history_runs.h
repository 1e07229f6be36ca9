/* SPDX-License-Identifier: Apache-2.0 */
/* Many stored runs as series: one row each, a value a run, with its steps and its drift. */
#ifndef HARNESS_HISTORY_RUNS_H
#define HARNESS_HISTORY_RUNS_H
#include <stdbool.h>
#include <stddef.h>

#include "harness/gate_files.h"
#include "results/history.h"

enum { RUNS_STEPS = 32 };
struct runs_run {
    const char *name, *created; /* of the file; "2026-11-29T18:30:12Z" */
};
struct runs_row {
    const char *name, *cell, *unit;
    double *value; /* (n) the metric */
    double *log;   /* (n) its logarithm */
    size_t *run;   /* (n) which run */
    size_t n, n_steps;
    struct history_step steps[RUNS_STEPS];
    const char *accepted[RUNS_STEPS]; /* why; NULL: not accepted */
    size_t anchor; /* first run after the last accepted step: drift is counted from there */
    double drift, drift_p;
};
struct runs_set {
    struct arena *arena;
    const char *metric, *machine; /* machine: of the newest run */
    const char *anchor;           /* of comparisons: side a in words; NULL: of runs */
    double sign;                  /* +1: more is slower */
    double tolerance;
    struct runs_run *runs; /* (n_runs) by time */
    size_t n_runs;
    struct runs_row *rows; /* (n_rows) */
    size_t n_rows;
    const char **notes; /* (n_notes) */
    size_t n_notes;
};
/* Sorts the files by the time they were made, leaves out those that cannot be compared with the
   newest (said in a note), and finds steps and drifts. Where the newest is a comparison in turns
   (bench ab --a-bin ANCHOR), the series is of comparisons with the same side a: new over anchor, in
   which the machine's own changes cancel. accepted: a file with lines DAY, ROW (or *)
   and WHY with tabs between; NULL: none. */
int runs_read(struct runs_set *, struct gate_files *, const struct gate_settings *,
              const char *const *across, size_t n_across, const char *accepted, struct err *);
void runs_free(struct runs_set *);
bool runs_drifted(const struct runs_set *, const struct runs_row *);
/* Whether a row became slower by a step that nobody accepted, or has drifted so. */
bool runs_regressed(const struct runs_set *, const struct runs_row *);
void runs_text(const struct runs_set *, struct text *);
/* As a table for plots/history.gp: points with the columns series, run, ratio, step. */
struct tables *runs_plot(const struct runs_set *);

#endif
