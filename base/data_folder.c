/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that belong to the program lie. */
#include "base/data_folder.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
