/* SPDX-License-Identifier: Apache-2.0 */
/* The program that made a result, built once more from its revision. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/gate_live.h"
#include "harness/protocol.h"
#include "results/rows.h"

/* Runs a program to its end; its output goes to standard error. Whether it succeeded. */
static bool ran(char *const *argv, bool quiet) {
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        if (null >= 0) dup2(null, STDIN_FILENO);
        dup2(quiet && null >= 0 ? null : STDERR_FILENO, STDOUT_FILENO);
        if (quiet && null >= 0) dup2(null, STDERR_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char *join(const char *a, const char *b) {
    struct text t = {0};
    text_printf(&t, "%s%s", a, b);
    return text_take(&t);
}

/* Where this program's sources are, if they are a git checkout that knows the revision. */
static char *root_with(const char *revision) {
    const char *protocols = data_folder("protocols");
    char *root = protocols ? join(protocols, "/..") : NULL, *commit = join(revision, "^{commit}");
    char *argv[] = {"git", "-C", root, "cat-file", "-e", commit, NULL};
    const bool there = root && ran(argv, true);
    free(commit);
    if (there) return root;
    free(root);
    return NULL;
}

static int build(struct old_program *p, const char *revision, const char *type, struct err *err) {
    char template[] = "/tmp/bench-baseline-XXXXXX";
    if (!mkdtemp(template)) return err_set(err, ERR_SYSTEM, "no folder to build the baseline in");
    p->folder = must_text(template);
    char *source = join(template, "/source"), *out = join(template, "/build");
    char *kind = join("-DCMAKE_BUILD_TYPE=", type);
    char *checkout[] = {"git",      "-C",   p->root,
                        "worktree", "add",  "--quiet",
                        "--detach", source, (char *)(uintptr_t)revision,
                        NULL};
    char *configure[] = {"cmake", "-S", source, "-B", out, kind, "-DBENCH_TESTS=OFF", NULL};
    char jobs[24]; /* without a number make starts all at once */
    snprintf(jobs, sizeof jobs, "-j%ld", sysconf(_SC_NPROCESSORS_ONLN));
    char *compile[] = {"cmake", "--build", out, "--target", "bench", jobs, NULL};
    fprintf(stderr, "bench gate: building the baseline's program, revision %.12s\n", revision);
    int code = 0;
    if (!ran(checkout, false) || !ran(configure, true) || !ran(compile, true))
        code =
            err_set(err, ERR_INPUT,
                    "the baseline's program, revision %.12s, cannot be built here; --baseline-bin "
                    "PATH names one that was kept",
                    revision);
    else
        p->binary = join(out, "/bench");
    free(source);
    free(out);
    free(kind);
    return code;
}

int old_program_find(const struct tables *ts, struct old_program *p, struct err *err) {
    const char *digest = rows_environment(ts, "build.digest");
    const char *revision = rows_environment(ts, "build.revision");
    const char *dirty = rows_environment(ts, "build.dirty");
    const char *type = rows_environment(ts, "build.type");
    char own[17];
    int code = gate_file_digest("/proc/self/exe", own, err);
    *p = (struct old_program){NULL, NULL, NULL};
    if (code || !strcmp(own, digest)) return code;
    const bool known = *revision && strcmp(revision, "unknown") && !strcmp(dirty, "no");
    if (known) p->root = root_with(revision);
    if (p->root) return build(p, revision, *type ? type : "Release", err);
    return err_set(err, ERR_INPUT,
                   "the baseline's program (digest %s, revision %.12s%s) is not at hand: %s; "
                   "--baseline-bin PATH names it",
                   *digest ? digest : "unknown", *revision ? revision : "unknown",
                   strcmp(dirty, "yes") ? "" : ", changed",
                   known ? "no git checkout here knows that revision"
                         : "no revision holds what it was built from");
}

void old_program_free(struct old_program *p) {
    if (p->folder) {
        char *source = join(p->folder, "/source");
        char *forget[] = {"git", "-C", p->root, "worktree", "remove", "--force", source, NULL};
        char *erase[] = {"rm", "-rf", p->folder, NULL};
        ran(forget, true);
        ran(erase, true);
        free(source);
    }
    free(p->folder);
    free(p->root);
    free(p->binary);
    *p = (struct old_program){NULL, NULL, NULL};
}
