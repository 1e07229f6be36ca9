/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of this process in user mode, where kernel and machine have them. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "probes/common/perf_reason.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

enum { CYCLES, INSTRUCTIONS, CACHE_MISSES, N_EVENTS, COUNTED = N_EVENTS, MOST_THREADS = 256 };
static const struct channel channels[] = {
    {"cycles", "", "core cycles in user mode, threads that were alive when the samples began", 1},
    {"instructions", "", "instructions completed in user mode, same threads", 1},
    {"cache_misses", "", "misses of the last cache level as the CPU defines them, same threads", 1},
    {"counted_share", "",
     "time in which the counters counted / time in which they should; below 1 the counts are scaled "
     "up",
     0},
    {0},
};

struct self {
    struct tree tree;
    int n;
    int fd[MOST_THREADS][N_EVENTS]; /* one group a thread; [CYCLES] leads it */
};

static int event_open(pid_t tid, uint64_t config, int group) {
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = config,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .read_format = PERF_FORMAT_GROUP |
                                                  PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING};
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static void perf_close(void *self) {
    struct self *s = self;
    for (int i = 0; i < s->n; i++)
        for (int e = N_EVENTS - 1; e >= 0; e--) close(s->fd[i][e]);
    s->n = 0;
}

/* 0 or errno; a thread that has ended meanwhile is no fault. */
static int thread_open(struct self *s, pid_t tid) {
    static const uint64_t configs[N_EVENTS] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                               PERF_COUNT_HW_CACHE_MISSES};
    int *fd = s->fd[s->n];
    for (int e = 0; e < N_EVENTS; e++) fd[e] = -1;
    for (int e = 0; e < N_EVENTS; e++) {
        fd[e] = event_open(tid, configs[e], e ? fd[CYCLES] : -1);
        if (fd[e] >= 0) continue;
        int why = errno;
        while (e-- > 0) close(fd[e]);
        return why == ESRCH ? 0 : why;
    }
    s->n++;
    return 0;
}

static int perf_open(void *self, struct err *err) {
    struct self *s = self;
    int64_t paranoid = PARANOID_UNKNOWN;
    DIR *dir = opendir("/proc/self/task");
    int why = dir ? 0 : errno;
    tree_number(&paranoid, s->tree.root, "proc/sys/kernel/perf_event_paranoid");
    for (struct dirent *e; dir && !why && (e = readdir(dir)) != NULL;) {
        long tid = strtol(e->d_name, NULL, 10);
        if (tid <= 0 || tid > INT_MAX) continue;
        why = s->n < MOST_THREADS ? thread_open(s, (pid_t)tid) : E2BIG;
    }
    if (dir) closedir(dir);
    if (!why && s->n) return 0;
    perf_close(s);
    return perf_reason(err, why, paranoid);
}

/* Sums over the threads; NAN where a group was never counted. */
static void perf_read(void *self, double *values) {
    struct self *s = self;
    double enabled = 0, running = 0;
    for (int e = 0; e <= COUNTED; e++) values[e] = e < N_EVENTS ? 0 : (double)NAN;
    for (int i = 0; i < s->n; i++) {
        struct {
            uint64_t n, enabled, running, value[N_EVENTS];
        } group;
        ssize_t got = read(s->fd[i][CYCLES], &group, sizeof group);
        if (got != (ssize_t)sizeof group || group.n != N_EVENTS ||
            (!group.running && group.enabled)) {
            for (int e = 0; e <= COUNTED; e++) values[e] = (double)NAN;
            return;
        }
        double up = group.running ? (double)group.enabled / (double)group.running : 0;
        for (int e = 0; e < N_EVENTS; e++) values[e] += up * (double)group.value[e];
        enabled += (double)group.enabled;
        running += (double)group.running;
    }
    if (enabled > 0) values[COUNTED] = running / enabled;
}

const struct probe probe_perf = {
    .name = "perf",
    .brief = "cycles, instructions and cache misses of the samples alone, in user mode",
    .when = PROBE_SAMPLE,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = perf_open,
    .read = perf_read,
    .close = perf_close,
};
