/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of two workers in one mapping, found by name or by their bytes. */
#include "harness/sharing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "harness/snapshot.h"

#define NEARLY 0.9 /* of the bytes of all weights: norms and biases are small, and apart */

struct held { /* a piece that this worker uses now */
    const void *at;
    size_t bytes;
};
struct sharing_store {
    struct sharing sharing;
    struct snapshot *pieces;
    struct held *held;
    size_t n, cap;
    uint64_t model;   /* 0: names do not hold */
    uint64_t program; /* names are of one program: another may pack otherwise */
};

static bool holds(const struct sharing_store *s, const void *p) {
    for (size_t i = 0; i < s->n; i++)
        if (s->held[i].at == p) return true;
    return false;
}

static void *hold(struct sharing_store *s, const void *p, size_t bytes) {
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->held = must_realloc(s->held, s->cap * sizeof *s->held);
    }
    s->held[s->n++] = (struct held){p, bytes};
    return (void *)(uintptr_t)p; /* the pages themselves are read-only */
}

static void name_key(const struct sharing_store *s, const char *what, size_t bytes, char key[160]) {
    snprintf(key, 160, "%016" PRIx64 " %016" PRIx64 " %zu %.80s", s->program, s->model, bytes,
             what);
}

static void *find(void *ctx, const char *what, size_t bytes) {
    struct sharing_store *s = ctx;
    char key[160];
    if (!s->model) return NULL;
    name_key(s, what, bytes, key);
    const void *p = snapshot_find(s->pieces, key, bytes);
    return p && !holds(s, p) ? hold(s, p, bytes) : NULL;
}

/* Two of this worker's own weights never share a piece, equal or not: they are meant to take up
 * room in caches. So the k-th copy of some bytes has a piece of its own. */
static void *offer(void *ctx, const char *what, const void *data, size_t bytes) {
    struct sharing_store *s = ctx;
    const uint64_t hash = hash_bytes(data, bytes, 0);
    char key[160], name[160];
    const void *p = NULL;
    for (int copy = 0;; copy++) {
        snprintf(key, sizeof key, "%016" PRIx64 " %zu %d", hash, bytes, copy);
        p = snapshot_find(s->pieces, key, bytes);
        if (!p || !holds(s, p)) break;
    }
    if (p && memcmp(p, data, bytes)) return NULL;
    if (!p) {
        bool ready;
        void *fresh = snapshot_piece(s->pieces, key, bytes, &ready);
        if (!fresh) return NULL;
        memcpy(fresh, data, bytes);
        snapshot_ready(s->pieces, key);
        p = snapshot_find(s->pieces, key, bytes);
        if (!p) return NULL;
    }
    if (s->model) {
        name_key(s, what, bytes, name);
        snapshot_alias(s->pieces, name, key);
    }
    return hold(s, p, bytes);
}

static bool let_go(void *ctx, const void *p) {
    struct sharing_store *s = ctx;
    for (size_t i = 0; i < s->n; i++) {
        if (s->held[i].at != p) continue;
        s->held[i] = s->held[--s->n];
        return true;
    }
    return false;
}

int sharing_open(struct sharing_store **out, int fd, struct err *err) {
    struct sharing_store *s = must_alloc(sizeof *s);
    char *program = NULL;
    size_t n = 0;
    s->sharing = (struct sharing){.find = find, .offer = offer, .release = let_go, .ctx = s};
    int code = snapshot_open(&s->pieces, fd, err);
    if (!code) code = file_read("/proc/self/exe", (size_t)1 << 30, &program, &n, err);
    if (!code) s->program = hash_bytes(program, n, 0);
    free(program);
    *out = s;
    if (code) sharing_close(out);
    return code;
}

void sharing_close(struct sharing_store **s) {
    if (!*s) return;
    snapshot_close(&(*s)->pieces);
    free((*s)->held);
    free(*s);
    *s = NULL;
}

const struct sharing *sharing_of(struct sharing_store *s) { return &s->sharing; }

void sharing_model(struct sharing_store *s, uint64_t weights_key) { s->model = weights_key; }

void sharing_place(const struct sharing_store *s, const struct device *device, char place[17]) {
    const int64_t all =
        tracker_live(device->tracker, MEM_WEIGHT) + tracker_live(device->tracker, MEM_SCALE);
    double shared = 0;
    uint64_t hash = 0; /* in no order */
    for (size_t i = 0; i < s->n; i++) {
        shared += (double)s->held[i].bytes;
        hash += random_mix(snapshot_place(s->pieces, s->held[i].at));
    }
    if (!all && !s->n)
        snprintf(place, 17, "none");
    else if (shared < NEARLY * (double)all)
        snprintf(place, 17, "private");
    else
        hash_text(place, hash);
}
