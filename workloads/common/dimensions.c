/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/dimensions.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

int octave_of(double magnitude) {
    int exponent;
    if (magnitude < 1) return 0;
    frexp(magnitude, &exponent);
    return exponent < OCTAVES - 1 ? exponent : OCTAVES - 1;
}

double octave_edge(int bin) { return bin == 0 ? 0 : bin == OCTAVES ? 4096 : ldexp(1, bin - 1); }

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

void dimensions_open(struct dimensions *of) {
    const int64_t n = of->dims;
    of->most = must_alloc(2 * sizeof *of->most * (size_t)n);
    of->sorted = of->most + n;
    for (int64_t r = 0; r < of->rows; r++)
        for (int64_t d = 0; d < n; d++)
            of->most[d] = fmax(of->most[d], fabs((double)of->x[r * n + d]));
    memcpy(of->sorted, of->most, sizeof *of->most * (size_t)n);
    qsort(of->sorted, (size_t)n, sizeof *of->sorted, falling);
    of->largest = of->sorted[0];
    of->median = 0.5 * (of->sorted[(n - 1) / 2] + of->sorted[n / 2]);
}

void dimensions_close(struct dimensions *of) {
    free(of->most);
    of->most = of->sorted = NULL;
}

int64_t dimensions_ranked(const struct dimensions *of, int64_t rank) {
    int64_t equals = 0, d = 0;
    for (int64_t i = 0; i < rank; i++) equals += of->sorted[i] == of->sorted[rank];
    while (of->most[d] != of->sorted[rank] || equals-- > 0) d++;
    return d;
}

int64_t dimensions_middle(const struct dimensions *of) {
    return dimensions_ranked(of, of->dims / 2);
}

int64_t dimensions_beyond(const struct dimensions *of, double times) {
    const double least = times * of->median;
    int64_t n = 0;
    while (n < of->dims && of->sorted[n] > 0 && of->sorted[n] >= least) n++;
    return n;
}

/* ---- codes */

/* The array without its excluded dimensions; where each column came from. */
static float *kept_columns(const struct dimensions *of, int64_t exclude, int64_t *n,
                           int64_t *from) {
    float *kept = must_alloc(sizeof *kept * (size_t)(of->rows * (of->dims - exclude)));
    int64_t out = 0, left = exclude;
    *n = 0;
    for (int64_t d = 0; d < of->dims; d++) {
        /* equals of the last that goes: only as many as are left */
        const bool goes = left > 0 && of->most[d] >= of->sorted[exclude - 1];
        left -= goes;
        if (!goes) from[(*n)++] = d;
    }
    for (int64_t t = 0; t < of->rows; t++)
        for (int64_t i = 0; i < *n; i++) kept[out++] = of->x[t * of->dims + from[i]];
    return kept;
}

double dimensions_round(const struct dimensions *of, const struct code_spec *spec, int64_t exclude,
                        float *rounded, struct code_sums *sums) {
    int64_t *from = must_alloc(sizeof *from * (size_t)of->dims), n;
    float *kept = kept_columns(of, exclude, &n, from);
    const struct code_array array = {kept, of->rows, n};
    double most = 0;
    code_round(spec, &array, kept, sums);
    memcpy(rounded, of->x, sizeof *rounded * (size_t)(of->rows * of->dims));
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, of->most[from[i]]);
        for (int64_t t = 0; t < of->rows; t++) rounded[t * of->dims + from[i]] = kept[t * n + i];
    }
    free(from);
    free(kept);
    return most;
}

double dimensions_error(const struct dimensions *of, const float *rounded, double limit) {
    double error = 0, value = 0;
    for (int64_t i = 0; i < of->rows * of->dims; i++) {
        const double x = (double)of->x[i], e = (double)rounded[i] - x;
        if (!(of->most[i % of->dims] < limit)) continue;
        error += e * e;
        value += x * x;
    }
    return value > 0 ? sqrt(error / value) : (double)NAN;
}

int64_t dimensions_values(const struct dimensions *of, const float *rounded, int64_t dimension) {
    double *sorted = must_alloc(sizeof *sorted * (size_t)of->rows);
    int64_t n = 1;
    for (int64_t t = 0; t < of->rows; t++) sorted[t] = (double)rounded[t * of->dims + dimension];
    qsort(sorted, (size_t)of->rows, sizeof *sorted, falling);
    for (int64_t t = 1; t < of->rows; t++) n += sorted[t] < sorted[t - 1];
    free(sorted);
    return n;
}

/* ---- numbers */

void dimensions_report(const struct dimensions *of, double unit, struct values *v) {
    static const char *const names[OCTAVES] = {"to_1",   "to_2",   "to_4",    "to_8",
                                               "to_16",  "to_32",  "to_64",   "to_128",
                                               "to_256", "to_512", "to_1024", "to_4096"};
    int64_t counts[OCTAVES] = {0};
    int empty = 0;
    for (int64_t d = 0; d < of->dims; d++) counts[octave_of(of->most[d] / unit)]++;
    for (int i = octave_of(of->largest / unit) - 1; i > 0 && !counts[i]; i--) empty++;
    for (int i = 0; i < OCTAVES; i++) values_set(v, names[i], (double)counts[i]);
    values_set(v, "dimensions", (double)of->dims);
    values_set(v, "below_8", (double)(counts[0] + counts[1] + counts[2] + counts[3]));
    values_set(v, "empty_octaves", empty);
    values_set(v, "largest", of->largest);
    values_set(v, "median", of->median);
    values_set(v, "largest_over_median", of->median > 0 ? of->largest / of->median : (double)NAN);
}
