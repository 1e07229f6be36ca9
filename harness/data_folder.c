/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that belong to the program lie, and how much memory this process may use. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/protocol.h"

static bool is_folder(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* root/which in buf, if it is a folder. */
static const char *try_root(const char *root, const char *which, char *buf, size_t size) {
    int n = snprintf(buf, size, "%s/%s", root, which);
    char plain[PATH_MAX];
    if (n <= 0 || (size_t)n >= size || !is_folder(buf)) return NULL;
    if (realpath(buf, plain) && strlen(plain) < size) memcpy(buf, plain, strlen(plain) + 1);
    return buf;
}

static bool program_folder(char *folder, size_t size) {
    ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    if (n <= 0) return false;
    folder[n] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

const char *data_folder(const char *which) {
    /* One buffer for each that is asked for: callers keep the answer. */
    static char protocols[PATH_MAX], plots[PATH_MAX], other[PATH_MAX];
    char *buf = !strcmp(which, "protocols") ? protocols : !strcmp(which, "plots") ? plots : other;
    char here[PATH_MAX - 64], root[PATH_MAX];
    const char *named = getenv("BENCH_DATA");
    if (named && *named) return try_root(named, which, buf, PATH_MAX);
    if (program_folder(here, sizeof here)) {
        /* PREFIX/bin/bench, then build/PRESET/bench. */
        snprintf(root, sizeof root, "%s/../share/bench", here);
        if (try_root(root, which, buf, PATH_MAX)) return buf;
        snprintf(root, sizeof root, "%s/../..", here);
        if (try_root(root, which, buf, PATH_MAX)) return buf;
    }
#ifdef BENCH_SOURCE_DIR
    /* A build folder elsewhere: only programs that were never installed come here. */
    if (try_root(BENCH_SOURCE_DIR, which, buf, PATH_MAX)) return buf;
#endif
    return NULL;
}

/* A number on the first line of a file; -1 if there is none ("max", no file). */
static int64_t read_number(const char *path) {
    char line[64];
    int64_t v = -1;
    FILE *f = fopen(path, "re");
    if (!f) return -1;
    if (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!parse_i64(line, &v) || v < 0) v = -1;
    }
    fclose(f);
    return v;
}

static void lower(int64_t *limit, int64_t v) {
    if (v > 0 && v < *limit) *limit = v;
}

/* The limit of the group and of every group above it: the tightest one binds. */
static void group_limit(const char *mount, const char *group, const char *file, int64_t *limit) {
    char path[PATH_MAX], name[PATH_MAX];
    snprintf(name, sizeof name, "%s", group);
    for (;;) {
        int n = snprintf(path, sizeof path, "%s%s/%s", mount, name, file);
        if (n > 0 && (size_t)n < sizeof path) lower(limit, read_number(path));
        char *slash = strrchr(name, '/');
        if (!slash || !*name) return;
        *slash = 0;
    }
}

static void cgroup_limit(int64_t *limit) {
    char line[PATH_MAX];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        controllers++;
        /* Inside a container the path may be the host's; the mount's root then holds our limit. */
        if (!*controllers)
            group_limit("/sys/fs/cgroup", group, "memory.max", limit);
        else if (strstr(controllers, "memory"))
            group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", limit);
    }
    fclose(f);
}

int64_t memory_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t limit = pages > 0 && page > 0 ? (int64_t)pages * page : INT64_MAX;
    struct rlimit address;
    cgroup_limit(&limit);
    if (!getrlimit(RLIMIT_AS, &address) && address.rlim_cur != RLIM_INFINITY &&
        address.rlim_cur < (rlim_t)limit)
        limit = (int64_t)address.rlim_cur;
    return limit;
}
