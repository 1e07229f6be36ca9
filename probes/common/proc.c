/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/stat and the run-queue accounts of threads; a file that looks otherwise than expected
 * counts as absent. */
#include "probes/common/proc.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/common/tree.h"

bool proc_machine_ticks(struct machine_ticks *ticks, const char *root) {
    enum { USER, NICE, SYSTEM, IDLE, WAIT, IRQ, SOFT, STEAL, FIELDS };
    char line[512];
    int64_t v[FIELDS];
    if (!tree_line(line, sizeof line, root, "proc/stat") || strncmp(line, "cpu ", 4)) return false;
    const char *at = line + 4;
    for (int i = 0; i < FIELDS; i++)
        if (!take_number(&at, &v[i]) || v[i] < 0 || v[i] > INT64_MAX / FIELDS) return false;
    ticks->busy = v[USER] + v[NICE] + v[SYSTEM] + v[IRQ] + v[SOFT];
    ticks->idle = v[IDLE] + v[WAIT];
    ticks->steal = v[STEAL];
    ticks->total = ticks->busy + ticks->idle + ticks->steal;
    return true;
}

/* Adds to the total what thread `tid` waited beyond what is known of it. A smaller number than
 * before is another thread under a number used again. */
static void account(struct thread_waits *w, int tid, int64_t wait_ns) {
    int i = 0;
    while (i < w->n && w->thread[i].tid != tid) i++;
    if (i == WAIT_MOST_THREADS) return;
    if (i == w->n) {
        w->n++;
        w->thread[i].tid = tid;
        w->thread[i].wait_ns = 0;
    }
    int64_t before = wait_ns >= w->thread[i].wait_ns ? w->thread[i].wait_ns : 0;
    w->total_ns += wait_ns - before;
    w->thread[i].wait_ns = wait_ns;
}

bool proc_thread_waits(struct thread_waits *w, const char *root) {
    char path[PATH_MAX];
    bool any = false;
    snprintf(path, sizeof path, "%s/proc/self/task", root && strcmp(root, "/") ? root : "");
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char line[128], *end;
        const char *at = line;
        int64_t ran, waited;
        long tid = strtol(e->d_name, &end, 10);
        if (tid <= 0 || tid > INT_MAX || *end) continue;
        if (!tree_line(line, sizeof line, root, "proc/self/task/%ld/schedstat", tid)) continue;
        if (!take_number(&at, &ran) || !take_number(&at, &waited) || waited < 0) continue;
        account(w, (int)tid, waited);
        any = true;
    }
    closedir(dir);
    return any;
}
