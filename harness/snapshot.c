/* SPDX-License-Identifier: Apache-2.0 */
/* What is dear is made once a run: named pieces with digests in one shared mapping. */
#include "harness/snapshot.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

#define PIECES_MOST 8192
#define PAGE        ((size_t)4096)
#define HUGE_PAGE   ((size_t)2 << 20) /* large pieces begin at a multiple, in every process */
struct piece {
    uint64_t key;    /* hash of the name */
    uint64_t offset; /* from the start of the mapping */
    uint64_t bytes, digest;
    uint64_t ready;
    uint64_t seed; /* of the digest: the name under which it was filled */
};
struct directory {
    uint64_t n, used;
    struct piece pieces[PIECES_MOST];
};
struct snapshot {
    struct directory *directory;
    size_t room;
};

int snapshot_create(int *fd, size_t room, struct err *err) {
    *fd = memfd_create("bench-snapshot", MFD_CLOEXEC);
    if (*fd < 0) return err_system(err, errno, "cannot create the snapshot memory");
    if (ftruncate(*fd, (off_t)(sizeof(struct directory) + room))) {
        return err_system(err, errno, "cannot size the snapshot memory");
    }
    return 0;
}

static size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* A place that starts on a 2 MiB boundary: reserves more and gives the ends back. Only the
   directory can be written; a piece can once it is asked for to be filled. */
static char *map_aligned(int fd, size_t room) {
    const size_t size = (room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *whole =
        mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return NULL;
    char *at = whole + (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
    if (mmap(at, room, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mprotect(at, whole_pages(sizeof(struct directory)), PROT_READ | PROT_WRITE)) {
        munmap(whole, size + HUGE_PAGE);
        return NULL;
    }
    if (at > whole) munmap(whole, (size_t)(at - whole));
    munmap(at + size, (size_t)(whole + HUGE_PAGE - at));
    return at;
}

int snapshot_open(struct snapshot **out, int fd, struct err *err) {
    struct stat st;
    if (fstat(fd, &st)) return err_system(err, errno, "no snapshot memory");
    size_t room = (size_t)st.st_size;
    char *at = map_aligned(fd, room);
    if (!at) return err_system(err, errno, "cannot map the snapshot memory");
    struct snapshot *s = must_alloc(sizeof *s);
    s->directory = (struct directory *)(void *)at;
    s->room = room;
    if (s->directory->used == 0) s->directory->used = whole_pages(sizeof(struct directory));
    *out = s;
    return 0;
}

void snapshot_close(struct snapshot **s) {
    if (!*s) return;
    munmap((*s)->directory, (*s)->room);
    free(*s);
    *s = NULL;
}

static struct piece *find(struct snapshot *s, const char *key) {
    uint64_t hash = hash_bytes(key, strlen(key), 0);
    for (uint64_t i = 0; i < s->directory->n && i < PIECES_MOST; i++) {
        if (s->directory->pieces[i].key == hash) return &s->directory->pieces[i];
    }
    return NULL;
}

/* Room for a piece; NULL: none is left. */
static struct piece *reserve(struct snapshot *s, struct piece *old, const char *key, size_t bytes) {
    struct directory *d = s->directory;
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    const uint64_t begin = (d->used + align - 1) / align * align;
    if ((!old && d->n >= PIECES_MOST) || bytes > s->room || begin > s->room - bytes) return NULL;
    struct piece *p = old ? old : &d->pieces[d->n++];
    const uint64_t hash = hash_bytes(key, strlen(key), 0);
    *p = (struct piece){.key = hash, .seed = hash, .offset = begin, .bytes = bytes};
    d->used = begin + whole_pages(bytes);
    return p;
}

void *snapshot_piece(struct snapshot *s, const char *key, size_t bytes, bool *ready) {
    struct directory *d = s->directory;
    struct piece *p = find(s, key);
    *ready = false;
    /* another size: a new piece; the old one's room is not reused */
    if (!p || p->bytes != bytes) p = reserve(s, p, key, bytes);
    if (!p) return NULL;
    void *data = (char *)d + p->offset;
    if (bytes && mprotect(data, whole_pages(bytes), PROT_READ | PROT_WRITE)) return NULL;
    *ready = p->ready && p->digest == hash_bytes(data, bytes, p->seed);
    return data;
}

void snapshot_ready(struct snapshot *s, const char *key) {
    struct piece *p = find(s, key);
    if (!p) return;
    p->digest = hash_bytes((char *)s->directory + p->offset, p->bytes, p->seed);
    p->ready = 1;
}

const void *snapshot_find(struct snapshot *s, const char *key, size_t bytes) {
    const struct piece *p = find(s, key);
    if (!p || p->bytes != bytes || !p->ready) return NULL;
    char *data = (char *)s->directory + p->offset;
    if (p->digest != hash_bytes(data, bytes, p->seed)) return NULL;
    mprotect(data, whole_pages(bytes), PROT_READ);
    return data;
}

void snapshot_alias(struct snapshot *s, const char *key, const char *of) {
    const struct piece *p = find(s, of);
    struct directory *d = s->directory;
    if (!p || find(s, key) || d->n >= PIECES_MOST) return;
    d->pieces[d->n] = *p;
    d->pieces[d->n++].key = hash_bytes(key, strlen(key), 0);
}

uint64_t snapshot_place(const struct snapshot *s, const void *p) {
    const char *begin = (const char *)s->directory, *at = p;
    return at >= begin && at < begin + s->room ? (uint64_t)(at - begin) : 0;
}
