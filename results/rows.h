/* SPDX-License-Identifier: Apache-2.0 */
/* Points seen as rows of an experiment: swept keys, groups along an axis, and what each round says
 * of a metric. */
#ifndef RESULTS_ROWS_H
#define RESULTS_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "results/table.h"

struct arena;
struct err;

/* Whether the row's state lets it have numbers (ok, degraded, implausible). */
bool rows_usable(const struct tables *, int64_t point);
bool rows_flagged(const struct tables *, int64_t point, const char *flag);
/* A key of a point: a swept column, else its fact; "case" is the case's name. Text "" and number
   NAN where there is none; bytes and times are read with their units. */
void rows_key_text(const struct tables *, int64_t point, const char *key, struct text *);
double rows_key(const struct tables *, int64_t point, const char *key);
/* A protocol-wide fact or an environment fact; "" where absent. */
const char *rows_fact(const struct tables *, const char *key);
const char *rows_environment(const struct tables *, const char *key);
/* "workload.batch" is called "batch" wherever a person reads it. */
const char *rows_short(const char *key);
/* What is swept, beside the schema's columns of points. */
bool rows_swept(const struct tables *, size_t column);

/* A condition "workload.mode=cached, workload.n=64" against a point; an empty one holds. */
bool rows_match(const struct tables *, int64_t point, const char *where);
/* ERR_INPUT for what is no such condition, as "batch" or "batch<4": it would hold for every row. */
int rows_check(const char *where, struct err *);
/* ERR_INPUT for a key that no row of any of the files has, with the nearest one: such a condition
   holds nowhere. */
int rows_check_keys(const struct tables *const *, size_t n, const char *where, struct err *);
/* "no row has workload.batch=9; there are 12: batch=1, batch=2, batch=4, ..." for what holds
   nowhere: n rows, of which these tables name the first. */
void rows_none(const struct tables *, int64_t n, const char *where, struct text *);
/* Whether both points agree in every swept key (and their case) that neither condition names. */
bool rows_pair(const struct tables *, int64_t a, int64_t b, const char *where_a,
               const char *where_b);

/* Rows along x, those that differ in another swept key apart. */
struct rows_group {
    const char *name; /* "recompute", "int8 64"; "" if there is one group only */
    int32_t n;
    int64_t *point; /* (n), by ascending x */
    double *x;      /* (n), distinct */
};
struct rows {
    struct arena *arena; /* owns all of it */
    struct rows_group *groups;
    int32_t n_groups;
    struct text left_out; /* "batch=64 (oom), batch=128 (skipped)"; data NULL: none */
};
/* by: keys, comma-separated, whose values name the groups; "": every swept key that differs where x
 * does not. */
void rows_gather(const struct tables *, const char *only_case, const char *x, const char *by,
                 struct rows *);
void rows_free(struct rows *);

/* The mean of a metric in every visit: time, NAME_time, NAME_rate, bandwidth, flop_rate, mbu, mfu
   from samples and marks, else what was reported. Sparse, sorted by point and round; control visits
   and failed ones are kept out. */
struct rounds {
    struct round_value {
        int64_t point, round;
        double value;
    } * items;
    int64_t n;
    int64_t *rounds; /* (n_rounds): the rounds that occur, ascending */
    int64_t n_rounds;
};
void rounds_read(const struct tables *, const char *metric, struct rounds *);
double rounds_get(const struct rounds *, int64_t point, int64_t round); /* NAN if absent */
void rounds_free(struct rounds *);

/* A metric's number for a point: the summary's mean, else a column of points; NAN if absent.
   "CASE:METRIC" is the metric of the row of another case that agrees with this one in every swept
   key that both have: speed beside quality. */
double rows_metric(const struct tables *, int64_t point, const char *metric);
const char *rows_unit(const struct tables *, const char *metric); /* "" if unknown */
bool rows_exact(const struct tables *, const char *metric);       /* the same on every run */
bool rows_is_rate(const char *unit); /* something per second: "token/s" */

/* The peak that bounds a row's arithmetic: of its binding type, else of f32, as the summary's mfu
   takes it; FLOP/s and the type. NAN if this run measured neither. */
double rows_peak(const struct tables *, int64_t point, const char **type);

/* A row's label without the words of a condition: "context=64 split=parts" and
   "workload.split=parts" give "context=64". */
void rows_label(const struct tables *, int64_t point, const char *without, struct text *);

/* Bytes of the processor's data cache of level 1 ... 3 (L1 and L2: of one core), for a row that ran
   on the processor; 0 where there is none, the machine did not say, or the row ran elsewhere. And
   the threads that it ran with, at least 1. */
double rows_cache_bytes(const struct tables *, int64_t point, int level);
int64_t rows_threads(const struct tables *, int64_t point);

/* For sentences: whole numbers as they are, others with so many significant digits. */
char *rows_number(char buf[32], double v, int digits);

/* Student t interval of the mean of n values of logarithms, carried back: *value = exp(mean);
 * bounds NAN at n < 2. */
void rows_log_interval(const double *logs, size_t n, double *value, double *lo, double *hi);

#endif
