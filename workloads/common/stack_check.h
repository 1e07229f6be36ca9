/* SPDX-License-Identifier: Apache-2.0 */
/* The witness of a stack of attention blocks: its last layer's outputs against those of another
 * stack, of another form, and of a slow computation in double. */
#ifndef WORKLOADS_COMMON_STACK_CHECK_H
#define WORKLOADS_COMMON_STACK_CHECK_H
#include "workloads/common/slow.h"
#include "workloads/common/stack.h"

struct stack_check {
    struct slow slow;       /* of sampled heads */
    double error;           /* root mean square of the difference over that of the other way */
    double part_of_allowed; /* of two forms: the largest difference over what its type allows */
};
/* Of all outputs of the last layer, all sequences. */
uint64_t stack_hash(const struct stack *);
/* A stack of the same seed with the other spec is made, run once, compared, and closed. lossy: only
   reported, and finite. w: from plain_begin. */
int stack_check_full(struct stack_check *, struct stack *, const struct stack_spec *full,
                     uint64_t seed, bool lossy, struct witness *, struct err *);
int stack_check_form(struct stack_check *, struct stack *, enum latent_form other, struct witness *,
                     struct err *);
/* The first and the last head of the first sequence, from what is kept of it. */
void stack_check_heads(struct stack_check *, const struct stack *, struct witness *);

#endif
