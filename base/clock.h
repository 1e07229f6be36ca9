/* SPDX-License-Identifier: Apache-2.0 */
/* The host clock (CLOCK_MONOTONIC, ns), its resolution and cost, and the wall clock for names and
 * dates. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t clock_resolution_ns(
    void);                  /* smallest positive step seen between reads; measured once, cached */
double clock_cost_ns(void); /* mean cost of one read; measured once, cached */
char *clock_rfc3339(char out[32]); /* UTC now: 2026-11-29T18:30:12Z */
char *clock_stamp(char out[32]);   /* local-free UTC stamp for file names: 20261129-183012 */

#endif
