/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of clocks and heat, over the CPUs that are online. */
#ifndef PROBES_COMMON_FREQUENCY_H
#define PROBES_COMMON_FREQUENCY_H
#include <stdbool.h>
#include <stdint.h>

/* Mean of what the kernel states as the present frequency, in GHz: cpufreq, else /proc/cpuinfo
 * unless a hypervisor is below (there it is a constant). NAN where neither says it. */
double frequency_now(const char *root);
/* Events of thermal throttling since boot, cores and packages; -1 where the CPU does not count
 * them. */
int64_t frequency_throttles(const char *root);

#endif
