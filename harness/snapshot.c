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

#define PIECES_MOST 4096
struct piece {
    uint64_t key;    /* hash of the name */
    uint64_t offset; /* from the start of the mapping */
    uint64_t bytes, digest;
    uint64_t ready;
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

int snapshot_open(struct snapshot **out, int fd, struct err *err) {
    struct stat st;
    if (fstat(fd, &st)) return err_system(err, errno, "no snapshot memory");
    size_t room = (size_t)st.st_size;
    void *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return err_system(err, errno, "cannot map the snapshot memory");
    struct snapshot *s = must_alloc(sizeof *s);
    s->directory = at;
    s->room = room;
    if (s->directory->used == 0)
        s->directory->used = (sizeof(struct directory) + 4095) / 4096 * 4096;
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

void *snapshot_piece(struct snapshot *s, const char *key, size_t bytes, bool *ready) {
    struct directory *d = s->directory;
    struct piece *p = find(s, key);
    *ready = false;
    if (!p || p->bytes != bytes) { /* another size: a new piece; the old one's room is not reused */
        if (d->n >= PIECES_MOST || bytes > s->room || d->used > s->room - bytes) return NULL;
        if (!p) p = &d->pieces[d->n++];
        *p = (struct piece){
            .key = hash_bytes(key, strlen(key), 0), .offset = d->used, .bytes = bytes};
        d->used += (bytes + 4095) / 4096 * 4096;
    }
    void *data = (char *)d + p->offset;
    *ready = p->ready && p->digest == hash_bytes(data, bytes, p->key);
    return data;
}

void snapshot_ready(struct snapshot *s, const char *key) {
    struct piece *p = find(s, key);
    if (!p) return;
    p->digest = hash_bytes((char *)s->directory + p->offset, p->bytes, p->key);
    p->ready = 1;
}
