/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into `bench`: counts the allocations of supervisor or worker and fails the nth, or all
 * from it on. FAIL_ALLOC = "supervisor|worker once|after N" (N = 0: none); FAIL_ALLOC_COUNT names a
 * file of one int64 that receives the highest count. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own names: no dlsym, which allocates itself. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *memalign(size_t, size_t);
void *mmap64(void *, size_t, int, int, int, off_t);

static atomic_llong count;
static long long fails_at;
static bool fails_after, counts;
static atomic_llong *highest;

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    (void)environment;
    const char *order = getenv("FAIL_ALLOC"), *path = getenv("FAIL_ALLOC_COUNT");
    const bool worker = argc > 1 && !strcmp(argv[1], "worker");
    char who[16], mode[16];
    if (!order || sscanf(order, "%15s %15s %lld", who, mode, &fails_at) != 3) return;
    if (strcmp(who, worker ? "worker" : "supervisor") != 0) return;
    fails_after = !strcmp(mode, "after");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = (void *)syscall(SYS_mmap, NULL, sizeof *highest, PROT_READ | PROT_WRITE,
                                   MAP_SHARED, fd, 0);
        highest = at == MAP_FAILED ? NULL : at;
        close(fd);
    }
    counts = true;
}

static bool fails(void) {
    if (!counts) return false;
    const long long n = atomic_fetch_add(&count, 1) + 1;
    if (highest && n > *highest) *highest = n; /* nearly: threads may race for it */
    if (!fails_at || (fails_after ? n < fails_at : n != fails_at)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t n) { return fails() ? NULL : __libc_realloc(old, n); }
void *memalign(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }
void *aligned_alloc(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }
int posix_memalign(void **to, size_t align, size_t n) {
    void *p = fails() ? NULL : __libc_memalign(align, n);
    if (p) *to = p;
    return p ? 0 : ENOMEM;
}

static void *map(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    if (fails()) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    return map(at, n, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    return map(at, n, protection, flags, fd, offset);
}
