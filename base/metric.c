/* SPDX-License-Identifier: Apache-2.0 */
/* The small list of named numbers that a workload reports. */
#include "base/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void values_set(struct values *values, const char *name, double v) {
    int i = 0;
    while (i < values->n && strcmp(values->items[i].name, name) != 0) i++;
    if (i == VALUES_MOST) return;
    if (i == values->n) {
        snprintf(values->items[i].name, sizeof values->items[i].name, "%s", name);
        values->n++;
    }
    values->items[i].v = v;
}

double values_get(const struct values *values, const char *name) {
    for (int i = 0; i < values->n; i++)
        if (!strcmp(values->items[i].name, name)) return values->items[i].v;
    return NAN;
}
