/* SPDX-License-Identifier: Apache-2.0 */
/* cpufreq, /proc/cpuinfo and thermal_throttle, read strictly. */
#include "probes/common/frequency.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "probes/common/tree.h"

struct sum {
    const char *root;
    double khz;
    int64_t events;
    int n, n_counters;
};

static void add_frequency(void *ctx, int cpu) {
    struct sum *s = ctx;
    int64_t khz;
    if (!tree_number(&khz, s->root, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu) ||
        khz <= 0)
        return;
    s->khz += (double)khz;
    s->n++;
}

static void add_throttles(void *ctx, int cpu) {
    static const char *const of[] = {"core", "package"};
    struct sum *s = ctx;
    for (int i = 0; i < 2; i++) {
        int64_t n;
        if (!tree_number(&n, s->root,
                         "sys/devices/system/cpu/cpu%d/thermal_throttle/%s_throttle_count", cpu,
                         of[i]) ||
            n < 0)
            continue;
        s->events += n;
        s->n_counters++;
    }
}

static void each_cpu(struct sum *s, void (*look)(void *, int)) {
    char list[4096];
    if (!tree_line(list, sizeof list, s->root, "sys/devices/system/cpu/online") ||
        cpu_list(list, look, s) < 0)
        s->n = s->n_counters = 0;
}

double frequency_now(const char *root) {
    char text[4096];
    double mhz;
    struct sum s = {.root = root};
    each_cpu(&s, add_frequency);
    if (s.n) return 1e-6 * s.khz / s.n;
    if (!tree_keyed(text, sizeof text, "flags", root, "proc/cpuinfo") ||
        strstr(text, " hypervisor"))
        return (double)NAN;
    if (!tree_keyed(text, sizeof text, "cpu MHz", root, "proc/cpuinfo") || !parse_f64(text, &mhz))
        return (double)NAN;
    return mhz > 0 ? 1e-3 * mhz : (double)NAN;
}

int64_t frequency_throttles(const char *root) {
    struct sum s = {.root = root};
    each_cpu(&s, add_throttles);
    return s.n_counters ? s.events : -1;
}
