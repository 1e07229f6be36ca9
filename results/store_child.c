/* SPDX-License-Identifier: Apache-2.0 */
/* One child for one job of the HDF5 library, and its answer through a pipe. */
#include "results/store_child.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

enum { BLOCK_BYTES = 64 * 1024 };

/* ---- in the child */

static bool lacked_memory;

static herr_t note_one(unsigned n, const H5E_error2_t *error, void *ctx) {
    (void)n, (void)ctx;
    if (error->maj_num == H5E_RESOURCE || error->min_num == H5E_NOSPACE ||
        error->min_num == H5E_CANTALLOC)
        lacked_memory = true;
    return 0;
}

static herr_t note_failure(hid_t stack, void *ctx) {
    H5Ewalk2(stack, H5E_WALK_UPWARD, note_one, ctx);
    return 0;
}

void store_watch_memory(void) {
    lacked_memory = false;
    H5Eset_auto2(H5E_DEFAULT, note_failure, NULL);
}

bool store_lacked_memory(void) { return lacked_memory; }

static _Noreturn void child_main(int fd, void (*work)(void *, struct text *), void *ctx) {
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGPIPE};
    struct text out = {0};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) { /* what a dying library prints is no sentence of ours */
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    work(ctx, &out);
    for (size_t at = 0; at < out.len;) {
        ssize_t n = write(fd, out.data + at, out.len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(3);
        at += (size_t)n;
    }
    _exit(0); /* closing a damaged file is one more chance to die */
}

/* ---- in the parent */

static int answer_collect(int fd, int wall_seconds, const char *what, const char *path,
                          struct text *answer, struct err *err) {
    int64_t until = clock_ns() + (int64_t)wall_seconds * 1000000000;
    char block[BLOCK_BYTES];
    for (;;) {
        int64_t left = (until - clock_ns()) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = !wall_seconds ? poll(&p, 1, -1) : left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0)
            return err_set(err, ERR_INPUT, "%s: to %s it took longer than %d s", path, what,
                           wall_seconds);
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_system(err, errno, "%s: cannot read the child's answer", path);
        if (n == 0) return 0;
        text_add(answer, block, (size_t)n);
    }
}

int store_child(void (*work)(void *ctx, struct text *out), void *ctx, int wall_seconds,
                const char *what, const char *path, struct text *answer, int *status,
                struct err *err) {
    int fds[2];
    *status = 0;
    if (pipe2(fds, O_CLOEXEC)) return err_system(err, errno, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0) {
        int code = err_system(err, errno, "cannot start a child to %s %s", what, path);
        close(fds[0]);
        close(fds[1]);
        return code;
    }
    if (!child) child_main(fds[1], work, ctx);
    close(fds[1]);
    int code = answer_collect(fds[0], wall_seconds, what, path, answer, err);
    close(fds[0]);
    if (code) kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR) {}
    return code;
}
