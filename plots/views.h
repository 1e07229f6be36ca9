/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of picture shows, read from the tables once: for gnuplot and for the terminal. */
#ifndef PLOTS_VIEWS_H
#define PLOTS_VIEWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "plots/axis.h"
#include "results/table.h"

struct arena;
struct err;

/* The [[analysis]] of that kind which is declared first: its number, or -1. And a key of it, or "".
 */
int64_t declared_analysis(const struct tables *, const char *kind);
const char *declared_key(const struct tables *, int64_t number, const char *key);

/* The analysis whose x, y, by and case a plot of curves shows: of kind "knee" that of the same
   name, of "scaling" the first of scaling, speedup, levels and curve that is declared; -1: none. */
int64_t curves_analysis(const struct tables *, const char *kind);

/* knee and scaling: a metric against a swept key, one curve per group, with what the analysis
 * fitted. */
struct curve {
    const char *name; /* "" if alone */
    int32_t n;
    int32_t of; /* another metric of curve number of - 1, drawn beside it; 0: a curve of its own */
    double *x, *y, *lo, *hi; /* (n) the metric; the interval is y where a row has none */
    double *t, *t_lo, *t_hi; /* (n) knee only: time of a step, in t_unit */
    /* knee: t = max(level, c0 + c1 x); scaling: y = prefactor x^exponent from `from` on; NAN: not
     * found */
    double level, c0, c1, knee, knee_lo, knee_hi, predicted;
    double exponent, exponent_lo, exponent_hi, prefactor, from;
};
struct curves {
    struct arena *arena;
    int32_t n;
    struct curve *curve;
    const char *x_name, *y_name, *y_unit, *t_unit; /* "batch", "decode rate", "token/s" */
    int32_t n_marks;                               /* where x crosses the processor's caches */
    struct {
        const char *name; /* "L2 2 MiB" */
        double x;
    } mark[3];
    struct axis x, y, t;
    struct text left_out;
};
/* ERR_UNSUPPORTED with the reason if fewer than two rows can be drawn. */
int curves_read(const struct tables *, const char *kind, struct curves *, struct err *);
/* Likewise, of the analysis of that number. */
int curves_read_of(const struct tables *, const char *kind, int64_t number, struct curves *,
                   struct err *);
/* The next analysis of the same kind, case, x and by, and of another metric: its curves are drawn
   below those of `above`, as memory below time; -1: none. */
int64_t curves_below(const struct tables *, int64_t above);
void curves_free(struct curves *);

/* parts: the times of divided rows, stacked, and beside each the undivided row. */
enum { PARTS_MOST = 8 };
struct shares {
    struct arena *arena;
    int32_t n_parts, n;
    const char *part[PARTS_MOST]; /* largest first; the last may be "other" */
    struct shares_row {
        const char *label;
        double ms[PARTS_MOST], sum;       /* in t_unit */
        double whole, whole_lo, whole_hi; /* NAN: there is none */
    } * row;
    const char *x_name, *t_unit; /* x_name: "context" if that is all that tells rows apart, or "" */
    struct axis y;
};
int shares_read(const struct tables *, struct shares *, struct err *);
void shares_free(struct shares *);

/* roofline: what the run measured as roofs, and rows (or their phases) under them. */
enum { ROOFS_MOST = 8 };
struct roofs {
    struct arena *arena;
    int32_t n_bandwidths, n_peaks;
    struct roof {
        const char *name;
        double value; /* byte/s or FLOP/s */
        bool main;    /* the one that judges rows */
    } bandwidth[ROOFS_MOST], peak[ROOFS_MOST];
    int32_t n;
    struct roof_row {
        const char *group, *label;
        double intensity, rate; /* FLOP/byte, FLOP/s */
    } * row;
    struct axis x, y;
};
int roofs_read(const struct tables *, struct roofs *, struct err *);
void roofs_free(struct roofs *);

/* memory: the live set by class over the time of the visit that reached the highest peak. */
enum { CLASSES_MOST = 8 };
struct timeline {
    struct arena *arena;
    const char *row; /* label of the point */
    int32_t n_classes, n_phases;
    const char *class[CLASSES_MOST];
    int64_t n;         /* moments; between two of them nothing changes */
    double *ms, *live; /* (n), (n, n_classes): byte, after the moment */
    double peak, peak_ms, end_ms;
    struct timeline_phase {
        const char *name;
        double from_ms, to_ms;
    } phase[64];
};
int timeline_read(const struct tables *, struct timeline *, struct err *);
void timeline_free(struct timeline *);

/* samples: every execution over its row's median, in the order in which they ran, and their
 * distribution. */
enum { ROWS_MOST = 6, ROUNDS_MOST = 64 };
struct sequence {
    struct arena *arena;
    int32_t n_rows, n_left; /* rows shown, rows left out */
    struct sequence_row {
        const char *label;
        double median_ms;
        int64_t n;
        double *at, *ratio; /* (n): place in the run's sequence of samples; time over median */
        double *sorted;     /* (n): ratio, ascending */
    } row[ROWS_MOST];
    int32_t n_rounds;
    double round_from[ROUNDS_MOST]; /* place where each begins */
    double last;
    struct axis y;
};
int sequence_read(const struct tables *, struct sequence *, struct err *);
void sequence_free(struct sequence *);

/* warmup: what a worker's executions took from its first one on, over what they settle at. */
enum { FIRST_ONES = 1000 }; /* executions shown of each worker */
struct beginning_view {
    struct arena *arena;
    int32_t n_rows, n_left; /* rows shown, rows left out */
    struct beginning_row {
        const char *label;
        double level_ms, warmups; /* means over the visits; warmups: discarded by the loop */
        int32_t n, n_all;
        double *at, *middle;    /* (n): number of the execution, from 1; median over the visits */
        double *all_at, *all;   /* (n_all): each visit's own */
    } row[ROWS_MOST];
    struct axis x, y;
};
int beginning_view_read(const struct tables *, struct beginning_view *, struct err *);
void beginning_view_free(struct beginning_view *);

#endif
