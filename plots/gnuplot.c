/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a child: no shell, no settings of the user's, no input, a time limit, and files by
 * their final name only. */
#include "plots/gnuplot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

enum { TIMEOUT_MS = 20000, POLL_MS = 5, OUTPUT_MOST = 64 << 20 };
#define LOG_NAME "messages"

extern char **environ;

struct gnuplot {
    char *folder;
};

int gnuplot_open(struct gnuplot **out, struct err *err) {
    const char *tmp = getenv("TMPDIR");
    struct text t = {0};
    *out = NULL;
    text_printf(&t, "%s/bench-plot-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(t.data)) {
        int rc = err_system(err, errno, "cannot make a temporary folder '%s'", t.data);
        text_free(&t);
        return rc;
    }
    *out = must_alloc(sizeof **out);
    (*out)->folder = text_take(&t);
    return 0;
}

static char *path_of(const struct gnuplot *g, const char *name) {
    struct text t = {0};
    text_printf(&t, "%s/%s", g->folder, name);
    return text_take(&t);
}

void gnuplot_close(struct gnuplot **g) {
    if (!*g) return;
    DIR *dir = opendir((*g)->folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir) closedir(dir);
    rmdir((*g)->folder);
    free((*g)->folder);
    free(*g);
    *g = NULL;
}

int gnuplot_file(struct gnuplot *g, const char *name, const char *data, size_t len,
                 struct err *err) {
    char *path = path_of(g, name);
    FILE *f = fopen(path, "we");
    bool ok = f && fwrite(data, 1, len, f) == len;
    if (f && fclose(f)) ok = false;
    int rc = ok ? 0 : err_system(err, errno, "cannot write '%s'", path);
    free(path);
    return rc;
}

/* Waits at most TIMEOUT_MS; a child that is still there is killed. */
static int wait_for(pid_t child, int *status, struct err *err) {
    const struct timespec nap = {0, POLL_MS * 1000000L};
    for (int waited = 0; waited < TIMEOUT_MS; waited += POLL_MS) {
        pid_t got = waitpid(child, status, WNOHANG);
        if (got == child) return 0;
        if (got < 0 && errno != EINTR) return err_system(err, errno, "cannot wait for gnuplot");
        nanosleep(&nap, NULL);
    }
    kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR) {}
    return err_set(err, ERR_TIMEOUT, "gnuplot did not end within %d s", TIMEOUT_MS / 1000);
}

/* The first line that says something: gnuplot repeats the command and marks the place with a caret
 * before it. */
static int complain(const struct gnuplot *g, int status, struct err *err) {
    char *path = path_of(g, LOG_NAME), *log = NULL;
    const char *line = "no message";
    size_t len;
    if (!file_read(path, 1 << 20, &log, &len, NULL)) {
        const char *found = strstr(log, "line ");
        if (!found) found = log + strspn(log, " \n\t^");
        if (*found) line = found;
        log[(size_t)(line - log) < len ? (size_t)(line - log) + strcspn(line, "\n") : len] = 0;
    }
    int rc = WIFSIGNALED(status) ? err_set(err, ERR_SYSTEM, "gnuplot died of signal %d: %.300s",
                                           WTERMSIG(status), line)
                                 : err_set(err, ERR_SYSTEM, "gnuplot failed: %.300s", line);
    free(log);
    free(path);
    return rc;
}

int gnuplot_run(struct gnuplot *g, const char *script, struct err *err) {
    char *const argv[] = {"gnuplot", "-d", (char *)script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0, rc;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    char *log = path_of(g, LOG_NAME);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_addchdir_np(&actions, g->folder);
    int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(log);
    if (failed == ENOENT || failed == EACCES || failed == ENOTDIR)
        return err_set(err, ERR_UNSUPPORTED, "gnuplot is not installed: no picture was drawn");
    if (failed) return err_system(err, failed, "cannot start gnuplot");
    rc = wait_for(child, &status, err);
    if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status))) {
        if (WIFEXITED(status) &&
            WEXITSTATUS(status) == 127) /* as spawn reports it where it forks */
            return err_set(err, ERR_UNSUPPORTED, "gnuplot is not installed: no picture was drawn");
        rc = complain(g, status, err);
    }
    return rc;
}

int gnuplot_take(struct gnuplot *g, const char *name, const char *path, struct err *err) {
    char *from = path_of(g, name), *data = NULL;
    size_t len = 0;
    int rc = file_read(from, OUTPUT_MOST, &data, &len, err);
    if (rc)
        err_set(err, ERR_SYSTEM, "gnuplot made no %s", name);
    else if (!len)
        rc = err_set(err, ERR_SYSTEM, "gnuplot made an empty %s", name);
    else
        rc = file_write(path, data, len, err);
    free(data);
    free(from);
    return rc ? err ? err->code : rc : 0;
}
