/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison of a program with itself tells of the machine: how noisy each row is, what can
 * be detected in what time, and how often a gate would cry wolf. It plans; no verdict rests on it.
 */
#ifndef RESULTS_CALIBRATION_H
#define RESULTS_CALIBRATION_H
#include <stdbool.h>
#include <stddef.h>

#include "results/gate.h"
#include "results/table.h"

struct text;
struct err;

enum { CALIBRATION_ROUNDS = 30, CALIBRATION_DRAWS = 100000 };

struct calibration_row {
    char name[80];
    size_t rounds;
    double s;             /* standard deviation of the rounds' y */
    double workers;       /* of it, what lies between workers: beyond the error within visits */
    double detectable[3]; /* relative change at 95 % power in 30, 60 and 90 s of the whole gate */
    double at_limit;      /* the same at the round limit */
    size_t to_halve;      /* rounds that halve at_limit's part beyond the tolerance; 0: too many */
    int64_t alarms;       /* of CALIBRATION_DRAWS gates with labels swapped at random */
    double sittings;      /* standard deviation of ln time between sittings; NAN for one */
};
struct calibration {
    struct calibration_row *rows; /* (n) */
    size_t n;
    double seconds; /* of one row and round */
    int64_t alarms; /* gates with any */
    double bound;   /* upper 97.5 % bound of their rate */
};
extern const double calibration_seconds[3]; /* 30, 60, 90 */

/* From the tables of one sitting or several (the same rows). ERR_INPUT: they are no comparison, or
   have too few rounds. */
int calibration_of(const struct tables *const *sittings, size_t n, const struct gate_settings *,
                   struct calibration *, struct err *);
void calibration_free(struct calibration *);
/* The table, at most 100 columns. Whether every row can see `detect` within the round limit. */
bool calibration_text(const struct calibration *, const struct gate_settings *, struct text *);

#endif
