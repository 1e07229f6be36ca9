/* SPDX-License-Identifier: Apache-2.0 */
/* A grid of row numbers, and lines between. */
#include "workloads/common/step_costs.h"

#include <math.h>

#include "workloads/common/scheduler.h"

static void add(struct step_costs *c, int64_t rows) {
    if (c->n < STEP_COSTS_MOST && (!c->n || c->rows[c->n - 1] < rows))
        c->rows[c->n++] = (int32_t)rows;
}

void step_costs_grid(struct step_costs *c, int32_t slots, int64_t most) {
    *c = (struct step_costs){0};
    for (int64_t rows = 1; rows < slots; rows *= 2) add(c, rows);
    for (int64_t rows = slots; rows < most; rows *= 2) add(c, rows);
    add(c, most);
}

double step_costs_at(const struct step_costs *c, int32_t rows) {
    int32_t i = 1;
    if (c->n < 2) return c->n ? c->ns[0] : 0;
    while (i < c->n - 1 && c->rows[i] < rows) i++;
    const double share = (double)(rows - c->rows[i - 1]) / (double)(c->rows[i] - c->rows[i - 1]);
    return fmax(0, c->ns[i - 1] + share * (c->ns[i] - c->ns[i - 1]));
}

int64_t step_costs_of(void *costs, const struct batch *batch) {
    return (int64_t)step_costs_at(costs, batch->rows);
}
