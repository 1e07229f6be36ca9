/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out in an array, by stated rules, and what one scale leaves of the rest with and
   without it (seeds E34, E37, E38). */
#ifndef WORKLOADS_COMMON_OUTLYING_H
#define WORKLOADS_COMMON_OUTLYING_H
#include "workloads/common/dimensions.h"
#include "workloads/common/rounding.h"

struct outlying {
    const float *x; /* (rows, cols) */
    int64_t rows, cols;
    double stands_out; /* a dimension does at so many times the median dimension's magnitude */
    double sigmas;     /* a value does beyond so many deviations from the mean */
    bool single;       /* single values are set aside, not whole dimensions */
    int64_t exclude;   /* dimensions that are set aside; 0: those that stand out */
    int bits;          /* of symmetric codes */
};
/* Sets OUTLYING_METRICS, DIMENSION_SIZES and DIMENSION_BINS (these in deviations where values are
   single); with a NaN or an infinity among x nothing, and returns how many there are. */
int64_t outlying_report(const struct outlying *, struct values *);
/* Mean, deviation and largest magnitude; its errors are those of f32: none. */
struct rounding outlying_spread(const struct outlying *);

#define OUTLYING_WITHOUT(name, unit, text, better)                                                 \
    {name, unit, text, better, true}, {                                                            \
        name "_without", unit, "The same without what is set aside.", better, true                 \
    }
#define OUTLYING_BIN(name, range)                                                                  \
    {                                                                                              \
        name, "", "Share of the values that lie " range " deviations from the mean.", BETTER_NONE, \
            true                                                                                   \
    }
#define OUTLYING_METRICS                                                                           \
    {"first_dim", "", "The largest dimension, counted from 0.", BETTER_NONE, true},                \
        {"outlier_dims", "dimension", "Dimensions that stand out (`stands_out`).", BETTER_NONE,    \
         true},                                                                                    \
        OUTLYING_WITHOUT("levels_used", "level",                                                   \
                         "Codes that occur, with one scale for all (E38).", BETTER_HIGHER),        \
        {"largest_sigma", "sigma", "The largest magnitude in deviations (E34).", BETTER_NONE,      \
         true},                                                                                    \
        {"beyond", "value", "Values more than `sigmas` deviations from the mean (E34).",           \
         BETTER_NONE, true},                                                                       \
        {"beyond_share", "", "beyond over values.", BETTER_NONE, true},                            \
        {"set_aside", "value", "Values that _without sets aside.", BETTER_NONE, true},             \
        OUTLYING_WITHOUT("error", "",                                                              \
                         "||x^ - x|| / ||x|| of what is not set aside, with one scale for all.",   \
                         BETTER_LOWER),                                                            \
        OUTLYING_WITHOUT("zero_share", "", "Values of these that become 0.", BETTER_LOWER),        \
        OUTLYING_WITHOUT("scale", "", "Step of a code with one scale for all (E38).",              \
                         BETTER_LOWER),                                                            \
        OUTLYING_WITHOUT("row_levels", "level",                                                    \
                         "Codes that occur in a row with a scale of its own, on average.",         \
                         BETTER_HIGHER),                                                           \
        OUTLYING_WITHOUT("middle_levels", "level",                                                 \
                         "Codes that the median dimension uses, with one scale for all (E38).",    \
                         BETTER_HIGHER),                                                           \
        {"second_dim", "", "The second largest, where it stands out.", BETTER_NONE, true},         \
        {"third_dim", "", "The third largest, where it stands out.", BETTER_NONE, true},           \
        {"first_rows", "row", "Rows in which the largest dimension is at least half as large.",    \
         BETTER_NONE, true},                                                                       \
        {"values", "value", "All of them.", BETTER_NONE, true},                                    \
        {"mean_abs", "", "Mean |x|.", BETTER_NONE, true},                                          \
        {"deviation", "", "Root mean square about the mean.", BETTER_NONE, true},                  \
        {"mean_sigma", "sigma", "mean_abs over deviation: 0.798 of normal values (E34).",          \
         BETTER_NONE, true},                                                                       \
        OUTLYING_BIN("sigma_to_quarter", "0 ... 1/4"),                                             \
        OUTLYING_BIN("sigma_to_half", "1/4 ... 1/2"), OUTLYING_BIN("sigma_to_1", "1/2 ... 1"),     \
        OUTLYING_BIN("sigma_to_2", "1 ... 2"), OUTLYING_BIN("sigma_to_4", "2 ... 4"),              \
        OUTLYING_BIN("sigma_to_8", "4 ... 8"), OUTLYING_BIN("sigma_to_16", "8 ... 16"),            \
        OUTLYING_BIN("sigma_to_32", "16 ... 32"), OUTLYING_BIN("sigma_beyond_32", "32 and more")

#endif
