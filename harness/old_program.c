/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the program of an older revision in a worktree of its own. */
#include "harness/old_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/child.h"
#include "harness/gate_files.h"
#include "harness/protocol.h"
#include "results/rows.h"

#define LOOK_NS 20000000 /* between two looks whether a program has ended */

/* Runs a program to its end in a group of its own; its output goes to standard error. Whether it
   succeeded. Where it may be stopped, a wish to stop ends it and what it started. */
static bool ran(char *const *argv, bool quiet, bool may_stop) {
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        if (null >= 0) dup2(null, STDIN_FILENO);
        dup2(quiet && null >= 0 ? null : STDERR_FILENO, STDOUT_FILENO);
        if (quiet && null >= 0) dup2(null, STDERR_FILENO);
        signal(SIGPIPE, SIG_DFL);
        setpgid(0, 0);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0) return false;
    setpgid(pid, pid);
    for (bool told = false;;) {
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid) break;
        if (ended < 0 && errno != EINTR) return false;
        if (may_stop && stop_asked() && !told) {
            kill(-pid, SIGTERM);
            told = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
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
    const bool there = root && ran(argv, true, true);
    free(commit);
    if (there) return root;
    free(root);
    return NULL;
}

/* --- how it was built --- */

enum { MOST_DEFINITIONS = 16 };

/* Those that build.command may have: a result comes from anywhere, and others could run things. */
static bool is_taken(const char *word) {
    static const char *const names[] = {
        "CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_C_FLAGS",
        "CMAKE_CXX_FLAGS",  "BENCH_CUDA",       "BENCH_SANITIZE"};
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (n == strlen(names[i]) + 2 && !strncmp(word, "-D", 2) &&
            !strncmp(word + 2, names[i], n - 2))
            return true;
    return false;
}

/* The words -DNAME=VALUE of a command, whose values may stand in single quotes. */
static size_t definitions(const char *command, struct arena *arena, char **words, size_t most) {
    size_t n = 0;
    while (*(command += strspn(command, " "))) {
        struct text word = {0};
        for (bool quoted = false; *command && (quoted || *command != ' '); command++) {
            if (*command == '\'')
                quoted = !quoted;
            else
                text_add(&word, command, 1);
        }
        if (n < most && word.len && is_taken(word.data)) words[n++] = arena_text(arena, word.data);
        text_free(&word);
    }
    return n;
}

/* Of a result that knows its command; of an older one by its type alone. */
static size_t definitions_of(const struct tables *ts, struct arena *arena, char **words) {
    const char *command = rows_environment(ts, "build.command");
    const char *type = rows_environment(ts, "build.type");
    if (*command) return definitions(command, arena, words, MOST_DEFINITIONS);
    words[0] = arena_printf(arena, "-DCMAKE_BUILD_TYPE=%s", *type ? type : "Release");
    return 1;
}

static bool compile(const char *source, const char *out, char *const *defined, size_t n) {
    char *configure[MOST_DEFINITIONS + 8] = {"cmake",
                                             "-S",
                                             (char *)(uintptr_t)source,
                                             "-B",
                                             (char *)(uintptr_t)out,
                                             "-DBENCH_TESTS=OFF"};
    for (size_t i = 0; i < n; i++) configure[6 + i] = defined[i];
    char jobs[24]; /* without a number make starts all at once */
    snprintf(jobs, sizeof jobs, "-j%ld", sysconf(_SC_NPROCESSORS_ONLN));
    char *make[] = {"cmake", "--build", (char *)(uintptr_t)out, "--target", "bench", jobs, NULL};
    return ran(configure, true, true) && ran(make, true, true);
}

/* In a folder of its own, of which only the program stays. */
static int build(const struct tables *ts, struct old_program *p, char *root, const char *revision,
                 struct err *err) {
    char template[] = "/tmp/bench-baseline-XXXXXX", *words[MOST_DEFINITIONS];
    if (!mkdtemp(template)) return err_set(err, ERR_SYSTEM, "no folder to build the baseline in");
    struct arena *arena = arena_create();
    p->folder = must_text(template);
    p->binary = join(template, "/bench");
    char *source = join(template, "/source"), *out = join(template, "/build");
    char *made = join(out, "/bench");
    char *checkout[] = {"git",      "-C",   root,
                        "worktree", "add",  "--quiet",
                        "--detach", source, (char *)(uintptr_t)revision,
                        NULL};
    char *forget[] = {"git", "-C", root, "worktree", "remove", "--force", source, NULL};
    char *erase[] = {"rm", "-rf", source, out, NULL};
    fprintf(stderr, "bench gate: building the baseline's program, revision %.12s\n", revision);
    const bool built = ran(checkout, false, true) &&
                       compile(source, out, words, definitions_of(ts, arena, words)) &&
                       !rename(made, p->binary);
    ran(forget, true, false);
    ran(erase, true, false);
    if (!built) old_program_free(p);
    free(source);
    free(out);
    free(made);
    arena_close(&arena);
    return built ? 0 : ERR_INPUT;
}

/* Why it is not there, how it was built, and what helps. */
static int not_at_hand(const struct tables *ts, const char *revision, const char *why,
                       struct err *err) {
    const char *command = rows_environment(ts, "build.command");
    const char *digest = rows_environment(ts, "build.digest");
    const bool dirty = !strcmp(rows_environment(ts, "build.dirty"), "yes");
    return err_set(
        err, ERR_INPUT,
        "the baseline's program (digest %s, revision %.12s%s) is not at hand: %s%s%.400s; "
        "--baseline-bin PATH names one that was kept",
        *digest ? digest : "unknown", *revision ? revision : "unknown", dirty ? ", changed" : "",
        why, *command ? "; it was built by " : "", command);
}

int old_program_find(const struct tables *ts, bool may_build, struct old_program *p,
                     struct err *err) {
    const char *revision = rows_environment(ts, "build.revision");
    const bool clean = !strcmp(rows_environment(ts, "build.dirty"), "no");
    char own[17];
    int code = gate_file_digest("/proc/self/exe", own, err);
    *p = (struct old_program){.folder = NULL};
    if (code || !strcmp(own, rows_environment(ts, "build.digest"))) return code;
    if (!*revision || !strcmp(revision, "unknown") || !clean)
        return not_at_hand(ts, revision, "no revision holds what it was built from", err);
    struct stop_watch *stop = stop_watch();
    char *root = root_with(revision);
    if (!root)
        code = not_at_hand(ts, revision, "no git checkout here knows that revision", err);
    else if (!may_build)
        snprintf(p->revision, sizeof p->revision, "%.12s", revision);
    else if (build(ts, p, root, revision, err))
        code = not_at_hand(ts, revision, "it cannot be built here", err);
    if (code && stop_asked()) {
        *err = (struct err){0};
        code = err_set(err, ERR_INTERRUPTED, "interrupted; nothing was measured");
    }
    stop_unwatch(&stop);
    free(root);
    return code;
}

void old_program_free(struct old_program *p) {
    if (p->binary) unlink(p->binary);
    if (p->folder) rmdir(p->folder);
    free(p->folder);
    free(p->binary);
    *p = (struct old_program){.folder = NULL};
}
