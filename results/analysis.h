/* SPDX-License-Identifier: Apache-2.0 */
/* A fit or a check across rows: reads tables, appends to `fits`. One file results/analysis_NAME.c
 * each. */
#ifndef RESULTS_ANALYSIS_H
#define RESULTS_ANALYSIS_H
#include "base/option.h"
#include "results/table.h"

struct problems;
struct rows_group;
struct rounds;
struct analysis {
    const char *name, *brief;
    const struct option
        *params; /* keys of [[analysis]] besides kind and case; ends with key NULL */
    size_t params_size;
    /* Appends rows to fits (analysis = name, case, name, value, lo, hi, unit, verdict, text). A
       check that does not hold writes verdict 'failed' (exit 3); what cannot be computed is a row
       with NAN and a text that says why. */
    int (*run)(const void *params, const char *only_case, struct tables *, struct err *);
};
/* One row of fits; a verdict of NULL is "none". */
struct finding {
    const char *analysis, *only_case, *name; /* only_case: NULL or "" for all */
    double value, lo, hi;
    const char *unit, *verdict;
};
void analysis_found(struct tables *, const struct finding *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct analysis_axes {
    const char *x, *y, *by;
};
/* Calls `group` for each group of rows along x, with the rounds of y; left_out names the rows that
   have no number, at the first group only. Where there is no row at all: the finding `none`, whose
   text begins with `word`. */
void analysis_groups(struct tables *, const struct analysis_axes *, const struct finding *none,
                     const char *word, const void *params,
                     void (*group)(struct tables *, const char *only_case, const void *params,
                                   const struct rows_group *, const struct rounds *,
                                   const char *left_out));

/* Characters of a bar that stands for a count: min(longest, count) (seeds E37); 0 without a count. */
int analysis_bar(double count, int longest);

extern const struct analysis *const all_analyses[]; /* generated; NULL-terminated */
const struct analysis *analysis_find(const char *name);

/* Runs every [[analysis]] and [[published]] declared in the protocol facts of the tables
   ("analysis.0.kind", "published.0.metric", ...; scope 'protocol'). Clears fits and published
   first. */
int analyses_run(struct tables *, struct err *);

#endif
