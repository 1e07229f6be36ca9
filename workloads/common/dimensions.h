/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions of an array by their largest magnitudes: octaves, which of them stand out, and what
   one scale leaves of the others (seeds E37, E38). */
#ifndef WORKLOADS_COMMON_DIMENSIONS_H
#define WORKLOADS_COMMON_DIMENSIONS_H
#include "base/metric.h"
#include "workloads/common/codes.h"

enum { OCTAVES = 12 };
/* 0-1, 1-2, 2-4, ..., 512-1024, and from 1024 on: the number of the bin. */
int octave_of(double magnitude);
double octave_edge(int bin); /* where it begins; of OCTAVES: 4096, where E37's last one ends */

struct dimensions {
    int64_t rows, dims;
    const float *x; /* (rows, dims) */
    double *most;   /* (dims) the largest magnitude of each */
    double *sorted; /* (dims) the same, falling */
    double largest, median;
};
/* of->x, rows and dims are the caller's and must last; a NaN counts as 0. */
void dimensions_open(struct dimensions *of);
void dimensions_close(struct dimensions *);
/* One whose largest magnitude is the median, or of two middles the lower. */
int64_t dimensions_middle(const struct dimensions *);
/* The dimension of a rank in falling order, 0 the largest; of equals the lower number first. */
int64_t dimensions_ranked(const struct dimensions *, int64_t rank);
/* Dimensions of at least `times` the median, which is the rule for standing out; of a median of 0:
   all above 0. */
int64_t dimensions_beyond(const struct dimensions *, double times);

/* Rounds x to codes without the `exclude` largest dimensions (of equals the first), which stay as
   they are and do not set a scale; rounded (rows, dims). Returns the largest that is rounded. */
double dimensions_round(const struct dimensions *, const struct code_spec *, int64_t exclude,
                        float *rounded, struct code_sums *);
/* ||x^ - x|| / ||x|| of dimensions below a limit; NAN where there is none. */
double dimensions_error(const struct dimensions *, const float *rounded, double limit);
/* Different values of a dimension. */
int64_t dimensions_values(const struct dimensions *, const float *rounded, int64_t dimension);

/* What dimensions_report sets: the histogram of largest magnitudes, and their sizes. */
#define DIMENSION_BIN(name, range)                                                                 \
    {                                                                                              \
        name, "dimension", "Dimensions whose largest magnitude lies in " range ".", BETTER_NONE,   \
            true                                                                                   \
    }
#define DIMENSION_BINS                                                                             \
    {"dimensions", "dimension", "In all.", BETTER_NONE, true}, DIMENSION_BIN("to_1", "0 ... 1"),   \
        DIMENSION_BIN("to_2", "1 ... 2"), DIMENSION_BIN("to_4", "2 ... 4"),                        \
        DIMENSION_BIN("to_8", "4 ... 8"), DIMENSION_BIN("to_16", "8 ... 16"),                      \
        DIMENSION_BIN("to_32", "16 ... 32"), DIMENSION_BIN("to_64", "32 ... 64"),                  \
        DIMENSION_BIN("to_128", "64 ... 128"), DIMENSION_BIN("to_256", "128 ... 256"),             \
        DIMENSION_BIN("to_512", "256 ... 512"), DIMENSION_BIN("to_1024", "512 ... 1024"),          \
        DIMENSION_BIN("to_4096", "1024 ... 4096, and beyond"),                                     \
        {"below_8", "dimension", "Dimensions below 8.", BETTER_NONE, true}, {                      \
        "empty_octaves", "octave", "Empty bins below the largest dimension's.", BETTER_NONE, true  \
    }
#define DIMENSION_SIZES                                                                            \
    {"largest", "", "The largest magnitude.", BETTER_NONE, true},                                  \
        {"median", "", "The median dimension's largest magnitude.", BETTER_NONE, true}, {          \
        "largest_over_median", "", "largest over median.", BETTER_NONE, true                       \
    }
/* unit: what the bins count in; 1 for the values as they are. */
void dimensions_report(const struct dimensions *, double unit, struct values *);

#endif
