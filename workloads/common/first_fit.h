/* SPDX-License-Identifier: Apache-2.0 */
/* Contiguous reservations in one piece of memory, each in the lowest hole that is large enough:
 * what paging replaces (seed E23). Pure. */
#ifndef WORKLOADS_COMMON_FIRST_FIT_H
#define WORKLOADS_COMMON_FIRST_FIT_H
#include <stdint.h>

struct first_fit {
    int64_t size, used;
    struct piece {
        int64_t begin, size;
    } * pieces; /* (n) by rising begin */
    int32_t n, room;
};
void first_fit_open(struct first_fit *, int64_t size);
void first_fit_close(struct first_fit *);
int64_t first_fit_take(struct first_fit *,
                       int64_t size); /* where it begins; -1: no hole is large enough */
void first_fit_give(struct first_fit *, int64_t begin);
int64_t first_fit_hole(const struct first_fit *); /* the largest */

#endif
