/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out; a file that is written is never seen half-written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

/* A path the user named and the system refused is the user's mistake. */
static int cannot_read(struct err *err, int errno_value, const char *path) {
    err_system(err, errno_value, "cannot read '%s'", path);
    if (err) err->code = ERR_INPUT;
    return ERR_INPUT;
}

int file_read(const char *path, size_t limit, char **data, size_t *len, struct err *err) {
    *data = NULL;
    struct text t = {0};
    /* Opening a pipe must not wait for somebody to write; reading one that has a writer may. */
    int code = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return cannot_read(err, errno, path);
    fcntl(fd, F_SETFL, 0);
    char *chunk = must_alloc(1 << 16);
    for (;;) {
        ssize_t n = read(fd, chunk, 1 << 16);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            code = cannot_read(err, errno, path);
            goto out;
        }
        if (n == 0) break;
        if ((size_t)n > limit - t.len) {
            code = err_set(err, ERR_INPUT, "'%s' has more than %zu bytes, which is the limit", path,
                           limit);
            goto out;
        }
        text_add(&t, chunk, (size_t)n);
    }
    if (len) *len = t.len;
    *data = text_take(&t);
out:
    free(chunk);
    text_free(&t);
    close(fd);
    return code;
}

static int write_all(int fd, const char *p, size_t len) {
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The name itself is only safe once its folder is. */
static int sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = must_text(slash ? path : ".");
    if (slash) folder[slash == path ? 1 : slash - path] = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = 0;
    if (fd < 0 || fsync(fd)) e = errno;
    if (fd >= 0) close(fd);
    free(folder);
    return e == EINVAL || e == EACCES
               ? 0
               : e; /* some file systems cannot; some folders only take files */
}

/* Devices, pipes and links (/dev/stdout) are written to: a rename would put a file in their place.
 */
static bool is_special(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int write_into(const char *path, const void *data, size_t len, struct err *err) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), e = 0;
    if (fd >= 0) {
        fcntl(fd, F_SETFL, 0); /* only opening a pipe that nobody reads must not wait */
        e = write_all(fd, data, len);
        if (close(fd) && !e) e = errno;
    } else {
        e = errno;
    }
    return e ? err_system(err, e, "cannot write '%s'", path) : 0;
}

int file_write(const char *path, const void *data, size_t len, struct err *err) {
    if (is_special(path)) return write_into(path, data, len, err);
    struct text aside = {0};
    text_printf(&aside, "%s.tmp-%ld", path, (long)getpid());
    int code = 0, e = 0;
    int fd = open(aside.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        code = err_system(err, errno, "cannot write '%s'", path);
        goto out;
    }
    e = write_all(fd, data, len);
    if (!e && fsync(fd)) e = errno;
    if (close(fd) && !e) e = errno;
    if (!e && rename(aside.data, path)) e = errno;
    if (e)
        unlink(aside.data);
    else
        e = sync_folder_of(path);
    if (e) code = err_system(err, e, "cannot write '%s'", path);
out:
    text_free(&aside);
    return code;
}

bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

int make_dirs(const char *path, struct err *err) {
    char *part = must_text(path);
    int e = 0;
    for (char *p = part; !e && *p; p++) {
        if (p[1] && p[1] != '/') continue; /* not at the end of a name */
        char kept = p[1];
        p[1] = 0;
        struct stat st;
        if (mkdir(part, 0777) && errno != EEXIST) e = errno;
        if (stat(part, &st) == 0)
            e = S_ISDIR(st.st_mode)
                    ? 0
                    : ENOTDIR; /* a read-only parent that is there already is fine */
        p[1] = kept;
    }
    free(part);
    return e ? err_system(err, e, "cannot make the folder '%s'", path) : 0;
}
