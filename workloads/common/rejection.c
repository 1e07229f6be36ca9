/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling rule of rejection.h. */
#include "workloads/common/rejection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void rejection_softmax(const float *logits, int64_t n, double temperature, double *p) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(((double)logits[i] - most) / temperature);
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

int32_t rejection_draw(const double *weights, int64_t n, double u) {
    double sum = 0, running = 0;
    int32_t last = 0;
    for (int64_t i = 0; i < n; i++) sum += weights[i];
    for (int64_t i = 0; i < n; i++) {
        if (!(weights[i] > 0)) continue;
        running += weights[i];
        last = (int32_t)i; /* where rounding leaves the whole sum short of u sum */
        if (running > u * sum) break;
    }
    return last;
}

double rejection_keeps(double p, double q) { return q < p ? q / p : 1; }

void rejection_residual(const double *p, const double *q, int64_t n, double *out) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (q[i] > p[i]) sum += q[i] - p[i];
    if (!(sum > 0)) {
        if (out != q) memcpy(out, q, sizeof *out * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = q[i] > p[i] ? (q[i] - p[i]) / sum : 0;
}

double rejection_acceptance(const double *p, const double *q, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += p[i] * rejection_keeps(p[i], q[i]);
    return sum;
}

void rejection_output(const double *p, const double *q, int64_t n, double *out) {
    double *other = must_alloc(sizeof *other * (size_t)n);
    const double rejected = 1 - rejection_acceptance(p, q, n);
    rejection_residual(p, q, n, other);
    for (int64_t i = 0; i < n; i++)
        out[i] = p[i] * rejection_keeps(p[i], q[i]) + rejected * other[i];
    free(other);
}
