/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes by sysfs, and of pages by asking Linux (move_pages, which moves none where no nodes
 * are given). */
#include "kernels/cpu/numa.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/facts.h"

enum { MOST_NODES = 1024, SAMPLES = 16, PAGE = 4096 };

/* Whether a list of the kernel ("0-3,8") has the CPU. */
static bool has_cpu(const char *list, int cpu) {
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        const long first = strtol(at, &end, 10),
                   last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (cpu >= first && cpu <= last) return true;
        at = *end == ',' ? end + 1 : end;
    }
    return false;
}

static bool read_list(const char *root, int node, char *list, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, node);
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    const bool ok = fgets(list, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

int numa_nodes(const char *root, const int *cpus, int n, int *node) {
    char list[4096];
    int n_nodes = 0;
    for (int i = 0; i < n; i++) node[i] = -1;
    for (int k = 0; k < MOST_NODES; k++) { /* numbers may have gaps */
        bool used = false;
        if (!read_list(root, k, list, sizeof list)) continue;
        for (int i = 0; i < n; i++) {
            if (!has_cpu(list, cpus[i])) continue;
            node[i] = k;
            used = true;
        }
        n_nodes += used;
    }
    return n_nodes > 0 ? n_nodes : 1;
}

void numa_look(struct numa_pages *pages, const void *data, int64_t bytes, int node) {
    void *at[SAMPLES];
    int status[SAMPLES];
    const int64_t first = ((intptr_t)data + PAGE - 1) / PAGE, end = ((intptr_t)data + bytes) / PAGE;
    const int64_t n = end - first < SAMPLES ? end - first : SAMPLES;
    if (n < 1) return;
    for (int64_t i = 0; i < n; i++)
        at[i] = (void *)(intptr_t)((first + (end - first) * i / n) * PAGE);
    pages->looked += n;
    if (syscall(SYS_move_pages, 0, (unsigned long)n, at, NULL, status, 0) != 0) {
        if (pages->refused == 0) pages->refused = errno;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        pages->placed += status[i] >= 0;
        pages->near += status[i] >= 0 && status[i] == node;
    }
}

void numa_describe(struct facts *facts, int n_nodes, const struct numa_pages *pages) {
    if (n_nodes == 1)
        facts_set(facts, "device.numa", "one node", "", "");
    else if (pages->looked == 0)
        facts_printf(facts, "device.numa", "", "", "%d nodes", n_nodes);
    else if (pages->refused != 0)
        facts_printf(facts, "device.numa", "", "", "%d nodes; where pages are is not told: %s",
                     n_nodes, strerror(pages->refused));
    else
        facts_printf(facts, "device.numa", "", "",
                     "%d nodes; %.0f %% of the weights on that of their reader, by %lld pages",
                     n_nodes,
                     pages->placed > 0 ? 100.0 * (double)pages->near / (double)pages->placed : 0.0,
                     (long long)pages->placed);
}
