/* SPDX-License-Identifier: Apache-2.0 */
/* Normal values with outliers where trained models have them: single weights (seed E34), or whole
   channels (E37). Seeded: value i is a function of key and i alone. */
#ifndef WORKLOADS_COMMON_OUTLIERS_H
#define WORKLOADS_COMMON_OUTLIERS_H
#include <stdint.h>

enum outlier_kind { OUTLIERS_NONE, OUTLIERS_ONE, OUTLIERS_VALUES, OUTLIERS_COLUMNS, OUTLIERS_ROWS };
extern const char *const outlier_words[]; /* none, one, weights, columns, rows, NULL */
struct outliers {
    enum outlier_kind kind;
    /* Of all values, columns or rows, at least one where it is above 0. Which ones is drawn. */
    double share;
    /* one: the value in the middle has `scale` deviations. weights: magnitudes lie between a
       quarter of `scale` and all of it, alike in logarithm; both signs. columns, rows: all their
       values are `scale` times as large. */
    double scale;
};
/* w (rows, cols), row-major, `deviation` wide but for the outliers; at most 2^31 columns and rows.
 */
void outliers_fill(float *w, int64_t rows, int64_t cols, double deviation, const struct outliers *,
                   uint64_t key);

#endif
