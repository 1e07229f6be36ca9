/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of multiplications, each of which waits for the one before. */
#include "probes/common/clock_rate.h"

#include "base/clock.h"

enum { LINKS = 20000, CYCLES_A_LINK = 3 };

double clock_rate_chain(int64_t links) {
    uint64_t x = 0x9e3779b97f4a7c15u;
    for (int64_t k = 0; k < links; k++) {
        x *= 0xd1342543de82ef95u;
        __asm__ volatile("" : "+r"(x)); /* keeps the chain, though nobody reads x */
    }
    return CYCLES_A_LINK * (double)links;
}

double clock_rate(int tries) {
    double best = 0;
    for (int i = 0; i < tries; i++) {
        int64_t t = clock_ns();
        double cycles = clock_rate_chain(LINKS);
        t = clock_ns() - t;
        double rate = t > 0 ? cycles / (double)t : 0;
        if (rate > best) best = rate;
    }
    return best;
}
