/* SPDX-License-Identifier: Apache-2.0 */
/* A folder whose files a fuzz target writes again for each input. */
#ifndef TESTS_FUZZ_FOLDER_H
#define TESTS_FUZZ_FOLDER_H
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FOLDER_MOST = 4 };
static char folder[] = "/tmp/bench-fuzz-XXXXXX";
static char paths[FOLDER_MOST][60];

static inline void folder_remove(void) {
    for (int i = 0; i < FOLDER_MOST && paths[i][0]; i++) unlink(paths[i]);
    rmdir(folder);
}

static inline void put(int name, const void *data, size_t size) {
    FILE *file = fopen(paths[name], "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file)) abort();
}

/* At the first call, true: the folder, removed at exit, and the paths of n names in it. */
static inline int folder_make(const char *const *names, int n) {
    if (paths[0][0]) return 0;
    if (n > FOLDER_MOST || !mkdtemp(folder)) abort();
    for (int i = 0; i < n; i++) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    atexit(folder_remove);
    return 1;
}

#endif
