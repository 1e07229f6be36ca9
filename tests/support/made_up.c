/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes trees of small files. */
#include "tests/support/made_up.h"

#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    abort();
}

void made_up_open(struct made_up *m) {
    const char *folder = getenv("TMPDIR");
    snprintf(m->root, sizeof m->root, "%s/bench-tree-XXXXXX",
             folder && strlen(folder) < 40 ? folder : "/tmp");
    must(mkdtemp(m->root) != NULL, m->root);
}

void made_up_close(struct made_up *m) {
    char *paths[] = {m->root, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    must(walk != NULL, m->root);
    for (FTSENT *e; (e = fts_read(walk)) != NULL;)
        if (e->fts_info != FTS_D) remove(e->fts_path);
    fts_close(walk);
}

void made_up_file(const struct made_up *m, const char *path, const char *text) {
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", m->root, path);
    for (char *slash = full + strlen(m->root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    must(f != NULL, full);
    fputs(text, f);
    must(fclose(f) == 0, full);
}

void made_up_remove(const struct made_up *m, const char *path) {
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", m->root, path);
    must(remove(full) == 0, full);
}
