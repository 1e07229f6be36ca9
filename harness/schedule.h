/* SPDX-License-Identifier: Apache-2.0 */
/* Which point is visited when: rounds in seeded order, points that share weights as a block, a
 * control at the end. */
#ifndef HARNESS_SCHEDULE_H
#define HARNESS_SCHEDULE_H
#include <stdbool.h>
#include <stdint.h>

#include "harness/protocol.h"

struct scheduled {
    int64_t visit, round, position, point;
    bool control;
};
/* The visits of one round (malloc'ed; *n of them). Visit numbers depend on protocol, seed and round
   alone, so that a resumed run meets the same ones. Ceilings come first; the control repeats the
   first point that is neither ceiling nor exact. */
struct scheduled *schedule_round(const struct protocol *, int64_t round, int64_t *n);
int64_t schedule_rounds(const struct protocol *); /* as declared, or 8; 1 for quick, profile, and if
                                                     all points are exact */

/* Shares of the budget: asked before each visit, told after it. All times in ns of the run's clock.
 */
struct budget {
    int64_t budget_ns, elapsed_ns;
    int64_t rounds; /* planned now: falls when rounds turn out dear, not below the least */
    bool fixed_rounds;
    /* Of this round: visits, and their time outside of warm-up and samples; then the same of the
     * round before. */
    int64_t done, setup_ns, last_done, last_setup_ns;
    char note[200]; /* why there are fewer rounds than planned, or empty */
};
void budget_begin(struct budget *, const struct protocol *);
int64_t budget_share(const struct budget *, int64_t visits_left);
void budget_spent(struct budget *, int64_t visit_ns, int64_t sampled_ns);
/* After a round that took round_ns: whether another one fits; notes why not. */
bool budget_another(struct budget *, int64_t rounds_done, int64_t round_ns);

#endif
