/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a core runs now, measured by work of known length instead of asked. */
#ifndef PROBES_COMMON_CLOCK_RATE_H
#define PROBES_COMMON_CLOCK_RATE_H
#include <stdint.h>

/* Cycles per ns of the core under us: a chain of dependent multiplications of 3 cycles each (Intel
 * and AMD since 2013; elsewhere a relative figure), the best of `tries` of about 20 us. 0: the
 * clock did not move. */
double clock_rate(int tries);
/* One chain of `links` multiplications; the cycles it takes where nothing interrupts. */
double clock_rate_chain(int64_t links);

#endif
