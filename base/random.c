/* SPDX-License-Identifier: Apache-2.0 */
/* What is too long for the header: normal numbers and shuffles. */
#include "base/random.h"

#include <math.h>

double random_normal(uint64_t key, uint64_t i) {
    double u = 1 - random_unit(key, 2 * i); /* (0, 1]: the logarithm is finite */
    double v = random_unit(key, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

void random_shuffle(uint64_t key, int32_t *v, int32_t n) {
    for (int32_t i = n - 1; i > 0; i--) {
        uint32_t j = random_below(key, (uint64_t)i, (uint32_t)i + 1);
        int32_t kept = v[i];
        v[i] = v[j];
        v[j] = kept;
    }
}
