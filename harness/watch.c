/* SPDX-License-Identifier: Apache-2.0 */
/* What disturbs a visit, read from the kernel between samples. */
#include "harness/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/machine.h"
#include "probes/common/clock_rate.h"
#include "probes/common/tree.h"

/* Time in the run queue of all threads: field 2 of /proc/self/task/TID/schedstat. */
static int64_t wait_of_threads(void) {
    DIR *dir = opendir("/proc/self/task");
    if (!dir) return -1;
    int64_t sum = 0;
    bool any = false;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        char path[300], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        ssize_t n = read(fd, line, sizeof line - 1);
        close(fd);
        if (n <= 0) continue;
        line[n] = 0;
        long long ran, waited;
        if (sscanf(line, "%lld %lld", &ran, &waited) == 2) sum += waited, any = true;
    }
    closedir(dir);
    return any ? sum : -1;
}

void watch_quick(struct watch *w) {
    struct rusage usage;
    *w = (struct watch){.steal_ticks = -1, .busy_ticks = -1, .total_ticks = -1, .rss_peak = -1};
    getrusage(RUSAGE_SELF, &usage);
    w->cpu_ns = ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
                ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
    w->involuntary = usage.ru_nivcsw;
    w->faults = usage.ru_minflt + usage.ru_majflt;
    w->wait_ns = wait_of_threads();
    w->wall_ns = clock_ns();
}

void watch_read(struct watch *w) {
    struct machine_load load;
    watch_quick(w);
    machine_load(&load);
    /* Not ru_maxrss: exec hands that one on from a parent that may have been larger. */
    if (!tree_kib(&w->rss_peak, "VmHWM", NULL, "proc/self/status")) w->rss_peak = -1;
    w->steal_ticks = load.steal_ticks;
    w->busy_ticks = load.busy_ticks;
    w->total_ticks = load.total_ticks;
}

/* For 2 ms and more: after AVX-512 and AMX the clock stays lowered for about one, and what slows a
 * core down for longer is looked for. */
double watch_clock_rate(void) { return clock_rate(100); }
