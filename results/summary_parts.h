/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of summary_compute share: visits found once, and the series of values that become
 * one row each. */
#ifndef RESULTS_SUMMARY_PARTS_H
#define RESULTS_SUMMARY_PARTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/table.h"

struct summary_visit {
    int64_t row, point, round, order; /* row in visits; order: its place by point, then round */
    bool control, failed;             /* failed: it has no numbers */
    bool counts;                      /* neither of both */
    int64_t first, n;                 /* its samples, which stand together */
    int64_t first_mark, n_marks;      /* its marks, likewise */
};
struct summary_index {
    struct tables *ts;
    struct summary_visit *visit; /* (n_visits), by point, then round, then row */
    int64_t n_visits;
    int64_t *visit_at; /* (visits' ids): place in `visit`, or -1 */
    int64_t n_ids;
    int64_t *point_visits; /* (n_points + 1): where a point's visits begin */
    int64_t
        *point_phases; /* (n_points + 1): where a point's rows of `phases` begin, in phase_row */
    int64_t *phase_row;
    int64_t n_points;
};
void summary_index_make(struct summary_index *, struct tables *);
void summary_index_free(struct summary_index *);
/* The visits of a point that count, as a range of index->visit; controls and failed ones are among
 * them: look at counts. */
const struct summary_visit *summary_visits(const struct summary_index *, int64_t point, int64_t *n);

struct series { /* values of one metric of one point, visit by visit */
    double *x;
    size_t n, cap;
    size_t *begin;      /* (n_visits + 1) */
    double *visit_mean; /* (n_visits): NAN where a visit gave none */
    int64_t *round;     /* (n_visits) */
    size_t n_visits, visits_cap;
    size_t distinct; /* of a trace that is served over and over: its requests; 0: no trace */
    bool in_order; /* one value a sample, in time order: lag-1 means something */
};
void series_free(struct series *);
void series_clear(struct series *);
void series_add(struct series *, double);
void series_visit_end(struct series *,
                      int64_t round); /* the values since the last end were one visit's; mean set */

/* ns of one execution, sample by sample. */
void series_times(const struct summary_index *, int64_t point, struct series *);
/* ns of one phase; false if the point's marks do not tell (and it has several phases). */
bool series_phase(const struct summary_index *, int64_t point, int64_t phase, struct series *);
enum token_metric { TOKEN_TTFT, TOKEN_ITL, TOKEN_TPOT, TOKEN_E2E, TOKEN_N_OUT, N_TOKEN_METRICS };
/* All token metrics of a point at once (ms, ms, ms, ms, tokens); false if it marks no tokens. */
bool series_tokens(const struct summary_index *, int64_t point, struct series out[N_TOKEN_METRICS]);
/* to = factor / from (a rate), value by value; visit means by the visit's mean time. */
void series_rate(const struct series *from, double factor, struct series *to);
void series_scale(struct series *, double factor);
void series_copy(const struct series *from, double factor, struct series *to);

/* The mean over visit means and its Student t interval; visits of one round count as one. Returns
 * the number of rounds. */
size_t series_rounds(const struct series *, double *mean, double *lo, double *hi, double *drift,
                     double *drift_error);
/* Appends a row to summary; nothing if the series is empty. */
void series_emit(struct tables *, int64_t point, const char *metric, const char *unit,
                 const struct series *);

/* Recomputes the table ceilings from points of workload 'ceiling'. */
void ceilings_compute(const struct summary_index *);
/* mbu, mfu, bound of a point from its time series (ns); says in `reason` what is implausible (else
 * leaves it empty). */
struct text;
void ceilings_judge(const struct summary_index *, int64_t point, const struct series *times,
                    struct text *reason);

/* Averages that an import brought for a point without visits: whether there are any, and their rows
   in summary, with the flag that says so. */
bool given_has(const struct tables *, int64_t point);
void given_emit(struct tables *, int64_t point);

/* A key of a point: a column, its fact, else the protocol's; "" if absent. Text valid until the
 * next call with the same out. */
const char *summary_key(const struct tables *, int64_t point, const char *key, struct text *out);

#endif
