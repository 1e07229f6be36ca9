/* SPDX-License-Identifier: Apache-2.0 */
/* The walk up the control groups: one for limits of memory, of cores and for what a run says. */
#include "base/groups.h"

#include <stdio.h>
#include <string.h>

static bool named(const char *list, const char *controller) { /* "cpu,cpuacct" */
    const size_t n = strlen(controller);
    for (const char *at = list; *at; at += *at == ',') {
        const size_t len = strcspn(at, ",");
        if (len == n && !strncmp(at, controller, n)) return true;
        at += len;
    }
    return false;
}

/* A line is NUMBER:CONTROLLERS:PATH; version 2 has no controllers. Its path, or NULL. */
static const char *path_of(char *line, const char *controller) {
    line[strcspn(line, "\n")] = 0;
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path) return NULL;
    *path++ = 0;
    list++;
    return (controller ? named(list, controller) : !*list) ? path : NULL;
}

void groups_own(struct groups *g, const char *root, const char *controller) {
    char name[2 * PATH_MAX], line[PATH_MAX];
    int n = snprintf(g->folder, sizeof g->folder, "sys/fs/cgroup%s%s", controller ? "/" : "",
                     controller ? controller : "");
    g->mount = n > 0 && (size_t)n < sizeof g->folder ? (size_t)n : 0;
    n = snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *f = n > 0 && (size_t)n < sizeof name ? fopen(name, "re") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        const char *path = path_of(line, controller);
        if (!path || *path != '/' || !path[1]) continue;
        const size_t left = sizeof g->folder - g->mount;
        n = snprintf(g->folder + g->mount, left, "%s", path);
        if (n < 0 || (size_t)n >= left) g->folder[g->mount] = 0; /* cut, it would be another one */
    }
    if (f) fclose(f);
}

bool groups_up(struct groups *g) {
    char *slash = strrchr(g->folder + g->mount, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}
