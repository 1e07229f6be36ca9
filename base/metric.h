/* SPDX-License-Identifier: Apache-2.0 */
/* What a number of a row is called, its unit, and which way is better; and a small list of such
 * numbers. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H
#include <stdbool.h>
#include <stdint.h>

enum better { BETTER_NONE, BETTER_LOWER, BETTER_HIGHER };
struct metric {              /* a list ends with name NULL */
    const char *name, *unit; /* "decode_rate", "token/s" */
    const char *help;        /* one sentence; a rate names its numerator and its denominator */
    enum better better;
    bool exact; /* the same on every run: gated at tolerance 0, stored once, no interval */
};

#define VALUES_MOST 64
struct values {
    int n;
    struct {
        char name[48];
        double v; /* NAN: no number */
    } items[VALUES_MOST];
};
/* Replaces; more than VALUES_MOST are dropped. An infinity is no number either: it says that
   something was divided by next to nothing. */
void values_set(struct values *, const char *name, double v);
double values_get(const struct values *, const char *name); /* NAN if absent */

#endif
