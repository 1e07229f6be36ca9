/* SPDX-License-Identifier: Apache-2.0 */
/* What a step costs on this machine, by its rows: measured at some numbers of rows, straight lines
 * between. */
#ifndef WORKLOADS_COMMON_STEP_COSTS_H
#define WORKLOADS_COMMON_STEP_COSTS_H
#include <stdint.h>

struct batch;
enum { STEP_COSTS_MOST = 40 };
struct step_costs {
    int32_t n, rows[STEP_COSTS_MOST]; /* ascending */
    double ns[STEP_COSTS_MOST];
};
/* 1, 2, 4 ... up to `slots`, and on to `most`; both are among them. */
void step_costs_grid(struct step_costs *, int32_t slots, int64_t most);
double step_costs_at(const struct step_costs *, int32_t rows);
int64_t step_costs_of(void *costs, const struct batch *); /* for schedule_simulate */

#endif
