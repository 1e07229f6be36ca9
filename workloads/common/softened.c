/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/softened.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* The k largest of p, falling; fewer where n is less. */
static int32_t largest(const double *p, int32_t n, int32_t k, double *top) {
    int32_t found = 0;
    for (int32_t i = 0; i < n; i++) {
        if (found == k && !(p[i] > top[k - 1])) continue;
        int32_t at = found < k ? found++ : k - 1;
        for (; at > 0 && top[at - 1] < p[i]; at--) top[at] = top[at - 1];
        top[at] = p[i];
    }
    return found;
}

void softened_of(const float *logits, int32_t n, double temperature, int32_t k, double *p,
                 struct softened *s) {
    const double none = (double)NAN;
    const int32_t most = k < 3 ? 3 : k;
    double sum = 0, *top = must_alloc(sizeof *top * (size_t)most);
    *s = (struct softened){none, none, none, none, none, none, none, none};
    for (int32_t i = 0; i < n; i++) p[i] = isnan(logits[i]) ? -INFINITY : (double)logits[i];
    int32_t found = largest(p, n, most, top);
    const double first = found ? top[0] : none;
    if (found > 2) s->log_ratio_1 = top[0] - top[2];
    for (int32_t i = 0; i < n; i++)
        sum += p[i] = isfinite(first) ? exp((p[i] - first) / temperature) : 0;
    s->first = first;
    s->log_sum = log(sum);
    if (sum > 0) {
        s->entropy = s->mass = 0;
        for (int32_t i = 0; i < n; i++) {
            p[i] /= sum;
            if (p[i] > 0) s->entropy -= p[i] * log2(p[i]);
        }
        found = largest(p, n, most, top);
        for (int32_t i = 0; i < found && i < k; i++) s->mass += top[i];
        s->top = top[0];
        s->third = found > 2 ? top[2] : 0;
        /* A low temperature may leave the third nothing: there is no ratio then. */
        if (s->third > 0) s->log_ratio = log(s->top / s->third);
    }
    free(top);
}

double softened_bits(const struct softened *s, float logit, double temperature) {
    return (s->log_sum - ((double)logit - s->first) / temperature) / log(2);
}

/* ---- drawn tokens */

struct likely {
    double p;
    int32_t id;
};

static int falling(const void *a, const void *b) {
    const struct likely *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

/* Chi square with so many degrees of freedom is as large or larger with this chance. */
static double chance_of(double statistic, double freedom) {
    const double spread = 2 / (9 * freedom);
    const double z = (cbrt(statistic / freedom) - (1 - spread)) / sqrt(spread);
    return 0.5 * erfc(z / sqrt(2));
}

void drawn_of(const double *p, int32_t n, const int32_t *ids, int32_t n_drawn, struct drawn *d) {
    const double enough = fmax(5, n_drawn / 32.0);
    struct likely *order = must_alloc(sizeof *order * (size_t)n);
    int64_t *seen = must_alloc(sizeof *seen * (size_t)n);
    double expected = 0, counted = 0, left = n_drawn;
    bool impossible = false;
    *d = (struct drawn){.chance = 1};
    for (int32_t i = 0; i < n_drawn; i++) {
        impossible = impossible || ids[i] < 0 || ids[i] >= n || !(p[ids[i]] > 0);
        if (!impossible) seen[ids[i]]++;
    }
    for (int32_t i = 0; i < n; i++) order[i] = (struct likely){p[i], i};
    qsort(order, (size_t)n, sizeof *order, falling);
    for (int32_t i = 0; i < n; i++) {
        expected += n_drawn * order[i].p;
        counted += (double)seen[order[i].id];
        left -= n_drawn * order[i].p;
        /* What is left for later cells must be enough for one; else it belongs to this one. */
        if (i + 1 < n && (expected < enough || left < enough)) continue;
        d->statistic += (counted - expected) * (counted - expected) / expected;
        d->cells++;
        expected = counted = 0;
    }
    if (d->cells > 1) d->chance = chance_of(d->statistic, d->cells - 1);
    if (impossible) d->chance = (double)NAN;
    free(order);
    free(seen);
}
