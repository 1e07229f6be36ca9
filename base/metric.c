/* SPDX-License-Identifier: Apache-2.0 */
/* The small list of named numbers that a workload reports. */
#include "base/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Longer names are cut: the cut one is found again. */
static int position(const struct values *values, const char *name) {
    const size_t most = sizeof values->items[0].name - 1;
    int i = 0;
    while (i < values->n && strncmp(values->items[i].name, name, most) != 0) i++;
    return i;
}

void values_set(struct values *values, const char *name, double v) {
    int i = position(values, name);
    if (i == VALUES_MOST) return;
    if (i == values->n) {
        snprintf(values->items[i].name, sizeof values->items[i].name, "%s", name);
        values->n++;
    }
    values->items[i].v = isinf(v) ? (double)NAN : v;
}

double values_get(const struct values *values, const char *name) {
    int i = position(values, name);
    return i < values->n ? values->items[i].v : NAN;
}
