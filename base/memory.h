/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may use, and how much of it can be had now. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H
#include <stdint.h>

/* Bytes: the least of RAM, the limits of its control groups and its own. */
int64_t memory_limit(void);
/* What of that can be had now: MemAvailable, and what the groups have left; files kept in memory
   that nobody used lately count as free. root: "/" (tests give a made-up tree). */
int64_t memory_available(const char *root);

#endif
