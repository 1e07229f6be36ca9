/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/outliers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/random.h"

const char *const outlier_words[] = {"none", "one", "weights", "columns", "rows", NULL};

static int64_t count_of(double share, int64_t n) {
    const double count = rint(share * (double)n);
    if (!(share > 0)) return 0;
    return count < 1 ? 1 : count > (double)n ? n : (int64_t)count;
}

static void single(float *w, int64_t n, double deviation, const struct outliers *o, uint64_t key) {
    if (o->kind == OUTLIERS_ONE) {
        w[n / 2] = (float)(o->scale * deviation);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!(random_unit(random_key(key, 1), (uint64_t)i) < o->share)) continue;
        const uint64_t shape = random_key(key, 2);
        const double size = exp2(-2 * random_unit(shape, 2 * (uint64_t)i));
        const bool negative = random_at(shape, 2 * (uint64_t)i + 1) & 1;
        w[i] = (float)((negative ? -deviation : deviation) * o->scale * size);
    }
}

static void lines(float *w, int64_t rows, int64_t cols, const struct outliers *o, uint64_t key) {
    const bool columns = o->kind == OUTLIERS_COLUMNS;
    const int32_t n = (int32_t)(columns ? cols : rows);
    int32_t *which = must_alloc(sizeof *which * (size_t)n);
    for (int32_t i = 0; i < n; i++) which[i] = i;
    random_shuffle(random_key(key, 3), which, n);
    for (int64_t i = 0; i < count_of(o->share, n); i++)
        for (int64_t k = 0; k < (columns ? rows : cols); k++) {
            float *at = columns ? &w[k * cols + which[i]] : &w[which[i] * cols + k];
            *at = (float)(o->scale * (double)*at);
        }
    free(which);
}

void outliers_fill(float *w, int64_t rows, int64_t cols, double deviation, const struct outliers *o,
                   uint64_t key) {
    const int64_t n = rows * cols;
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)(deviation * random_normal(random_key(key, 0), (uint64_t)i));
    if (o->kind == OUTLIERS_ONE || o->kind == OUTLIERS_VALUES) single(w, n, deviation, o, key);
    if (o->kind == OUTLIERS_COLUMNS || o->kind == OUTLIERS_ROWS) lines(w, rows, cols, o, key);
}
